"""The single style of all figures: theme, lines, legends and axes. `metabo.plots.look` says how each method looks."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import matplotlib
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from metabo.plots import look

COLUMNS = 2
"""Panels side by side. A figure of two, WIDEST inches wide, can still be read when a page sets it in a column."""
WIDEST = 6.3
MARKS = 6
"""Markers on a line."""
GOLDEN = (5**0.5 - 1) / 2
"""The golden ratio, less 1."""


@contextmanager
def theme() -> Iterator[None]:
    """Apply the theme inside a `with` block only."""
    settings = {
        **sns.axes_style("ticks"),
        **sns.plotting_context("paper", font_scale=1.05),
        "axes.grid": True, "grid.linewidth": 0.5, "grid.color": "0.9", "axes.spines.top": False,
        "axes.spines.right": False, "axes.titlesize": "medium", 
        "font.family": ["DejaVu Sans"], "pdf.fonttype": 42, "figure.dpi": 150, "savefig.dpi": 150,
    }  # fmt: skip
    with matplotlib.rc_context(settings):
        yield


def line(ax: Axes, name: str, x: np.ndarray, y: np.ndarray, band: tuple[np.ndarray, np.ndarray] | None = None) -> None:
    """Draw one method's line with sparse markers and, if given, a light band (low, high).

    Set a logarithmic axis before: markers are spread evenly over the axis as it is."""
    style = look.of(name)
    ax.plot(
        x, y, label=style.label, color=style.colour, dashes=style.dashes or (None, None), linewidth=1.5,
        marker=style.marker, markevery=marks(len(x), len(ax.lines), ax.get_xscale() == "log"), markersize=4,
        markerfacecolor=style.face, markeredgecolor=style.rim[0], markeredgewidth=style.rim[1],
    )  # fmt: skip
    if band is not None:
        ax.fill_between(x, *band, color=style.colour, alpha=0.12, linewidth=0)


def marks(count: int, place: int, log: bool = False) -> list[int]:
    """Return which of `count` points have a marker: at most MARKS, evenly spread, also over a logarithmic axis.

    They are shifted by the line's `place` among those of its panel, so that few lines on each other hide their markers.
    Multiples of the golden ratio keep them apart where there are enough points; the first iterations are few on a
    logarithmic axis."""
    at = (np.arange(MARKS) + place * GOLDEN % 1) / MARKS
    return [int(i) for i in np.unique((count**at - 1 if log else at * (count - 1)).astype(int))]


def panels(
    count: int, height: float = 2.3, below: float = 1.0, share: bool = False, least: float = 4.6
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels of `height` inches, COLUMNS of them in a row; a last one that is alone in its
    row takes all of it. `below`: inches for title and legend; `share`: one vertical axis for all; `least`: width.
    """
    rows = -(-count // COLUMNS)
    width = max(least, 0.5 + 2.9 * min(count, COLUMNS))
    figure = Figure(figsize=(width, height * rows + below), layout="constrained")
    grid = figure.add_gridspec(rows, min(count, COLUMNS))
    axes: list[Axes] = []
    for place in range(count):
        row, column = divmod(place, COLUMNS)
        alone = count > COLUMNS and place == count - 1 and column == 0
        axes.append(
            figure.add_subplot(grid[row, :] if alone else grid[row, column], sharey=axes[0] if share and axes else None)
        )
        if share and column:
            axes[-1].tick_params(labelleft=False)
    return figure, axes


def above(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel, and `count` panels below it side by side (none: the one panel alone)."""
    figure = Figure(figsize=(WIDEST, 6.4 if count else 3.9), layout="constrained")
    grid = figure.add_gridspec(2 if count else 1, max(1, count), height_ratios=(1.35, 1.0) if count else None)
    return figure, [figure.add_subplot(grid[0, :]), *(figure.add_subplot(grid[1, place]) for place in range(count))]


def legend(
    figure: Figure, names: list[str], lines: bool = True, notes: Mapping[str, str] | None = None, says: str = ""
) -> Legend:
    """Put one legend of all methods below the panels, in the given order; `notes` stand in brackets behind a method,
    and `says`, above the legend, what they are."""
    handles = []
    for name in names:
        s = look.of(name)
        kind = {"dashes": s.dashes or (None, None), "linewidth": 1.5} if lines else {"linestyle": "none"}
        label = f"{s.label} ({notes[name]})" if notes and name in notes else s.label
        if s.hollow:
            kind |= {"markerfacecolor": s.face, "markeredgecolor": s.rim[0], "markeredgewidth": s.rim[1]}
        handles.append(Line2D([], [], color=s.colour, marker=s.marker, markersize=5, label=label, **kind))
    columns = _columns([len(str(handle.get_label())) for handle in handles], figure.get_figwidth())
    drawn = figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2, columnspacing=1.4,
        title=says or None, title_fontsize="small",
    )  # fmt: skip
    drawn.get_title().set_multialignment("center")
    return drawn


def _columns(lengths: list[int], width: float) -> int:
    """Return in how many columns a legend of labels of these `lengths` is lowest on `width` inches. Entries fill a
    column before the next one begins, and a column is as wide as its longest label."""
    for columns in range(len(lengths), 1, -1):
        longest = [int(part.max()) for part in np.array_split(np.array(lengths), columns)]
        if sum(max(1.05, 0.68 + 0.072 * label) for label in longest) <= width:
            rows = -(-len(lengths) // columns)
            return -(-len(lengths) // rows)
    return 1


def legend_rows(labels: Sequence[str], width: float) -> int:
    """Return the rows that a legend of these labels fills below a figure of `width` inches."""
    return -(-len(labels) // _columns([len(label) for label in labels], width))


def free_height(curves: pd.DataFrame, axis: tuple[float, float], width: float, height: float, above: bool) -> float:
    """Return the lower end of a text at the right of a panel: the highest place (`above`) or the lowest that no curve
    crosses. Without one, the highest or the lowest of all: lines are drawn over the text.

    `curves`: iteration, low, high; `axis`: ends of the vertical axis; width and height of the text, and the result, are
    shares of the panel's.
    """
    right = curves[curves["iteration"] >= (1 - width) * curves["iteration"].max()]
    low, high = ((right[end] - axis[0]) / (axis[1] - axis[0]) for end in ("low", "high"))
    places = np.linspace(0.03, 0.97 - height, 48)[:: -1 if above else 1]
    free = [place for place in places if not ((low < place + height) & (high > place)).any()]
    return float((free or list(places))[0])


def fit_title(figure: Figure) -> None:
    """Break a title that is wider than its figure: before its bracket, or else wherever a line is full."""
    title = figure.get_suptitle()
    drawn = next((text for text in figure.texts if title and text.get_text() == title), None)
    if drawn is None:
        return
    head, bracket, tail = title.partition(" (")
    full = [textwrap.fill(title, width) for width in range(len(title), 20, -1)]
    for text in (title, *([f"{head}\n({tail}"] if bracket else []), *full):
        drawn.set_text(text)
        if drawn.get_window_extent().width <= figure.bbox.width:
            return


def imprint(figure: Figure, text: str) -> None:
    """Print a line above the upper right corner, where every figure has its artefact's name."""
    figure.text(1.0, 1.0, text, ha="right", va="bottom", fontsize=6, color="0.4")


def iteration_axis(ax: Axes, last: int, narrow: bool = False) -> None:
    """Log axis of BO iterations 1..last, with plain numbers; fewer of them in a `narrow` panel."""
    ax.set_xscale("log")
    ax.set_xlim(0.95, 1.05 * max(last, 2))
    numbers = (1, 3, 10, 30, 100, 300, 1000) if narrow and last >= 10 else (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    ticks = [t for t in numbers if t <= max(last, 2)]
    ax.set_xticks(ticks, [str(t) for t in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("BO iteration")


def regret_axis(ax: Axes, values: np.ndarray) -> None:
    """Logarithmic regret axis that keeps exact zeros visible.

    A regret of 0 (the pool's best point was found) has no logarithm. With a zero among `values` the axis is linear
    between 0 and the decade below the smallest positive value (at most nine decades down), logarithmic above, with a
    tick at 0 and a dotted line and a note where the scale changes; without one it is logarithmic.
    """
    values = np.asarray(values, dtype=np.float64)
    positive = values[values > 0]
    if len(positive) == 0:
        ax.set_ylim(-0.05, 1)
        ax.set_yticks([0, 1])
        return
    top = positive.max() * 1.6
    if len(positive) == len(values):
        ax.set_yscale("log")
        ax.set_ylim(positive.min() / 1.6, top)
        plain_ticks(ax, positive.min() / 1.6, top)
        return
    edge = 10.0 ** np.floor(np.log10(max(positive.min(), positive.max() * 1e-9)))
    ax.set_yscale("symlog", linthresh=edge, linscale=0.6)
    ax.set_ylim(-0.12 * edge, top)
    decades = np.arange(np.log10(edge), np.ceil(np.log10(top)))
    decades = decades[:: max(1, round(len(decades) / 5))]
    labels = [f"$10^{{{round(d)}}}$" for d in decades]
    ax.set_yticks([0.0, *10.0**decades], ["0", *labels])
    ax.set_yticks([], minor=True)
    ax.axhline(edge, color="0.5", linewidth=0.7, linestyle=":")
    ax.annotate(
        "linear\nbelow", (1, edge), (3, 0), xycoords=ax.get_yaxis_transform(), textcoords="offset points",
        ha="left", va="center", fontsize=6, color="0.4", annotation_clip=False,
    )  # fmt: skip


def plain_ticks(ax: Axes, low: float, high: float) -> None:
    """Label a logarithmic axis from `low` to `high` in plain numbers, 1, 2 and 5 of each decade, where powers of ten
    alone would be one or two labels."""
    if high / low > 150:
        return
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    ticks = [value for decade in decades for value in (decade, 2 * decade, 5 * decade) if low <= value <= high]
    ax.set_yticks(ticks, [f"{value:g}" for value in ticks])
    ax.set_yticks([], minor=True)
