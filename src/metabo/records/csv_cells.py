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
    return json.dumps(text, ensure_ascii=False) if _needs_quotes(text) else text


def without_formula(cell: str) -> str:
    """Return a cell whose reader knows double quotes already, such as a choice of a history: in these if it would be a
    formula."""
    return json.dumps(cell, ensure_ascii=False) if is_formula(cell) else cell


def unguarded(cell: str) -> str:
    """Return the text of which `guarded` has made a cell."""
    text = in_quotes(cell)
    return text if text is not None and _needs_quotes(text) else cell


def _needs_quotes(text: str) -> bool:
    """Tell whether a text is a formula, or looks like a cell that `guarded` has made."""
    inner = in_quotes(text)
    return is_formula(text) or (inner is not None and _needs_quotes(inner))


def in_quotes(cell: str) -> str | None:
    """Return the text that stands in double quotes as JSON writes them; None if the cell is not one."""
    try:
        text = json.loads(cell) if cell.startswith('"') else None
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def guarded_frame(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts are guarded."""
    texts = [column for column in table if not pd.api.types.is_numeric_dtype(table[column])]
    return table.assign(**{
        str(column): table[column].map(lambda one: guarded(one) if isinstance(one, str) else one) for column in texts
    })  # fmt: skip
