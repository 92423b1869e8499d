"""Step 1 in the studies of MPHD (§2.3 Step 1): one GP per domain by maximum likelihood, all domains in one program.

Domains differ in their dimension, so their inputs are padded with columns of zeros to that of the widest. Such a column
adds nothing to a distance: its lengthscale has gradient zero and stays where it started.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.data import synthetic
from metabo.gp.fit import adam, batches_per_shuffle, lbfgs
from metabo.gp.model import GP, build
from metabo.methods.hierarchical.hyperprior import Parameters, of_gp
from metabo.papers.engine.studies import StudySpec
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.rows import Rows, stack

INITIAL = {"constant": 1.0, "lengthscale": 1.0}
"""Unwarped initial values of Step 1 (authors' code); signal variance 0 and noise variance -4 are those of `build`."""
POINTS = 50
"""Observations of each sub-dataset in a loss (App. E.2), all if it has fewer."""
TRAINED = 0.8
"""Share of the domains that priors are trained on, the first ones: 16 of 20 (§3.2); the others are tested. That is what
the first seed has; every other one has as many training domains of its own."""


class Domains(NamedTuple):
    """Sub-datasets of several domains: `rows` x (domains, functions, n, d), y and mask (domains, functions, n), `dims`
    the domains' own dimensions and `names` those of their spaces."""

    rows: Rows
    dims: np.ndarray
    names: tuple[str, ...]


class SuperDatasetSpec(StudySpec):
    """The sizes of a super-dataset: domains, sub-datasets of each, and their points."""

    domains: int
    functions: int
    points: int


class SeededSpec(SuperDatasetSpec):
    """The sizes of a super-dataset whose training domains are drawn anew for each of `seeds`."""

    seeds: int


def super_dataset(name: str, spec: SeededSpec) -> Benchmark:
    """Draw the synthetic super-dataset `name` with the seed and the sizes of a study.

    Its domains are those of the first seed, `domains` of them, and then the training domains of the others: each is a
    draw of its own from the super-dataset's distribution.
    """
    count = spec["domains"] + (spec["seeds"] - 1) * _trained(spec)
    return synthetic.load(
        name, {"seed": spec["seed"], "domains": count, "functions": spec["functions"], "points": spec["points"]}
    )


def _trained(spec: SeededSpec) -> int:
    """Return the number of domains that the priors of a seed may be trained on."""
    return round(TRAINED * spec["domains"])


def pools(benchmark: Benchmark, spec: SeededSpec) -> list[list[str]]:
    """Return, for every seed, the spaces of the domains that its priors may be trained on; no two seeds share one."""
    names, size = list(benchmark.spaces), _trained(spec)
    starts = [0, *(spec["domains"] + size * other for other in range(spec["seeds"] - 1))]
    return [names[start : start + size] for start in starts]


def tested(benchmark: Benchmark, spec: SeededSpec) -> list[str]:
    """Return the spaces of the domains that no prior is trained on, the same for all seeds."""
    return list(benchmark.spaces)[_trained(spec) : spec["domains"]]


def domains(benchmark: Benchmark, chosen: Mapping[str, Sequence[str]]) -> Domains:
    """Stack the tasks that `chosen` names per space; every space with equally many."""
    dims = np.array([benchmark.spaces[space].dim for space in chosen])
    tasks = [benchmark.tasks[name] for names in chosen.values() for name in names]
    batch = stack([np.pad(t.x, ((0, 0), (0, dims.max() - t.x.shape[1]))) for t in tasks], [t.y for t in tasks])
    shape = (len(chosen), len(tasks) // len(chosen))
    rows = Rows(*(jnp.asarray(part.reshape(*shape, *part.shape[1:])) for part in batch))
    return Domains(rows, dims, tuple(chosen))


def subsample(rows: Rows, points: int, key: Key[Array, ""]) -> Rows:
    """Draw `points` rows of each sub-dataset without replacement: x (functions, points, d), y and mask to match.

    All rows of `rows` must be valid; a sub-dataset with fewer keeps all.
    """
    n = rows.y.shape[1]
    keys = jax.random.split(key, len(rows.y))
    index = jax.vmap(lambda k: jax.random.permutation(k, n)[:points])(keys)
    x, y, mask = (jax.vmap(lambda part, i: part[i])(part, index) for part in rows)
    return Rows(x, y, mask)


def start(kernel: str, dim: int) -> GP:
    """Return the GP at which Step 1 begins: constant mean, `kernel` with a lengthscale per input."""
    return build({"mean": "constant", "kernel": kernel, "features": [], "initial": INITIAL}, dim, jax.random.key(0))


def total_nll(gp: GP, rows: Rows) -> Float[Array, ""]:
    """Σ_j of the negative log likelihoods of the sub-datasets (Eq. 3); one without valid rows adds nothing."""
    return -jnp.sum(jax.vmap(gp.log_prob)(*rows))


def by_lbfgs(rows: Rows, kernel: str, steps: int) -> Parameters:
    """Return θ̂ of one domain from all the rows given, by at most `steps` iterations of L-BFGS (App. F)."""
    return of_gp(lbfgs(lambda gp: total_nll(gp, rows), start(kernel, rows.x.shape[-1]), steps=steps)[0])


def by_adam(rows: Rows, kernel: str, steps: int, learning_rate: float, key: Key[Array, ""]) -> Parameters:
    """Return θ̂ of one domain by `steps` of Adam, each on POINTS random rows of every sub-dataset (App. E.2)."""
    functions, n = rows.y.shape
    shuffled = batches_per_shuffle([n] * functions, POINTS)
    members, present = jnp.arange(functions), jnp.ones(functions, bool)
    first = start(kernel, rows.x.shape[-1])
    settings = {"steps": steps, "learning_rate": learning_rate, "batch": POINTS, "per_shuffle": shuffled}
    return of_gp(adam(first, rows, members, present, key, **settings)[0])
