"""One GP per source task: a product of Matérn kernels on the inputs, zero mean, type-II maximum likelihood
(cm-BO §3.1; sheet §2.2).

Open in the paper and chosen here: one lengthscale per input and factor, of at least 0.01 (some fits would take
1e-30 for an input of two values, where only the rounding of distances is left); noise variance of at least 1e-6 (the
jitter of every covariance here), inputs in the unit cube, outputs standardised by the benchmark. Shared by cm-BO, RGPE
and RM-GP-UCB, which differ in the kernel.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Bool, Float

from metabo.errors import ConfigError, unknown
from metabo.gp.constraints import positive
from metabo.gp.fit import Log, lbfgs, over_pairs
from metabo.gp.kernels import RADIAL
from metabo.gp.linalg import cholesky, half_quadratic_logdet, masked_covariance
from metabo.gp.model import INITIAL
from metabo.tasks.padding import columns
from metabo.tasks.rows import Rows

SHORTEST = 0.01
"""Least lengthscale, of inputs in the unit cube."""


class SourceGP(eqx.Module):
    """GP(0, s² Π_i k_i(r_i)) with noise; `shapes` name the factors k_i, `raw_lengthscale` (factors, d) has a row for
    each. Leaves are unconstrained."""

    raw_lengthscale: Float[Array, "f d"]
    raw_variance: Float[Array, ""]
    raw_noise: Float[Array, ""]
    shapes: tuple[str, ...] = eqx.field(static=True)

    @property
    def lengthscale(self) -> Float[Array, "f d"]:
        """Lengthscales > 0.01, a row for each factor."""
        return SHORTEST + positive(self.raw_lengthscale)

    @property
    def variance(self) -> Float[Array, ""]:
        """Signal variance s² > 0."""
        return positive(self.raw_variance)

    @property
    def noise(self) -> Float[Array, ""]:
        """Noise variance > 0, before the jitter of every covariance."""
        return positive(self.raw_noise)

    def kernel(self, a: Float[Array, "n d"], b: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """Covariances between two sets of inputs."""
        squared = _squared_differences(a, b)
        result = self.variance
        for shape, scale in zip(self.shapes, self.lengthscale, strict=True):
            result = result * RADIAL[shape](jnp.tensordot(scale**-2.0, squared, axes=1))
        return result

    def gram(self, a: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """Covariances within one set of inputs."""
        return self.kernel(a, a)

    def log_prob(self, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]) -> Float[Array, ""]:
        """Log marginal likelihood of the valid rows. Cost O(n³)."""
        covariance = masked_covariance(self.gram(x), self.noise, mask)
        core = half_quadratic_logdet(covariance, jnp.where(mask, y, 0.0)[:, None])
        return -core - 0.5 * jnp.sum(mask) * jnp.log(2.0 * jnp.pi)

    def posterior(self, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]) -> "SourcePosterior":
        """Condition on the valid rows."""
        factor, ok = cholesky(masked_covariance(self.gram(x), self.noise, mask))
        return SourcePosterior(self, x, mask, factor, cho_solve((factor, True), jnp.where(mask, y, 0.0)), ok)


def _squared_differences(a: Float[Array, "n d"], b: Float[Array, "m d"]) -> Float[Array, "d n m"]:
    """Return (a_i - b_i)² of each input, exactly 0 for equal ones: with lengthscales near 0.01 the rounding of
    a² + b² - 2ab made posterior covariances indefinite."""
    return (a.T[:, :, None] - b.T[:, None, :]) ** 2


class SourcePosterior(NamedTuple):
    """A source GP conditioned on n rows: Cholesky factor, Σ⁻¹ y, and whether Σ factorised."""

    gp: SourceGP
    x: Float[Array, "n d"]
    mask: Bool[Array, " n"]
    factor: Float[Array, "n n"]
    weights: Float[Array, " n"]
    ok: Bool[Array, ""]

    def _cross(self, x: Float[Array, "m d"]) -> Float[Array, "n m"]:
        return jnp.where(self.mask[:, None], self.gp.kernel(self.x, x), 0.0)

    def predict(self, x: Float[Array, "m d"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Posterior mean and variance of f at m inputs."""
        cross = self._cross(x)
        whitened = solve_triangular(self.factor, cross, lower=True)
        return cross.T @ self.weights, jnp.maximum(self.gp.variance - jnp.sum(whitened**2, 0), 0.0)

    def moments(self, x: Float[Array, "m d"]) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
        """Posterior mean and covariance of f at m inputs."""
        cross = self._cross(x)
        whitened = solve_triangular(self.factor, cross, lower=True)
        return cross.T @ self.weights, self.gp.gram(x) - whitened.T @ whitened


def make(shapes: tuple[str, ...] | list[str], dim: int) -> SourceGP:
    """Return an untrained GP for `dim` inputs: the initial values of all GPs here. Raises ConfigError for an unknown
    factor, or none."""
    for shape in shapes:
        if shape not in RADIAL:
            raise unknown("factor of a source kernel", shape, RADIAL)
    if not shapes:
        raise ConfigError("a source kernel needs at least one factor, e.g. [matern32, matern12]")
    scale = jnp.full((len(shapes), dim), INITIAL["lengthscale"])
    return SourceGP(scale, jnp.asarray(INITIAL["variance"]), jnp.asarray(INITIAL["noise"]), tuple(shapes))


def repeated(gp: SourceGP, count: int) -> SourceGP:
    """Return so many copies along a new leading axis."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), gp)


def fit(
    gp: SourceGP, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"], steps: int
) -> tuple[SourceGP, Log]:
    """Maximise the marginal likelihood by L-BFGS from `gp`."""
    return lbfgs(lambda candidate: -candidate.log_prob(x, y, mask), gp, steps=steps)


def fit_all(shapes: list[str], rows: Rows, width: int, steps: int, accelerator: bool) -> tuple[SourceGP, Log]:
    """Fit one GP to every task of `rows`, all in one program; GPs with a leading axis of tasks.

    Inputs get columns of zeros up to `width`, so that spaces share the program; the fits do not feel them.
    """
    dim, tasks = rows.x.shape[2], len(rows.y)
    data = Rows(jnp.asarray(columns(rows.x, width)), jnp.asarray(rows.y), jnp.asarray(rows.mask))
    starts = repeated(make(shapes, width), tasks)
    fitted, log = over_pairs(lambda pair: fit(pair[0], *pair[1], steps), (starts, data), accelerator)
    return eqx.tree_at(lambda gp: gp.raw_lengthscale, fitted, fitted.raw_lengthscale[..., :dim]), log


def taken(gps: SourceGP, index: Array | np.ndarray | int) -> SourceGP:
    """Return the GPs at these positions of the leading axis."""
    return jax.tree.map(lambda leaf: leaf[index], gps)


def posteriors_at(
    gps: SourceGP, rows: Rows, x: Float[Array, "v d"]
) -> tuple[Float[Array, "m v"], Float[Array, "m v v"], Bool[Array, " m"]]:
    """Return the posterior means (m, v) and covariances (m, v, v) of m source tasks at shared inputs, and whether each
    was sound. Rows narrower than `x` get columns of zeros."""
    spare = x.shape[1] - rows.x.shape[2]
    own = jnp.pad(jnp.asarray(rows.x), [(0, 0), (0, 0), (0, max(0, spare))])

    def one(gp, x_own, y, mask):
        posterior = gp.posterior(x_own, y, mask)
        return (*posterior.moments(x), posterior.ok)

    return jax.vmap(one)(gps, own, jnp.asarray(rows.y), jnp.asarray(rows.mask))
