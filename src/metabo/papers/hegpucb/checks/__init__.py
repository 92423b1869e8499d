"""Checks of HE-GP-UCB's claims."""
