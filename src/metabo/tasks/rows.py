"""Evaluations as arrays, padded to one shape, as fits and posteriors read them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float

AnyArray = Array | np.ndarray
"""JAX reads NumPy arrays too: rows stay on the NumPy side until a program takes them."""


class Rows(NamedTuple):
    """Evaluations of one task, or of several padded to one length n: inputs `x` (*tasks, n, d), outputs `y` (*tasks, n)
    and `mask` (*tasks, n), which is False for padding; padding is finite.
    """

    x: Float[AnyArray, "*tasks n d"]
    y: Float[AnyArray, "*tasks n"]
    mask: Bool[AnyArray, "*tasks n"]


def pad(arrays: Sequence[np.ndarray], length: int | None = None) -> np.ndarray:
    """Stack arrays whose first dimensions differ into one, padded with zeros."""
    length = length or max(len(a) for a in arrays)
    out = np.zeros((len(arrays), length, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for i, a in enumerate(arrays):
        out[i, : len(a)] = a
    return out


def stack(xs: list[np.ndarray], ys: list[np.ndarray], length: int | None = None) -> Rows:
    """Pad inputs and outputs of several tasks to one length (the longest unless given)."""
    return Rows(pad(xs, length), pad(ys, length), pad([np.ones(len(y), dtype=bool) for y in ys], length))


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
