"""Priors trained on past tasks: H-NLL, H-EKL, FSBO, ABLR."""
