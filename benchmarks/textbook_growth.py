"""The textbook's code at the same sizes; it imports nothing of metabo."""

from collections.abc import Callable
from dataclasses import replace

from case import Timed, curve
from problem import Sizes
from textbook import adam, bo


def tasks(sizes: Sizes) -> Timed:
    few = replace(sizes, rows=sizes.batches_per_shuffle * sizes.batch, textbook_adam_steps=sizes.textbook_growth_steps)
    return curve([adam(replace(few, tasks=number)) for number in sizes.growth_tasks])


def points(sizes: Sizes) -> Timed:
    few, rows = replace(sizes, textbook_adam_steps=sizes.textbook_growth_steps), sizes.batches_per_shuffle
    return curve([adam(replace(few, batch=number, rows=rows * number)) for number in sizes.growth_points])


def candidates(sizes: Sizes) -> Timed:
    return curve([bo(replace(sizes, pool=number)) for number in sizes.growth_candidates])


def observations(sizes: Sizes) -> Timed:
    return curve([bo(replace(sizes, budget=number)) for number in sizes.growth_observations])


CASES: dict[str, dict[str, Callable[[Sizes], Timed]]] = {
    "growth_tasks": {"textbook": tasks},
    "growth_points": {"textbook": points},
    "growth_candidates": {"textbook": candidates},
    "growth_observations": {"textbook": observations},
}
