"""metabo at several sizes: a step of Adam, and an iteration of BO with a fixed prior."""

from collections.abc import Callable
from dataclasses import replace

import jax
from case import Case, Timed, curve
from ours import bo, compiled_case, to_gp, trainer
from problem import Sizes, parameters


def adam(sizes: Sizes) -> Case:
    """Adam on the common tasks, whole shuffles of the rows only.

    The program steps through whole shuffles and makes at least one step more than it is told (the last checks the
    parameters), so that one step fewer than a whole number of shuffles wastes none.
    """
    per_shuffle = sizes.rows // sizes.batch
    made = sizes.growth_shuffles * per_shuffle
    train = trainer(sizes, made - 1)
    return compiled_case(train, (to_gp(parameters(sizes)), jax.random.key(0)), made)


def tasks(sizes: Sizes) -> Timed:
    rows = sizes.batches_per_shuffle * sizes.batch
    return curve([adam(replace(sizes, tasks=number, rows=rows)) for number in sizes.growth_tasks])


def points(sizes: Sizes) -> Timed:
    """More points in each batch, at the same number of batches a shuffle."""
    rows = sizes.batches_per_shuffle
    return curve([adam(replace(sizes, batch=number, rows=rows * number)) for number in sizes.growth_points])


def candidates(sizes: Sizes) -> Timed:
    return curve([bo(replace(sizes, pool=number, runs=sizes.growth_runs)) for number in sizes.growth_candidates])


def observations(sizes: Sizes) -> Timed:
    return curve([bo(replace(sizes, budget=number, runs=sizes.growth_runs)) for number in sizes.growth_observations])


CASES: dict[str, dict[str, Callable[[Sizes], Timed]]] = {
    "growth_tasks": {"metabo": tasks},
    "growth_points": {"metabo": points},
    "growth_candidates": {"metabo": candidates},
    "growth_observations": {"metabo": observations},
}
