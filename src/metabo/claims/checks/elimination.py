"""Checks of HE-GP-UCB."""
