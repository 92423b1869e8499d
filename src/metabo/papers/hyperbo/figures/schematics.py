"""Graphical models with plates, drawn from tables of nodes, edges and plates (hyperbo Figures 2 and 21)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from metabo.errors import unknown
from metabo.plots import diagrams, style
from metabo.plots.diagrams import GraphicalModel

_RADIUS = 0.36
_FILL = {"latent": "white", "observed": "0.82", "constant": "white"}

_DATA_NODES = {
    "f": (r"$f_i$", "latent", 2.6, 1.5),
    "x": (r"$x^{(i)}_j$", "observed", 4.0, 0.2),
    "y": (r"$y^{(i)}_j$", "observed", 4.0, 1.5),
}
_DATA_PLATES = {
    "functions": (r"$i \in [N]$", 2.0, -0.65, 4.95, 2.25),
    "points": (r"$j \in [M_i]$", 3.35, -0.4, 4.7, 2.05),
}

SCHEMATICS: dict[str, GraphicalModel] = {
    "generative": {
        "nodes": {
            "mean": (r"$\mu^*$", "latent", 0.6, 2.0),
            "kernel": (r"$k^*$", "latent", 0.6, 1.0),
            **_DATA_NODES,
            "noise": (r"$\sigma_*^2$", "latent", 6.0, 1.5),
        },
        "edges": [("mean", "f"), ("kernel", "f"), ("f", "y"), ("x", "y"), ("noise", "y")],
        "plates": _DATA_PLATES,
    },
    "hierarchical": {
        "nodes": {
            "alpha": (r"$\alpha$", "constant", -2.9, 1.5),
            "theta": (r"$\theta$", "latent", -1.5, 1.5),
            "mean": (r"$\mu$", "latent", 0.4, 2.4),
            "kernel": (r"$k$", "latent", 0.4, 1.2),
            "noise": (r"$\sigma^2$", "latent", 0.4, 3.6),
            **_DATA_NODES,
        },
        "edges": [
            ("alpha", "theta"), ("theta", "mean"), ("theta", "kernel"), ("theta", "noise"), ("mean", "f"),
            ("kernel", "f"), ("f", "y"), ("x", "y"), ("noise", "y"),
        ],
        "plates": _DATA_PLATES,
    },
}  # fmt: skip
"""Kinds of nodes: latent (open circle), observed (grey circle), constant (no circle). "generative": the training data
(Figure 2); "hierarchical": §8.1 (Figure 21)."""


def schematic(name: str) -> dict[str, pd.DataFrame]:
    """Return the tables of a graphical model: nodes (name, role, x, y), edges (start, end, x0, y0, x1, y1), plates.

    Raises ConfigError, which lists the names.
    """
    if name not in SCHEMATICS:
        raise unknown("schematic", name, SCHEMATICS)
    return diagrams.tables(SCHEMATICS[name])


def schematic_figure(name: str, title: str) -> Figure:
    """Draw a graphical model. Raises ConfigError, which lists the names."""
    tables, model = schematic(name), SCHEMATICS[name]
    corners = np.concatenate([tables["plate"][["x0", "y0"]], tables["plate"][["x1", "y1"]], tables["node"][["x", "y"]]])
    low, high = corners.min(axis=0) - 0.55, corners.max(axis=0) + 0.55
    with style.theme():
        figure = Figure(figsize=(0.85 * (high[0] - low[0]), 0.85 * (high[1] - low[1]) + 0.8), layout="constrained")
        ax = figure.subplots()
        ax.set_axis_off()
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        for plate in tables["plate"].itertuples():
            size = plate.x1 - plate.x0, plate.y1 - plate.y0
            style_of_box = "round,pad=0,rounding_size=0.12"
            ax.add_patch(
                FancyBboxPatch((plate.x0, plate.y0), *size, boxstyle=style_of_box, fill=False, edgecolor="0.3")
            )
            label = model["plates"][plate.name][0]
            ax.text(plate.x1 - 0.08, plate.y0 + 0.06, label, ha="right", va="bottom", fontsize=9)
        for edge in tables["edge"].itertuples():
            start, end = _between((edge.x0, edge.y0), (edge.x1, edge.y1))
            ax.add_patch(
                FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color="black", shrinkA=0, shrinkB=0)
            )
        for node in tables["node"].itertuples():
            line = 0 if node.role == "constant" else 1.1
            ax.add_patch(
                Circle(
                    (node.x, node.y), _RADIUS, facecolor=_FILL[node.role], edgecolor="black", linewidth=line, zorder=3
                )
            )
            ax.text(node.x, node.y, model["nodes"][node.name][0], ha="center", va="center", fontsize=13, zorder=4)
        figure.suptitle(title)
    return figure


def _between(a: tuple[float, float], b: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return where the arrow from node a to node b starts and ends: on their circles."""
    start, end = np.array(a), np.array(b)
    step = (end - start) / np.linalg.norm(end - start) * _RADIUS
    return start + step, end - step
