"""Metrics of HyperBO alone."""
