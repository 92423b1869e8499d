"""Elimination of hyperparameters (HE-GP-UCB), in problems with known candidates and among pre-trained priors."""
