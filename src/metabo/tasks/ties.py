"""Ties at the best: a task in which half of the rows are as good as the best one cannot tell methods apart.

Loaders call `tied_tasks` before any method runs, keep those tasks for training only, and say so in a flag (`said`). In
LCBench's numerai28.6 (-log of the final validation cross entropy) 1,971 of 2,000 rows tie; no other of the 35 tasks has
half of its rows within 0.05 of the best.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from metabo.tasks.task import Task

TIE = 0.01
"""Rows tie at the best if their outputs are at most this far below it: 1 % of the loss if outputs are -log(loss), one
percentage point if they are accuracies. It is not a share of the range, because a few failed trainings would determine
the range."""
SHARE = 0.5
"""A task is tied if at least this share of its rows ties at the best."""

RULE = (
    f"A task is tied if at least {100 * SHARE:g} % of its rows have an output within {TIE:g} of the best one (1 % of "
    "the loss where outputs are -log(loss), one percentage point where they are accuracies). Tied tasks are for "
    "training only: they are excluded from tests before any method runs."
)


def tying(y: Float[np.ndarray, " n"], within: float = TIE) -> int:
    """Return how many of the outputs `y` are at most `within`, in their own units, below the best; the best counts."""
    return int(np.count_nonzero(y.max() - y <= within * (1 + 1e-9)))  # 0.75 - 0.74 is a hair above 0.01


def tied(y: Float[np.ndarray, " n"]) -> bool:
    """Return whether `RULE` excludes a task with the outputs `y` from tests; it always excludes constant outputs."""
    return tying(y) >= SHARE * len(y)


def tied_tasks(tasks: Mapping[str, Task]) -> list[str]:
    """Return the names, in the given order, of the tasks that `RULE` excludes from tests."""
    return [name for name, task in tasks.items() if tied(task.y)]


def said(names: Sequence[str]) -> tuple[str, ...]:
    """Return the flag that names the tied tasks of a benchmark, or nothing if there are none."""
    return (f"half of the rows tie at the best, never tested: {', '.join(names)}",) if names else ()
