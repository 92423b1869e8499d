"""cm-BO, Stage 1: one GP per source task, its posterior on shared locations, and clusters of these posteriors
(Algorithm 1, lines 3 to 9; sheet §2.2).

Two GPs are fitted to each source: one with the product of Matérn 3/2 and 1/2, whose posterior is clustered, and one
with Matérn 3/2, from which prototypes and meta-prior are made (the paper names both kernels and does not say that the
posteriors then differ). The prior holds the clusters for every number of clusters, so policies with a fixed number,
with one prototype of all tasks, or with one per task can share it. For BO see
`metabo.methods.source_gps.clusters_policy`.

The paper leaves open, and we chose: 100 distinct locations are drawn from the sources' configurations, and the number
of clusters is the one with the smallest intraCE/interCS (W2 distances), per fold.
"""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from metabo.bo.priors import SpacePrior
from metabo.compute import progress
from metabo.errors import ConfigError, NumericsError, unknown
from metabo.gaussians.distances import DISTANCES, RELATIVE_JITTER, pairwise, regularised
from metabo.gaussians.kmeans import kmeans
from metabo.gp.fit import Log
from metabo.gp.model import GP
from metabo.methods.source_gps.clusters_indices import choose, compactness, separation
from metabo.methods.source_gps.settings import Clustering, ClusterModel
from metabo.methods.source_gps.sources import fit_all, make, posteriors_at, repeated, taken
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import AnyArray, Rows
from metabo.tasks.training_set import TrainingSet

STEPS = 50
"""The most iterations of k-means."""
IDENTICAL = 1e-6
"""Two source posteriors count as the same if their W2 distance is below this share of √(‖m‖² + tr Σ)."""


class Odd(NamedTuple):
    """Anomalies that were found and repaired: the number of `twins`, source posteriors that equal another one; of
    `singular` covariances before jitter; of `locations`; and `reseeded` (n,), how often an empty cluster took the
    farthest task."""

    twins: Int[AnyArray, ""]
    singular: Int[AnyArray, ""]
    locations: Int[AnyArray, ""]
    reseeded: Int[AnyArray, " n"]


class Clustered(NamedTuple):
    """The GPs and clusters of m source tasks (padded to the number of the fold that has the most).

    `sources`, `rough`: their GPs with the kernel of the prototypes and with that of the clusters. For 1 to n clusters:
    `assignment` (n, m) of each task (-1: no task), `indices` (n, 2) intraCE and interCS, `objective` and `iterations`
    of k-means (n,). `chosen`: position of the number of clusters that the indices choose. `odd`: the anomalies that
    were repaired.
    """

    sources: GP
    rough: GP
    assignment: Int[Array, "n m"]
    indices: Float[Array, "n 2"]
    objective: Float[Array, " n"]
    iterations: Int[Array, " n"]
    chosen: Int[Array, ""]
    odd: Odd


def numbers_of(model: ClusterModel) -> list[int]:
    """Return the numbers of clusters to make: 1 to the model's largest number. Raises ConfigError if that is below
    1."""
    if model.most < 1:
        raise ConfigError(f"config key 'cmbo.clusters' is {model.most}; give a whole number of at least 1")
    return list(range(1, model.most + 1))


def read_clustering(spec: TrainingSpec) -> tuple[Clustering, ClusterModel]:
    """Read the settings of the clustering and of the GPs. Raises ConfigError for an unknown distance."""
    settings = read(Clustering, spec["pretrain"], "config", f"methods.{spec['method']}.pretrain")
    if settings.distance not in DISTANCES:
        raise unknown("distance", settings.distance, DISTANCES)
    return settings, read(ClusterModel, spec["model"], "model")


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> Clustered:
    """Return an empty prior of the right shape: untrained GPs, with every task in the first cluster."""
    shape = read(ClusterModel, model, "model")
    count, none = len(numbers_of(shape)), jnp.asarray(0)
    return Clustered(
        sources=repeated(make([shape.kernel], dim), tasks),
        rough=repeated(make(shape.cluster_kernel, dim), tasks),
        assignment=jnp.zeros((count, tasks), jnp.int64),
        indices=jnp.zeros((count, 2)),
        objective=jnp.zeros(count),
        iterations=jnp.zeros(count, jnp.int64),
        chosen=none,
        odd=Odd(none, none, none, jnp.zeros(count, jnp.int64)),
    )


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[Clustered, Log]:
    """Fit the source GPs once for all folds, and cluster those of every (fold, seed).

    The log's loss is the trace of k-means for the chosen number of clusters. Repairs are printed and, by `report`,
    written to the sidecar: more clusters than tasks, identical tasks, singular covariances, empty clusters. Raises
    ConfigError for an unknown distance, and NumericsError for a posterior that is not finite.
    """
    settings, model = read_clustering(spec)
    fits = [
        fit_all(shapes, training.rows, training.width, settings.steps, accelerator)
        for shapes in ([model.kernel], list(model.cluster_kernel))
    ]
    for what, (_, log) in zip(("prototypes", "clusters"), fits, strict=True):
        if stopped := int((np.asarray(log.stopped) >= 0).sum()):
            print(f"space '{training.space}', kernel of the {what}: {stopped} fits ended at a non-finite step")
    (smooth, _), (rough, _) = fits
    made = []
    for f, fold in progress.loop(enumerate(training.folds), "folds"):
        for s in progress.loop(range(keys.shape[1]), "seeds"):
            index = training.members[f, s][training.present[f, s]]
            rows = Rows(*(np.asarray(part)[index] for part in training.rows))
            where = f"space '{training.space}', {fold.name}"
            names = training.trained[f][s]
            key = jax.random.fold_in(keys[f, s], 0)
            parts = cluster(taken(rough, index), rows, names, spec, key, where)
            made.append((_padded(taken(smooth, index), taken(rough, index), parts, training.tasks), parts.trace))
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(one for one, _ in made))
    trace = jnp.stack([trace for _, trace in made])
    return params, Log(trace, jnp.full(len(made), -1))


class Clusters(NamedTuple):
    """The clusters of one fold for every number of clusters, and the trace of k-means for the chosen number."""

    assignment: np.ndarray
    indices: np.ndarray
    objective: np.ndarray
    iterations: np.ndarray
    chosen: int
    odd: Odd
    trace: Float[Array, " s"]


def cluster(
    gps: GP, rows: Rows, names: tuple[str, ...], spec: TrainingSpec, key: Key[Array, ""], where: str
) -> Clusters:
    """Cluster the posteriors of source tasks for every number of clusters, and choose a number of at least 2.

    For a number larger than that of the tasks, there are as many clusters as tasks, and a remark says so.
    """
    settings, model = read_clustering(spec)
    numbers, distance, count = numbers_of(model), settings.distance, len(names)
    draw, group = jax.random.split(key)
    x = locations(rows, settings.locations, draw)
    means, covs, singular = discretised(gps, rows, x, names, where)
    apart = pairwise(means, covs, "wasserstein")
    length = jnp.sqrt(jnp.sum(means**2, axis=1) + jnp.trace(covs, axis1=1, axis2=2))
    apart = jnp.where(apart <= IDENTICAL * length, 0.0, apart)
    between = apart if distance == "wasserstein" else pairwise(means, covs, distance)
    found, indices = [], []
    for number in numbers:
        clusters = min(number, count)
        own = kmeans(
            means, covs, clusters, distance, jax.random.fold_in(group, number), settings.restarts, STEPS,
            room=min(max(numbers), count), between=between,
        )  # fmt: skip
        if not np.isfinite(own.objective):
            raise NumericsError(
                f"{where}: no finite {distance} distances of {clusters} clusters; a source task has a "
                "covariance that cannot be repaired: look at its outputs, or use the other distance"
            )
        found.append(own)
        indices.append([float(index(apart, own.assignment, clusters)) for index in (compactness, separation)])
    chosen = choose(np.asarray(indices), np.asarray(numbers), count)
    reseeded = np.asarray([int(own.reseeded) for own in found])
    twins = np.triu(np.asarray(apart) == 0, 1).any(axis=0).sum()
    odd = Odd(np.asarray(twins), np.asarray(singular), np.asarray(len(x)), reseeded)
    print(f"{where}: {numbers[chosen]} clusters of {count} tasks", flush=True)
    for remark in remarks(odd, count):
        print(f"{where}: {remark}", flush=True)
    return Clusters(
        np.stack([own.assignment for own in found]),
        np.asarray(indices),
        np.asarray([float(own.objective) for own in found]),
        np.asarray([int(own.iterations) for own in found]),
        chosen,
        odd,
        found[chosen].trace,
    )


def remarks(odd: Odd, tasks: int) -> list[str]:
    """Return remarks for a person on the clusters of `tasks` tasks: too few tasks for a number of clusters, identical
    tasks, singular covariances, empty clusters."""
    numbers, said = range(1, len(odd.reseeded) + 1), []
    if too_many := [str(number) for number in numbers if number > tasks]:
        said.append(f"{tasks} tasks only: {', '.join(too_many)} clusters are made as {tasks}")
    if odd.twins:
        said.append(f"{odd.twins} of {tasks} source posteriors equal another one; they count as tasks of their own")
    if odd.singular:
        said.append(
            f"{odd.singular} of {tasks} posterior covariances are singular on {odd.locations} locations; "
            f"{RELATIVE_JITTER:g} of the mean variance is added to the diagonal of all"
        )
    for number, times in zip(numbers, odd.reseeded, strict=True):
        if times:
            said.append(f"{number} clusters: an empty one took the farthest task, {times} times")
    return said


def locations(rows: Rows, count: int, key: Key[Array, ""]) -> Float[Array, "v d"]:
    """Draw `count` different configurations of the source tasks (all of them, if there are fewer)."""
    pooled = np.unique(np.asarray(rows.x)[np.asarray(rows.mask)], axis=0)
    order = np.asarray(jax.random.permutation(key, len(pooled)))
    return jnp.asarray(pooled[np.sort(order[:count])])


def discretised(
    gps: GP, rows: Rows, x: Float[Array, "v d"], names: tuple[str, ...], where: str
) -> tuple[Float[Array, "m v"], Float[Array, "m v v"], int]:
    """Return posterior means and covariances at the locations `x`, with jitter added (sheet §2.1), and how many
    covariances are singular without it.

    Raises NumericsError, which names a task whose posterior is not finite or stays singular.
    """
    means, raw, sound = eqx.filter_jit(posteriors_at)(gps, Rows(*map(jnp.asarray, rows)), x)
    covs = regularised(raw)
    singular, lost = (
        ~np.isfinite(np.asarray(jnp.linalg.cholesky(part, symmetrize_input=False))).all(axis=(1, 2))
        for part in (raw, covs)
    )
    lost |= ~np.isfinite(np.asarray(means)).all(axis=1) | ~np.asarray(sound)
    if lost.any():
        raise NumericsError(
            f"{where}: the posterior of source task '{names[int(np.argmax(lost))]}' on {len(x)} locations is not "
            "finite, or singular with jitter too; look at its outputs, or leave the task out"
        )
    return means, covs, int(singular.sum())


def _padded(smooth: GP, rough: GP, found: Clusters, tasks: int) -> Clustered:
    spare = tasks - found.assignment.shape[1]

    def wide(gps):
        return jax.tree.map(lambda leaf: jnp.pad(leaf, [(0, spare)] + [(0, 0)] * (leaf.ndim - 1)), gps)

    return Clustered(
        sources=wide(smooth),
        rough=wide(rough),
        assignment=jnp.pad(jnp.asarray(found.assignment), [(0, 0), (0, spare)], constant_values=-1),
        indices=jnp.asarray(found.indices),
        objective=jnp.asarray(found.objective),
        iterations=jnp.asarray(found.iterations),
        chosen=jnp.asarray(found.chosen),
        odd=jax.tree.map(jnp.asarray, found.odd),
    )


def report(prior: SpacePrior) -> dict[str, list[dict[str, object]]]:
    """Return the part of the priors' sidecar on the clusters: for each fold and seed the chosen number of clusters, the
    anomalies of the tasks and, by number of clusters, the sizes, intraCE, interCS, and iterations of k-means."""
    params, found = jax.tree.map(np.asarray, prior.params), []
    for f, fold in enumerate(prior.folds):
        for seed in range(prior.seeds):
            pair = prior.pair(f, seed)
            rows = params.assignment[pair]
            sizes = [np.bincount(row[row >= 0], minlength=i + 1).tolist() for i, row in enumerate(rows)]
            found.append(
                {
                    "fold": fold.name, "seed": seed, "chosen": int(params.chosen[pair]) + 1, "sizes": sizes,
                    "intra": params.indices[pair, :, 0].tolist(), "inter": params.indices[pair, :, 1].tolist(),
                    "iterations": params.iterations[pair].tolist(), "locations": int(params.odd.locations[pair]),
                    "remarks": remarks(Odd(*(part[pair] for part in params.odd)), sum(sizes[0])),
                }
            )  # fmt: skip
    return {"clusters": found}
