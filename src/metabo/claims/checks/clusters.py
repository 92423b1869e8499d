"""Checks of cm-BO."""
