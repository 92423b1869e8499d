"""The file of a study: several named tidy tables in one parquet, so that every study is one job with one result."""

from pathlib import Path

import pandas as pd

from metabo.errors import DataError
from metabo.records.files import atomic_path

Frames = dict[str, pd.DataFrame]
"""Named tidy tables of one study."""

_NAME = "table"
_NULLABLE = {"int64": "Int64", "bool": "boolean"}
"""Types that hold missing values: an integer column stays one although other tables lack it."""


def write(frames: Frames, path: str | Path) -> None:
    """Write the tables atomically as one parquet: their rows below each other, a column "table" names them.

    Raises DataError for an empty table and for a missing number: a study leaves out what it cannot compute.
    """
    for name, frame in frames.items():
        if frame.empty or frame.isna().any(axis=None):
            column = next(iter(frame.columns[frame.isna().any()]), "")
            what = f"has a missing value in column '{column}'" if column else "has no rows"
            raise DataError(f"{path}: table '{name}' {what}; the study must leave out what it cannot compute")
    parts = [_as(frame, _NULLABLE).assign(**{_NAME: name}) for name, frame in frames.items()]
    with atomic_path(path) as scratch:
        pd.concat(parts, ignore_index=True).to_parquet(scratch, index=False)


def read(path: str | Path) -> Frames:
    """Read the tables of a study with their own columns. Raises DataError if the file is missing or not of a study."""
    if not Path(path).is_file():
        raise DataError(f"{path}: no such study; make it (`snakemake --cores 2 -- {path}`) or change the path")
    try:
        joined = pd.read_parquet(path)
    except Exception as error:
        raise DataError(f"{path}: not a readable study ({error}); delete it and run again") from error
    if _NAME not in joined:
        raise DataError(f"{path}: has no column '{_NAME}', so it is not the result of a study; change the path")
    return {str(name): _own(rows) for name, rows in joined.groupby(_NAME, sort=False)}


def _own(rows: pd.DataFrame) -> pd.DataFrame:
    frame = rows.drop(columns=_NAME).dropna(axis=1, how="all").reset_index(drop=True)
    return _as(frame, {nullable: plain for plain, nullable in _NULLABLE.items()})


def _as(frame: pd.DataFrame, types: dict[str, str]) -> pd.DataFrame:
    """Return the frame with the columns of some types in others."""
    return frame.astype({c: types[str(t)] for c, t in frame.dtypes.items() if str(t) in types})
