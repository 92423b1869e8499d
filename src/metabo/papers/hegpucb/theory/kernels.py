"""What the instances need besides the kernels of `metabo.papers.hegpucb.problems`: RBF between two sets, hills of any
number."""

import numpy as np
from jaxtyping import Float


def rbf(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " m"], lengthscale: float) -> Float[np.ndarray, "n m"]:
    """Return exp(-(a - b)²/(2ℓ²)) of points in one dimension."""
    return np.exp(-0.5 * ((a[:, None] - b) / lengthscale) ** 2)


def hills(
    x: Float[np.ndarray, " n"], tallest: int | None, count: int = 10, height: float = 4.0
) -> Float[np.ndarray, " n"]:
    """Return the mean with `count` hills of height 2 and half-width 0.4/count on [0, 1], `tallest` (from 0) higher."""
    centres = (np.arange(count) + 0.5) / count
    heights = np.where(np.arange(count) == (-1 if tallest is None else tallest), height, 2.0)
    off = (x[:, None] - centres) / (0.4 / count)
    return np.sum(heights * 0.5 * (1.0 + np.cos(np.pi * off)) * (np.abs(off) < 1.0), axis=1)
