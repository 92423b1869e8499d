"""The tables that figures read, which are checked when written and when read: trajectories, evaluations, online tuning.

Trajectories, one schema for every paper: one row per observation. Iterations 1..T are BO queries; observations given
before BO starts (HPO-B's five) have iterations -(k-1)..0, so that `iteration` 0 is the state before the first query.
Evaluations: one row per loss of a prior on a test task (`metabo.bo.evaluation`).
Online tuning: one row per real evaluation, feasible or not.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from metabo.errors import DataError
from metabo.records.files import atomic_path

COLUMNS = {
    "benchmark": "str", "space": "str", "split": "str", "fold": "str", "task": "str", "method": "str",
    "acquisition": "str", "prior_seed": "int64", "seed": "int64", "iteration": "int64", "candidate": "int64",
    "y": "float64", "best_y": "float64", "simple_regret": "float64", "normalised_regret": "float64",
    "metric": "float64", "mean": "float64", "std": "float64", "noise": "float64", "jitter": "float64",
    "feasible": "bool", "ok": "bool", "data": "str",
}  # fmt: skip
"""`metric`: original metric at the query; `mean`, `std`: prediction there before observing it (NaN without a model);
`noise`: standard deviation of the noise in the model that chose it (NaN if it has none); `jitter`: variance that its
covariance needed on the diagonal beyond the usual jitter, 0 unless it is ill-conditioned; `ok`: no numerical failure in
the step; `data`: first 12 hexadecimal digits of the data file's SHA-256."""

MAY_BE_MISSING = {"mean", "std", "noise"}
INFEASIBLE_MISSING = {"y", "metric", "best_metric"}
RUN = ["benchmark", "split", "method", "acquisition", "space", "task", "prior_seed", "seed"]
"""The columns that identify one BO run."""

EVALUATION_COLUMNS = {
    "benchmark": "str", "split": "str", "space": "str", "fold": "str", "task": "str", "method": "str",
    "prior_seed": "int64", "metric": "str", "value": "float64",
}  # fmt: skip
"""`task`: the test task; `metric`: name of the loss; `value` in nats."""

ONLINE_COLUMNS = {
    "benchmark": "str", "split": "str", "task": "str", "method": "str", "acquisition": "str", "prior_seed": "int64",
    "seed": "int64", "iteration": "int64", "x": "str", "y": "float64", "metric": "float64", "best_metric": "float64",
    "metric_name": "str", "feasible": "bool", "reason": "str", "mean": "float64", "std": "float64",
    "jitter": "float64", "ok": "bool", "data": "str",
}  # fmt: skip
"""`x`: JSON list of unit-cube coordinates; `y`: output, maximised; `metric`: the original metric, minimised, which is
the trial's field `metric_name`; `y` and `metric` are NaN where infeasible, `best_metric` until the first feasible one;
`reason`: why it is infeasible ("" if feasible); `mean`, `std`: prediction at x on the mapped scale, before observing
it; `jitter`: as in trajectories."""

ONLINE_RUN = ["benchmark", "split", "method", "acquisition", "task", "prior_seed", "seed"]
"""The columns that identify one online run."""


def check(table: pd.DataFrame) -> pd.DataFrame:
    """Return the trajectory table with columns in schema order. Raises DataError, which names the bad column and
    row."""
    return _check(table, COLUMNS, "trajectory table")


def write(table: pd.DataFrame, path: str | Path) -> None:
    """Check and write a trajectory table as parquet, atomically (same table, same bytes). Raises DataError as the check
    does."""
    _write(check(table), COLUMNS, path)


def read(paths: list[str] | list[Path]) -> pd.DataFrame:
    """Read and concatenate trajectory tables; text columns come back as plain strings. Raises DataError for a file that
    cannot be read or breaks the schema."""
    return pd.concat([_read(path, COLUMNS, "trajectory table") for path in paths], ignore_index=True)


def check_evaluations(table: pd.DataFrame) -> pd.DataFrame:
    """Return the evaluation table with columns in schema order. Raises DataError, which names the bad column and
    row."""
    return _check(table, EVALUATION_COLUMNS, "evaluation table")


def write_evaluations(table: pd.DataFrame, path: str | Path) -> None:
    """Check and write an evaluation table as parquet, atomically (same table, same bytes). Raises DataError as the
    check does."""
    _write(check_evaluations(table), EVALUATION_COLUMNS, path)


def read_evaluations(paths: list[str] | list[Path]) -> pd.DataFrame:
    """Read and concatenate evaluation tables; text columns come back as plain strings. Raises DataError for a file that
    cannot be read or breaks the schema."""
    return pd.concat([_read(path, EVALUATION_COLUMNS, "evaluation table") for path in paths], ignore_index=True)


def check_online(table: pd.DataFrame, kind: str = "online table") -> pd.DataFrame:
    """Return the online table with columns in schema order. Raises DataError, which names the bad column and row.

    A row must have `y` and `metric` if and only if it is feasible, and a reason if and only if it is not.
    """
    table = _check(table, ONLINE_COLUMNS, kind, MAY_BE_MISSING | INFEASIBLE_MISSING)
    for column in ("y", "metric", "reason"):
        given = table["reason"] == "" if column == "reason" else np.isfinite(table[column])
        if (wrong := np.asarray(given != table["feasible"])).any():
            row = int(np.argmax(wrong))
            run = {key: table[key].iloc[row] for key in (*ONLINE_RUN, "iteration")}
            raise DataError(f"{kind}: column '{column}' contradicts 'feasible' in row {row}: {run}")
    return table


def write_online(table: pd.DataFrame, path: str | Path) -> None:
    """Check and write an online table as parquet, atomically (same table, same bytes). Raises DataError as the check
    does."""
    _write(check_online(table), ONLINE_COLUMNS, path)


def read_online(paths: list[str] | list[Path]) -> pd.DataFrame:
    """Read and concatenate online tables; text columns come back as plain strings. Raises DataError for a file that
    cannot be read or breaks the schema."""
    optional = MAY_BE_MISSING | INFEASIBLE_MISSING
    tables = [_read(path, ONLINE_COLUMNS, "online table", optional) for path in paths]
    return check_online(pd.concat(tables, ignore_index=True))


def _check(
    table: pd.DataFrame, columns: dict[str, str], kind: str, optional: set[str] = MAY_BE_MISSING
) -> pd.DataFrame:
    missing, extra = set(columns) - set(table), set(table) - set(columns)
    if missing or extra:
        raise DataError(f"{kind}: missing columns {sorted(missing)}, unknown columns {sorted(extra)}")
    for column, dtype in columns.items():
        if dtype != "str" and str(table[column].dtype) != dtype:
            raise DataError(f"{kind}: column '{column}' is {table[column].dtype}, must be {dtype}")
        if dtype == "float64" and column not in optional and not np.isfinite(table[column]).all():
            row = int(np.argmax(~np.isfinite(table[column])))
            run = {key: table[key].iloc[row] for key in (*RUN, "iteration", "metric") if key in columns}
            raise DataError(f"{kind}: column '{column}' is not finite in row {row}: {run}")
    return table.loc[:, list(columns)]


def _write(table: pd.DataFrame, columns: dict[str, str], path: str | Path) -> None:
    with atomic_path(path) as scratch:
        table.astype(dict.fromkeys(_text(columns), "category")).to_parquet(scratch, index=False, compression="zstd")


def _read(path: str | Path, columns: dict[str, str], kind: str, optional: set[str] = MAY_BE_MISSING) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except Exception as error:
        raise DataError(f"{path}: not a readable {kind} ({error}); delete it and run again") from error
    text = [column for column in _text(columns) if column in table]
    return _check(table.astype(dict.fromkeys(text, "str")), columns, f"{path}: {kind}", optional)


def _text(columns: dict[str, str]) -> list[str]:
    return [column for column, dtype in columns.items() if dtype == "str"]
