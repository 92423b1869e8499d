"""Graphical models as tables: what a figure of a model saves, and where it draws circles, arrows and plates."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import pandas as pd


class GraphicalModel(TypedDict):
    """Nodes: label, kind, x, y. Edges: from, to. Plates: label, left, bottom, right, top."""

    nodes: Mapping[str, tuple[str, str, float, float]]
    edges: Sequence[tuple[str, str]]
    plates: Mapping[str, tuple[str, float, float, float, float]]


def tables(model: GraphicalModel) -> dict[str, pd.DataFrame]:
    """Return node (name, role, x, y), edge (start, end, x0, y0, x1, y1) and plate (name, x0, y0, x1, y1)."""
    nodes = [{"name": n, "role": role, "x": x, "y": y} for n, (_, role, x, y) in model["nodes"].items()]
    place = {n: (x, y) for n, (_, _, x, y) in model["nodes"].items()}
    ends = ("x0", "y0", "x1", "y1")
    edges = [{"start": a, "end": b, **dict(zip(ends, place[a] + place[b], strict=True))} for a, b in model["edges"]]
    plates = [{"name": n, **dict(zip(ends, box, strict=True))} for n, (_, *box) in model["plates"].items()]
    return {"node": pd.DataFrame(nodes), "edge": pd.DataFrame(edges), "plate": pd.DataFrame(plates)}
