"""The crossed study of H-EKL, H-NLL and ABLR: regret of every cell, and where its variance comes from (hyperbo_x01)."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from metabo.plots import look as looks
from metabo.plots import style

COMPONENTS = {"tasks": "0.8", "priors": "#d55e00", "task x prior": "#e69f00", "seeds": "#0072b2"}
"""Parts of the variance and their colours; the names are those of `metabo.papers.hyperbo.metrics.crossing`."""
MARKERS = {"matched": "s", "all": "o"}
STEPS = ("more", "fewer")


def learner_label(learner: str) -> str:
    """Return the label of a learner, "method, rows points": "H-NLL, all points"."""
    method, _, rest = learner.partition(", ")
    return f"{looks.of(method).label}, {rest}"


def described(trained: pd.DataFrame) -> str:
    """Say in Markdown what each learner's priors were trained with, how many settings share them, and whether the
    learners on matched points see equally much.

    `trained`: from `metabo.papers.hyperbo.metrics.crossing_priors.trained`.
    """
    lines = []
    for learner, rows in trained.groupby("learner", sort=False):
        numbers = ", ".join(f"{_whole(row.number)} ({row.steps})" for row in rows.itertuples())
        how = ", ".join(rows["optimiser"].dropna().unique()) or "unknown optimiser"
        ends = dict.fromkeys((_whole(rows["least"].min()), _whole(rows["most"].max())))
        lines.append(
            f"- {learner_label(str(learner))}: pre-training steps {numbers}, {how}; task-rows that a prior sees: "
            f"{' to '.join(ends)}; settings: {rows['settings'].sum()}; sets of priors that these share: {len(rows)}, "
            f"each of {_whole(rows['priors'].max())} seeds per fold."
        )
    seen = trained.loc[trained["rows"] == "matched", ["least", "most"]]
    equal = "unknown" if seen.isna().to_numpy().any() else "no" if len(seen.drop_duplicates()) > 1 else "yes"
    return "\n".join([*lines, f"- Do all learners on matched points see equally many task-rows? {equal}."])


def _whole(value: float) -> str:
    return "unknown" if pd.isna(value) else str(int(value))


def steps_taken(trained: pd.DataFrame) -> dict[str, str]:
    """Return the numbers of pre-training steps by level, methods with one number together: "H-NLL, ABLR 1,000".

    `trained`: from `metabo.papers.hyperbo.metrics.crossing_priors.trained`. A level of unknown numbers is left out.
    """
    said = {}
    for level, rows in trained.dropna(subset="number").groupby("steps", sort=False):
        numbers = rows.drop_duplicates("method").groupby("number", sort=False)["method"]
        texts = [f"{', '.join(looks.of(m).label for m in methods)} {number:,}" for number, methods in numbers]
        said[str(level)] = "; ".join(texts)
    return said


def crossing_figure(
    cells: pd.DataFrame, shares: pd.DataFrame, title: str, regret: str, steps: Mapping[str, str] | None = None
) -> Figure:
    """Draw a grid of panels (rows: candidates, columns: acquisition) of mean regret with its interval over priors, one
    place per learner, filled for more steps and hollow for fewer; below, the parts of the variance per learner.

    `cells`: learner, method, rows, candidates, steps, acquisition, mean, low, high; `shares`: learner, component,
    share; `steps`: words for the levels of steps, for the legend. The lower end of an interval that reaches 0 is cut at
    the axis, and the legend leaves out a part of the variance that no learner has.
    """
    learners = list(dict.fromkeys(cells["learner"]))
    candidates, acquisitions = (list(dict.fromkeys(cells[c])) for c in ("candidates", "acquisition"))
    with style.theme():
        figure = Figure(figsize=(2.2 + 2.5 * len(acquisitions), 2.4 * len(candidates) + 2.9), layout="constrained")
        upper, lower = figure.subfigures(2, 1, height_ratios=[2.4 * len(candidates) + 0.7, 2.2])
        axes = upper.subplots(len(candidates), len(acquisitions), squeeze=False, sharex=True, sharey="row")
        for row, pool in zip(axes, candidates, strict=True):
            in_row = cells[cells["candidates"] == pool]
            for ax, acquisition in zip(row, acquisitions, strict=True):
                _points(ax, in_row[in_row["acquisition"] == acquisition], learners)
                ax.set_title(f"{looks.ACQUISITIONS[acquisition]}, {pool} candidates", fontsize="small")
            _regret_limits(row, in_row)
            row[0].set_ylabel(f"{regret}", fontsize="small")
        _learner_axis(axes[-1], learners)
        handles = _point_handles(cells, steps or {})
        upper.legend(handles=handles, loc="outside lower center", ncols=2 if steps else 4, frameon=False)
        upper.suptitle(title)
        _bars(lower.subplots(), shares, learners)
        present = set(shares.loc[shares["share"] > 0, "component"])
        parts = [
            Patch(color=colour, label=name.replace(" x ", " × "))
            for name, colour in COMPONENTS.items()
            if name in present
        ]
        lower.legend(handles=parts, loc="outside lower center", ncols=len(COMPONENTS), frameon=False)
    return figure


def _points(ax: Axes, cells: pd.DataFrame, learners: list[str]) -> None:
    for cell in cells.to_dict("records"):
        look, more = looks.of(cell["method"]), cell["steps"] == STEPS[0]
        x = learners.index(cell["learner"]) + (-0.16 if more else 0.16)
        ax.vlines(x, cell["low"], cell["high"], color=look.colour, linewidth=1.4, alpha=1.0 if more else 0.6)
        ax.plot(
            x, cell["mean"], marker=MARKERS[cell["rows"]], color=look.colour, markersize=5,
            markerfacecolor=look.colour if more else "white", markeredgewidth=1.1,
        )  # fmt: skip


def _regret_limits(row: np.ndarray, cells: pd.DataFrame) -> None:
    """Scale a row of panels: logarithmic if the means span a factor of five, from below the least mean or bound."""
    means = cells["mean"].to_numpy()
    ends = cells[["mean", "low", "high"]].to_numpy().ravel()
    ends = ends[np.isfinite(ends) & (ends > 0)]
    for ax in row:
        if means.min() > 0 and means.max() / means.min() >= 5:
            ax.set_yscale("log")
            ax.set_ylim(ends.min() / 1.2, ends.max() * 1.2)
        else:
            ax.set_ylim(0, 1.08 * ends.max() if len(ends) else 1)


def _learner_axis(row: np.ndarray, learners: list[str]) -> None:
    labels = [learner_label(learner).replace(", ", ",\n") for learner in learners]
    for ax in row:
        ax.set_xticks(range(len(learners)), labels, fontsize="x-small", rotation=45, ha="right", rotation_mode="anchor")
        ax.set_xlim(-0.5, len(learners) - 0.5)


def _point_handles(cells: pd.DataFrame, words: Mapping[str, str]) -> list[Line2D]:
    """Marker: training rows; filled or hollow: steps. Colours are named by the axis."""
    point = partial(Line2D, [], [], linestyle="none", color="0.3", markersize=5)
    rows = [r for r in MARKERS if r in set(cells["rows"])]
    handles = [point(marker=MARKERS[r], label=f"trained on {r} points") for r in rows]
    for level, face in zip(STEPS, ("0.3", "white"), strict=True):
        said = f" ({words[level]})" if level in words else ""
        handles.append(point(marker="D", label=f"{level} steps{said}", markerfacecolor=face))
    return handles


def _bars(ax: Axes, shares: pd.DataFrame, learners: list[str]) -> None:
    """Stack the shares of each learner's variance; a part that cannot be separated has no length."""
    for place, learner in enumerate(learners):
        parts = shares[shares["learner"] == learner].set_index("component")["share"].fillna(0.0)
        left = 0.0
        for name, colour in COMPONENTS.items():
            ax.barh(place, parts.get(name, 0.0), left=left, color=colour, height=0.7, linewidth=0)
            left += parts.get(name, 0.0)
    ax.set_yticks(range(len(learners)), [learner_label(learner) for learner in learners], fontsize="small")
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of the variance within a cell, mean over cells", fontsize="small")
    ax.grid(visible=False, axis="y")
