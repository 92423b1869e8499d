"""PD1's files, columns and search space (hyperbo §7.1, Table 4): shared by loader and collector."""

from typing import NamedTuple

import numpy as np

from metabo.tasks.spaces import Parameter, SearchSpace

FILES = tuple(f"pd1_{kind}_phase{phase}_results.jsonl" for phase in (0, 1) for kind in ("matched", "unmatched"))
INPUTS = (
    "hps.lr_hparams.decay_steps_factor",
    "hps.lr_hparams.initial_value",
    "hps.lr_hparams.power",
    "hps.opt_hparams.momentum",
)
METRIC = "best_valid/error_rate"
LOSS = "best_valid/ce_loss"
TASK = "study_group"
STATUS = "status"

MATCHED = FILES[2]
"""The one file of pd1_mini 2, whose rows are means over `REPEATS` trainings, of which `DIVERGED` are not counted."""
REPEATS, DIVERGED = "repeats", "diverged"
STD = f"{METRIC}_std"
CHANCE = "chance_error_rate"
"""The error rate of guessing the most frequent class."""

# hyperbo Table 4, in the column order of the authors' code: λ, η, p, 1 - β.
SPACE = SearchSpace(
    "pd1",
    (
        Parameter("decay_steps_factor", "linear", 0.01, 0.99),
        Parameter("initial_value", "log", 1e-5, 10.0),
        Parameter("power", "linear", 0.1, 2.0),
        Parameter("one_minus_momentum", "log", 1e-3, 1.0),
    ),
)


class Trials(NamedTuple):
    """All n rows of the archive, one array per field; absent numbers are NaN. `more` columns (n, k) of version 2.

    `task`, `status`, `file` are text; `raw` (n, 4) is λ, η, p, β; `line` counts from 1 within the file; `phase` is 0
    or 1; `matched` a flag.
    """

    task: np.ndarray
    raw: np.ndarray
    error: np.ndarray
    status: np.ndarray
    file: np.ndarray
    line: np.ndarray
    phase: np.ndarray
    matched: np.ndarray
    more: np.ndarray


def raw_inputs(unit: np.ndarray) -> np.ndarray:
    """Return λ, η, p, β (n, 4) of points in the unit cube: the inverse of the loader's scaling, for new evaluations."""
    columns = SPACE.decode(unit)
    columns["one_minus_momentum"] = 1 - columns["one_minus_momentum"]
    return np.column_stack([columns[p.name] for p in SPACE.parameters])
