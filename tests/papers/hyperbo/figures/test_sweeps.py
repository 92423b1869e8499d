"""Figures of varied training data show what their tables hold, with room for every text."""

import itertools

import numpy as np
import pandas as pd
import pytest

from metabo import metrics, plots
from metabo.metrics import Runs
from metabo.papers.hyperbo.figures import sweeps as drawings
from metabo.plan import registry
from metabo.plots import look, style
from tests.readable import assert_readable

METHODS = ["ablr", "fsbo", "h_nll", "h_ekl"]
ALONE = ["stboh", "stbo", "rand"]


def sweep(methods=METHODS, alone=ALONE, sizes=(4, 20, 100, 200, 512), zero=False):
    """Curves (the last method ends at 187), references, and slices at 4 and 200."""
    rng = np.random.default_rng(0)
    curves, slices = [], []
    for i, method in enumerate(methods):
        own = [s for s in sizes if s <= 187] + [187] if method == "h_ekl" else list(sizes)
        median = (1 + i) / np.log(1 + np.array(own))
        frame = pd.DataFrame(
            {"method": method, "size": own, "median": median, "low": 0.8 * median, "high": 1.3 * median}
        )
        curves.append(frame.assign(low=0.0) if zero and i == 0 else frame)
    for size, method in itertools.product((4, 200), [*methods, *alone]):
        slices.append(pd.DataFrame({"size": size, "method": method, "regret": rng.random(3) + 0.1}))
    level = np.arange(1.0, len(alone) + 1) / 5
    references = pd.DataFrame({"method": alone, "median": level, "low": 0.9 * level, "high": 1.1 * level})
    return pd.concat(curves), references, pd.concat(slices)


def test_sweep_figure():
    curves, references, slices = sweep()
    figure = drawings.sweep_figure(curves, references, slices, "points", "Points (test)", "simple regret")
    main, few, many = figure.axes
    assert main.get_xscale() == "log" and main.get_xlabel() == "points per training task, at most"
    assert main.get_ylabel() == "simple regret,\nmean over tasks"
    assert [few.get_title(), many.get_title()] == ["4 points a task", "200 points a task"]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [look.of(m).label for m in [*METHODS, *ALONE]]
    for line, method in zip(main.lines, METHODS, strict=False):
        rows = curves[curves["method"] == method]
        np.testing.assert_array_equal(line.get_xydata(), rows[["size", "median"]])
    across = [line for line in main.lines[len(METHODS) :] if len(line.get_xdata()) == 2]
    assert [line.get_ydata()[0] for line in across] == references["median"].tolist()
    ticks = dict(zip(main.get_xticks(), [t.get_text() for t in main.get_xticklabels()], strict=True))
    assert ticks == {4: "4", 20: "20", 100: "100", 200: "200", 512: "512 (all)"}, "187 is too near to 200"
    assert main.get_xlim()[0] < 4 and main.get_xlim()[1] > 512
    shown = [behind.get_segments()[0][0, 1] for behind in many.collections if behind.get_zorder() == 2]
    at = slices[slices["size"] == 200].groupby("method", sort=False)["regret"].median()
    assert shown == pytest.approx(at.tolist())
    assert_readable(figure, [*METHODS, *ALONE])


def test_sweep_figure_of_tasks_without_violins_and_with_zeros():
    curves, references, _ = sweep(sizes=(3, 8, 13, 18, 23), zero=True)
    figure = drawings.sweep_figure(curves, references, pd.DataFrame(), "tasks", "Tasks (test)", "normalised regret")
    (ax,) = figure.axes
    assert ax.get_xscale() == "linear" and ax.get_xlabel() == "training tasks" and ax.get_yscale() == "symlog"
    assert_readable(figure, [*METHODS, *ALONE])


def test_sweep_figure_with_one_size_and_no_reference():
    curves, references, slices = sweep(sizes=(7,), methods=["fsbo"], alone=[])
    figure = drawings.sweep_figure(curves, references, slices, "points", "Points (test)")
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["7 (all)"]
    assert_readable(figure, ["fsbo"])


def test_every_method_fits_into_the_legend():
    """The ten methods of the paper, without violins: the narrowest figure."""
    trained = [m for m in ("mimo", "rfgp", "maf", *METHODS) if m in registry.methods()]
    curves, references, _ = sweep(trained)
    figure = drawings.sweep_figure(curves, references, pd.DataFrame(), "points", "Points (test)")
    assert_readable(figure, [*trained, *ALONE])


@pytest.mark.parametrize("panels", [[""], ["svm_8", "rpart_6"]])
def test_three_views(panels):
    rng = np.random.default_rng(1)
    tables = {"profile": [], "curve": [], "rank": []}
    for panel in panels:
        values = {m: np.minimum.accumulate(rng.exponential(size=(3, 2, 4, 30)), -1) for m in [*METHODS, *ALONE]}
        runs = Runs(values, dict.fromkeys(values, (0, 1, 2)), tuple("abcd"), np.arange(1, 31), frozenset())
        tables["profile"].append(metrics.performance_profiles(runs, [0.05]).assign(panel=panel))
        tables["curve"].append(metrics.regret_curves(runs).assign(panel=panel))
        tables["rank"].append(metrics.ranks(runs).assign(panel=panel))
    profiles, curves, ranks = (pd.concat(parts) for parts in tables.values())
    figure = drawings.three_views(profiles, curves, ranks, "Three views (test)", "normalised regret")
    assert len(figure.axes) == 3 * len(panels)
    for i, panel in enumerate(panels):
        for ax, table, column in zip(
            figure.axes[3 * i : 3 * i + 3], (profiles, curves, ranks), ("fraction", "median", "mean"), strict=True
        ):
            for line, method in zip(ax.lines, [*METHODS, *ALONE], strict=False):
                rows = table[(table["panel"] == panel) & (table["method"] == method)]
                np.testing.assert_array_equal(line.get_ydata(), rows[column])
        assert not figure.axes[3 * i + 2].collections, "bands of ranks would cover each other"
    assert [ax.get_title().replace("\n", " ") for ax in figure.axes[:3]] == [
        "fraction of tasks solved, C = 0.05",
        "normalised regret, mean over tasks",
        "mean rank of this regret (1 = lowest)",
    ]
    assert [ax.get_ylabel() for ax in figure.axes[::3]] == panels
    assert figure.get_figwidth() <= style.WIDEST
    assert [bool(ax.get_xlabel()) for ax in figure.axes] == [False] * 3 * (len(panels) - 1) + [True] * 3
    assert_readable(figure, [*METHODS, *ALONE])


def test_twins_share_colour_and_marker_but_one_is_hollow_with_other_dashes():
    for method in METHODS:
        whole, less = look.of(method), look.of(f"{method}@held_out_points_100")
        assert less.label == f"{whole.label}-100" and less.hollow and not whole.hollow
        assert (less.colour, less.marker) == (whole.colour, whole.marker) and less.dashes != whole.dashes
        assert look.of(f"{method}@held_out_sweep") == whole
    assert look.of("h_nll-ei@others_tasks_8").label == "H-NLL (EI), 8 tasks"
    assert look.of("h_nll@crossed_matched_candidates").label == "H-NLL, matched points, matched candidates"


def test_dashes_of_reduced_priors_are_no_methods_own():
    own = {tuple(registry.method(m).dashes) for m in registry.methods()}
    assert not own & set(look.REDUCED) and not set(look.DASHES) & set(look.REDUCED)


def test_regret_figure_with_twins_fits():
    names = [name for m in METHODS for name in (m, f"{m}@held_out_points_100")]
    rng = np.random.default_rng(2)
    values = {m: np.minimum.accumulate(rng.exponential(size=(3, 1, 4, 30)), -1) for m in names}
    runs = Runs(values, dict.fromkeys(values, (0, 1, 2)), tuple("abcd"), np.arange(1, 31), frozenset())
    figure = plots.regret_figure(metrics.regret_curves(runs), metrics.regret_slices(runs, [1, 30]), "Twins (test)")
    labels = [t.get_text() for t in figure.legends[0].get_texts()]
    assert labels[:2] == ["ABLR", "ABLR-100"]
    assert figure.legends[0].get_title().get_text().endswith("\nHollow markers: priors on less training data.")
    for drawn in (figure.axes[0].lines, figure.legends[0].get_lines()):
        assert [line.get_markerfacecolor() for line in drawn[:2]] == [look.of("ablr").colour, "white"]
    assert_readable(figure, names)
