"""Study of cm-BO's times (§4.2; sheet §8, B11 to B14 and B22): one iteration of clustering, the distances of one query,
HyperBO's training, a whole query of each method against the number of source tasks; which distances rounding decides.

CPU times of one core, the lowest of several repeats, compilation excluded. The source posteriors are synthetic: GPs of
three inputs with outputs drawn from them; times depend on their number and on the locations, not on their values.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import pandas as pd
from jaxtyping import Array, Key

from metabo.bo.policy import Candidates, Policy, remaining
from metabo.compute import progress
from metabo.compute.keys import stream
from metabo.gaussians.barycenter import barycenter
from metabo.gaussians.distances import (
    DISTANCES,
    distances,
    pairwise,
    prepared,
    regularised,
)
from metabo.gaussians.kmeans import centres, kmeans
from metabo.gp.fit import adam
from metabo.gp.model import build
from metabo.methods.source_gps import clusters_policy, rgpe_policy, rm_gp_ucb
from metabo.methods.source_gps.clusters import Clustered, Odd
from metabo.methods.source_gps.rgpe import Sources
from metabo.methods.source_gps.sources import fit, make, posteriors_at
from metabo.papers.cmbo.studies.drawn_tasks import DIM, FACTORS, OBSERVATIONS, locations, sources
from metabo.papers.cmbo.studies.rounding import stability
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.clock import seconds
from metabo.papers.engine.studies.files import Frames

STUDIES = {"cmbo_timing": {"alone": True}}
"""`alone`: it measures time, so the workflow runs no other job beside it."""

BUDGET = 55
HYPERBO = {"mean": "linear_mlp", "kernel": "matern52", "features": [128, 128]}
HYPERBO_STEPS = 20_000
"""Adam steps of HyperBO in the paper that cm-BO took its settings from; the time of one is measured."""
FEW_TASKS, TWO = 4, 2
"""Source tasks and clusters where the number of locations varies."""
RUNS = 20
"""Sets of source tasks on which the iterations of k-means are counted."""
DRAWS, RESTARTS = 5, 3
"""Sets of source tasks for which the work before BO, an iteration of k-means and the distances of a query are timed:
the units of their intervals. Starts of k-means, as config key `cmbo.restarts` has them by default."""
SETTINGS = {
    "prototypes": "clusters", "clusters": 0, "weights": "jeffreys", "centre": "geometric", "proto_kernel": "plain",
    "initial": 0, "tolerance": 1e-6,
}  # fmt: skip

Measured = tuple[str, str, int, int, int, int, float]
"""Kind, measure, tasks, clusters, locations, repetition, seconds."""


@partial(jax.jit, static_argnames=("clusters", "distance"))
def iteration(tasks, assignment, clusters: int, distance: str):
    """One iteration of k-means: centres, their factors, all distances, assignment."""
    means, covs = centres(tasks, assignment, clusters)
    return jnp.argmin(distances(tasks, prepared(means, covs, distance), distance), axis=1)


@partial(jax.jit, static_argnames=("distance",))
def query(prototypes, mean, cov, distance: str):
    """The distances of one query: factor the target's posterior, compare it with every prototype."""
    target = prepared(mean[None], regularised(cov)[None], distance)
    return distances(prototypes, target, distance)


class TimingSpec(StudySpec):
    """Repeats of each timing, and the grids.

    `tasks`, `clusters`: their numbers; the third number of tasks is used where other sizes vary; `locations` of a
    posterior, `sizes`: other numbers of them; `grid`: locations of a query; `steps` of Adam and of L-BFGS that are
    timed.
    """

    repeats: int
    tasks: list[int]
    clusters: list[int]
    locations: int
    sizes: list[int]
    grid: int
    steps: int


def timed_distances(spec: TimingSpec) -> Iterator[Measured]:
    """Time an iteration of k-means, by numbers of tasks, clusters and locations, and the distances of a query."""
    seed, middle = spec["seed"], spec["tasks"][2]
    few = spec["clusters"][len(spec["clusters"]) // 2]
    for distance in progress.loop(DISTANCES, "distances"):
        grid = [(middle, c) for c in spec["clusters"]] + [(k, few) for k in spec["tasks"] if k != middle]
        for count, clusters in progress.loop(grid, "sizes"):
            for draw in range(DRAWS if count == middle else 1):
                tasks = prepared(*_posteriors(count, spec["locations"], seed, draw), distance)
                work = partial(iteration, tasks, jnp.arange(count) % clusters, clusters, distance)
                cost = seconds(work, spec["repeats"])
                yield "kmeans_iteration", distance, count, clusters, spec["locations"], draw, cost
        # The largest number is left out for W2, whose singular values take a minute there.
        for size in spec["sizes"][: None if distance == "jeffreys" else -1]:
            tasks = prepared(*_posteriors(FEW_TASKS, size, seed), distance)
            work = partial(iteration, tasks, jnp.arange(FEW_TASKS) % TWO, TWO, distance)
            yield "kmeans_iteration", distance, FEW_TASKS, TWO, size, 0, seconds(work, min(spec["repeats"], 2))
        for draw in range(DRAWS):
            means, covs = _posteriors(max(spec["clusters"]) + 1, spec["grid"], seed, draw)
            for clusters in spec["clusters"]:
                prototypes = prepared(means[:clusters], covs[:clusters], distance)
                work = partial(query, prototypes, means[-1], covs[-1], distance)
                yield "query_distance", distance, 0, clusters, spec["grid"], draw, seconds(work, spec["repeats"])
    _, covs = _posteriors(8, spec["locations"], seed)
    work = partial(jax.jit(barycenter), covs, jnp.full(8, 1 / 8))
    yield "barycenter", "wasserstein", 8, 1, spec["locations"], 0, seconds(work, spec["repeats"])


def _posteriors(count: int, size: int, seed: int, draw: int = 0) -> tuple[Array, Array]:
    gps, rows = sources(count, _key(seed, count, draw))
    means, covs, _ = posteriors_at(gps, rows, locations(rows, size, stream(seed, "cmbo_timing", "where", size)))
    return means, regularised(covs)


def _key(seed: int, count: int, draw: int = 0) -> Key[Array, ""]:
    """Return the key of `count` source tasks; of other ones for each `draw`."""
    return stream(seed, "cmbo_timing", count, *([draw] if draw else []))


def timed_training(spec: TimingSpec) -> Iterator[Measured]:
    """Time the work before BO, for each set of source tasks: HyperBO's training, from the time of a step, and cm-BO's
    fits of both kernels and clusters of every number."""
    seed, count = spec["seed"], spec["tasks"][2]
    gp = build(HYPERBO, DIM, stream(seed, "cmbo_timing", "network"))
    members, present = jnp.arange(count), jnp.ones(count, bool)
    sizes = {"learning_rate": 1e-3, "batch": OBSERVATIONS, "per_shuffle": 1, "steps": spec["steps"]}
    train = eqx.filter_jit(lambda gp, rows, key: adam(gp, rows, members, present, key, **sizes))
    starts = [make(shapes, DIM) for shapes in (FACTORS[:1], FACTORS)]
    fits = eqx.filter_jit(
        lambda rows: [jax.lax.map(lambda task, s=s: fit(s, *task, spec["steps"])[0], tuple(rows)) for s in starts]
    )
    most = max(spec["clusters"])
    for draw in progress.loop(range(-1, DRAWS), "repetitions"):  # the first compiles
        shown, (_, rows) = max(draw, 0), sources(count, _key(seed, count, max(draw, 0)))
        means, covs = _posteriors(count, spec["locations"], seed, shown)
        steps = HYPERBO_STEPS / (spec["steps"] + 1)
        costs = [
            ("hyperbo_training", "any", 0, OBSERVATIONS, steps * one_call(lambda r=rows: train(gp, r, stream(seed)))),
            ("source_fits", "any", 0, OBSERVATIONS, one_call(lambda r=rows: fits(r))),
        ]
        for distance in DISTANCES:
            work = partial(every_number, means, covs, most, distance, stream(seed))
            costs.append(("clustering", distance, most, spec["locations"], one_call(work)))
        for what, measure, clusters, locations_, cost in costs if draw >= 0 else []:
            yield what, measure, count, clusters, locations_, draw, cost


def one_call(work: Callable[[], object]) -> float:
    """Return the CPU time of one call, which takes long enough to be timed alone."""
    started = time.process_time()
    jax.block_until_ready(eqx.filter(work(), eqx.is_array))
    return time.process_time() - started


def every_number(means: Array, covs: Array, most: int, distance: str, key: Key[Array, ""]) -> list[Array]:
    """Cluster Gaussians into 1 to `most` clusters, as the method does before it chooses a number: the distances of all
    pairs first, Wasserstein's for the indices too."""
    apart = pairwise(means, covs, "wasserstein")
    between = apart if distance == "wasserstein" else pairwise(means, covs, distance)
    return [
        kmeans(means, covs, number, distance, key, RESTARTS, room=most, between=between).objective
        for number in range(1, most + 1)
    ]


def policies(count: int, clusters: int, grid: int, seed: int) -> dict[str, Policy]:
    """Return a policy of every method that reads source tasks, of `count` of them."""
    gps, rows = sources(count, stream(seed, "cmbo_timing", count), ("matern32",))
    zeros, none = jnp.zeros(clusters), jnp.asarray(0)
    assignment = jnp.broadcast_to(jnp.arange(count) % clusters, (clusters, count))
    params = Clustered(
        gps, gps, assignment, jnp.zeros((clusters, 2)), zeros, zeros.astype(int), jnp.asarray(clusters - 1),
        Odd(none, none, none, zeros.astype(int)),
    )  # fmt: skip
    known = Sources(gps, make(("matern32",), DIM))
    own = {**SETTINGS, "grid": grid}
    bounds = {"beta": 3.0, "tau": 3.0, "eta": 0.1, "epsilon": 0.5, "r": 0.7, "initial": 0, "refit_steps": 10}
    ranked = {"samples": 64, "refit_steps": 10}
    return {
        "cm_jef_jef": clusters_policy.policy(params, own, "ucb3", BUDGET, rows),
        "cm_jef_wss": clusters_policy.policy(params, own | {"weights": "wasserstein"}, "ucb3", BUDGET, rows),
        "cm_tasks": clusters_policy.policy(params, own | {"prototypes": "tasks"}, "ucb3", BUDGET, rows),
        "rgpe": rgpe_policy.policy(known, ranked, "ucb3", BUDGET, rows),
        "rm_gp_ucb": rm_gp_ucb.policy(known, bounds, "ucb3", BUDGET, rows),
    }


def timed_queries(spec: TimingSpec) -> Iterator[Measured]:
    """Time a whole query, choice and update, of every method against the number of source tasks, in DRAWS rounds: what
    slows the machine down for a while slows all numbers of a round."""
    few = min(4, spec["tasks"][0])
    key = stream(spec["seed"], "cmbo_timing", "pool")
    pool = Candidates(jax.random.uniform(key, (spec["grid"], DIM)), jnp.ones(spec["grid"], bool))

    def step(policy, state, mask, key):
        index, _ = policy.select(state, mask, key)
        after = policy.observe(state, index, jnp.sin(index.astype(float)))
        return after, remaining(mask, pool.mask, index, policy.repeats)

    ready = {}
    for count in spec["tasks"]:
        for method, policy in policies(count, few, spec["grid"], spec["seed"]).items():
            now, once = (eqx.filter_jit(policy.init)(pool, key), pool.mask), eqx.filter_jit(step)
            for number in range(5):
                now = once(policy, *now, jax.random.fold_in(key, number))
            ready[count, method] = partial(once, policy, *now, key)
    for repetition in progress.loop(range(DRAWS), "rounds"):
        for (count, method), work in ready.items():
            cost = seconds(lambda work=work: jax.tree.leaves(work())[0], spec["repeats"])
            yield "query", method, count, few, spec["grid"], repetition, cost


def iterations(spec: TimingSpec) -> pd.DataFrame:
    """Count the iterations of k-means until the assignments repeat, for one start on each of RUNS sets of source tasks
    (B12)."""
    count = spec["tasks"][2]
    few = spec["clusters"][len(spec["clusters"]) // 2]
    rows = []
    for distance in DISTANCES:
        for run in range(RUNS):
            means, covs = _posteriors(count, spec["locations"], spec["seed"], run)
            found = kmeans(means, covs, few, distance, stream(spec["seed"], "cmbo_timing", "run", run), restarts=1)
            rows.append({"measure": distance, "repetition": run, "iterations": int(found.iterations)})
    return pd.DataFrame(rows)


def run(spec: TimingSpec) -> Frames:
    """Return "time" (kind, measure, tasks, clusters, locations, repetition, seconds), "iterations" (measure,
    repetition, iterations), "stability" (kernel, measure, locations, jitter, lost, of, error) and "changes" (kernel,
    locations, jitter, pair, jeffreys, wasserstein). `measure`: the distance; of a query: its method.
    """
    parts = (timed_distances(spec), timed_training(spec), timed_queries(spec))
    columns = ["kind", "measure", "tasks", "clusters", "locations", "repetition", "seconds"]
    measured = pd.DataFrame([row for part in parts for row in part], columns=columns)
    lost, changes = stability(spec["locations"], spec["grid"], spec["seed"])
    return {"time": measured, "iterations": iterations(spec), "stability": lost, "changes": changes}
