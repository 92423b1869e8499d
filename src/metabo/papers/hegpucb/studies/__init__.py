"""Studies of HE-GP-UCB's figures."""
