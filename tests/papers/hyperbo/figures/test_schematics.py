"""Graphical models have the nodes, arrows and plates of the paper's figures."""

import numpy as np
import pytest
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from metabo.errors import ConfigError
from metabo.papers.hyperbo.figures import schematics

PARENTS = {
    "generative": {"f": {"mean", "kernel"}, "y": {"f", "x", "noise"}},
    "hierarchical": {
        "theta": {"alpha"}, "mean": {"theta"}, "kernel": {"theta"}, "noise": {"theta"}, "f": {"mean", "kernel"},
        "y": {"f", "x", "noise"},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", list(PARENTS))
def test_nodes_and_arrows(name):
    tables = schematics.schematic(name)
    parents = tables["edge"].groupby("end")["start"].agg(set).to_dict()
    assert parents == PARENTS[name]
    roles = tables["node"].set_index("name")["role"]
    assert set(roles[roles == "observed"].index) == {"x", "y"}
    assert set(roles.index) == {n for child, above in PARENTS[name].items() for n in (child, *above)}


@pytest.mark.parametrize("name", list(PARENTS))
def test_plates_hold_what_is_repeated_and_nothing_overlaps(name):
    tables = schematics.schematic(name)
    nodes, plates = tables["node"].set_index("name"), tables["plate"].set_index("name")
    for plate, inside in (("functions", {"f", "x", "y"}), ("points", {"x", "y"})):
        box = plates.loc[plate]
        held = nodes[nodes["x"].between(box.x0, box.x1) & nodes["y"].between(box.y0, box.y1)]
        assert set(held.index) == inside
    places = nodes[["x", "y"]].to_numpy()
    distance = np.linalg.norm(places[:, None] - places, axis=2) + 10 * np.eye(len(places))
    assert distance.min() > 0.8  # two radii and a gap


@pytest.mark.parametrize("name", list(PARENTS))
def test_every_part_is_drawn(name):
    tables = schematics.schematic(name)
    (ax,) = schematics.schematic_figure(name, "T").axes
    counts = {kind: sum(type(p) is kind for p in ax.patches) for kind in (Circle, FancyArrowPatch, FancyBboxPatch)}
    assert list(counts.values()) == [len(tables["node"]), len(tables["edge"]), len(tables["plate"])]
    texts = {text.get_text() for text in ax.texts}
    assert {r"$i \in [N]$", r"$j \in [M_i]$", r"$f_i$", r"$y^{(i)}_j$"} <= texts


def test_an_unknown_schematic_lists_the_names():
    with pytest.raises(ConfigError, match="generative, hierarchical"):
        schematics.schematic("generativ")
