"""hpob_mini: accuracies of scikit-learn's classifiers over six spaces and 32 data sets, collected as HPO-B was.

A task is a space and a data set. Every task has `shared` configurations, the same for all data sets of the space, and
its own ones: scrambled Halton points of the space's cube. The score is the accuracy on the fixed validation
rows. A failed fit gives a row with the reason in place of a score; flat tasks are kept, as in HPO-B (hyperbo §7.6.3).
"""

import time
import warnings
import zlib
from typing import NamedTuple, TypedDict

import numpy as np
import pandas as pd
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from metabo.collect import encoding, tabular
from metabo.collect.agreement import Agreement, compare
from metabo.collect.journal import Journal
from metabo.collect.learners import SPACES, build
from metabo.collect.packages import require
from metabo.compute import progress
from metabo.errors import ConfigError, DataError, MetaboError, unknown

UNITS = {
    "abalone19": {"split": "train"},
    "australian": {"split": "train"},
    "banana": {"split": "train"},
    "breast_cancer": {"split": "train"},
    "car-good": {"split": "train"},
    "chess": {"split": "train"},
    "contraceptive": {"split": "train"},
    "digits": {"split": "train"},
    "ionosphere": {"split": "train"},
    "led7digit": {"split": "train"},
    "magic": {"split": "train"},
    "mammographic": {"split": "train"},
    "mushroom": {"split": "train"},
    "page-blocks0": {"split": "train"},
    "penbased": {"split": "train"},
    "poker-8_vs_6": {"split": "train"},
    "ring": {"split": "train"},
    "texture": {"split": "train"},
    "titanic": {"split": "train"},
    "vehicle": {"split": "train"},
    "winequality-red-4": {"split": "train"},
    "yeast1": {"split": "train"},
    "monk-2": {"split": "validation"},
    "pima": {"split": "validation"},
    "tic-tac-toe": {"split": "validation"},
    "twonorm": {"split": "validation"},
    "german": {"split": "test"},
    "phoneme": {"split": "test"},
    "satimage": {"split": "test"},
    "segment": {"split": "test"},
    "spambase": {"split": "test"},
    "vowel": {"split": "test"},
}
"""Data sets, each one collection job that runs all six spaces; the split is the same in every space."""

TRAIN_ROWS, VALID_ROWS = 500, 2000
"""At most this many rows are trained on (a fit takes some hundredths of a second) and scored."""

CHUNK = 40
"""Trials between two records in the journal and lines in the log."""

DONE, FAILED = "done", "failed"
KEYS = ["space", "task", "row"]


class PlannedFit(NamedTuple):
    """One planned fit: row `row` of task (space, data set) at the encoded configuration `x` (columns,) float32."""

    space: str
    task: str
    row: int
    x: np.ndarray

    @property
    def name(self) -> str:
        """Name within the unit."""
        return f"{self.space}/{self.row}"


class Score(TypedDict):
    """What one fit gave, ready for JSON: the accuracy `y`, None where it failed, with the reason in `message`."""

    y: float | None
    status: str
    message: str


def collect(unit: str, sizes: dict[str, int], seed: int, journal: Journal[Score]) -> pd.DataFrame:
    """Run every planned trial of a data set, those in the journal excepted, and return all of them in order.

    `sizes`: see `plan`. Columns: space, task, split, row, x (list of float32), y
    (accuracy, NaN where the fit failed), status ("done" or "failed"), message. A trial's result depends on seed, data
    set, space and row, not on what ran before it. Raises ConfigError for an unknown unit or wrong sizes, DataError for
    data that cannot be read.
    """
    trials = [t for space in SPACES for t in plan(space, unit, sizes, seed)]
    waiting = [t for t in trials if t.name not in journal.records]
    start = time.monotonic()
    if waiting:
        dataset = tabular.load(unit, TRAIN_ROWS, VALID_ROWS)
    for first in progress.loop(range(0, len(waiting), CHUNK), f"chunks of {CHUNK} trials"):
        chunk = waiting[first : first + CHUNK]
        with _one_thread():
            journal.add({t.name: evaluate(t, dataset, seed) for t in chunk})
        failed = sum(result["status"] == FAILED for result in journal.records.values())
        done = f"{len(trials) - len(waiting) + first + len(chunk)} of {len(trials)} trials"
        print(f"{unit}: {done}, {failed} failed, {time.monotonic() - start:.0f} s", flush=True)
    return _table([(t, journal.records[t.name]) for t in trials])


def plan(space: str, unit: str, sizes: dict[str, int], seed: int) -> list[PlannedFit]:
    """List the trials of a task in order: `shared` configurations, the same for all data sets, then its own.

    A task that BO runs on has `pool` configurations of its own, any other task `own`: a pool must be much larger than
    the number of queries, or every method, random search too, ends at its best point.
    """
    if unit not in UNITS:
        raise unknown("data set of hpob_mini", unit, UNITS)
    if sizes.keys() != {"shared", "own", "pool"} or not all(isinstance(n, int) and n >= 0 for n in sizes.values()):
        raise ConfigError(f"sizes of hpob_mini: {sizes}; give whole numbers 'shared', 'own' and 'pool', at least 0")
    own = sizes["pool" if UNITS[unit]["split"] == "test" else "own"]
    rows = [*_draw(space, sizes["shared"], f"{seed}/{space}"), *_draw(space, own, f"{seed}/{space}/{unit}")]
    return [PlannedFit(space, unit, i, x) for i, x in enumerate(rows)]


def _draw(space: str, number: int, key: str) -> list[np.ndarray]:
    """Return `number` encoded configurations: scrambled Halton points, the scrambling keyed by text."""
    if not number:
        return []
    generator = np.random.default_rng(zlib.crc32(key.encode()))
    cube = qmc.Halton(encoding.coordinates(SPACES[space]), scramble=True, rng=generator).random(number)
    return [encoding.encode(SPACES[space], encoding.resolve(SPACES[space], u)) for u in cube]


def evaluate(trial: PlannedFit, dataset: tabular.Dataset, seed: int) -> Score:
    """Fit and score one configuration.

    What is trained is the decoded row, so that the stored inputs say exactly what was run.
    """
    exceptions = require("sklearn.exceptions")
    params = encoding.decode(SPACES[trial.space], trial.x)
    random_state = zlib.crc32(f"{seed}/{trial.task}/{trial.name}".encode())
    with warnings.catch_warnings():
        # Iterations are capped on purpose; overflow in a polynomial kernel shows in the score.
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            learner = build(trial.space, params, len(dataset.x_train), random_state)
            learner.fit(dataset.x_train, dataset.y_train)
            score = float(learner.score(dataset.x_valid, dataset.y_valid))
        except (MetaboError, MemoryError):  # trouble of the machine, not of the configuration
            raise
        except Exception as error:
            reason = str(error).strip().splitlines() or [""]
            return {"y": None, "status": FAILED, "message": f"{type(error).__name__}: {reason[0]}"}
    if not np.isfinite(score):
        return {"y": None, "status": FAILED, "message": f"the score is {score}"}
    return {"y": score, "status": DONE, "message": ""}


def _one_thread() -> threadpool_limits:
    """Keep the learners on one thread. Load their libraries first: one that is loaded later is not limited."""
    require("sklearn.ensemble")
    return threadpool_limits(1)


def _table(results: list[tuple[PlannedFit, Score]]) -> pd.DataFrame:
    rows = [
        {
            "space": trial.space, "task": trial.task, "split": UNITS[trial.task]["split"], "row": trial.row,
            "x": trial.x, "y": np.nan if result["y"] is None else result["y"],
            "status": result["status"], "message": result["message"],
        }
        for trial, result in results
    ]  # fmt: skip
    columns = ["space", "task", "split", "row", "x", "y", "status", "message"]
    return pd.DataFrame(rows, columns=columns).astype({"row": np.int32, "y": np.float64})


def retrain(table_rows: pd.DataFrame, sizes: dict[str, int], seed: int) -> pd.DataFrame:
    """Run the trials of some rows of a table again, by space, task and row. Columns and order stay the same.

    Raises DataError for a row that `sizes` has no trial for.
    """
    results = []
    datasets: dict[str, tabular.Dataset] = {}
    plans: dict[tuple[str, str], list[PlannedFit]] = {}
    for space, task, row in table_rows[KEYS].itertuples(index=False):
        if (space, task) not in plans:
            plans[space, task] = plan(space, task, sizes, seed)
            datasets.setdefault(task, tabular.load(task, TRAIN_ROWS, VALID_ROWS))
        if row >= len(plans[space, task]):
            raise DataError(f"row {row} of {space}/{task} is not in a plan of {len(plans[space, task])}; sizes {sizes}")
        trial = plans[space, task][row]
        with _one_thread():
            results.append((trial, evaluate(trial, datasets[task], seed)))
    return _table(results)


def agreement(ours: pd.DataFrame, theirs: pd.DataFrame) -> Agreement:
    """Compare two tables by accuracy and status (see `metabo.collect.agreement`). With other sizes the same row may
    hold another configuration; such rows are counted, not compared."""
    return compare(ours, theirs, KEYS, ["x"], "y")
