"""Matérn-5/2 with one length-scale per parameter, on encoded inputs.

The columns of a categorical parameter share its length-scale, and two different choices are as far apart as the ends of
a range.
"""

import numpy as np
from jaxtyping import Float, Int

ROOT5 = np.sqrt(5.0)
Matrix = Float[np.ndarray, "n m"]


def widths(owner: Int[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """Return the factor of each column, such that two different one-hot rows have distance 1."""
    return np.where(np.bincount(owner)[owner] > 1, np.sqrt(0.5), 1.0)


def squared(a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "m d"], columns: Float[np.ndarray, " d"]) -> Matrix:
    """Return r² = Σ (a - b)² columns², for each pair of rows."""
    a, b = a * columns, b * columns
    found = np.sum(a**2, 1)[:, None] + np.sum(b**2, 1) - 2.0 * a @ b.T
    return np.where(found > 1e-12, found, 0.0)  # for equal rows rounding leaves a little, which √ amplifies


def matern52(square: Matrix) -> Matrix:
    """Return (1 + √5 r + 5 r² / 3) exp(-√5 r)."""
    r = ROOT5 * np.sqrt(square)
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def slope(square: Matrix) -> Matrix:
    """Return -2 dk / d(r²) = 5/3 (1 + √5 r) exp(-√5 r)."""
    r = ROOT5 * np.sqrt(square)
    return 5.0 / 3.0 * (1.0 + r) * np.exp(-r)


def spread(weights: Matrix, x: Float[np.ndarray, "n d"], columns: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """Return Σ_ij weights_ij (x_ik - x_jk)² columns_k² for each column k, for symmetric weights."""
    x = x * columns
    return 2.0 * (weights.sum(1) @ x**2 - np.einsum("ik,ik->k", x, weights @ x))
