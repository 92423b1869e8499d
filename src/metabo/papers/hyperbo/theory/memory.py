"""The memory-based model of Proposition 4: a GP on a finite domain that stores its moments, and samples of them.

It is the package's own GP with a table as kernel, so that the checks run the package's likelihood, posterior and
Algorithm 1. Inputs are the indices of the domain, as (n, 1) arrays of floats.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from metabo.gp.constraints import FLOOR, inverse_positive
from metabo.gp.features import Identity
from metabo.gp.kernels import Pool, Stationary
from metabo.gp.linalg import JITTER
from metabo.gp.model import GP


class TableMean(eqx.Module):
    """μ(x_j) = values[j]."""

    values: Float[Array, " m"]

    def __call__(self, features: Float[Array, "n 1"]) -> Float[Array, " n"]:
        """Look up n values."""
        return self.values[_index(features)]


class TableKernel(eqx.Module):
    """k(x_i, x_j) = table[i, j], with the methods of a package kernel."""

    table: Float[Array, "m m"]

    def __call__(self, a: Float[Array, "n 1"], b: Float[Array, "k 1"]) -> Float[Array, "n k"]:
        """Look up the cross-covariances."""
        return self.table[_index(a)][:, _index(b)]

    def gram(self, a: Float[Array, "n 1"]) -> Float[Array, "n n"]:
        """Look up the covariances within one set."""
        return self(a, a)

    def diagonal(self, a: Float[Array, "n 1"]) -> Float[Array, " n"]:
        """Look up the variances."""
        return jnp.diagonal(self.table)[_index(a)]

    def prepare(self, a: Float[Array, "n 1"]) -> Pool:
        """Keep the inputs, for `row`."""
        return Pool(a, a[:, 0])

    def row(self, pool: Pool, index: Int[Array, ""]) -> Float[Array, " n"]:
        """Covariances of one pool member with all of them."""
        here = _index(pool.scaled)
        return self.table[here[index], here]


class MemoryGP(GP):
    """The package's GP on a finite domain: mean and covariances come from tables."""

    mean: TableMean
    kernel: TableKernel


def _index(features: Float[Array, "n 1"]) -> Int[Array, " n"]:
    return features[:, 0].astype(int)


def inputs(indices: Int[Array, " n"]) -> Float[Array, "n 1"]:
    """Return domain indices as inputs of a MemoryGP."""
    return jnp.asarray(indices, jnp.float64)[:, None]


def model(mean: Float[Array, " m"], total: Float[Array, "m m"], noise: Float[Array, ""] | float) -> MemoryGP:
    """Return the GP with k∘σ² equal to `total` on distinct inputs and the noise variance `noise`.

    The package adds JITTER to every noise variance; here it is a part of `noise` (at least JITTER), so that
    likelihoods and posteriors have exactly the covariance `total`.
    """
    own = jnp.maximum(jnp.asarray(noise), JITTER + 2 * FLOOR) - JITTER
    table = total - (own + JITTER) * jnp.eye(mean.shape[0])
    return MemoryGP(Identity(), TableMean(mean), TableKernel(table), inverse_positive(own))


def kernel_matrix(points: Float[Array, "m d"], lengthscale: float) -> Float[Array, "m m"]:
    """Return the squared-exponential Gram matrix of unit variance (the package's kernel)."""
    raw = jnp.full(points.shape[1], inverse_positive(jnp.asarray(lengthscale)))
    return Stationary(raw, inverse_positive(jnp.asarray(1.0)), "squared_exponential").gram(points)


class PriorEstimate(NamedTuple):
    """û (m,) and V̂ (m, m): maximum-likelihood moments of N functions observed once at every input (Eq. 4, 23)."""

    mean: Float[Array, " m"]
    covariance: Float[Array, "m m"]


def estimate(y: Float[Array, "m n"]) -> PriorEstimate:
    """Return û = Y1/N and V̂ = (Y - û1ᵀ)(Y - û1ᵀ)ᵀ/N (Proposition 4, Eq. 23; Assumption 7)."""
    mean = y.mean(axis=1)
    centred = y - mean[:, None]
    return PriorEstimate(mean, centred @ centred.T / y.shape[1])


def from_law(
    mean: Float[Array, " m"], root: Float[Array, "m m"], number: Float[Array, ""] | float, draws: "LawDraws"
) -> PriorEstimate:
    """Return (û, V̂) of `number` functions by their law, Lemma 8: û ~ N(u, V/N) and V̂ ~ W(V/N, N-1), Bartlett's factor.

    `root rootᵀ` is V. Equals `estimate` of N observed functions in law, at a cost that does not depend on N (> m).
    """
    factor = root @ (jnp.tril(draws.normals, -1) + jnp.diag(jnp.sqrt(draws.squares)))
    return PriorEstimate(mean + root @ draws.shift / jnp.sqrt(number), factor @ factor.T / number)


class LawDraws(NamedTuple):
    """Random numbers behind `from_law`: normals (m, m), χ² with N-1, ..., N-m degrees of freedom, normals (m,)."""

    normals: Float[Array, "*r m m"] | np.ndarray
    squares: Float[Array, "*r m"] | np.ndarray
    shift: Float[Array, "*r m"] | np.ndarray


def law_draws(rng: np.random.Generator, runs: int, size: int, number: int) -> LawDraws:
    """Draw the random numbers of `runs` estimates from `number` functions on `size` inputs."""
    squares = rng.chisquare(number - 1.0 - np.arange(size), (runs, size))
    return LawDraws(rng.standard_normal((runs, size, size)), squares, rng.standard_normal((runs, size)))


def pretrained(fitted: PriorEstimate, share: Float[Array, ""] | float = 0.5) -> MemoryGP:
    """Return the pre-trained model of Proposition 4 with the noise variance `share` x the smallest eigenvalue of V̂.

    Every split of k̂∘σ̂² into k̂ and σ̂² minimises the losses alike (sheet §8).
    """
    return model(fitted.mean, fitted.covariance, share * jnp.linalg.eigvalsh(fitted.covariance)[0])
