"""cm-BO "partitions transferred meta-functions into highly homogeneous clusters" (abstract): on families drawn.

A family is a smooth function on the unit square, its tasks that function with deviations of their own, observed with
noise; families are independent draws. The package's own Stage 1 (`metabo.methods.source_gps.clusters`) clusters their
fits, and chooses the number of clusters. A task is at home if it is in a cluster of which its own family is the largest
part, and clusters are highly homogeneous if at least nine in ten tasks are: the paper has no number, and this one was
fixed before any result.
"""

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key

from metabo.methods.source_gps.clusters import cluster
from metabo.methods.source_gps.sources import fit_all
from metabo.papers.engine.theory.records import Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import Ruling, probability
from metabo.plan.specs import TrainingSpec
from metabo.records.files import Json
from metabo.tasks.rows import Rows

CHECKS = {"homogeneous": "Are clusters of drawn families homogeneous?"}
FAMILIES, TASKS, POINTS, DIM = 3, 4, 40, 2
"""Families, tasks of each, observations of a task, inputs."""
LENGTHSCALE, OWN, NOISE = 0.25, 0.2, 0.05
"""Of all functions (Matérn 5/2, variance 1); standard deviations of a task's own deviation and of the noise, as on the
benchmark `cmbo_control`."""
HOME = 0.9
"""Share of the tasks that must be at home."""
LIMIT = 0.25
"""Share of draws in which fewer may be."""
DRAWS, LEAST = 40, 3
STEPS, RESTARTS, LOCATIONS, MOST = 50, 3, 100, 6
"""Of the fits and of k-means, and the numbers of locations and of clusters at most: as in the default run."""
FACTORS = ("matern32", "matern12")
"""Of the kernel whose posteriors are clustered."""
DISTANCES = {"wasserstein": "Wasserstein", "jeffreys": "Jeffreys"}


def drawn(rng: np.random.Generator) -> tuple[Rows, Int[np.ndarray, " tasks"]]:
    """Draw the observations of all tasks, standardised, families in turn, and the family of each task."""
    family = np.arange(FAMILIES * TASKS) % FAMILIES
    x = rng.random((len(family), POINTS, DIM))
    common = rng.standard_normal((FAMILIES, x.shape[0] * POINTS)) @ _factor(x.reshape(-1, DIM)).T
    shared = common.reshape(FAMILIES, len(family), POINTS)[family, np.arange(len(family))]
    own = np.stack([_factor(one) @ rng.standard_normal(POINTS) for one in x])
    y = shared + OWN * own + NOISE * rng.standard_normal(own.shape)
    y = (y - y.mean(axis=1, keepdims=True)) / y.std(axis=1, keepdims=True)
    return Rows(x, y, np.ones(y.shape, bool)), family


def _factor(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
    """Return the Cholesky factor of the covariance of a function's values."""
    apart = np.sqrt(5.0) * np.linalg.norm(x[:, None] - x[None], axis=-1) / LENGTHSCALE
    return np.linalg.cholesky((1.0 + apart + apart**2 / 3.0) * np.exp(-apart) + 1e-9 * np.eye(len(x)))


def at_home(assignment: Int[np.ndarray, " tasks"], family: Int[np.ndarray, " tasks"]) -> float:
    """Return the share of tasks in a cluster of which their own family is the largest part. Where families tie, one of
    them counts."""
    largest = [np.bincount(family[assignment == one]).max() for one in np.unique(assignment)]
    return float(np.sum(largest) / len(family))


def homogeneous(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check both distances on the same draws; the control gives tasks to families at random."""
    count = max(LEAST, round(DRAWS * share))
    rng = generator(key)
    found: dict[str, tuple[list[float], list[float], list[int]]] = {distance: ([], [], []) for distance in DISTANCES}
    for place in range(count):
        rows, family = drawn(rng)
        fitted, _ = fit_all(list(FACTORS), rows, DIM, STEPS, False)
        shuffled = rng.permutation(family)
        names = tuple(f"family {one}" for one in family)
        for distance, (right, wrong, numbers) in found.items():
            made = cluster(fitted, rows, names, _spec(distance), jax.random.fold_in(key, place), f"draw {place}")
            assignment = made.assignment[made.chosen]
            right.append(at_home(assignment, family))
            wrong.append(at_home(assignment, shuffled))
            numbers.append(len(np.unique(assignment)))
    return [_statement(distance, *map(np.asarray, shares)) for distance, shares in found.items()]


def _statement(
    distance: str, right: Float[np.ndarray, " n"], wrong: Float[np.ndarray, " n"], numbers: Int[np.ndarray, " n"]
) -> Statement:
    claim = f"P[fewer than {HOME:.0%} of {FAMILIES * TASKS} tasks of {FAMILIES} families at home] <= {LIMIT:g}"
    where = {"clusters": float(numbers.mean())}
    helps = part(
        "at home", f"{claim}, {DISTANCES[distance]}", "probability", [cell(_ruled(right), **where)],
        control(f"{claim}, tasks given to families at random", [cell(_ruled(wrong), **where)]),
    )  # fmt: skip
    title = f"Clusters of drawn families are homogeneous, {DISTANCES[distance]}"
    return statement(f"Homogeneous clusters, {DISTANCES[distance]}", title, "Abstract", [helps], "reading")


def _ruled(shares: Float[np.ndarray, " n"]) -> Ruling:
    ruled = probability(int((shares < HOME).sum()), len(shares), LIMIT)
    return ruled._replace(numbers=ruled.numbers | {"mean": float(shares.mean())})


def _spec(distance: str) -> TrainingSpec:
    """Return the settings of Stage 1 that `cluster` reads: the kernels of the paper."""
    model: dict[str, Json] = {"kernel": "matern32", "cluster_kernel": list(FACTORS), "most": MOST}
    own: dict[str, Json] = {"distance": distance, "steps": STEPS, "restarts": RESTARTS, "locations": LOCATIONS}
    return {"method": "cm_wss_wss", "seed": 0, "seeds": 1, "past": {}, "model": model, "pretrain": own}
