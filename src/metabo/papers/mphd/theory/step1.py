"""Step 1 of MPHD (§2.2) in the setting of §3.1: the lengthscales of many domains, from M sub-datasets each."""

import jax
import jax.numpy as jnp
import numpy as np

from metabo.papers.mphd.theory.families import Family
from metabo.papers.mphd.theory.lengthscales import (
    NOISE,
    POINTS,
    counts,
    estimate,
    gram,
    grid,
    scatters,
    spaced,
    squares,
    table,
)

DESIGNS = 4
"""Designs of the sub-datasets, the same in all domains."""
CHUNK = 2048
"""Domains at a time."""
_gram = jax.jit(gram)


def lengthscale_fits(
    rng: np.random.Generator, family: Family, sizes: np.ndarray, domains: int, replicates: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw ℓ (r, N) from the prior and return it with the estimates ℓ̂ (r, N, k) from each of k `sizes` M.

    Every one of the N `domains` has one input. A domain's larger data contain its smaller ones.
    """
    x = spaced(rng, DESIGNS, POINTS, 1)
    known, have, squared = table(x, grid()), counts(sizes, DESIGNS), squares(x)
    truth = family.law.rvs((replicates, domains), random_state=rng)
    found = np.empty((truth.size, len(sizes)))
    for begin in range(0, truth.size, CHUNK):
        own = truth.ravel()[begin : begin + CHUNK]
        scatter = scatters(rng, np.linalg.cholesky(_covariances(squared, own)), sizes, len(own))
        for place, h in enumerate(have):
            found[begin : begin + CHUNK, place] = estimate(known, scatter[:, place], h, rng)
    return truth, found.reshape(*truth.shape, len(sizes))


def _covariances(squared: np.ndarray, lengthscale: np.ndarray) -> np.ndarray:
    """Return K of each domain's designs, (n, D, l, l)."""
    each = jnp.broadcast_to(jnp.asarray(squared), (len(lengthscale), *squared.shape))
    own = jnp.broadcast_to(jnp.asarray(lengthscale)[:, None, None], (*each.shape[:2], 1))
    return np.asarray(_gram(each, own)) + NOISE * np.eye(POINTS)
