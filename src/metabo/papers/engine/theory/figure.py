"""Verdicts of the theory checks as a table, and coverage of bounds against what simulations and quadratures show."""

import textwrap
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metabo.errors import unknown
from metabo.plots import style

COLOURS = {
    "SUPPORTED": "#2a6f4e", "REFUTED": "#b3261e", "INCONCLUSIVE": "#7a5c00", "no power": "#6a1b9a",
    "not informative": "#5f6b73",
}  # fmt: skip
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")


class _Column(NamedTuple):
    """A column of the table of verdicts: heading, width in characters, and the tables' columns that it has, each in
    lines of its own."""

    heading: str
    characters: int
    parts: tuple[str, ...]


_COLUMNS = (
    _Column("Statement", 24, ("statement", "version")),
    _Column("Claim, and what decides it", 60, ("title", "decided")),
    _Column("Verdict", 17, ("verdict",)),
    _Column("Controls\nrefuted", 10, ("controls",)),
    _Column("Bound would\nfail", 18, ("sees",)),
)
_GREY = ("version", "decided")
_CHARACTER, _LINE, _GAP, _POINTS = 0.05, 0.125, 0.1, 6.8
"""Inches: mean width of a character, height of a line, space between columns; points: size of letters."""
_SPARE = 2
"""Characters that a line is shorter than its column: one with many wide letters reached the next."""
_PANEL = 2.75
"""Inches: height of a panel with its title and labels."""


def verdict_figure(verdicts: pd.DataFrame, cells: pd.DataFrame, panels: list[str], title: str) -> Figure:
    """Draw the `panels`, names of PANELS, and below them the table of verdicts. Raises ConfigError for an unknown one.

    The figure is as wide as a page, and long texts have several lines. `verdicts` and `cells` come from
    `metabo.papers.engine.theory.tables`.
    """
    for name in panels:
        if name not in PANELS:
            raise unknown("panel", name, PANELS)
    columns = [c for c in _COLUMNS if any(verdicts[part].astype(str).str.strip().any() for part in c.parts)]
    rows = [[_lines(row, column) for column in columns] for row in verdicts.to_dict("records")]
    table = _LINE * (sum(_height(row) for row in rows) + 5)
    width = max(sum(map(_width, columns)) + _GAP, style.WIDEST)
    above = -(-len(panels) // style.COLUMNS) * _PANEL + 0.35
    height = above + table
    with style.theme():
        figure = Figure(figsize=(width, height), layout="none")
        figure.text(0.5, 1 - 0.15 / height, title, ha="center", va="center", fontsize=11)
        for place, name in enumerate(panels):
            row, column = divmod(place, style.COLUMNS)
            step = width / style.COLUMNS
            left, bottom = column * step + 0.6, height - 0.35 - (row + 1) * _PANEL + 0.5
            box = (left / width, bottom / height, (step - 0.75) / width, (_PANEL - 1.0) / height)
            PANELS[name](figure.add_axes(box), cells[~cells["is_control"]])
        _table(figure.add_axes((0, 0, 1, table / height)), rows, columns, width, table)
    return figure


def _width(column: _Column) -> float:
    return _CHARACTER * column.characters + _GAP


def _lines(row: dict[str, str], column: _Column) -> list[tuple[str, str]]:
    """Return the lines of a cell, each with the part that it belongs to."""
    return [(part, line) for part in column.parts for line in textwrap.wrap(str(row[part]), column.characters - _SPARE)]


def _height(row: list[list[tuple[str, str]]]) -> float:
    """Return the height of a row of the table, in lines."""
    return max(map(len, row)) + 0.6


def _table(
    ax: Axes, rows: list[list[list[tuple[str, str]]]], columns: list[_Column], width: float, height: float
) -> None:
    ax.set_axis_off()
    ax.set(xlim=(0, width), ylim=(height, 0))
    widths = [_width(column) for column in columns]
    edges = (width - sum(widths)) / 2 + np.concatenate([[0.0], np.cumsum(widths)])
    y = 2.2 * _LINE
    for x, column in zip(edges, columns, strict=False):
        ax.text(x + _GAP / 2, y, column.heading, va="bottom", fontsize=_POINTS, weight="bold", linespacing=1.05)
    y += 0.4 * _LINE
    rules = [y - 2.8 * _LINE, y]
    for row in rows:
        for x, lines in zip(edges, row, strict=False):
            for place, (part, text) in enumerate(lines):
                look = {"color": COLOURS[text], "weight": "bold"} if part == "verdict" else {}
                look |= {"color": "0.4"} if part in _GREY else {}
                ax.text(x + _GAP / 2, y + (place + 0.85) * _LINE, text, va="center", fontsize=_POINTS, **look)
        y += _height(row) * _LINE
        ax.plot([edges[0], edges[-1]], [y, y], color="0.85", linewidth=0.5)
    for rule in (*rules, y):
        ax.plot([edges[0], edges[-1]], [rule, rule], color="black", linewidth=0.8)


def _limit(ax: Axes, height: float, text: str, at: float = 0.99) -> None:
    """Draw what a statement allows, a dashed line with its name at the share `at` of the width."""
    ax.axhline(height, color="0.35", linewidth=0.8, linestyle="--")
    ax.annotate(text, (at, height), (-2, 2), xycoords=ax.get_yaxis_transform(), textcoords="offset points",
                ha="right", fontsize=6.5, color="0.35")  # fmt: skip


def _pick(cells: pd.DataFrame, **values: str | float) -> pd.DataFrame:
    for column, value in values.items():
        cells = cells[cells[column] == value]
    return cells


def _best_observation(ax: Axes, cells: pd.DataFrame) -> None:
    """Lemma 15: failure probability of the worst case against T; lines exact, dots simulated with their bounds."""
    looks = [("printed", 0.1), ("printed", 0.5), ("repaired", 0.1), ("repaired", 0.5)]
    for (version, delta), colour in zip(looks, SERIES, strict=False):
        own = _pick(cells, statement="Lemma 15", version=version, delta=delta)
        exact, drawn = _pick(own, part="exact").sort_values("length"), _pick(own, part="simulated")
        dashes = "-" if version == "printed" else ":"
        ax.plot(exact["length"], exact["share"], color=colour, linestyle=dashes, label=f"{version}, δ = {delta}")
        spread = [drawn["share"] - drawn["low"], drawn["high"] - drawn["share"]]
        ax.errorbar(drawn["length"], drawn["share"], spread, color=colour, fmt="o", markersize=2.5, capsize=2)
    for delta, place in ((0.1, 0.99), (0.5, 0.2)):  # where no line is
        _limit(ax, delta, f"δ = {delta}", place)
    ax.set(xscale="log", xlabel="observations T", ylabel="P(failure), worst case", ylim=(-0.02, 1.02))
    ax.set_title("Lemma 15: best observation")
    ax.legend(fontsize=6, frameon=False, loc="upper left")


def _scale(ax: Axes, cells: pd.DataFrame) -> None:
    """Lemma 10: how often the conditional mean misses its bound, aκ as stated and a√κ as proved, against scale."""
    own = _pick(cells, statement="Lemma 10", part="mean")
    markers = "os^D"
    for (version, name), dashes in zip((("printed", "aκ"), ("repaired", "a√κ")), ("-", ":"), strict=True):
        groups = _pick(own, version=version).groupby(["functions", "t"], sort=False)
        for ((functions, t), rows), marker, colour in zip(groups, markers, SERIES, strict=False):
            label = f"{name}, N = {functions:.0f}, t = {t:.0f}"
            ax.plot(
                rows["scale"], rows["share"], color=colour, marker=marker, markersize=3.5, linestyle=dashes, label=label
            )
    _limit(ax, float(own["limit"].iloc[0]), "δ")
    ax.set(xscale="log", xlabel="scale of the covariance", ylabel="P(|ω̂ - ω| ≥ bound)", ylim=(-0.02, 1.5))
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set_title("Lemma 10: statement and proof")
    ax.legend(fontsize=5.5, frameon=False, ncols=2, loc="upper right")


def _rules(ax: Axes, cells: pd.DataFrame, name: str, label: str, title: str) -> None:
    fifth = cells[cells["statement"].str.startswith("Theorem 5") & (cells["iteration"] == 5)]
    fifth = fifth[fifth["check"].str.startswith("theorem5")]
    for part, inputs, face in ((name, "any input", SERIES[0]), (f"{name}, distinct", "no input twice", "white")):
        own = fifth[fifth["part"] == part]
        names = own["rule"].fillna("fixed").replace({"greedy mean": "greedy\nmean"})
        ax.errorbar(
            names, own["mean"], 4 * own["error"], fmt="o", color=SERIES[0], capsize=3, markersize=4,
            markerfacecolor=face, label=inputs,
        )  # fmt: skip
    ax.legend(fontsize=6, frameon=False, loc="best")
    _limit(ax, float(fifth.loc[fifth["part"] == name, "expected"].iloc[0]), "Theorem 5", 0.6)
    ax.set(xlabel="rule that chooses the inputs", ylabel=label)
    ax.set_title(title)
    ax.margins(0.15)
    ax.tick_params(axis="x", labelsize=7)


def _variance(ax: Axes, cells: pd.DataFrame) -> None:
    """Theorem 5: variance ratio by the rule that chooses the inputs, 4 standard errors."""
    _rules(ax, cells, "ratio", "mean of k̂∘σ̂² / k*∘σ*²", "Theorem 5: variance ratio, t = 5")


def _bias(ax: Axes, cells: pd.DataFrame) -> None:
    """Theorem 5: bias of the posterior mean by the rule that chooses the inputs, 4 standard errors."""
    _rules(ax, cells, "bias", "bias / predictive sd", "Theorem 5: bias of the mean, t = 5")


def _regret(ax: Axes, cells: pd.DataFrame) -> None:
    """Theorems 16 to 18: bounds, printed and repaired, and the quantile of the regret that they bound, against N."""
    for theorem, colour in zip((16, 17, 18), SERIES, strict=False):
        own = _pick(cells, statement=f"Theorem {theorem}", delta=0.1, noise=1.0, iterations=4.0)
        looks = (("printed", "coverage", "bound", "-", "o"), ("repaired", "repeats", "bound", ":", "s"))
        for version, name, column, dashes, marker in (*looks, ("printed", "coverage", "regret", "--", "^")):
            rows = _pick(own, version=version, part=name).sort_values("functions")
            what = "regret, 0.9 quantile" if column == "regret" else f"bound, {version}"
            ax.plot(rows["functions"], rows[column], color=colour, linestyle=dashes, marker=marker, markersize=3.5,
                    label=f"{theorem}: {what}")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="training functions N", ylabel="simple regret")
    ax.set_ylim(top=ax.get_ylim()[1] * 200)
    ax.set_title("Theorems 16–18: δ = 0.1, σ*² = 1, T = 4")
    ax.legend(fontsize=5.5, frameon=False, ncols=2, loc="upper right")


def _arms(ax: Axes, cells: pd.DataFrame) -> None:
    """Theorems 16 to 18 on many independent arms: how often the printed bound is exceeded, against δ."""
    own = _pick(cells, part="many arms", version="printed", method="all arms drawn")
    for place, (theorem, colour) in enumerate(zip((16, 17, 18), SERIES, strict=False)):
        rows = _pick(own, statement=f"Theorem {theorem}")
        spread = [rows["share"] - rows["low"], rows["high"] - rows["share"]]
        x = rows["delta"] + 0.012 * (place - 1)
        ax.errorbar(
            x, rows["share"], spread, fmt="o", color=colour, capsize=3, markersize=4, label=f"Theorem {theorem}"
        )
    ax.plot([0, 0.6], [0, 0.6], color="0.35", linewidth=0.8, linestyle="--", label="δ")
    ax.set(xlabel="δ", ylabel="P(regret > bound)", xlim=(0, 0.6), ylim=(-0.02, 1.0))
    ax.set_title("Theorems 16–18: one query among\n100,000 independent inputs")
    ax.legend(fontsize=6.5, frameon=False, loc="upper left")


PANELS: dict[str, Callable[[Axes, pd.DataFrame], None]] = {
    "best_observation": _best_observation,
    "scale": _scale,
    "variance": _variance,
    "bias": _bias,
    "regret": _regret,
    "arms": _arms,
}
"""The panels that a figure can show; each draws the cells of its checks."""
