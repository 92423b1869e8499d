"""Tasks, search spaces, benchmarks, and the training data of methods."""
