"""Past trials from pandas DataFrames, as the tables of text that a CSV file is read into. Messages count rows from
0."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from metabo.data.csv_layout import Sheet
from metabo.data.history.space_yaml import SpaceSource
from metabo.errors import ConfigError, DataError

Frames: TypeAlias = pd.DataFrame | Mapping[str, pd.DataFrame]
PastTrials: TypeAlias = str | Path | Frames | tuple[pd.DataFrame]
"""A history: a CSV file, one DataFrame with a column for the study, or one DataFrame for each study by its name."""


def required(given: object) -> list[PastTrials]:
    """Return one or several histories as a list; the DataFrame of a list of one, which is a study whether or not it
    has a column for it, as a tuple. Raises ConfigError for what is none."""
    histories = list(given) if isinstance(given, list | tuple) else [given]
    if not histories:
        raise ConfigError("the list of histories is empty; give at least one")
    if isinstance(given, list | tuple) and len(histories) == 1 and isinstance(histories[0], pd.DataFrame):
        return [(histories[0],)]
    for one in histories:
        if not isinstance(one, str | Path | pd.DataFrame | Mapping):
            raise ConfigError(
                f"a history is of type {type(one).__name__}; give the path of a CSV file, a DataFrame, or a dict of "
                "DataFrames by study"
            )
        if isinstance(one, Mapping) and not one:
            raise ConfigError("the dict of DataFrames is empty; give one DataFrame for each past study, by its name")
        for study, frame in one.items() if isinstance(one, Mapping) else ():
            if not isinstance(frame, pd.DataFrame):
                raise ConfigError(f"study '{study}' is of type {type(frame).__name__}; give a DataFrame of its trials")
    return histories


def required_spaces(given: object) -> list[SpaceSource]:
    """Return one or several spaces as a list. Raises ConfigError for what is none."""
    spaces = list(given) if isinstance(given, list | tuple) else [given]
    for one in spaces:
        if not isinstance(one, str | Path | Mapping):
            raise ConfigError(
                f"a space is of type {type(one).__name__}; give the path of its space.yaml, or a dict of what that says"
            )
    return spaces


def together(frames: Sequence[pd.DataFrame], study: str) -> Frames:
    """Return one or more DataFrames of one space as one history: rows below each other if they have a column for the
    study, else one study each, named by its place from 1 on. Raises ConfigError if only some have the column."""
    having = [study in frame.columns for frame in frames]
    if all(having):
        return pd.concat(frames, ignore_index=True)
    if any(having):
        raise ConfigError(
            f"DataFrame number {having.index(False) + 1} has no column '{study}' and others have; give the column to "
            "all, or name the studies: a dict of DataFrames"
        )
    return {str(number): frame for number, frame in enumerate(frames, start=1)}


def sheets(history: Frames, study: str) -> list[Sheet]:
    """Return DataFrames as tables of text with a column `study`. Raises DataError for one whose columns
    have several levels, or that names its study twice."""
    if isinstance(history, pd.DataFrame):
        return [_sheet(history, "DataFrame (rows counted from 0)")]
    out = []
    for name, frame in history.items():
        where = f"DataFrame '{name}' (rows counted from 0)"
        one = _sheet(frame, where)
        if study in one.header:
            raise DataError(
                f"{where}: column '{study}' names the study, and so does the dict; drop the column, or give the "
                "DataFrames as a list"
            )
        out.append(one._replace(header=[study, *one.header], rows=[(n, [str(name), *row]) for n, row in one.rows]))
    return out


def _sheet(frame: pd.DataFrame, where: str) -> Sheet:
    if frame.columns.nlevels > 1:
        raise DataError(f"{where}: its columns have {frame.columns.nlevels} levels; give it columns of one level")
    columns = [_cells(frame.iloc[:, i]) for i in range(frame.shape[1])]
    rows = [(number, list(cells)) for number, cells in enumerate(zip(*columns, strict=True))]
    filled = [(number, cells) for number, cells in rows if any(cells)]
    return Sheet(where, [str(column).strip() for column in frame.columns], filled, head="")


def _cells(column: pd.Series) -> list[str]:
    """Return a column as text; "" for what pandas counts as missing."""
    short = column.dtype in (np.float16, np.float32)  # as Python numbers they would have digits that no one wrote
    values = list(column.to_numpy()) if short else column.tolist()
    missing = column.isna().tolist()
    return ["" if lacks else _text(value) for value, lacks in zip(values, missing, strict=True)]


def _text(value: object) -> str:
    if isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))  # whole numbers with a gap are floats to pandas
    return str(value).strip()
