"""Figures of HyperBO alone."""
