"""A history with its space, as users have them, written to files; what is read of them is compared cell by cell."""

import csv
import io
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metabo.data.history import description as descriptions
from metabo.data.history.description import Description
from metabo.data.history.past import CEILING, FLOOR, PastStudies, past_of
from metabo.data.history.read import History, read


class Read(NamedTuple):
    """What is read of the two files."""

    space: Description
    history: History
    past: PastStudies


class Row(NamedTuple):
    """A trial that is to come out of a history: its study, configuration, and outcome (NaN: it failed)."""

    study: str
    configuration: dict[str, object]
    outcome: float


def read_both(history: Path, space: Path) -> Read:
    """Read a history with its space, as `metabo pretrain` does."""
    description = descriptions.load(space)
    found = read(history, description)
    return Read(description, found, past_of(str(history), found, description))


def csv_text(header: list[str], rows: list[list[str]], delimiter: str = ",", newline: str = "\n") -> str:
    """Return a table as text."""
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator=newline).writerows([header, *rows])
    return stream.getvalue()


def differing(found: Read, wanted: list[Row]) -> str:
    """Say where the trials are not those that were put in, "" if they are. Values are equal in kind, too: 64 is not
    '64', and 1 is not True."""
    trials = found.history.trials
    if len(trials) != len(wanted):
        return f"{len(trials)} trials in place of {len(wanted)}"
    for trial, row in zip(trials, wanted, strict=True):
        if trial.study != row.study or not same(trial.outcome, row.outcome):
            return f"row {trial.row} is {trial.study!r}, {trial.outcome!r} in place of {row.study!r}, {row.outcome!r}"
        for name, value in row.configuration.items():
            if not same(trial.configuration[name], value):
                return f"row {trial.row}, {name} is {trial.configuration[name]!r} in place of {value!r}"
    return unsound(found)


def same(one: object, other: object) -> bool:
    """Tell whether two values are equal, in kind too; numbers up to digits lost in printing."""
    if isinstance(one, bool | str | None) or isinstance(other, bool | str | None):
        return type(one) is type(other) and one == other
    return math.isclose(one, other, rel_tol=1e-12) or (math.isnan(one) and math.isnan(other))


def unsound(found: Read) -> str:
    """Say what a model could not compute with: inputs outside the cube, outcomes out of order or not finite."""
    for name, task in found.past.tasks.items():
        if not (np.isfinite(task.x).all() and (task.x >= 0).all() and (task.x <= 1).all()):
            return f"study {name!r} has inputs outside of the unit cube"
        if not (np.isfinite(task.y).all() and (task.y >= FLOOR).all() and (task.y <= CEILING).all()):
            return f"study {name!r} has scaled outcomes that are not finite: {task.y}"
        better = task.metric if found.space.maximise else -task.metric
        if (np.diff(task.y[np.argsort(better, kind="stable")]) < 0).any():
            return f"study {name!r} has its outcomes in another order"
    every = np.concatenate([task.metric for task in found.past.tasks.values()])
    scaled = np.concatenate([task.y for task in found.past.tasks.values()])
    if len(np.unique(every)) > 1 and len(np.unique(scaled)) == 1:
        return f"all outcomes count as the same: {every[:3]}"
    return ""
