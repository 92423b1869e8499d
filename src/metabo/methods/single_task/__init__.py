"""STBO and STBOH: a GP fitted to the new task alone."""
