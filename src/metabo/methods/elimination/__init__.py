"""Elimination of hyperparameters (HE-GP-UCB), of problems with known candidates and of pre-trained priors."""
