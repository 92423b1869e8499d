"""Tables as figures, so that a table artefact has the same three files as a figure (hyperbo Tables 3 to 6)."""

import textwrap
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from metabo.plots import look, style

_ROW, _GAP = 0.2, 0.2
"""Inches: height of a row at 8 points, space between columns."""
_PAGE, _MARGIN = 6.6, 0.4
"""Inches: width of a page, as of figures of two panels, and what a table leaves free of it."""
_CELL, _TITLE, _NOTE = 8.0, 10.0, 6.5
"""Points: sizes of letters."""


def table_figure(
    cells: pd.DataFrame, bold: pd.DataFrame, title: str, note: str = "", words: Collection[str] = (), rows: str = ""
) -> Figure:
    """Draw a table of texts: index = row names, columns = headings, `bold` (same shape) marks the best cells; `rows`:
    heading of the row names.

    The figure is as large as the table needs. A table of numbers that is wider than a page is drawn in parts below each
    other, all with the row names. `note` is printed below it, title and note in several lines if they are too long.
    Columns in `words` are set flush left, the others, which hold numbers, flush right.
    """
    headings = [str(c) for c in cells.columns]
    names = [str(i) for i in cells.index]
    first = max((_wide(name) for name in names), default=0.0)
    first = max(first, _wide(rows, bold=True)) + _GAP
    inches = [
        max(_wide(heading, bold=True), *(_wide(str(cell), bold=best) for cell, best in zip(*column, strict=True)))
        + _GAP
        for heading, *column in zip(headings, cells.to_numpy().T, bold.to_numpy().T, strict=True)
    ]
    room = _PAGE - _MARGIN
    parts = _parts(inches, room - first) if not words else [range(len(inches))]
    across = max(first + sum(inches[c] for c in part) for part in parts)
    titles = _lines(title, max(across, room), _TITLE)
    notes = [line for text in note.splitlines() for line in _lines(text, max(across, room), _NOTE)]
    longest = max(_wide(line, size) for size, lines in ((_TITLE, titles), (_NOTE, notes)) for line in lines)
    width = max(across, longest) + _MARGIN
    height = _ROW * (len(parts) * (len(names) + 2.45) - 0.25 + 1.3 * len(titles) - 0.3 + len(notes)) + 0.2
    with style.theme():
        figure = Figure(figsize=(width, height), layout="none")
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set(xlim=(0, width), ylim=(height, 0))
        y = 0.1 + _ROW
        for line in titles:
            ax.text(width / 2, y, line, ha="center", va="center", fontsize=_TITLE)
            y += 1.3 * _ROW
        y += 0.1 * _ROW
        for part in parts:
            own = [rows, *(headings[c] for c in part)]
            widths = [first, *(inches[c] for c in part)]
            ends = ((width - across) / 2, (width + across) / 2)
            y = _draw(ax, y, ends, cells.iloc[:, part], bold.iloc[:, part], own, widths, words)
            y += 2.3 * _ROW
        y -= 1.25 * _ROW
        for line in notes:
            ax.text(width / 2, y + 0.1, line, ha="center", va="center", fontsize=_NOTE, color="0.3")
            y += _ROW * 1.05
    return figure


def _wide(text: str, points: float = _CELL, bold: bool = False) -> float:
    """Return how many inches a text takes."""
    if not text.strip():
        return 0.0
    prop = FontProperties(weight="bold" if bold else "normal")
    return float(TextPath((0, 0), text, size=points, prop=prop).get_extents().width) / 72


def _parts(inches: Sequence[float], room: float) -> list[range]:
    """Return the columns of each part of a table: the fewest parts that fit, of equally many columns but for the last.
    Parts have at least two columns; where that does not fit, all are in one."""
    number = len(inches)
    for parts in range(1, number // 2 + 1):
        size = -(-number // parts)
        found = [range(start, min(start + size, number)) for start in range(0, number, size)]
        if all(sum(inches[c] for c in part) <= room for part in found):
            return found
    return [range(number)]


def _lines(text: str, room: float, points: float) -> list[str]:
    wide = _wide(text, points)
    if wide <= room:
        return [text]
    return textwrap.wrap(text, max(1, int(len(text) * room / wide))) or [text]


def _draw(
    ax: Axes, y: float, ends: tuple[float, float], cells: pd.DataFrame, bold: pd.DataFrame, headings: Sequence[str],
    inches: Sequence[float], words: Collection[str],
) -> float:  # fmt: skip
    """Draw one part, its headings (that of the names first) at height `y`; return the height of its last row. `ends`:
    of its rules, the names begin at the first; `inches`: widths of the column of names and of the others."""
    corner, *headings = headings
    names = [str(i) for i in cells.index]
    left = ends[0]
    edges = [left + sum(inches[:i]) for i in range(len(inches) + 1)]
    flush = ["left" if heading in words else "right" for heading in headings]
    x = [edges[c + 1] + _GAP / 2 if side == "left" else edges[c + 2] - _GAP / 2 for c, side in enumerate(flush)]
    ax.text(left + _GAP / 2, y, corner, ha="left", va="center", fontsize=_CELL, weight="bold")
    for i, heading in enumerate(headings):
        ax.text(x[i], y, heading, ha=flush[i], va="center", fontsize=_CELL, weight="bold")
    for rule in (y - 0.7 * _ROW, y + 0.6 * _ROW, y + (0.7 + len(names)) * _ROW):
        ax.plot(ends, [rule, rule], color="black", linewidth=0.8)
    for r, name in enumerate(names):
        y += _ROW * (1.15 if r == 0 else 1)
        ax.text(left + _GAP / 2, y, name, ha="left", va="center", fontsize=_CELL)
        for c in range(len(headings)):
            weight = "bold" if bold.iat[r, c] else "normal"
            ax.text(x[c], y, cells.iat[r, c], ha=flush[c], va="center", fontsize=_CELL, weight=weight)
    return y


def mean_std_cells(summary: pd.DataFrame, decimals: int, lowest: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return (texts "mean ± std", bold mask) with tasks as rows and methods as columns, in order of appearance.

    `summary`: task, method, mean, std. Bold: the best mean of the row at the printed precision, ties all bold.
    """
    tasks, methods = list(dict.fromkeys(summary["task"])), list(dict.fromkeys(summary["method"]))
    mean = summary.pivot(index="task", columns="method", values="mean").reindex(index=tasks, columns=methods)
    std = summary.pivot(index="task", columns="method", values="std").reindex(index=tasks, columns=methods)
    printed = mean.round(decimals)
    best = printed.min(axis=1) if lowest else printed.max(axis=1)
    texts = pd.DataFrame(
        {m: [_mean_std(a, b, decimals) for a, b in zip(mean[m], std[m], strict=True)] for m in methods}, index=tasks
    )
    bold = printed.eq(best, axis=0)
    labels = [look.of(m).label for m in methods]
    return texts.set_axis(labels, axis=1), bold.set_axis(labels, axis=1)


def number(value: float, digits: int = 4) -> str:
    """Return a number in `digits` significant digits, without a power of ten: 328,900 and 1.045."""
    if not np.isfinite(value):
        return "–"
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(value))))) if value else 0
    rounded = float(f"{value:.{digits - 1}e}")
    return f"{rounded:,.{decimals}f}".replace("-", "−")


def _mean_std(mean: float, std: float, decimals: int) -> str:
    if pd.isna(mean):
        return "–"
    # Adding 0.0 turns "-0.0" into "0.0".
    return f"{round(mean, decimals) + 0.0:.{decimals}f} ± {std:.{decimals}f}"
