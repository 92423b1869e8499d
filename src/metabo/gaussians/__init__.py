"""Gaussian distributions as objects: distances between them, k-means, and barycenters (cm-BO)."""
