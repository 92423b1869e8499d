"""Tasks, search spaces and benchmarks, and what methods learn from."""
