"""The benchmark pd1_mini: small networks trained for real over PD1's search space, written as PD1's own files.

24 tasks = data set x network x batch size. Every trial trains one network with Nesterov momentum and the polynomial
schedule (hyperbo §7.1, Table 4, Eq. 25) at one point (λ, η, p, β): matched points are shared by all tasks, unmatched
ones are each task's own. Phase 0 is a pilot, phase 1 the main collection, as in PD1.

Version 2 has matched points of phase 1 only, those of version 1 first: all tasks share all rows, so that rows can be
split and looked up in a portfolio. Each is trained several times (`metabo.collect.repeats`).
"""

import time
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from scipy.stats import qmc

from metabo.collect import images, networks, repeats, tabular, text
from metabo.collect.agreement import Agreement, compare
from metabo.collect.journal import Journal
from metabo.collect.pd1_archive import TrainingRecord, frame, record, row
from metabo.collect.repeats import Row
from metabo.collect.training import CHUNK, POINTS, Examples, TrainingResult, trainer
from metabo.compute import progress
from metabo.compute.keys import stream
from metabo.data.pd1_columns import CHANCE, INPUTS, LOSS, METRIC, REPEATS, SPACE, raw_inputs
from metabo.errors import DataError, unknown

UNITS = {
    "mnist5k-simple_cnn-32": {"data": "mnist5k", "variant": "simple_cnn", "batch": 32, "epochs": 3},
    "mnist5k-simple_cnn-128": {"data": "mnist5k", "variant": "simple_cnn", "batch": 128, "epochs": 3},
    "mnist5k-max_pool_relu-32": {"data": "mnist5k", "variant": "max_pool_relu", "batch": 32, "epochs": 3},
    "mnist5k-max_pool_relu-128": {"data": "mnist5k", "variant": "max_pool_relu", "batch": 128, "epochs": 3},
    "mnist5k-max_pool_tanh-32": {"data": "mnist5k", "variant": "max_pool_tanh", "batch": 32, "epochs": 3},
    "mnist5k-max_pool_tanh-128": {"data": "mnist5k", "variant": "max_pool_tanh", "batch": 128, "epochs": 3},
    "digits-simple_cnn-16": {"data": "digits", "variant": "simple_cnn", "batch": 16, "epochs": 12},
    "digits-simple_cnn-64": {"data": "digits", "variant": "simple_cnn", "batch": 64, "epochs": 12},
    "digits-max_pool_relu-16": {"data": "digits", "variant": "max_pool_relu", "batch": 16, "epochs": 12},
    "digits-max_pool_relu-64": {"data": "digits", "variant": "max_pool_relu", "batch": 64, "epochs": 12},
    "digits-max_pool_tanh-16": {"data": "digits", "variant": "max_pool_tanh", "batch": 16, "epochs": 12},
    "digits-max_pool_tanh-64": {"data": "digits", "variant": "max_pool_tanh", "batch": 64, "epochs": 12},
    "mnist1d-mlp-32": {"data": "mnist1d", "variant": "mlp", "batch": 32, "epochs": 8},
    "mnist1d-mlp-128": {"data": "mnist1d", "variant": "mlp", "batch": 128, "epochs": 8},
    "mnist1d-max_pool_relu-32": {"data": "mnist1d", "variant": "max_pool_relu", "batch": 32, "epochs": 6},
    "mnist1d-max_pool_relu-128": {"data": "mnist1d", "variant": "max_pool_relu", "batch": 128, "epochs": 6},
    "satimage-mlp-32": {"data": "satimage", "variant": "mlp", "batch": 32, "epochs": 6},
    "satimage-mlp-128": {"data": "satimage", "variant": "mlp", "batch": 128, "epochs": 6},
    "phoneme-mlp-32": {"data": "phoneme", "variant": "mlp", "batch": 32, "epochs": 8},
    "phoneme-mlp-128": {"data": "phoneme", "variant": "mlp", "batch": 128, "epochs": 8},
    "letter-mlp-32": {"data": "letter", "variant": "mlp", "batch": 32, "epochs": 6},
    "letter-mlp-128": {"data": "letter", "variant": "mlp", "batch": 128, "epochs": 6},
    "descr-transformer-8": {"data": "descr", "variant": "transformer", "batch": 8, "epochs": 4},
    "descr-transformer-32": {"data": "descr", "variant": "transformer", "batch": 32, "epochs": 4},
}

MODELS = {
    "simple_cnn": ("simple_cnn", "smpl_cnn"),
    "max_pool_relu": ("max_pooling_cnn", "maxp_relu"),
    "max_pool_tanh": ("max_pooling_cnn", "maxp_tanh"),
    "mlp": ("mlp", "mlp"),
    "transformer": ("transformer", "trfmr"),
}
"""Model of each variant, and its word in the name of a task."""

ONLINE = {
    "mnist5k_smpl_cnn,mnist5k,simple_cnn,simple_cnn,32": "error_rate",
    "mnist5k_maxp_relu,mnist5k,max_pooling_cnn,max_pool_relu,128": "error_rate",
    "digits_maxp_relu,digits,max_pooling_cnn,max_pool_relu,16": "error_rate",
    "digits_maxp_tanh,digits,max_pooling_cnn,max_pool_tanh,64": "error_rate",
    "mnist1d_mlp,mnist1d,mlp,mlp,128": "error_rate",
    "mnist1d_maxp_relu,mnist1d,max_pooling_cnn,max_pool_relu,32": "error_rate",
    "satimage_mlp,satimage,mlp,mlp,32": "error_rate",
    "letter_mlp,letter,mlp,mlp,128": "error_rate",
    "descr_trfmr,descr,transformer,transformer,8": "ce_loss",
}
"""Tasks that are tuned online and the metric that each minimises (hyperbo §7.5: text tasks the cross entropy)."""

POINTS_SEED = 20231
"""Seed of the matched points; those of a task are keyed by its name."""

PROBE = 400
"""Training examples on which the training curve is evaluated."""

TEXT_PROBE = 64
"""The same for text, whose examples are 32 characters each."""


class BestValues(NamedTuple):
    """Best validation values of one training over its curve, NaN if there is none; `status`: done or diverged."""

    error_rate: float
    ce_loss: float
    status: str


class Planned(NamedTuple):
    """One trial to run: its name within the unit, phase, whether its point is matched, and the point λ, η, p, β."""

    name: str
    phase: int
    matched: bool
    point: np.ndarray


def study_group(unit: str) -> str:
    """Return the task's name, "name,dataset,model,variant,batch size" as in PD1."""
    settings = UNITS[unit]
    model, word = MODELS[settings["variant"]]
    data = settings["data"]
    return f"{data}_{word},{data},{model},{settings['variant']},{settings['batch']}"


def plan(unit: str, sizes: dict[str, int]) -> list[Planned]:
    """List the trials of a unit. `sizes`: pilot (matched and as many unmatched, phase 0), matched and unmatched
    (phase 1); of version 2 matched alone, rounded (`portable`). A larger size only adds trials. Raises ConfigError for
    an unknown unit."""
    if unit not in UNITS:
        raise unknown("task of pd1_mini", unit, UNITS)
    listed = []
    pilot, unmatched = sizes.get("pilot", 0), sizes.get("unmatched", 0)
    for phase, numbers in enumerate(((pilot, pilot), (sizes["matched"], unmatched))):
        for kind, number in zip(("matched", "unmatched"), numbers, strict=True):
            matched = kind == "matched"
            seed = POINTS_SEED + phase if matched else zlib.crc32(f"{unit} phase {phase}".encode())
            for i, point in enumerate(points(number, seed)):
                place = portable(point) if REPEATS in sizes else point
                listed.append(Planned(f"phase{phase}-{kind}-{i:05d}", phase, matched, place))
    return listed


def portable(point: np.ndarray) -> np.ndarray:
    """Round a point to twelve significant digits: powers of ten differ in the last bit between processors, and units
    that are collected on different ones must share their points exactly."""
    return np.array([float(f"{value:.12g}") for value in point])


def points(number: int, seed: int) -> np.ndarray:
    """Return a (number, 4) scrambled Halton sequence over PD1's box (hyperbo Table 4): λ, η, p, β."""
    unit = qmc.Halton(SPACE.dim, scramble=True, rng=np.random.default_rng(seed)).random(number)
    return raw_inputs(unit)


def data_of(name: str) -> Examples:
    """Load a data set, by its name in `UNITS`. Raises DataError."""
    made = {"mnist5k": images.mnist5k, "digits": images.digits, "mnist1d": images.mnist1d, "descr": text.descriptions}
    if name in made:
        return made[name]()
    table = tabular.load(name, train=3000, valid=1500)
    y_train, y_valid = (np.asarray(y, np.int32) for y in (table.y_train, table.y_valid))
    return Examples(table.x_train, y_train, table.x_valid, y_valid, table.classes)


@lru_cache(maxsize=2)
def runner(unit: str) -> tuple[Callable[[jax.Array, np.ndarray], TrainingResult], int]:
    """Return the unit's training program (see `training.trainer`) and its number of steps T."""
    settings = UNITS[unit]
    data = data_of(settings["data"])
    network = networks.build(settings["variant"], data.x_train.shape[1:], data.classes)
    steps = POINTS * max(1, round(settings["epochs"] * len(data.x_train) / settings["batch"] / POINTS))
    probe = PROBE if data.y_train.ndim == 1 else TEXT_PROBE
    return trainer(network, data, settings["batch"], steps, probe), steps


def train_points(unit: str, names: list[str], points: np.ndarray, seed: int) -> dict[str, TrainingRecord]:
    """Train at (n, 4) points; name -> JSON-ready result. Each has its own random stream, keyed by its name alone."""
    run, steps = runner(unit)
    keys = jax.numpy.stack([stream(seed, unit, name) for name in names])
    result = run(keys, points)
    return {name: record(*(part[i] for part in result), steps) for i, name in enumerate(names)}


def collect(unit: str, sizes: dict[str, int], seed: int, journal: Journal[TrainingRecord]) -> pd.DataFrame:
    """Train every planned trial of a unit that the journal does not hold, and return the table of all, in order.

    `sizes` with `repeats` are those of version 2: a row then summarises that many trainings of a point. Results do not
    depend on what was in the journal, nor on the other sizes. Raises ConfigError for an unknown unit, DataError if the
    raw data are missing.
    """
    planned, number = plan(unit, sizes), sizes.get(REPEATS)
    trainings = [(name, trial.point) for trial in planned for name in repeats.names(trial.name, number or 1)]
    missing = [(name, point) for name, point in trainings if name not in journal.records]
    began = time.monotonic()
    for first in progress.loop(range(0, len(missing), CHUNK), f"chunks of {CHUNK} trials"):
        names, place = zip(*missing[first : first + CHUNK], strict=True)
        journal.add(train_points(unit, list(names), np.stack(place), seed))
        diverged = sum(record["status"] == "diverged" for record in journal.records.values())
        done = len(trainings) - len(missing) + first + len(names)
        spent = time.monotonic() - began
        print(f"{unit}: {done} of {len(trainings)} trials, {diverged} diverged, {spent:.0f} s", flush=True)
    rows = [of_trial(unit, trial, number, journal.records) for trial in planned]
    return repeats.frame(rows) if number else frame(rows)


def of_trial(unit: str, trial: Planned, number: int | None, records: Mapping[str, TrainingRecord]) -> Row:
    """Return the row of a trial that was trained once, or, as version 2 has it, of its `number` trainings."""
    names = repeats.names(trial.name, number or 1)
    task, phase = study_group(unit), trial.phase
    first, *others = [row(task, name, phase, trial.matched, trial.point, records[name]) for name in names]
    if number is None:
        return first
    errors, losses = ([float(r[metric]) for r in (first, *others)] for metric in (METRIC, LOSS))
    diverged = [r["status"] == "diverged" for r in (first, *others)]
    return first | repeats.summary(errors, losses, diverged) | {CHANCE: chance(UNITS[unit]["data"])}


@lru_cache
def chance(name: str) -> float:
    """Return the error rate of guessing on the validation examples of a data set of `UNITS`. Raises DataError."""
    return repeats.guessing(data_of(name).y_valid)


def retrain(table_rows: pd.DataFrame, sizes: dict[str, int], seed: int) -> pd.DataFrame:
    """Train the trials of the given rows again, in their order, and a row of version 2 as often as before. `sizes` has
    no influence: the row holds the trial's name and point, which determine everything. Raises DataError for a task that
    is not of this benchmark."""
    units = {study_group(unit): unit for unit in UNITS}
    made: dict[tuple[str, str], Row] = {}
    number = int(table_rows[REPEATS].iloc[0]) if repeats.of(table_rows) else None
    rows = table_rows.to_dict("records")
    for task in dict.fromkeys(str(r["study_group"]) for r in rows):
        if task not in units:
            raise DataError(f"pd1_mini: row with {'study_group'} '{task}', which is no task of this benchmark")
        trials = [
            Planned(str(r["trial_id"]), int(r["phase"]), bool(r["matched"]), np.array([r[name] for name in INPUTS]))
            for r in rows
            if str(r["study_group"]) == task
        ]
        trainings = [(name, trial.point) for trial in trials for name in repeats.names(trial.name, number or 1)]
        names, place = zip(*trainings, strict=True)
        found = train_points(units[task], list(names), np.stack(place), seed)
        made |= {(task, trial.name): of_trial(units[task], trial, number, found) for trial in trials}
    ordered = [made[str(r["study_group"]), str(r["trial_id"])] for r in rows]
    return repeats.frame(ordered) if number else frame(ordered)


def agreement(ours: pd.DataFrame, theirs: pd.DataFrame) -> Agreement:
    """Compare two tables by best validation error rate and status (see `metabo.collect.agreement`)."""
    return compare(ours, theirs, ["study_group", "trial_id"], list(INPUTS), METRIC)


def evaluator(task: str, seed: int) -> Callable[[np.ndarray], BestValues]:
    """Return the function that trains a task's network at raw (λ, η, p, β), for online tuning.

    `task` is the study group. The initial weights and the order of the data depend on seed, task and point, so the
    same point gives the same value. The network's program, which is the one that collects, is compiled at the first
    call for the task. Raises ConfigError for an unknown task, DataError if the raw data are missing.
    """
    units = {study_group(unit): unit for unit in UNITS}
    if task not in units:
        raise unknown("task of pd1_mini", task, units)
    unit = units[task]
    runner(unit)  # now, so that a missing package or file stops the job before anything is tuned

    def evaluate(point: np.ndarray) -> BestValues:
        raw = np.asarray(point, np.float64).reshape(4)
        name = f"online-{raw.tobytes().hex()}"
        found = row(task, name, 0, False, raw, train_points(unit, [name], raw[None], seed)[name])
        return BestValues(float(found[METRIC]), float(found["best_valid/ce_loss"]), str(found["status"]))

    return evaluate
