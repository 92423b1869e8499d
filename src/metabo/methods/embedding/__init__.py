"""Networks with an embedding of each task, trained at every iteration: MIMO and RFGP."""
