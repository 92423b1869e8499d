"""Write a collected table as an archive in HPO-B's format (v3): three files of tasks and the initial points of BO."""

import json
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from metabo.data.hpob_format import FILES, INITIAL, SPLITS, Starts, TaskContent
from metabo.errors import DataError
from metabo.records.files import atomic_path

SEEDS = tuple(f"test{i}" for i in range(5))
INITIAL_POINTS = 5
COLUMNS = ("space", "task", "split", "row", "x", "y")


def write_archive(table: pd.DataFrame, path: str | Path) -> None:
    """Write rows (space, task, split, row, x, y) as meta-{train,validation,test}-dataset.json and
    bo-initializations.json in a zip, atomically and byte for byte reproducibly, whatever the order of the rows.

    X is a list of rows, y a list of one-element lists, null where a fit failed. The initial points are five sets of
    five different rows with a score per test task, drawn by the names of space and task. Raises DataError if a column
    or a split is missing, a task stands in two splits or has rows twice, or a test task has too few scores.
    """
    if missing := [column for column in COLUMNS if column not in table]:
        raise DataError(f"collected table has no column '{missing[0]}'; it has {', '.join(table)}; collect again")
    if differing := sorted({*SPLITS} ^ {*table["split"]}):
        raise DataError(f"collected table: splits {', '.join(differing)} are missing or unknown; collect every unit")
    meta: dict[str, dict[str, dict[str, TaskContent]]] = {split: {} for split in SPLITS}
    initial: Starts = {}
    for (space, task), rows in table.sort_values(["space", "task", "row"]).groupby(["space", "task"], sort=True):
        if rows["split"].nunique() > 1 or rows["row"].duplicated().any():
            raise DataError(f"collected table: task {space}/{task} is in two splits or has a row twice; collect again")
        split = rows["split"].iloc[0]
        scores = [None if np.isnan(y) else float(y) for y in rows["y"]]
        content: TaskContent = {"X": [[float(v) for v in x] for x in rows["x"]], "y": [[y] for y in scores]}
        meta[split].setdefault(space, {})[task] = content
        if split == "test":
            initial.setdefault(space, {})[task] = _initial(space, task, scores)
    members = {FILES[split]: meta[split] for split in SPLITS} | {INITIAL: initial}
    with atomic_path(path) as scratch, zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, json.dumps(content, allow_nan=False, separators=(",", ":")))


def _initial(space: str, task: str, scores: list[float | None]) -> dict[str, list[int]]:
    scored = [i for i, y in enumerate(scores) if y is not None]
    if len(scored) < INITIAL_POINTS:
        raise DataError(f"test task {space}/{task}: {len(scored)} of {len(scores)} rows have a score; BO starts from 5")
    draws = {seed: np.random.default_rng(zlib.crc32(f"{space}/{task}/{seed}".encode())) for seed in SEEDS}
    return {
        seed: [scored[i] for i in draw.choice(len(scored), INITIAL_POINTS, replace=False)]
        for seed, draw in draws.items()
    }
