"""Cells of CSV files with text from users: text that a spreadsheet would run as a formula is put in double quotes."""

import json

import pandas as pd

SIGNS = ("=", "+", "-", "@")
"""The signs that start a formula in some spreadsheet, possibly after white space."""


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet would take a text for a formula; numbers are not formulas."""
    if not text.lstrip().startswith(SIGNS):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def guarded(text: str) -> str:
    """Return the cell for a text: the text itself, or the text in double quotes as JSON writes it. `unguarded` is the
    inverse."""
    return json.dumps(text, ensure_ascii=False) if _needs_quotes(text) else text


def without_formula(cell: str) -> str:
    """Return a cell for a reader that already understands double quotes, such as that of a history's choices: in double
    quotes if it would be a formula."""
    return json.dumps(cell, ensure_ascii=False) if is_formula(cell) else cell


def unguarded(cell: str) -> str:
    """Return the text of a cell that `guarded` made."""
    text = in_quotes(cell)
    return text if text is not None and _needs_quotes(text) else cell


def _needs_quotes(text: str) -> bool:
    """Tell whether a text is a formula or looks like a cell that `guarded` made."""
    inner = in_quotes(text)
    return is_formula(text) or (inner is not None and _needs_quotes(inner))


def in_quotes(cell: str) -> str | None:
    """Return the text inside double quotes as JSON writes them, or None if the cell is not such a text."""
    try:
        text = json.loads(cell) if cell.startswith('"') else None
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def guarded_frame(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with all its texts guarded."""
    texts = [column for column in table if not pd.api.types.is_numeric_dtype(table[column])]
    return table.assign(**{
        str(column): table[column].map(lambda one: guarded(one) if isinstance(one, str) else one) for column in texts
    })  # fmt: skip
