"""Tables as figures, so that a table artefact has the same three files as a figure (hyperbo Tables 3 to 6)."""

from collections.abc import Collection

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from metabo.plots import look, style

_CHARACTER, _ROW, _GAP = 0.075, 0.2, 0.22
"""Inches: width of a character and height of a row at 8 points, space between columns."""


def table_figure(
    cells: pd.DataFrame, bold: pd.DataFrame, title: str, note: str = "", words: Collection[str] = ()
) -> Figure:
    """Draw a table of texts: index = row names, columns = headings, `bold` (same shape) marks the best cells.

    The figure is as large as the table needs; `note` is printed below it. Columns in `words` are set flush left, the
    others, which hold numbers, flush right.
    """
    headings = [str(c) for c in cells.columns]
    names = [str(i) for i in cells.index]
    widths = [max(map(len, names), default=1)]
    widths += [max(len(h), *(len(str(v)) for v in cells[c])) for h, c in zip(headings, cells.columns, strict=True)]
    inches = [_CHARACTER * w + _GAP for w in widths]
    notes = note.splitlines()
    longest = max(len(title) * 1.25, *(0.8 * len(line) for line in notes), 0)
    width = max(sum(inches), _CHARACTER * longest) + 0.4
    height = _ROW * (len(names) + 3.2 + len(notes)) + 0.2
    with style.theme():
        figure = Figure(figsize=(width, height), layout="none")
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set(xlim=(0, width), ylim=(height, 0))
        left = (width - sum(inches)) / 2
        edges = [left + sum(inches[:i]) for i in range(len(inches) + 1)]
        flush = ["left" if heading in words else "right" for heading in headings]
        x = [edges[c + 1] + _GAP / 2 if side == "left" else edges[c + 2] - _GAP / 2 for c, side in enumerate(flush)]
        y = 0.1 + _ROW
        ax.text(width / 2, y, title, ha="center", va="center", fontsize=10)
        y += 1.4 * _ROW
        for i, heading in enumerate(headings):
            ax.text(x[i], y, heading, ha=flush[i], va="center", fontsize=8, weight="bold")
        for rule in (y - 0.7 * _ROW, y + 0.6 * _ROW, y + (0.7 + len(names)) * _ROW):
            ax.plot([left, edges[-1]], [rule, rule], color="black", linewidth=0.8)
        for r, name in enumerate(names):
            y += _ROW * (1.15 if r == 0 else 1)
            ax.text(left + _GAP / 2, y, name, ha="left", va="center", fontsize=8)
            for c in range(len(headings)):
                weight = "bold" if bold.iat[r, c] else "normal"
                ax.text(x[c], y, cells.iat[r, c], ha=flush[c], va="center", fontsize=8, weight=weight)
        for line in notes:
            y += _ROW * 1.05
            ax.text(width / 2, y + 0.1, line, ha="center", va="center", fontsize=6.5, color="0.3")
    return figure


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
