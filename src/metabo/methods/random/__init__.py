"""Random search."""
