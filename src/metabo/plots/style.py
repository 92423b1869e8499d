"""The one style of all figures: theme, lines, legends and axes; `metabo.plots.look` says how each method looks."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import matplotlib
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from metabo.plots import look


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
    """Draw one method's line with sparse markers and, if given, a light band (low, high)."""
    style = look.of(name)
    # The same number of markers on every line, shifted by method so that they do not hide each other.
    marks = np.unique(np.geomspace(1, len(x), 7).astype(int)) - 1
    ax.plot(
        x, y, label=style.label, color=style.colour, dashes=style.dashes or (None, None), linewidth=1.5,
        marker=style.marker, markevery=list(marks), markersize=4, markeredgecolor="white", markeredgewidth=0.4,
    )  # fmt: skip
    if band is not None:
        ax.fill_between(x, *band, color=style.colour, alpha=0.12, linewidth=0)


def legend(figure: Figure, names: list[str], lines: bool = True, notes: Mapping[str, str] | None = None) -> Legend:
    """Put one legend of all methods below the panels, in the given order; `notes` stand in brackets behind a method."""
    handles = []
    for name in names:
        s = look.of(name)
        kind = {"dashes": s.dashes or (None, None), "linewidth": 1.5} if lines else {"linestyle": "none"}
        label = f"{s.label} ({notes[name]})" if notes and name in notes else s.label
        handles.append(Line2D([], [], color=s.colour, marker=s.marker, markersize=5, label=label, **kind))
    entry = max(1.05, 0.68 + 0.072 * max(len(handle.get_label()) for handle in handles))  # inches
    rows = -(-len(handles) // max(1, int(figure.get_figwidth() / entry)))
    columns = -(-len(handles) // rows)
    return figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2, columnspacing=1.4
    )


def imprint(figure: Figure, text: str, left: bool = False) -> None:
    """Print a line above the upper right corner, where every figure has its artefact's name, or above the `left` one.

    Titles are in the middle, and legends below.
    """
    figure.text(0.0 if left else 1.0, 1.0, text, ha="left" if left else "right", va="bottom", fontsize=6, color="0.4")


def iteration_axis(ax: Axes, last: int) -> None:
    """Log axis of BO iterations 1..last, with plain numbers."""
    ax.set_xscale("log")
    ax.set_xlim(0.95, 1.05 * max(last, 2))
    ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if t <= max(last, 2)]
    ax.set_xticks(ticks, [str(t) for t in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("BO iteration")


def regret_axis(ax: Axes, values: np.ndarray) -> None:
    """Logarithmic regret axis that keeps exact zeros in sight.

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
