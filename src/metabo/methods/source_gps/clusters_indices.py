"""Two indices of a clustering, and the number of clusters that they choose (cm-BO §4; sheet §5)."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


def compactness(between: Float[Array, "k k"], assignment: Int[Array, " k"], clusters: int) -> Float[Array, ""]:
    """intraCE (cm-BO §4): the mean over clusters of the mean distance between two members; smaller is better.

    The paper leaves a cluster of one task undefined (0/0); here it counts as 0. `between` has the W2 distances of all
    pairs.
    """
    member = (assignment == jnp.arange(clusters)[:, None]).astype(jnp.float64)
    counts = member.sum(axis=1)
    inside = jnp.einsum("ck,kl,cl->c", member, between, member)
    pairs = counts * (counts - 1.0)
    return jnp.mean(jnp.where(pairs > 0, inside / jnp.maximum(pairs, 1.0), 0.0))


def separation(between: Float[Array, "k k"], assignment: Int[Array, " k"], clusters: int) -> Float[Array, ""]:
    """interCS (cm-BO §4): mean distance between two tasks of different clusters, 0 for one cluster; larger is
    better."""
    member = (assignment == jnp.arange(clusters)[:, None]).astype(jnp.float64)
    known = member.sum(axis=0)
    apart = known[:, None] * known[None, :] - member.T @ member
    total = jnp.sum(apart)
    return jnp.where(total > 0, jnp.sum(apart * between) / jnp.maximum(total, 1.0), 0.0)


def choose(indices: np.ndarray, numbers: np.ndarray, tasks: int) -> int:
    """Return the position of the number of clusters, of at least 2 and at most `tasks`, with the smallest
    intraCE/interCS. If interCS is 0 for all of them (identical tasks), return that of the smallest such number; return
    0 if there is none."""
    able = (numbers >= 2) & (numbers <= tasks)
    ratio = np.full(len(numbers), np.inf)
    apart = indices[:, 1] > 0
    ratio[apart] = indices[apart, 0] / indices[apart, 1]
    if not able.any():
        return 0
    able_ratio = np.where(able, ratio, np.inf)
    return int(np.argmin(able_ratio)) if np.isfinite(able_ratio).any() else int(np.argmax(able))
