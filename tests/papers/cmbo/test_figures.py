"""Figures of cm-BO show what their tables hold, in panels with room for every text."""

import numpy as np
import pandas as pd
import pytest

from metabo.papers.cmbo import figures as cmbo
from metabo.plots import look, style
from tests.readable import assert_readable

METHODS = ["rand_once", "rm_gp_ucb", "hyperbo", "cm_jef_jef", "cm_wss_wss", "cm_jef_wss", "cm_wss_jef", "cm_wss_bary"]
METHODS += ["cm_global", "cm_tasks", "gp32", "rgpe"]


def lines(**keys) -> pd.DataFrame:
    at, frames = np.arange(1, 31), []
    for i, method in enumerate(METHODS):
        mean = (1 + i) / at / 20
        columns = {"method": method, "iteration": at, "mean": mean, "low": mean - 0.01, "high": mean + 0.01}
        frames.append(pd.DataFrame({**keys, **columns}))
    return pd.concat(frames, ignore_index=True)


def indices() -> pd.DataFrame:
    rows = [
        (measure, space, split, count, float(count == 3), 1 / count)
        for measure in ("jeffreys", "wasserstein") for space in ("a", "b") for split in (1, 2) for count in range(1, 7)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["distance", "space", "fold", "clusters", "chosen", "ratio"])


@pytest.mark.parametrize("with_indices", [False, True])
def test_regret_panels(with_indices):
    table = pd.concat([lines(panel=a) for a in ("ucb3", "ei")])
    table = table[(table["panel"] == "ucb3") | (table["method"] != "rm_gp_ucb")]
    headings = {a: look.ACQUISITIONS[a] for a in ("ucb3", "ei")}
    figure = cmbo.regret_panels(table, "Regret (test)", headings, METHODS[:2], indices() if with_indices else None)
    assert len(figure.axes) == (4 if with_indices else 2)
    for ax, panel in zip(figure.axes, headings, strict=False):
        own = table[table["panel"] == panel]
        drawn = {line.get_label(): line for line in ax.lines}
        for method, rows in own.groupby("method"):
            np.testing.assert_array_equal(drawn[look.of(method).label].get_ydata(), rows["mean"])
        assert ax.get_yscale() == "log" and ax.get_title() == headings[panel]
    assert ("RM-GP-UCB" in {line.get_label() for line in figure.axes[1].lines}) is False
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [look.of(m).label for m in METHODS]
    assert [len(ax.collections) for ax in figure.axes[:2]] == [2, 1], "bands of the chosen methods alone"
    figure.draw_without_rendering()
    assert min(ax.get_position().width * figure.get_figwidth() for ax in figure.axes) > 1.9, "no panel is crushed"
    if with_indices:
        solid = [line for line in figure.axes[2].lines if line.get_label() == "a"]
        np.testing.assert_allclose(solid[0].get_ydata(), [1 / c for c in range(2, 7)])
        assert figure.axes[3].get_title() == "Wasserstein clusters"
    assert_readable(figure, METHODS)


def test_panels_fill_several_rows():
    keys = [f"{space}, {noise}" for space in ("mirrored", "alike") for noise in ("fitted", "fixed", "scaled")]
    table = pd.concat([lines(panel=key) for key in keys])
    figure = cmbo.regret_panels(table, "Rows (test)", {key: key for key in keys}, METHODS, rows=2)
    assert [ax.get_title() for ax in figure.axes] == keys
    rows = [ax.get_subplotspec().rowspan.start for ax in figure.axes]
    assert rows == [0, 0, 0, 1, 1, 1]
    assert [bool(ax.get_ylabel()) for ax in figure.axes] == [True, False, False] * 2
    assert_readable(figure, METHODS)


def test_a_panel_of_many_methods_keeps_its_height():
    figure = cmbo.regret_panels(lines(panel="ucb3"), "One panel (test)", {"ucb3": "UCB 3"}, [])
    figure.draw_without_rendering()
    assert figure.axes[0].get_position().height * figure.get_figheight() > 1.8
    assert_readable(figure, METHODS)


def test_methods_of_one_label_are_one_entry_of_the_legend():
    table = lines(panel="x")
    table = pd.concat([
        table[table["method"] == "rgpe"].assign(method=f"cm_{family}_{number}", panel=family)
        for family in ("wss", "bary") for number in (1, 2)
    ])  # fmt: skip
    figure = cmbo.regret_panels(table, "Clusters (test)", {"wss": "geometric", "bary": "barycenter"}, [])
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["1-C (no clustering)", "2-C"]


def test_ranks_and_solved_shares():
    groups = {"a": "(a) one", "b": "(b) others"}
    table = pd.concat([lines(group=g, acquisition=a) for g in groups for a in ("pooled", "ucb3", "ei")])
    figure = cmbo.rank_and_solved(table, table.assign(mean=table["mean"] / 2), "Ranks (test)", groups, ["rgpe"])
    assert len(figure.axes) == 12 and figure.get_figwidth() <= style.WIDEST
    assert [ax.get_title() for ax in figure.axes[::2]] == [
        f"{group}, {scope}" for group in groups.values() for scope in ("pooled", "UCB 3", "EI")
    ]
    assert [len(ax.collections) for ax in figure.axes] == [1] * 12, "bands of the chosen methods alone"
    assert [ax.get_ylabel() for ax in figure.axes[:2]] == ["average rank", "share solved"]
    own = table[(table["group"] == "b") & (table["acquisition"] == "ei") & (table["method"] == "rgpe")]
    drawn = {line.get_label(): line for line in figure.axes[11].lines}
    np.testing.assert_allclose(drawn["RGPE"].get_ydata(), own["mean"] / 2)
    assert_readable(figure, METHODS)
