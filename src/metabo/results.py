"""The trajectory table: the one schema for BO runs of every paper, checked when written.

One row per observation. Iterations 1..T are BO queries; observations given before BO starts (HPO-B's five) have
iterations -(k-1)..0, so that `iteration` 0 is the state before the first query.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from metabo.errors import DataError
from metabo.files import atomic_path

COLUMNS = {
    "benchmark": "str", "space": "str", "split": "str", "fold": "str", "task": "str", "method": "str",
    "acquisition": "str", "prior_seed": "int64", "seed": "int64", "iteration": "int64", "candidate": "int64",
    "y": "float64", "best_y": "float64", "simple_regret": "float64", "normalised_regret": "float64",
    "metric": "float64", "mean": "float64", "std": "float64", "feasible": "bool", "ok": "bool", "data": "str",
}  # fmt: skip
"""`metric`: original metric at the query; `mean`, `std`: prediction there before observing it (NaN without a model);
`ok`: no numerical failure in the step; `data`: first 12 digits of the data file's SHA-256."""

MAY_BE_MISSING = {"mean", "std"}
RUN = ["benchmark", "split", "method", "acquisition", "space", "task", "prior_seed", "seed"]
"""The columns that identify one BO run."""


def check(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with columns in schema order. Raises DataError naming the bad column and row."""
    missing, extra = set(COLUMNS) - set(table), set(table) - set(COLUMNS)
    if missing or extra:
        raise DataError(f"trajectory table: missing columns {sorted(missing)}, unknown columns {sorted(extra)}")
    for column, kind in COLUMNS.items():
        if kind != "str" and str(table[column].dtype) != kind:
            raise DataError(f"trajectory table: column '{column}' is {table[column].dtype}, must be {kind}")
        if kind == "float64" and column not in MAY_BE_MISSING and not np.isfinite(table[column]).all():
            row = int(np.argmax(~np.isfinite(table[column])))
            run = {key: table[key].iloc[row] for key in (*RUN, "iteration")}
            raise DataError(f"trajectory table: column '{column}' is not finite in row {row}: {run}")
    return table[list(COLUMNS)]


def write(table: pd.DataFrame, path: str | Path) -> None:
    """Check and write a trajectory table as parquet, atomically (same table, same bytes)."""
    table = check(table)
    strings = [column for column, kind in COLUMNS.items() if kind == "str"]
    table = table.astype(dict.fromkeys(strings, "category"))
    with atomic_path(path) as scratch:
        table.to_parquet(scratch, index=False, compression="zstd")


def read(paths: list[str] | list[Path]) -> pd.DataFrame:
    """Read and concatenate trajectory tables; text columns come back as plain strings."""
    tables = []
    for path in paths:
        try:
            table = pd.read_parquet(path)
        except Exception as error:
            raise DataError(f"{path}: not a readable trajectory table ({error}); delete it and run again") from error
        strings = [column for column, kind in COLUMNS.items() if kind == "str"]
        tables.append(check(table.astype(dict.fromkeys(strings, "str"))))
    return pd.concat(tables, ignore_index=True)
