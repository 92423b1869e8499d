"""Which distances between posteriors rounding decides, and by how much it changes them (cm-BO §4.2; sheet §8, B14)."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Key

from metabo.compute.keys import stream
from metabo.gaussians.distances import (
    DISTANCES,
    jeffreys_prepared,
    prepared,
    regularised,
    wasserstein_prepared,
)
from metabo.methods.source_gps.sources import posteriors_at
from metabo.papers.cmbo.studies.drawn_tasks import FACTORS, locations, sources

GAUSSIANS = 40
"""Gaussians in the ring whose distances to their neighbours are checked."""
KERNELS = {"matern32": ("matern32",), "matern32 x matern12": FACTORS, "squared_exponential": ("squared_exponential",)}
"""Whose posteriors' distances are checked: the method's two (of prototypes, of clusters), and a smoother one beside."""
PERTURBED, LOST = 1e-12, 1e-2
"""Relative change of the covariances (some thousand roundings), and of a distance from which on it is lost."""


def stability(count: int, grid: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tell by how much rounding changes distances between neighbouring posteriors, on locations that contain the
    observed inputs, before and after jitter (B14), with the method's two kernels and with the smoother squared
    exponential one.

    A distance changes as it does when each entry of both covariances changes by PERTURBED of itself. It is lost if it
    is not finite, below zero, or changes by more than LOST of itself: then its digits are those of rounding.
    `count`, `grid`: the numbers of locations. The first table counts those that are lost and has the largest change
    (`error`, infinite where a distance is not finite); the second has the change of every pair under both distances.
    """
    rows, every = [], []
    for (name, factors), size in product(KERNELS.items(), (count, grid)):
        key = stream(seed, "cmbo_timing", "stability")
        gps, observed = sources(GAUSSIANS, key, factors)
        x = locations(observed, size, stream(seed, "cmbo_timing", "where", size))
        means, raw, _ = posteriors_at(gps, observed, x)
        moved = perturbed(raw, key)
        for jitter, of in ((0, lambda covs: covs), (1, regularised)):
            changes = {}
            for distance in DISTANCES:
                gaps, others = (np.asarray(neighbours(means, of(covs), distance)) for covs in (raw, moved))
                lost, changes[distance] = judged(gaps, others)
                found = {"kernel": name, "measure": distance, "locations": size, "jitter": jitter}
                rows.append(found | {"lost": int(lost.sum()), "of": len(gaps), "error": float(changes[distance].max())})
            pairs = {"kernel": name, "locations": size, "jitter": jitter, "pair": np.arange(GAUSSIANS)}
            every.append(pd.DataFrame(pairs | changes))
    return pd.DataFrame(rows), pd.concat(every, ignore_index=True)


def perturbed(covs: Array, key: Key[Array, ""]) -> Array:
    """Return covariances (n, v, v), each entry changed by a normal draw times PERTURBED of itself, symmetrically."""
    draws = jax.random.normal(key, covs.shape)
    upper = jnp.triu(draws) + jnp.triu(draws, 1).swapaxes(1, 2)
    return covs * (1.0 + PERTURBED * upper)


@partial(jax.jit, static_argnames=("distance",))
def neighbours(means, covs, distance: str):
    """The distance of each Gaussian from the next one, of the last from the first."""
    own = prepared(means, covs, distance)
    after = jax.tree.map(lambda part: jnp.roll(part, -1, axis=0), own)
    if distance == "jeffreys":
        return jax.vmap(jeffreys_prepared)(*own, *after)
    return jax.vmap(wasserstein_prepared)(own.means, own.part, after.means, after.part)


def judged(gaps: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which distances are lost (`stability`) and their relative changes to `others`, infinite where one of the
    two is not finite or not positive: alike for both distances, although W2 is cut off at 0."""
    sound = np.isfinite(gaps) & np.isfinite(others) & (gaps > 0) & (others > 0)
    change = np.full(gaps.shape, np.inf)
    change[sound] = np.abs(gaps[sound] - others[sound]) / gaps[sound]
    return change > LOST, change
