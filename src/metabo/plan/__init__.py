"""What to run: configuration, registered names, catalogue, and the code of each job. Nothing here imports JAX."""
