"""Gaussian processes: kernels, means, features, the model and its objectives."""
