"""Cells of CSV files with text of users: what a spreadsheet would run as a formula stands in double quotes."""

import json

import pandas as pd

SIGNS = ("=", "+", "-", "@")
"""What a formula begins with, in one spreadsheet or another, which may leave out white space before it."""


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet takes a text for a formula; numbers are none."""
    if not text.lstrip().startswith(SIGNS):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def guarded(text: str) -> str:
    """Return the cell of a text: the text, or the text in double quotes as JSON writes it (`unguarded`)."""
    return json.dumps(text, ensure_ascii=False) if is_formula(text) else text


def unguarded(cell: str) -> str:
    """Return the text of which `guarded` has made a cell."""
    try:
        text = json.loads(cell) if cell.startswith('"') else None
    except ValueError:
        return cell
    return text if isinstance(text, str) and is_formula(text) else cell


def guarded_frame(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts are guarded."""
    texts = [column for column in table if not pd.api.types.is_numeric_dtype(table[column])]
    return table.assign(**{
        str(column): table[column].map(lambda one: guarded(one) if isinstance(one, str) else one) for column in texts
    })  # fmt: skip
