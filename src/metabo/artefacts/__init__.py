"""What notebooks call, and what runs them: tables in, figures and numbers out, settings from the records."""
