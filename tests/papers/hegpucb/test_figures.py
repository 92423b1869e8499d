"""Figures of HE-GP-UCB: every line, band and label is there."""

import io

import numpy as np
import pandas as pd
import pytest

from metabo.errors import ConfigError
from metabo.papers.hegpucb import figures as hegpucb
from metabo.papers.hegpucb import schematics as hegpucb_schematics
from metabo.papers.hegpucb.studies import bands
from metabo.plots import look

METHODS = ["mle", "he_gp_ucb", "uniform"]


def curves(problems=("lengthscale", "mean"), measures=("simple", "cumulative"), last=7):
    rows = [
        {"problem": p, "profile": "plain", "method": m, "measure": q, "iteration": t, "mean": 1.0 + i / t, "error": 0.1}
        for p in problems for i, m in enumerate(METHODS) for q in measures for t in range(1, last + 1)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_regret_panels():
    left = pd.DataFrame([
        {"problem": p, "profile": "plain", "iteration": t, "alive": 5 - t / 4, "least": 5 - t // 2}
        for p in ("lengthscale", "mean") for t in range(1, 8)
    ])  # fmt: skip
    ticks = {"lengthscale": {"simple": (1.0, 2.0), "cumulative": (2.0, 4.0)},
             "mean": {"simple": (1.0, 2.0), "cumulative": (0.1, 0.2)}}  # fmt: skip
    counts = pd.DataFrame(
        [("lengthscale", "mle", 3.0, 50), ("mean", "mle", 9.5, 100), ("mean", "he_gp_ucb", 7.0, 100)],
        columns=["problem", "method", "distinct", "queries"],
    )
    counts = pd.concat([counts.assign(profile="plain"), counts.assign(profile="figure", distinct=99.0)])
    figure = hegpucb.regret_panels(curves(), left, ticks, "plain", "Title", counts)
    axes = figure.axes
    assert [ax.get_title() for ax in axes] == ["(a) length-scale", "", "", "(d) mean", "", ""]
    regrets = [axes[place] for place in (0, 1, 3, 4)]
    for ax, printed in zip(regrets, (ticks[p][m] for p in ticks for m in ("simple", "cumulative")), strict=True):
        assert len(ax.lines) == 4 and len(ax.collections) == 3
        assert ax.get_ylim()[0] < 0, "the axis hides no regret of 0"
        assert tuple(ax.lines[3].get_ydata()) == printed and ax.get_ylim()[1] > max(printed[1], 2.0)
        assert not ax.texts, "no two lines lie on each other"
    for ax in (axes[2], axes[5]):
        np.testing.assert_allclose(ax.lines[0].get_ydata(), 5 - np.arange(1, 8) / 4)
        np.testing.assert_allclose(ax.lines[1].get_ydata(), 5 - np.arange(1, 8) // 2)
    np.testing.assert_allclose(axes[0].lines[1].get_ydata(), 1 + 1 / np.arange(1, 8))
    band = axes[0].collections[1].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(1 + 1 / 7 - 0.1) and band.max() == pytest.approx(2.1)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:3] == ["MLE (3 to 9.5)", "HE-GP-UCB (7)", "random points"]
    assert figure.legends[0].get_title().get_text() == (
        "In brackets: different points among 50 to 100 queries, mean over runs (least to most of the panels but (c))."
    )
    assert "repaired theorems" in figure.get_suptitle()


def test_lines_that_lie_on_each_other_are_named_and_keep_their_markers_apart():
    own = curves(last=50)
    own["mean"] = own["mean"].where(own["method"] != "he_gp_ucb", 1.0)  # as MLE's
    left = pd.DataFrame({"problem": ["mean"], "profile": ["plain"], "iteration": [1], "alive": [5.0], "least": [5]})
    ticks = {p: {"simple": (0.1, 0.2), "cumulative": (0.1, 0.2)} for p in ("lengthscale", "mean")}
    left = pd.concat([left, left.assign(problem="lengthscale")])
    first = hegpucb.regret_panels(own, left, ticks, "plain", "Title").axes[0]
    assert hegpucb.one_line(own.query("problem == 'mean' and measure == 'simple'"), 0.01) == [["mle", "he_gp_ucb"]]
    assert hegpucb.one_line(curves(("mean",), ("simple",)), 1e-6) == []
    assert [text.get_text() for text in first.texts] == ["MLE =\nHE-GP-UCB"]
    near = own.assign(mean=own["mean"] + 1e-6 * (own["method"] == "he_gp_ucb"))
    drawn = hegpucb.regret_panels(near, left, ticks, "plain", "Title").axes[0]
    assert [text.get_text() for text in drawn.texts] == ["MLE ≈\nHE-GP-UCB"]
    marked = [set(line.get_markevery()) for line in first.lines[:2]]
    assert len(marked[0]) == len(marked[1]) == 6 and not marked[0] & marked[1]


def test_the_note_of_equal_lines_hides_no_other_line():
    """In hegpucb_fig02b HE-GP-UCB runs near the top, where the note would stand."""
    own = curves(problems=("lengthscale",), last=50)
    own["mean"] = own["method"].map({"mle": 0.5, "uniform": 0.5, "he_gp_ucb": 0.95})
    left = pd.DataFrame({
        "problem": ["lengthscale"], "profile": ["plain"], "iteration": [1], "alive": [5.0], "least": [5],
    })  # fmt: skip
    ticks = {"lengthscale": {"simple": (0.1, 0.2), "cumulative": (0.1, 0.2)}}
    figure = hegpucb.regret_panels(own, left, ticks, "plain", "Title")
    figure.draw_without_rendering()
    for ax in figure.axes[:2]:
        (note,) = ax.texts
        low, high = note.get_window_extent().transformed(ax.transData.inverted()).intervaly
        assert note.get_bbox_patch() is None
        assert not any(low < level < high for level in (0.5, 0.95))


def test_tables_name_methods_as_figures_do():
    table = pd.DataFrame({"problem": "mean", "method": ["mle", "h_nll"], "reference": "he_gp_ucb", "value": [1.0, 2.0]})
    shown = hegpucb.labelled(table)
    assert shown["method"].tolist() == ["MLE", "H-NLL"] and set(shown["reference"]) == {"HE-GP-UCB"}
    wide = hegpucb.labelled(table.pivot(index="method", columns="problem", values="value"))
    assert wide.index.tolist() == ["H-NLL", "MLE"] and wide.columns.tolist() == ["mean"]
    across = hegpucb.labelled(table.pivot(index="problem", columns="method", values="value"))
    assert across.columns.tolist() == ["H-NLL", "MLE"] and across.index.tolist() == ["mean"]
    apart = hegpucb.labelled(pd.DataFrame({"profile": ["plain"], "mle": [1.0]}))
    assert apart.columns.tolist() == ["profile", "MLE"]


def test_looks_are_unique_and_registered_methods_have_theirs():
    shown = [name for name in hegpucb.RULES if "stable" not in name]
    looks = [hegpucb.look(name) for name in shown]
    for part in ("label", "colour", "marker", "dashes"):
        assert len({getattr(one, part) for one in looks}) == len(shown)
    assert hegpucb.look("h_nll-ucb3") == look.of("h_nll-ucb3") and hegpucb.look("single_best").label.startswith(
        "single"
    )
    with pytest.raises(ConfigError, match="unknown method 'he_gp'"):
        hegpucb.look("he_gp")


def test_sensitivity_panels():
    rows = [
        {"problem": p, "cell": c, "method": m, "measure": "cumulative", "difference": d, "low": d - 1, "high": d + 1,
         "verdict": v}
        for p in ("period", "mean") for m in ("mle", "expected_ucb")
        for c, (d, v) in enumerate([(-3.0, "lower"), (0.5, "undecided"), (2.0, "higher")])
    ]  # fmt: skip
    settings = {
        "variant": "whole",
        "beta": 1.0,
        "noise": 0.01,
        "standardise": 0,
        "predictive": 0,
        "height": 0.0,
        "width": 0.0,
    }
    settings |= {"measure": "cumulative", "mean": 10.0}
    means = pd.DataFrame([
        settings | {"problem": p, "cell": c, "method": m}
        for p in ("period", "mean") for c in range(3) for m in ("he_gp_ucb", "mle", "expected_ucb")
    ])  # fmt: skip
    figure = hegpucb.sensitivity_panels(pd.DataFrame(rows), means, "Title")
    for ax in figure.axes:
        assert len(ax.get_yticklabels()) == 3 and ax.yaxis_inverted()
        points = np.concatenate([c.get_offsets() for c in ax.collections if len(c.get_offsets()) == 3])
        assert sorted(points[:, 0]) == pytest.approx([-0.3, -0.3, 0.05, 0.05, 0.2, 0.2])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "against ExpectedUCB" in labels and "HE-GP-UCB lower" in labels


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (("text", 2.0, 1e-4, 1, 0, 0.0, 0.0), "text, β = 2, λ = 0.0001, stand."),
        (("hills", 0.0, 1e-2, 0, 1, 1.0, 0.02), "β of the theorem, λ = 0.01, raw, σ with noise, h = 1, w = 0.02"),
    ],
)  # fmt: skip
def test_cells_are_named_by_their_settings(cell, text):
    assert hegpucb.cell_label(*cell) == text


def test_robust_panels():
    table = pd.concat([curves(("lengthscale",), ("cumulative", "simple", "reported"))])
    table = table.assign(method=table["method"].map(dict(zip(METHODS, list(hegpucb.RULES)[-3:], strict=True))))
    function = pd.DataFrame({"x": [0.0, 0.5, 1.0], "value": [0.1, 0.5, 0.2], "worst": [0.0, 0.3, 0.1]})
    run = pd.DataFrame({"method": list(hegpucb.RULES)[-3:], "iteration": 7, "x": [0.2, 0.4, 0.9]})
    names = list(hegpucb.RULES)[-3:]
    counts = pd.DataFrame({"method": names, "distinct": [1.5, 3.0, 7.0], "queries": 7})
    figure = hegpucb.robust_panels(table, function, run, "Title", counts)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [f"{hegpucb.look(m).label} ({n})" for m, n in zip(names, ("1.5", "3", "7"), strict=True)]
    assert figure.legends[0].get_title().get_text() == "In brackets: different points among 7 queries, mean over runs."
    axes = figure.axes
    assert [line.get_xdata()[0] for line in axes[0].lines[2:]] == [0.2, 0.4, 0.9]
    assert [len(ax.lines) for ax in axes[1:]] == [3, 3, 3]


def test_prior_panels():
    names = ["he_pretrained", "single_mean"]
    curve = pd.DataFrame([
        {"method": m, "iteration": t, "mean": 1 / t, "low": 0.5 / t, "high": 2 / t} for m in names for t in range(1, 6)
    ])  # fmt: skip
    tasks = pd.DataFrame({"task": ["a", "b"] * 2, "method": np.repeat(names, 2), "mean": [0.1, 0.2, 0.3, 0.4]})
    counts = pd.DataFrame({"method": names, "distinct": [30.5, 19.8], "queries": 100})
    figure = hegpucb.prior_panels(curve, tasks, {"a": "task A"}, "Title", counts)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [label.rpartition(" (")[2] for label in labels] == ["30.5)", "19.8)"]
    left, right = figure.axes
    assert len(left.lines) >= 2 and [t.get_text() for t in right.get_yticklabels()] == ["task A", "b"]
    np.testing.assert_allclose(right.lines[1].get_xdata(), [0.3, 0.4])


@pytest.mark.parametrize("last", [2, 20, 50, 100])
def test_every_line_has_its_markers_on_it(last):
    """A marker beyond the last iteration stops the figure when it is saved, not when it is drawn."""
    names, iterations = [*hegpucb.RULES, *hegpucb.SINGLES], np.arange(1, last + 1)
    curve = pd.concat(
        pd.DataFrame({"method": m, "iteration": iterations, "mean": 1 / iterations, "low": 0.1, "high": 1.0})
        for m in names
    )
    tasks = pd.DataFrame({"task": "a", "method": names, "mean": 0.1})
    figure = hegpucb.prior_panels(curve, tasks, {}, "Title")
    figure.savefig(io.BytesIO())
    marks = [line.get_markevery() for line in figure.axes[0].lines[: len(names)]]
    assert all(min(places) >= 0 and max(places) < last for places in marks)
    assert last < 100 or len({tuple(places) for places in marks}) == len(names), "lines on each other stay in sight"


def test_drawings():
    figure = hegpucb_schematics.elimination_figure(bands.elimination_example(), "T")
    assert len(figure.axes[0].lines) == 5 and len(figure.axes[0].collections) == 2
    figure = hegpucb_schematics.misfit_figure(bands.misfit_example(), "T")
    assert len(figure.axes[0].lines) == 3
    function = pd.DataFrame({"variant": ["a"] * 3 + ["b"] * 3, "x": [0, 1, 2] * 2, "value": [0, 0.1, 2, 0, 0.1, 0.2]})
    axes = hegpucb_schematics.period_figure(function, {"a": "A", "b": "B"}, "T").axes
    assert np.isnan(axes[0].lines[0].get_ydata()).tolist() == [False, False, True], "no line across a jump"
    assert [ax.get_title() for ax in axes] == ["A", "B"]
    grid = pd.DataFrame({"x1": [0.0, 0.0, 1.0, 1.0], "x2": [0.0, 1.0, 0.0, 1.0], "value": [1.0, 2.0, 3.0, 4.0]})
    image = hegpucb_schematics.decomposition_figure(grid, "T").axes[0].collections[0]
    np.testing.assert_array_equal(np.asarray(image.get_array()).ravel(), [1, 3, 2, 4])
    mean = pd.DataFrame({"u": [0, 0, 3, 3], "x": [0, 1, 0, 1], "value": [0, 1, 2, 3]})
    axes = hegpucb_schematics.means_figure(mean, {0: "first", 3: "last"}, "T").axes
    np.testing.assert_array_equal(axes[1].lines[0].get_ydata(), [2, 3])
