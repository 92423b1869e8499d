"""Checks of HyperBO's claims."""
