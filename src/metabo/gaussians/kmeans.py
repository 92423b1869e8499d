"""Clusters of Gaussians on a finite index set: k-means, and the weights of prototypes (cm-BO §3.1 and §3.2, Algorithm
1;
sheet §2.1, §2.2 and §2.4). A Gaussian is a mean (v,) and a covariance (v, v).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.errors import ConfigError
from metabo.gaussians.distances import Prepared, distances, pairwise, prepared


class KMeans(NamedTuple):
    """Clusters of K Gaussians: `assignment` (K,) of each to 0..C-1, centres `means` (C, v) and `covs` (C, v, v).

    `objective`: sum of the distances to the Gaussians' own centres; `iterations` until the assignments repeated (or the
    limit); `trace` (steps,): the objective at each iteration, then its last value. `reseeded`: how often an empty
    cluster was given the farthest Gaussian.
    """

    assignment: Int[Array, " k"]
    means: Float[Array, "c v"]
    covs: Float[Array, "c v v"]
    objective: Float[Array, ""]
    iterations: Int[Array, ""]
    trace: Float[Array, " s"]
    reseeded: Int[Array, ""]


def kmeans(
    means: Float[Array, "k v"],
    covs: Float[Array, "k v v"],
    clusters: int,
    distance: str,
    key: Key[Array, ""],
    restarts: int = 10,
    steps: int = 50,
    room: int | None = None,
    between: Float[Array, "k k"] | None = None,
) -> KMeans:
    """Cluster Gaussians (cm-BO Algorithm 1, lines 4 to 9): the best of `restarts` by the objective.

    Assignment to the nearest centre by `distance`; a centre has the average mean and the average covariance, for both
    distances. Open in the paper and chosen here: k-means++ seeds, stop when the assignments repeat or after `steps`
    iterations, an empty cluster takes the Gaussian that is farthest from its centre. An average covariance minimises
    neither sum of distances, so the objective may rise. `room`: most clusters that the compiled program can make, and
    `between`: the distances of all pairs if they are known; the result depends on neither. Raises ConfigError for more
    clusters than Gaussians, fewer than one, or an unknown distance.
    """
    if not 1 <= clusters <= len(means):
        raise ConfigError(
            f"k-means: {clusters} clusters of {len(means)} tasks; ask for 1 to {len(means)} (config key "
            "'cmbo.clusters'), or give more tasks"
        )
    sizes = {"room": max(clusters, room or 0), "distance": distance, "restarts": restarts, "steps": steps}
    between = pairwise(means, covs, distance) if between is None else between
    found = _kmeans(means, covs, between, jnp.asarray(clusters), key, **sizes)
    return found._replace(means=found.means[:clusters], covs=found.covs[:clusters])


def _restarts(means, covs, between, clusters, key, *, room: int, distance: str, restarts: int, steps: int) -> KMeans:
    tasks = prepared(means, covs, distance)
    spread = between if distance == "jeffreys" else between**2  # a divergence is of the order of a squared distance

    def once(key):
        return lloyd(tasks, between[:, seeds(spread, clusters, key, room)], clusters, distance, steps)

    found = jax.lax.map(once, jax.random.split(key, restarts))
    # A restart with a distance that is not a number must not win.
    best = jnp.argmin(jnp.where(jnp.isnan(found.objective), jnp.inf, found.objective))
    return jax.tree.map(lambda leaf: leaf[best], found)


_kmeans = jax.jit(_restarts, static_argnames=("room", "distance", "restarts", "steps"))


def seeds(
    spread: Float[Array, "k k"], clusters: Int[Array, ""] | int, key: Key[Array, ""], room: int
) -> Int[Array, " r"]:
    """Draw different Gaussians as first centres (k-means++): each with a probability proportional to its `spread` from
    the nearest one drawn before; uniformly among the others where all of these are 0 (identical tasks). Places from
    `clusters` on to `room` repeat the first."""
    first = jax.random.randint(jax.random.fold_in(key, 0), (), 0, len(spread))

    def place(number, state):
        chosen, free, gaps = state
        nearest = jnp.where(free & (gaps > 0), gaps, 0.0)  # a NaN is not drawn
        odds = jnp.where(jnp.sum(nearest) > 0, nearest, free.astype(jnp.float64))
        new = jax.random.categorical(jax.random.fold_in(key, number), jnp.where(odds > 0, jnp.log(odds), -jnp.inf))
        return chosen.at[number].set(new), free.at[new].set(False), jnp.minimum(gaps, spread[new])

    free = jnp.ones(len(spread), bool).at[first].set(False)
    begin = (jnp.full(room, first, jnp.int64), free, spread[first])
    return jax.lax.fori_loop(1, clusters, place, begin)[0]


def centres(tasks: Prepared, assignment: Int[Array, " k"], clusters: int) -> tuple[Array, Array]:
    """Return the average means (c, v) and covariances (c, v, v) of the clusters; zeros for one without a member."""
    member = (assignment == jnp.arange(clusters)[:, None]).astype(jnp.float64)
    share = member / jnp.maximum(member.sum(axis=1, keepdims=True), 1.0)
    covs = (share @ tasks.covs.reshape(len(tasks.covs), -1)).reshape(clusters, *tasks.covs.shape[1:])
    return share @ tasks.means, covs


def repaired(
    assignment: Int[Array, " k"], to_own: Float[Array, " k"], clusters: Int[Array, ""] | int
) -> tuple[Int[Array, " k"], Int[Array, ""]]:
    """Give each empty cluster the Gaussian farthest from its centre among clusters of at least two; return the new
    assignment and how many were empty. `to_own`: distance of each from its own centre."""

    def fill(cluster, state):
        assignment, moved = state
        alike = assignment[:, None] == assignment
        farthest = jnp.argmax(jnp.where(alike.sum(axis=0) > 1, jnp.nan_to_num(to_own), -1.0))
        empty = ~(assignment == cluster).any()
        return jnp.where(empty, assignment.at[farthest].set(cluster), assignment), moved + empty

    return jax.lax.fori_loop(0, clusters, fill, (assignment, jnp.asarray(0)))


def lloyd(
    tasks: Prepared, first: Float[Array, "k r"], clusters: Int[Array, ""] | int, distance: str, steps: int
) -> KMeans:
    """Iterate from the distances `first` of the Gaussians from the first `clusters` of r centres: assign, repair empty
    clusters, average. Centres from `clusters` on are zeros."""
    room = first.shape[1]
    wanted = jnp.arange(room) < clusters

    def assigned(gaps):
        # A distance that is not a number is no reason to join a cluster.
        nearest = jnp.argmin(jnp.where(wanted & ~jnp.isnan(gaps), gaps, jnp.inf), axis=1)
        return nearest, jnp.take_along_axis(gaps, nearest[:, None], 1)[:, 0]

    def averaged(found, gaps):
        nearest, to_own = assigned(gaps)
        nearest, moved = repaired(nearest, to_own, clusters)
        done = (nearest == found.assignment).all()
        objective = jnp.sum(to_own)
        trace = jnp.where(jnp.arange(steps) >= found.iterations, objective, found.trace)
        means, covs = centres(tasks, nearest, room)
        return KMeans(nearest, means, covs, objective, found.iterations + 1, trace, found.reseeded + moved), done

    def step(state):
        found, _ = state
        return averaged(found, distances(tasks, prepared(found.means, found.covs, distance), distance, wanted))

    def unfinished(state):
        found, done = state
        return ~done & (found.iterations < steps)

    zero, size = jnp.asarray(0), tasks.means.shape[1]
    unassigned = jnp.full(len(tasks.means), -1)
    blank = jnp.zeros((room, size)), jnp.zeros((room, size, size))
    begin = KMeans(unassigned, *blank, jnp.asarray(jnp.inf), zero, jnp.zeros(steps), zero)
    return jax.lax.while_loop(unfinished, step, averaged(begin, first))[0]


def weights(distances: Float[Array, " c"], present: Bool[Array, " c"] | None = None) -> Float[Array, " c"]:
    """Return the weights of prototypes at these distances from the target (Algorithm 1, lines 19 to 21): proportional
    to e^(1 - d/d_max), so that none is more than e times another; 0 where `present` is False.

    d_max = 0, undefined in the paper: equal weights.
    """
    present = jnp.ones(distances.shape, bool) if present is None else present
    largest = jnp.max(jnp.where(present, distances, 0.0))
    share = jnp.where(largest > 0, distances / jnp.where(largest > 0, largest, 1.0), 0.0)
    odds = jnp.where(present, jnp.exp(1.0 - jnp.where(present, share, 0.0)), 0.0)
    return odds / jnp.sum(odds)
