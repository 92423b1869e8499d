"""A user's past studies: the CSV files, the description of their columns, and what is read from them."""
