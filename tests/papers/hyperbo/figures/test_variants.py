"""Figures of variants, search spaces and the crossed study show what their tables hold, and their texts have room."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from metabo import metrics
from metabo.errors import ConfigError
from metabo.metrics import Runs
from metabo.papers.hyperbo.figures import crossing as crossing_figures
from metabo.papers.hyperbo.figures import spaces as spaces_figures
from metabo.papers.hyperbo.figures import sweeps as sweeps_figures
from metabo.papers.hyperbo.figures import variants
from metabo.papers.hyperbo.metrics import crossing
from metabo.plan import catalogue, registry
from metabo.plots import look
from tests.readable import assert_readable

SIX = ["rand", "stbo", "stboh", "ablr", "fsbo", "h_nll"]


def runs(methods, zero=False) -> Runs:
    """Falling regrets of 3 priors on 4 tasks, 20 iterations; the first method finds the optimum if `zero`."""
    rng = np.random.default_rng(0)
    values = {
        m: np.minimum.accumulate(rng.exponential(size=(3, 1, 4, 20)) / (1 + i), -1) for i, m in enumerate(methods)
    }
    if zero:
        values[methods[0]] = values[methods[0]] * (np.arange(20) < 10)
    return Runs(values, dict.fromkeys(methods, (0, 1, 2)), tuple("abcd"), np.arange(1, 21), frozenset())


def test_panels_and_lines_of_acquisitions():
    names = ["ablr", "ablr-ei", "ablr-ucb3", "h_nll", "h_nll-ei"]
    assert [variants.panel(name) for name in names] == ["ABLR"] * 3 + ["H-NLL"] * 2
    assert [variants.line(name, "acquisition") for name in names] == ["pi", "ei", "ucb3", "pi", "ei"]
    assert [look.of(name).label for name in ("pi", "ei", "ucb3")] == ["PI", "EI", "UCB 3"]
    with pytest.raises(ConfigError, match="unknown quantity that varies within a panel 'acquisitions'"):
        variants.line("ablr", "acquisitions")


def test_panels_and_lines_of_structures():
    names = [name for name in registry.methods() if registry.method(name).own_features]
    assert {variants.panel(name) for name in names} == {"H-NLL", "H-EKL"}
    for name in names:
        drawn = variants.line(name, "structure")
        assert look.of(drawn) == look.of(name) and drawn == variants.line(drawn, "structure")
    assert variants.line("h_nll_zero_4", "structure") == variants.line("h_ekl_zero_4", "structure")
    assert len({variants.line(name, "structure") for name in names}) == 10


def test_every_panel_of_the_catalogue_has_the_same_lines():
    """Figures 23 to 26 share one legend, so every method has the same variants."""
    for id in ("hyperbo_fig23", "hyperbo_fig24", "hyperbo_fig25", "hyperbo_fig26"):
        entry = catalogue.load()[id]
        varied = entry.parameters.get("varied", "acquisition")
        panels = {}
        for name in entry.inputs.trajectories:
            panels.setdefault(variants.panel(name), []).append(variants.line(name, varied))
        assert len({tuple(lines) for lines in panels.values()}) == 1, id


def test_views_of_nine_structures_are_readable():
    names = catalogue.load()["hyperbo_fig25"].inputs.trajectories
    tables = []
    for make in (lambda r: metrics.performance_profiles(r, [0.1]), metrics.regret_curves, metrics.ranks):
        frames = []
        for panel in ("H-NLL", "H-EKL"):
            mine = runs([name for name in names if variants.panel(name) == panel])
            frames.append(make(mine).assign(panel=panel))
        table = pd.concat(frames, ignore_index=True)
        tables.append(table.assign(method=[variants.line(name, "structure") for name in table["method"]]))
    figure = sweeps_figures.three_views(*tables, "Structures (test)")
    assert len(figure.axes) == 6 and len(figure.legends[0].get_texts()) == 9
    assert_readable(figure, names)


def spaces(kind: str, count: int, zero=False) -> tuple[pd.DataFrame, dict[str, str]]:
    make = {
        "profile": lambda r: metrics.performance_profiles(r, [0.1]), "curve": metrics.regret_curves,
        "rank": metrics.ranks,
    }[kind]  # fmt: skip
    titles = {f"space_{i}": f"space_{i}, {i + 1} test tasks" for i in range(count)}
    frames = [make(runs(SIX, zero)).assign(space=space) for space in titles]
    return pd.concat(frames, ignore_index=True), titles


@pytest.mark.parametrize(("kind", "count"), [("profile", 16), ("curve", 6), ("rank", 4), ("curve", 1)])
def test_space_panels(kind, count):
    table, titles = spaces(kind, count, zero=kind == "curve" and count > 1)
    figure = spaces_figures.space_panels(table, kind, titles, "Spaces (test)")
    shown = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in shown] == list(titles.values())
    column = {"profile": "fraction", "curve": "median", "rank": "mean"}[kind]
    for ax, space in zip(shown, titles, strict=True):
        mine = table[table["space"] == space]
        lines = {line.get_label(): line for line in ax.lines}
        for method in SIX:
            drawn = lines[look.of(method).label]
            np.testing.assert_array_equal(drawn.get_ydata(), mine.loc[mine["method"] == method, column])
            assert drawn.get_color() == look.of(method).colour
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [look.of(m).label for m in SIX]
    label = spaces_figures.KINDS[kind].format(regret="simple regret")
    if count == 1:  # a label of the whole figure would be taller than one row of panels
        assert shown[0].get_ylabel() == label and not figure.get_supylabel()
    else:
        assert figure.get_supylabel() == label.replace("\n", " ")
    assert all(bool(ax.collections) == (kind == "curve") for ax in shown), "bands of ranks would cover each other"
    assert_readable(figure, SIX)


def test_an_unknown_kind_of_panel_is_refused():
    with pytest.raises(ConfigError, match=r"unknown kind of panel 'curves'\. Did you mean 'curve'"):
        spaces_figures.space_panels(*spaces("curve", 1)[:1], "curves", {"space_0": "a"}, "T")


def study(spread: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cells of five learners in all settings, regrets over a range of `spread`, and shares of the variance."""
    learners = [("h_ekl", "matched"), ("h_nll", "matched"), ("h_nll", "all"), ("ablr", "matched"), ("ablr", "all")]
    rows = []
    for (i, (method, points)), pool, steps, acquisition in itertools.product(
        enumerate(learners), ("all", "matched"), ("more", "fewer"), ("pi", "ei", "ucb3")
    ):
        mean = 0.1 * spread ** (i / 4)
        cell = (f"{method}, {points} points", method, points, pool, steps, acquisition)
        rows.append((*cell, mean, mean - 0.12, mean + 0.12))  # the lower end of some is below 0
    cells = pd.DataFrame(rows, columns=[*crossing.FACTORS, "mean", "low", "high"])
    parts = [
        {"learner": learner, "component": name, "share": share}
        for learner in dict.fromkeys(cells["learner"])
        for name, share in zip(crossing.COMPONENTS, (0.6, 0.1, 0.3, np.nan), strict=True)
    ]
    return cells, pd.DataFrame(parts)


@pytest.mark.parametrize("spread", [2.0, 100.0])
def test_crossing_figure(spread):
    cells, shares = study(spread)
    steps = {"more": "H-EKL 100; H-NLL, ABLR 1,000", "fewer": "H-EKL 10"}
    figure = crossing_figures.crossing_figure(cells, shares, "Crossed (test)", "simple regret, mean", steps)
    upper, lower = (part.legends[0] for part in figure.subfigs)
    assert [t.get_text() for t in upper.get_texts()][2:] == [f"{level} steps ({said})" for level, said in steps.items()]
    assert [t.get_text() for t in lower.get_texts()] == ["tasks", "priors", "task × prior"], "no seeds, no entry"
    *panels, bars = figure.axes
    assert len(panels) == 6 and panels[0].get_title() == "PI, all candidates"
    assert panels[-1].get_title() == "UCB 3, matched candidates"
    for ax in panels:
        points = [line for line in ax.lines if line.get_marker() in ("s", "o")]
        assert len(points) == 10 and ax.get_yscale() == ("log" if spread > 5 else "linear")
        low, high = ax.get_ylim()
        for point in points:
            assert low < point.get_ydata()[0] < high
        hollow = [to_rgba(p.get_markerfacecolor()) == to_rgba("white") for p in points]
        assert sum(hollow) == 5
        assert {p.get_color() for p in points} == {look.of(m).colour for m in ("h_ekl", "h_nll", "ablr")}
    assert [t.get_text() for t in bars.get_yticklabels()] == [
        crossing_figures.learner_label(x) for x in cells["learner"].unique()
    ]
    widths = np.array([patch.get_width() for patch in bars.patches]).reshape(5, 4)
    np.testing.assert_allclose(widths, np.broadcast_to([0.6, 0.1, 0.3, 0.0], (5, 4)))
    slanted = [t.get_text() for t in panels[-1].get_xticklabels()]
    labels = {label.replace(",\n", ", ") for label in slanted}
    assert labels == {crossing_figures.learner_label(x) for x in cells["learner"].unique()}


def test_methods_of_one_number_of_steps_share_it():
    rows = [("h_ekl", "more", 100), ("h_nll", "more", 1000), ("h_nll", "more", 1000), ("ablr", "more", 1000)]
    trained = pd.DataFrame([*rows, ("ablr", "fewer", None)], columns=["method", "steps", "number"])
    said = crossing_figures.steps_taken(trained.astype({"number": "Int64"}))
    assert said == {"more": "H-EKL 100; H-NLL, ABLR 1,000"}


def test_components_have_the_names_of_the_metric():
    from metabo.papers.hyperbo.figures.crossing import COMPONENTS

    assert tuple(COMPONENTS) == crossing.COMPONENTS
    assert crossing_figures.learner_label("h_ekl, matched points") == "H-EKL, matched points"
