"""Rows of tasks as arrays, padded to one shape: what training reads."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float

AnyArray = Array | np.ndarray
"""JAX reads NumPy arrays too: rows stay on the NumPy side until a program takes them."""


class Rows(NamedTuple):
    """Padded training rows of the tasks of one space: x (tasks, n, d), y (tasks, n), mask (tasks, n)."""

    x: Float[AnyArray, "tasks n d"]
    y: Float[AnyArray, "tasks n"]
    mask: Bool[AnyArray, "tasks n"]


class Moments(NamedTuple):
    """Sample moments of Q matched blocks, padded to m points and n tasks.

    `mean` is μ̃ (Eq. 4); `root` is (Y - μ̃ 1ᵀ)/√N, so that Σ̃ = root rootᵀ; padded rows and columns are zero.
    """

    x: Float[Array, "q m d"]
    mean: Float[Array, "q m"]
    root: Float[Array, "q m n"]
    mask: Bool[Array, "q m"]


def sample_moments(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return μ̃ (m,) and the root (m, N) of the maximum-likelihood covariance Σ̃ of Y (m, N) (Eq. 4, divide by N)."""
    mean = y.mean(axis=1)
    return mean, (y - mean[:, None]) / np.sqrt(y.shape[1])
