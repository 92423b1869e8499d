"""What a notebook calls, and what runs one: tables in, figures and numbers out, settings from the records."""
