"""Runs that one figure draws in one panel are told apart without colour, by marker and dashes."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from metabo.plan import registry
from metabo.plan.runs import RunId
from metabo.plan.yaml_files import read_yaml
from metabo.plots import look

CATALOGUE = read_yaml(Path(__file__).parents[2] / "workflow/catalogue.yaml")


ALIKE = {"H": "h", "8": "h", "d": "D"}
"""Markers that look like others at the size of a figure's lines."""


def named(listed) -> Iterator[str]:
    """Give the names in a list of lists."""
    for one in listed or []:
        yield from [one] if isinstance(one, str) else named(one)


def panel(artefact: str, name: str) -> str:
    """Return what has a panel, or markers, of its own in the artefacts that share looks."""
    method = RunId.parse(name).method
    entry = registry.method(method)
    if artefact in ("cmbo_fig03", "cmbo_x08"):
        return entry.variant_of  # a panel for each kind of cluster
    if artefact == "cmbo_x06":
        return next((end for end in ("_fixed", "_scaled") if method.endswith(end)), "")  # readings of the noise
    if artefact == "hyperbo_fig25":
        return entry.variant_of  # H-NLL and H-EKL
    return ""


def alike(artefact: str, names) -> list[list[str]]:
    found = defaultdict(list)
    for name in dict.fromkeys(names):
        shown = look.of(name)
        found[panel(artefact, name), ALIKE.get(shown.marker, shown.marker), shown.dashes].append(name)
    return [several for several in found.values() if len(several) > 1]


@pytest.mark.parametrize("artefact", [name for name in CATALOGUE if name != "hyperbo_x01"])  # draws its own markers
def test_no_two_runs_of_a_panel_share_marker_and_dashes(artefact):
    assert alike(artefact, named((CATALOGUE[artefact].get("inputs") or {}).get("trajectories"))) == []


def test_twins_in_one_panel_are_found():
    assert alike("mphd_x03", ["cm_global", "cm_global_fixed", "rand"]) == [["cm_global", "cm_global_fixed"]]
    assert alike("cmbo_x06", ["cm_global", "cm_global_fixed"]) == []
