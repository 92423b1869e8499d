"""Checks of the papers' theory: statements as functions, decided by rules with intervals and negative controls."""
