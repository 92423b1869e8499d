"""Past studies of one space as tasks: outcomes on one scale, failed trials as bad ones, studies without signal left
out. What was done to the outcomes is said in the remarks."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from metabo.data.history import signs
from metabo.data.history.account import StudyAccount, listed, without
from metabo.data.history.description import Configuration, Description, load
from metabo.data.history.frames import PastTrials, sheets, together
from metabo.data.history.read import History, read, read_sheets
from metabo.data.history.rows import Trial
from metabo.data.history.space_yaml import LARGEST, SpaceSource
from metabo.errors import ConfigError, DataError
from metabo.tasks.task import Task

FLOOR = -5.0
"""Scaled outcomes below this count as this: how hopeless a trial was must not decide what a model learns."""
CEILING = 1e9
"""Scaled outcomes above this count as this: beyond it the models would compute with infinite numbers."""


class Scale(NamedTuple):
    """Outcomes as the model sees them: (oriented outcome - centre) / spread, from `FLOOR` to `CEILING`. Oriented: its
    logarithm if the outcome's scale is log, and negative if it is minimised. `worst`: what a failed trial counts as, at
    best."""

    centre: float
    spread: float
    worst: float

    def scaled(self, oriented: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return oriented outcomes as the model sees them; NaN stays."""
        with np.errstate(over="ignore"):  # of a spread that is next to nothing
            return np.clip((oriented - self.centre) / self.spread, FLOOR, CEILING)

    def original(self, scaled: float, description: Description) -> float:
        """Return the outcome, as the user counts it, of a scaled one."""
        value = (scaled * self.spread + self.centre) * (1.0 if description.maximise else -1.0)
        return math.exp(min(value, 700.0)) if description.log else value


class PastStudies(NamedTuple):
    """The usable past studies of one space, as tasks with the names of the studies, their scale, remarks, what became
    of the rows of each study, what messages call the history, how it was written ("": it is no file), and the
    configurations of each task's rows as the history has them: the unit cube loses digits."""

    description: Description
    tasks: dict[str, Task]
    scale: Scale
    remarks: list[str]
    accounts: list[StudyAccount]
    name: str = ""
    layout: str = ""
    configurations: Mapping[str, list[Configuration]] = MappingProxyType({})


def oriented(outcomes: Float[np.ndarray, " n"], description: Description) -> Float[np.ndarray, " n"]:
    """Return outcomes to maximise, on the log scale if the description says so; NaN stays, and stands for what has no
    logarithm. Larger ones than `LARGEST`, which only an older version or Optuna has kept, count as that."""
    values = np.clip(outcomes, -LARGEST, LARGEST)
    if description.log:
        values = np.log(np.where(outcomes > 0, outcomes, np.nan))
    return values if description.maximise else -values


def scale_of(outcomes: Float[np.ndarray, " n"], worst: Float[np.ndarray, " s"] | None = None) -> Scale:
    """Return the scale of n finite oriented outcomes: median 0, interquartile range that of a standard Normal.

    `worst`: the lowest outcome of each study; a failed trial counts as their median, or as -2 if there is none.
    """
    centre = float(np.median(outcomes)) if len(outcomes) else 0.0
    spread = float(np.subtract(*np.quantile(outcomes, [0.75, 0.25]))) / 1.349 if len(outcomes) else 0.0
    if spread <= 0 and len(outcomes):  # half of the outcomes are equal
        size = 2.0 ** np.frexp(np.abs(outcomes).max())[1]  # a square would be infinite
        spread = float(np.std(outcomes / size) * size)
    spread = spread if np.isfinite(spread) and spread > 0 else 1.0
    scale = Scale(centre, spread, -2.0)
    return scale if worst is None else scale._replace(worst=min(-2.0, float(np.median(scale.scaled(worst)))))


def read_all(
    histories: Sequence[PastTrials], spaces: Sequence[SpaceSource], skip_bad_rows: bool = False
) -> list[PastStudies]:
    """Read histories with their spaces. Several DataFrames with one space are one history.

    Raises ConfigError if histories and spaces do not go together, DataError for their content.
    """
    described = [load(path) for path in spaces]
    frames = [one for one in histories if isinstance(one, pd.DataFrame)]
    if len(described) == 1 and len(histories) == len(frames) > 1:
        histories = [together(frames, described[0].study)]
    if not histories or len(histories) != len(spaces):
        raise ConfigError(f"{len(histories)} histories and {len(spaces)} spaces; give each history its space")
    names = [one.name for one in described]
    if twins := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"two spaces have the name '{twins[0]}'; give each its own 'name', or join their histories")
    several = len(described) > 1
    return [
        past_of(_named(given), _read(given, one, skip_bad_rows), one, f"{one.name}: " if several else "")
        for given, one in zip(histories, described, strict=True)
    ]


def _named(history: PastTrials) -> str:
    if isinstance(history, str | Path):
        return str(history)
    return "DataFrame" if isinstance(history, pd.DataFrame | tuple) else "DataFrames"


def _read(history: PastTrials, description: Description, skip_bad_rows: bool) -> History:
    if isinstance(history, str | Path):
        return read(history, description, skip_bad_rows)
    history = together(history, description.study) if isinstance(history, tuple) else history
    return read_sheets(sheets(history, description.study), description, skip_bad_rows)


def past_of(path: str, history: History, description: Description, prefix: str = "") -> PastStudies:
    """Turn a history into tasks named `prefix` + study. A trial that failed or is infeasible
    counts as its study's worst outcome.

    Studies without two different outcomes are left out. Raises DataError if none is left.
    """
    groups: dict[str, list[Trial]] = {}
    for trial in history.trials:
        groups.setdefault(trial.study, []).append(trial)
    values = {
        study: oriented(np.array([trial.counted for trial in trials]), description) for study, trials in groups.items()
    }
    kept = {study: y for study, y in values.items() if np.isfinite(y).any() and np.nanmin(y) < np.nanmax(y)}
    remarks = list(history.remarks)
    lost: dict[str, tuple[str, list[int]]] = {}
    for study in [study for study in values if study not in kept]:
        met = " and met its constraints" if any(trial.broken for trial in groups[study]) else ""
        alike = "one trial alone" if len(values[study]) == 1 else "one and the same outcome throughout"
        kind = f"no trial that succeeded{met}" if np.isnan(values[study]).all() else alike
        lost[study] = kind, [trial.row for trial in groups[study]]
        rows = listed(lost[study][1])
        remarks.append(f"{path}: left out study '{study}' ({rows}): {kind}, so there is nothing to learn from")
    if not kept:
        raise DataError(
            f"{path}: no study is left with two different values of '{description.outcome}' "
            f"(studies: {', '.join(values)}); add trials, or studies with a signal"
        )
    if said := signs.remark(kept, description):
        remarks.append(f"{path}: {said}")
    good = np.concatenate([y[np.isfinite(y)] for y in kept.values()])
    scale = scale_of(good, np.array([np.nanmin(y) for y in kept.values()]))
    tasks = {f"{prefix}{study}": _task(f"{prefix}{study}", groups[study], y, scale, description)
             for study, y in kept.items()}  # fmt: skip
    low = sum(int((task.y == FLOOR).sum()) for task in tasks.values())
    if low:
        remarks.append(
            f"{path}: {low} outcomes are more than {-FLOOR:g} spreads below the median and count as that, but for the "
            "default method, which takes ranks"
        )
    exact = {f"{prefix}{study}": [trial.configuration for trial in groups[study]] for study in kept}
    accounts = without(history.accounts, lost)
    return PastStudies(description, tasks, scale, remarks, accounts, path, history.layout, exact)


def _task(name: str, trials: list[Trial], values: np.ndarray, scale: Scale, description: Description) -> Task:
    lost = np.isnan(values)
    y = scale.scaled(np.where(lost, np.nanmin(values), values))
    metric = np.array([trial.counted for trial in trials])
    worst = np.nanmin(metric) if description.maximise else np.nanmax(metric)
    x = description.encode([trial.configuration for trial in trials])
    return Task(
        name=name, space=description.name, group=name, x=x, y=y, metric=np.where(lost, worst, metric),
        rows=np.array([trial.row for trial in trials]), diverged=np.zeros((0, x.shape[1])),
    )  # fmt: skip
