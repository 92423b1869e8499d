"""Tables of trials in PD1's columns, and the archive of four JSON-lines files that the `pd1` loader reads.

Version 2 (`metabo.collect.repeats`) has matched trials of phase 1 only: one file, with means in PD1's columns.

Column names are those of the published files: `best_X` is the lowest finite value of the curve `X`, `best_X_index` its
place in the curve and `best_X_step` the training step there.
"""

import gzip
import io
import json
import tarfile
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TypedDict

import numpy as np
import pandas as pd

from metabo.collect import repeats
from metabo.collect.repeats import Cell, Row
from metabo.data.pd1_columns import CHANCE, DIVERGED, FILES, INPUTS, MATCHED, REPEATS
from metabo.records.files import Json, atomic_path

CURVES = ("train/ce_loss", "train/error_rate", "valid/ce_loss", "valid/error_rate")
TEXT = ("study_group", "dataset", "model", "status", "trial_id")
BEST = tuple(f"best_{curve}" for curve in CURVES)
COLUMNS = (
    "study_group", "dataset", "model", "trial_id", "phase", "matched", "status", "hps.batch_size", *INPUTS,
    *(name for best in BEST for name in (best, f"{best}_index", f"{best}_step")), "global_step", *CURVES,
)  # fmt: skip


class TrainingRecord(TypedDict):
    """What one training gave, ready for JSON: curves as in `CURVES`, None for NaN, and the steps of their points."""

    status: str
    steps: int
    global_step: list[int]
    curves: dict[str, list[float | None]]


def record(curves: np.ndarray, diverged: bool, done: int, steps: int) -> TrainingRecord:
    """Return what one training gave, ready for JSON: curves (4, points) as in `CURVES`, None for NaN; `done` of the
    `steps` were taken. Numbers are the shortest decimals that give the same float32."""
    shown = {name: [_number(v) for v in curve] for name, curve in zip(CURVES, np.asarray(curves), strict=True)}
    points = curves.shape[1]
    places = [steps * (i + 1) // points for i in range(points)]
    return {"status": "diverged" if diverged else "done", "steps": int(done), "global_step": places, "curves": shown}


def row(task: str, trial_id: str, phase: int, matched: bool, point: np.ndarray, found: TrainingRecord) -> Row:
    """Return one row, `COLUMNS`, from what `record` gave; `task` is the study group; `point`: λ, η, p, β."""
    _, dataset, model, _, batch = task.split(",")
    made: Row = {
        "study_group": task, "dataset": dataset, "model": model, "trial_id": trial_id, "phase": phase,
        "matched": matched, "status": found["status"], "hps.batch_size": int(batch),
        **dict(zip(INPUTS, map(float, point), strict=True)),
    }  # fmt: skip
    for name in CURVES:
        curve = np.array(found["curves"][name], np.float32)
        finite = np.isfinite(curve)
        place = int(np.argmin(np.where(finite, curve, np.inf))) if finite.any() else None
        made[f"best_{name}"] = np.nan if place is None else curve[place]
        made[f"best_{name}_index"] = np.nan if place is None else place
        made[f"best_{name}_step"] = np.nan if place is None else found["global_step"][place]
        made[name] = curve
    made["global_step"] = np.array(found["global_step"], np.int32)
    return made


def frame(rows: list[Row]) -> pd.DataFrame:
    """Make the table: hyperparameters float64, metrics and places float32 (NaN: none), curves as arrays per row."""
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    kinds = {name: np.float32 for best in BEST for name in (best, f"{best}_index", f"{best}_step")}
    return table.astype(kinds | {"phase": np.int8, "matched": bool, "hps.batch_size": np.int32})


def write_archive(table: pd.DataFrame, path: str | Path) -> None:
    """Write a tar.gz of the four published files, of version 2 only one (phase 1 compressed within, as published),
    atomically.

    The bytes depend on the rows alone, not on their order or the clock. Absent numbers are null.
    """
    columns, files = (repeats.COLUMNS, (MATCHED,)) if repeats.of(table) else (COLUMNS, FILES)
    table = table.astype({name: str for name in TEXT}).sort_values(["study_group", "trial_id"], kind="stable")
    with (
        atomic_path(path) as scratch,
        open(scratch, "wb") as stream,
        gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in files:
            mine = (table["phase"] == int("phase1" in name)) & (table["matched"] == ("unmatched" not in name))
            content = "".join(_line(row, columns) for row in table[mine].to_dict("records")).encode()
            if "phase1" in name:
                name, content = f"{name}.gz", gzip.compress(content, 6, mtime=0)
            info = tarfile.TarInfo(f"pd1/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def _line(values: Mapping[Hashable, Cell], columns: tuple[str, ...]) -> str:
    """Return one JSON line; the trial's directory of the published files is its task and name."""
    shown: dict[str, Json] = {"trial_dir": f"{values['study_group']}/{values['trial_id']}"}
    for name in columns:
        value = values[name]
        if name in CURVES or name.endswith("_repeats"):
            shown[name] = [_number(v) for v in np.asarray(value)]
        elif name == "global_step":
            shown[name] = [int(v) for v in np.asarray(value)]
        elif name.startswith("best_") or name == CHANCE:
            number = _number(float(value))
            shown[name] = int(number) if number is not None and name.endswith(("_index", "_step")) else number
        elif name in INPUTS:
            shown[name] = float(value)
        elif name == "matched":
            shown[name] = bool(value)
        else:
            shown[name] = int(value) if name in ("phase", "hps.batch_size", REPEATS, DIVERGED) else str(value)
    return json.dumps(shown, allow_nan=False) + "\n"


def _number(value: float) -> float | None:
    """Return the shortest decimal that gives the same float32, None if it is not finite."""
    return float(str(np.float32(value))) if np.isfinite(value) else None
