"""Checks of cm-BO's claims."""
