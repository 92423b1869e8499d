"""Maximum likelihood of lengthscales from many sub-datasets (MPHD Eq. 3 in the setting of §3.1), by scatter matrices.

Sub-dataset j of M is observed at the inputs of design j mod D. Its likelihood then depends on the data through the
scatter matrices S_d = Σ y yᵀ of the D designs alone: NLL = ½ Σ_d [tr(K_d⁻¹ S_d) + M_d ln|K_d|] + const, whatever M.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metabo.errors import NumericsError
from metabo.gp.kernels import RADIAL

NOISE = 1e-2
"""Known noise variance σ² of the checks (sheet §7); the known signal variance is 1."""
LOW, HIGH = 0.02, 3.0
"""The search set C of every lengthscale (assumption 2)."""
SPACING = 0.05
"""Least distance δ between the inputs of a sub-dataset (assumption 1)."""
POINTS = 10
"""L, observations of a sub-dataset."""
NODES = 161
"""Lengthscales of a grid over C: 0.031 apart in ln ℓ, where the likelihood of one sub-dataset is smooth."""
TIE = 1e-9
"""Likelihoods that differ by less than this per observation count as equal: the maximiser is a random one of them."""


def spaced(rng: np.random.Generator, count: int, points: int, dim: int, spacing: float = SPACING) -> np.ndarray:
    """Draw designs (count, points, dim) uniform in [0, 1]^dim, given that no two inputs are closer than `spacing`.

    Raises NumericsError if hardly any draw qualifies: `spacing` is too large for this number of points.
    """
    kept: list[np.ndarray] = []
    for _ in range(200):
        x = rng.random((4000, points, dim))
        kept.append(x[nearest(x) >= spacing])
        if sum(map(len, kept)) >= count:
            return np.concatenate(kept)[:count]
    raise NumericsError(f"no {count} designs of {points} points in {dim} dimensions with spacing {spacing}; lower it")


def nearest(x: np.ndarray) -> np.ndarray:
    """Return the least distance between two inputs of each design (..., points, dim)."""
    squared = squares(x).sum(axis=-1)
    return np.sqrt((squared + np.where(np.eye(x.shape[-2]), np.inf, 0.0)).min(axis=(-2, -1)))


def squares(x: np.ndarray) -> np.ndarray:
    """Return (x_i - x_j)² per input dimension, (..., points, points, dim): exact also far from the origin."""
    return (x[..., :, None, :] - x[..., None, :, :]) ** 2


def gram(
    squared: Float[Array, "*b l l p"], lengthscale: Float[Array, "*b p"], shape: str = "matern52"
) -> Float[Array, "*b l l"]:
    """Return unit-variance covariances, the package's kernels on `squares`; one lengthscale vector per design."""
    return RADIAL[shape](jnp.sum(squared / lengthscale[..., None, None, :] ** 2, axis=-1))


@partial(jax.jit, static_argnames="shape")
def _grid_grams(squared: Float[Array, "d l l p"], nodes: Float[Array, "g p"], shape: str) -> Float[Array, "g d l l"]:
    return jax.vmap(lambda node: gram(squared, jnp.broadcast_to(node, (len(squared), len(node))), shape))(nodes)


def covariances(x: np.ndarray, nodes: np.ndarray, shape: str = "matern52", noise: float = NOISE) -> np.ndarray:
    """Return K = k(X, X) + σ² I of D designs (D, l, p) at each of g lengthscale vectors (g, p): (g, D, l, l)."""
    return np.asarray(_grid_grams(jnp.asarray(squares(x)), jnp.asarray(nodes), shape)) + noise * np.eye(x.shape[1])


class LengthscaleTable(NamedTuple):
    """K⁻¹ (g, D, l, l) and ln|K| (g, D) of D designs at the lengthscale vectors `nodes` (g, p)."""

    nodes: np.ndarray
    precision: np.ndarray
    logdet: np.ndarray


def grid(count: int = NODES, dim: int = 1) -> np.ndarray:
    """Return lengthscale vectors (count^dim, dim) evenly spaced in ln ℓ over C, ends included."""
    one = np.exp(np.linspace(np.log(LOW), np.log(HIGH), count))
    return np.stack(np.meshgrid(*[one] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


def table(x: np.ndarray, nodes: np.ndarray, shape: str = "matern52", noise: float = NOISE) -> LengthscaleTable:
    """Return precisions and log determinants of the designs x (D, l, p) at the lengthscales `nodes` (g, p)."""
    k = covariances(x, nodes, shape, noise)
    return LengthscaleTable(nodes, np.linalg.inv(k), np.linalg.slogdet(k)[1])


def counts(sizes: np.ndarray, designs: int) -> np.ndarray:
    """Return how many of M sub-datasets have each design, (len(sizes), designs)."""
    sizes = np.asarray(sizes)[:, None]
    return (sizes // designs + (np.arange(designs) < sizes % designs)).astype(float)


def scatters(rng: np.random.Generator, roots: np.ndarray, sizes: np.ndarray, replicates: int) -> np.ndarray:
    """Draw the scatter matrices (r, k, D, l, l) of the first M sub-datasets, for each of k `sizes` M.

    `roots`: Cholesky factors of the true covariances, (D, l, l), or (r, D, l, l) with one truth per replicate. A
    replicate's larger data contain its smaller ones.
    """
    designs, points = roots.shape[-3], roots.shape[-1]
    have = counts(sizes, designs)
    y = roots @ rng.standard_normal((replicates, designs, points, int(have.max())))
    result = np.empty((replicates, len(have), designs, points, points))
    for place, own in enumerate(have):
        some = y[..., : int(own.max())]
        used = np.arange(some.shape[-1]) < own[:, None]
        result[:, place] = (some * used[:, None, :]) @ some.swapaxes(-2, -1)
    return result


def losses(known: LengthscaleTable, scatter: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Return the NLL (n, g) of n data sets at the nodes, without its constant: `scatter` (n, D, l, l), `have` (D,)."""
    quadratic = scatter.reshape(len(scatter), -1) @ known.precision.reshape(len(known.nodes), -1).T
    return 0.5 * (quadratic + known.logdet @ have)


def minimise(values: np.ndarray, logs: np.ndarray, rng: np.random.Generator, scale: float) -> np.ndarray:
    """Return the minimisers ln ℓ̂ (n,) of n functions given at evenly spaced `logs` (g,): values (n, g).

    The best node, a random one of those within `scale` of it, then the minimum of the quartic through five nodes
    around it, at most one node away. Its error is far below any statistical one (tests: 1e-5 in ln ℓ).
    """
    best = np.argmin(values + scale * rng.random(values.shape), axis=1)
    first = np.clip(best - 2, 0, len(logs) - 5)
    local = np.take_along_axis(values, first[:, None] + np.arange(5), axis=1)
    powers = np.linalg.inv(np.vander(np.arange(5.0) - 2.0, increasing=True))
    c = (local - local.min(axis=1, keepdims=True)) @ powers.T
    at = centre = (best - first - 2).astype(float)
    for _ in range(8):
        slope = c[:, 1] + at * (2 * c[:, 2] + at * (3 * c[:, 3] + at * 4 * c[:, 4]))
        bend = 2 * c[:, 2] + at * (6 * c[:, 3] + at * 12 * c[:, 4])
        bend = np.where(bend > 0, bend, np.abs(slope) + scale)  # not convex there: a step of one node downhill
        at = np.clip(at - slope / bend, np.maximum(centre - 1.0, -2.0), np.minimum(centre + 1.0, 2.0))
    return logs[0] + (first + 2 + at) * (logs[1] - logs[0])


def estimate(known: LengthscaleTable, scatter: np.ndarray, have: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the lengthscales ℓ̂ (n,) of maximum likelihood in C of n data sets with one input dimension.

    `known`: the table of `grid(count)`. Where the likelihood is flat, ℓ̂ is a random maximiser.
    """
    observations = float(have.sum()) * scatter.shape[-1]
    logs = np.log(known.nodes[:, 0])
    return np.exp(minimise(losses(known, scatter, have), logs, rng, TIE * observations))
