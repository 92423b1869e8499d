"""Schematic figures of MPHD: learned priors in use, graphical model, a super-dataset, Lemma 1 (Figures 1 to 4)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from scipy.stats import gamma

from metabo.plots import diagrams, style
from metabo.plots.diagrams import GraphicalModel

Place = tuple[float, float] | np.ndarray
"""x and y."""
_RADIUS = 0.36
_FILL = {"latent": "white", "observed": "0.82", "function": "#dce9f5"}
_DISCRETE, _CONTINUOUS = "#e69f00", "#56b4e9"
_FUNCTIONS = ("#0072b2", "#d55e00", "#009e73")

MODEL: GraphicalModel = {
    "nodes": {
        "context": (r"$s_{ih}$", "observed", 0.6, 1.5),
        "phi": (r"$\phi$", "function", 1.9, 4.1),
        "alpha": (r"$\alpha_{ih}$", "latent", 1.9, 1.5),
        "theta": (r"$\theta_{ih}$", "latent", 3.2, 1.5),
        "mean": (r"$\mu_i$", "latent", 4.9, 2.7),
        "kernel": (r"$k_i$", "latent", 4.9, 1.5),
        "noise": (r"$\sigma_i^2$", "latent", 4.9, 0.0),
        "f": (r"$f_{ij}$", "latent", 6.5, 2.1),
        "y": (r"$y_{ij}^{(l)}$", "observed", 8.2, 1.5),
        "x": (r"$x_{ij}^{(l)}$", "observed", 8.2, 0.0),
    },
    "edges": [
        ("context", "alpha"), ("phi", "alpha"), ("alpha", "theta"), ("theta", "mean"), ("theta", "kernel"),
        ("theta", "noise"), ("mean", "f"), ("kernel", "f"), ("f", "y"), ("x", "y"), ("noise", "y"),
    ],
    "plates": {
        "parameters": (r"$h \in [H_i]$", 0.05, 0.6, 3.75, 2.05),
        "points": (r"$l \in [L_{ij}]$", 7.55, -1.0, 8.95, 2.05),
        "functions": (r"$j \in [M_i]$", 5.9, -1.4, 9.2, 2.7),
        "domains": (r"$i \in [N]$", -0.25, -1.8, 9.5, 3.25),
    },
}  # fmt: skip
"""Figure 2."""


def graphical_model() -> dict[str, pd.DataFrame]:
    """Return the tables of the graphical model (`diagrams.tables`)."""
    return diagrams.tables(MODEL)


def model_figure(title: str) -> Figure:
    """Draw the graphical model: circles are variables (grey: observed), the square is the function that is learned."""
    tables = graphical_model()
    with style.theme():
        figure, ax = _canvas(-0.7, -2.2, 10.0, 4.7, title)
        for plate in tables["plate"].itertuples():
            _box(ax, plate.x0, plate.y0, plate.x1, plate.y1, "none")
            label = MODEL["plates"][plate.name][0]
            ax.text(plate.x1 - 0.08, plate.y0 + 0.06, label, ha="right", va="bottom", fontsize=9)
        for edge in tables["edge"].itertuples():
            start, end = np.array([edge.x0, edge.y0]), np.array([edge.x1, edge.y1])
            step = (end - start) / np.linalg.norm(end - start) * _RADIUS
            _arrow(ax, start + step, end - step)
        for node in tables["node"].itertuples():
            drawn = {"facecolor": _FILL[node.role], "edgecolor": "black", "linewidth": 1.1, "zorder": 3}
            if node.role == "function":
                corner = (node.x - _RADIUS, node.y - _RADIUS)
                ax.add_patch(Rectangle(corner, 2 * _RADIUS, 2 * _RADIUS, **drawn))
            else:
                ax.add_patch(Circle((node.x, node.y), _RADIUS, **drawn))
            ax.text(node.x, node.y, MODEL["nodes"][node.name][0], ha="center", va="center", fontsize=12, zorder=4)
    return figure


def prior_scheme(priors: pd.DataFrame, title: str) -> Figure:
    """Draw how φ gives each length-scale of two domains its prior: one that it learned from, and a new one (Figure 1).

    `priors`: domain ("A", the one seen, and "T"), index (of the input, from 1), dims, shape, rate.
    """
    with style.theme():
        figure, ax = _canvas(0.0, 0.0, 10.4, 7.1, title, style.WIDEST)
        _box(ax, 2.75, 1.3, 4.35, 6.9, _FILL["function"])
        ax.text(
            3.55, 4.1, "$\\phi$\n\ncontext of a\nGP parameter\nto its prior", ha="center", va="center", fontsize=8.5
        )
        top = 1.15 * max(_pdf(*prior)[1].max() for prior in zip(priors["shape"], priors["rate"], strict=True))
        words = {
            "A": ("training domain A", "Step 2 fits $\\phi$ to the length-scales\nthat Step 1 estimates (Eq. 4)"),
            "T": (
                "test domain T",
                "hierarchical GP of $f$: MAP fit and\nacquisition at every BO iteration (Eq. 6)",
            ),
        }
        for (name, own), middle in zip(priors.groupby("domain", sort=False), (5.9, 2.3), strict=True):
            dims = int(own["dims"].iloc[0])
            label = f"{words[str(name)][0]}:\n{dims} inputs, each\nwith context\n(0, 1, 0, {dims})"
            _box(ax, 0.1, middle - 0.85, 2.4, middle + 0.85, "white")
            ax.text(1.25, middle, label, ha="center", va="center", fontsize=8.5)
            _arrow(ax, (2.4, middle), (2.75, middle))
            _arrow(ax, (4.35, middle), (4.75, middle))
            for k, (index, shape, rate) in enumerate(zip(own["index"], own["shape"], own["rate"], strict=True)):
                inset = ax.inset_axes((4.9 + 1.88 * k, middle - 0.65, 1.5, 1.3), transform=ax.transData)
                _density(inset, shape, rate, top)
                inset.set_title(f"$\\ell_{index}$: $\\Gamma$({shape:.2f}, {rate:.2f})", fontsize=8, pad=2)
            _arrow(ax, (7.5, middle - 1.05), (7.5, middle - 1.4))
            _box(ax, 4.75, middle - 2.2, 10.3, middle - 1.4, "white")
            ax.text(7.5, middle - 1.8, words[str(name)][1], ha="center", va="center", fontsize=8.5)
    return figure


def _pdf(shape: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(0.0, 2.0, 201)[1:]
    return x, gamma.pdf(x, shape, scale=1.0 / rate)


def _density(ax: Axes, shape: float, rate: float, top: float) -> None:
    x, height = _pdf(shape, rate)
    ax.fill_between(x, height, color=_CONTINUOUS, alpha=0.4, linewidth=0)
    ax.plot(x, height, color=_FUNCTIONS[0], linewidth=1.2)
    ax.set(xlim=(0, 2), ylim=(0, top), yticks=[], xticks=[0, 1, 2])
    ax.tick_params(labelsize=7, pad=2)
    ax.grid(visible=False)


def super_dataset_figure(dimension: pd.DataFrame, size: pd.DataFrame, title: str) -> Figure:
    """Draw one row of squares per search space, a square per input, coloured by its type (Figure 3).

    `dimension`: space, index (from 1), discrete (1 or 0); `size`: space, train, test (tasks), points, unseen (1 or 0).
    """
    most = int(dimension["index"].max())
    with style.theme():
        left, right, unit = 5.5, most + 14.0, 0.2  # inches a square
        figure = Figure(figsize=(unit * (left + right), unit * (len(size) + 2) + 1.1), layout="constrained")
        ax = figure.subplots()
        ax.set_axis_off()
        ax.set(xlim=(-left, right), ylim=(len(size) + 0.2, -1.4), aspect="equal")
        for x, text in ((0.0, "inputs"), (most + 1.0, "sub-datasets: training, test; observations")):
            ax.text(x, -0.85, text, ha="left", va="center", fontsize=8, weight="bold")
        for row, space in enumerate(size.itertuples()):
            own = dimension[dimension["space"] == space.space]
            ax.text(-0.3, row, space.space + (" *" if space.unseen else ""), ha="right", va="center", fontsize=8)
            for place, discrete in zip(own["index"], own["discrete"], strict=True):
                colour = _DISCRETE if discrete else _CONTINUOUS
                ax.add_patch(Rectangle((place - 1, row - 0.38), 0.8, 0.76, facecolor=colour, edgecolor="0.3"))
            text = f"{space.train}, {space.test}; {space.points:,}"
            ax.text(most + 1.0, row, text, ha="left", va="center", fontsize=8)
        handles = [Rectangle((0, 0), 1, 1, facecolor=c, edgecolor="0.3") for c in (_CONTINUOUS, _DISCRETE)]
        labels = ["continuous", "discrete (two values)"]
        note = "* not used for $\\phi$" if size["unseen"].any() else None
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, title=note)
        figure.suptitle(title)
    return figure


def lemma_figure(point: pd.DataFrame, path: pd.DataFrame, gap: pd.DataFrame, title: str) -> Figure:
    """Draw sub-datasets where they were observed, then moved apart as one; beside, the likelihoods' gap (Figure 4).

    `point`, `path`: kind (sub-dataset, pseudo), function, x, y; `gap`: x (Q in length-scales), gap (nats).
    """
    with style.theme():
        figure = Figure(figsize=(10.4, 4.6), layout="constrained")
        axes = figure.subplot_mosaic([["sub-dataset", "gap"], ["pseudo", "gap"]], width_ratios=[2.2, 1.0])
        headings = {"sub-dataset": "sub-datasets of one GP", "pseudo": "pseudo sub-dataset: moved apart"}
        for kind, heading in headings.items():
            ax = axes[kind]
            for function, colour in enumerate(_FUNCTIONS):
                for table, drawn in ((path, {"linewidth": 1.2}), (point, {"linestyle": "none", "marker": "o"})):
                    own = table[(table["kind"] == kind) & (table["function"] == function)]
                    ax.plot(own["x"], own["y"], color=colour, markersize=4.5, **drawn)
            ax.set(ylabel="f(x), y", title=heading)
        axes["pseudo"].set_xlabel("x")
        floor = np.finfo(float).eps
        axes["gap"].loglog(gap["x"], np.maximum(gap["gap"], floor), color=_FUNCTIONS[0], marker="o", markersize=4)
        axes["gap"].set(xlabel="Q / length-scale", ylabel="|NLL − Σ NLL of sub-datasets| (nats)", title="gap")
        figure.suptitle(title)
    return figure


def _canvas(
    left: float, bottom: float, right: float, top: float, title: str, widest: float = 11.0
) -> tuple[Figure, Axes]:
    """Return a figure, at most `widest` inches wide, with one axes without frame, equal units on both axes."""
    scale = min(0.85, widest / (right - left))
    figure = Figure(figsize=(scale * (right - left), scale * (top - bottom) + 0.6), layout="constrained")
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    figure.suptitle(title)
    return figure, ax


def _box(ax: Axes, left: float, bottom: float, right: float, top: float, fill: str) -> None:
    shape = "round,pad=0,rounding_size=0.12"
    ax.add_patch(
        FancyBboxPatch((left, bottom), right - left, top - bottom, boxstyle=shape, facecolor=fill, edgecolor="0.3")
    )


def _arrow(ax: Axes, start: Place, end: Place) -> None:
    (x0, y0), (x1, y1) = start, end
    ax.add_patch(
        FancyArrowPatch((x0, y0), (x1, y1), arrowstyle="-|>", mutation_scale=12, color="black", shrinkA=0, shrinkB=0)
    )
