"""Checks of MPHD's claims."""
