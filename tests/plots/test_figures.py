"""Figures show what the table holds, with labels and legends, and no text lies on other text."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from metabo import metrics, plots
from metabo.metrics import Pearson, Runs
from metabo.papers.hyperbo.figures import correlations as correlations_figures
from metabo.papers.hyperbo.figures import online as online_figures
from metabo.papers.hyperbo.figures import studies
from metabo.plots import look, style
from metabo.plots.curves import asked

METHODS = ["rand", "stbo", "stboh", "ablr", "fsbo", "h_nll", "h_ekl"]


@pytest.fixture
def runs() -> Runs:
    rng = np.random.default_rng(0)
    values = {
        m: np.minimum.accumulate(rng.exponential(size=(4, 2, 5, 30)) / (1 + i), -1) for i, m in enumerate(METHODS)
    }
    return Runs(values, dict.fromkeys(METHODS, (0, 1, 2, 3)), tuple("abcde"), np.arange(1, 31), frozenset())


def drawn_texts(figure: Figure) -> list[tuple[str, object]]:
    """Visible texts with their boxes, after layout."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    outside = {id(text) for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for text in _beyond(axis)}
    found = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and id(t) not in outside]
    return [(t.get_text(), t.get_window_extent(renderer)) for t in found]


def _beyond(axis) -> list[Text]:
    """Tick labels beyond the axis limits, which matplotlib keeps but does not draw."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [text for t in ticks if not low <= t.get_loc() <= high for text in (t.label1, t.label2)]


def assert_readable(figure: Figure) -> None:
    """No two texts overlap by more than a hair. Slanted method names are left out: their boxes cross, they do not."""
    texts = drawn_texts(figure)
    assert len(texts) > 5
    for (a, box_a), (b, box_b) in itertools.combinations(texts, 2):
        both_methods = {a, b} <= {look.of(m).label for m in METHODS}
        width = min(box_a.x1, box_b.x1) - max(box_a.x0, box_b.x0)
        height = min(box_a.y1, box_b.y1) - max(box_a.y0, box_b.y0)
        assert both_methods or width < 1 or height < 1, (a, b)


def legend_labels(figure: Figure) -> list[str]:
    return [t.get_text() for t in figure.legends[0].get_texts()]


def test_regret_figure(runs):
    curves, slices = metrics.regret_curves(runs), metrics.regret_slices(runs, [1, 30])
    figure = plots.regret_figure(curves, slices, "Regret (test)", "simple regret")
    curve, first, last = figure.axes
    assert curve.get_xlabel() == "BO iteration" and curve.get_ylabel() == "simple regret,\nmean over tasks"
    assert [first.get_title(), last.get_title()] == ["iteration 1", "iteration 30"]
    assert legend_labels(figure) == [look.of(m).label for m in METHODS]
    assert curve.get_xscale() == "log" and curve.get_yscale() == "log"
    for drawn, method in zip(curve.lines, METHODS, strict=True):
        np.testing.assert_array_equal(drawn.get_ydata(), curves.loc[curves["method"] == method, "median"])
        assert drawn.get_color() == look.of(method).colour
    low, high = curve.get_ylim()
    assert low < curves["low"].min() and high > curves["high"].max()
    assert_readable(figure)


def test_legends_of_ranks_and_profiles_count_different_queries_too(runs):
    distinct = {METHODS[0]: 8.6, METHODS[1]: [3.0, 30.0]}  # of several panels: the least and the most
    profiles = metrics.performance_profiles(runs, [0.1])
    for figure in (
        plots.rank_curves(metrics.ranks(runs), "T", distinct), plots.profile_panels(profiles, "T", distinct=distinct)
    ):  # fmt: skip
        labels = [look.of(m).label for m in METHODS[:3]]
        assert legend_labels(figure)[:3] == [f"{labels[0]} (8.6)", f"{labels[1]} (3 to 30)", labels[2]]
        assert "mean over runs (least to most of the panels)." in figure.legends[0].get_title().get_text()
        assert_readable(figure)


def test_the_legend_counts_different_queries(runs):
    curves, slices = metrics.regret_curves(runs), metrics.regret_slices(runs, [30])
    figure = plots.regret_figure(curves, slices, "Regret (test)", distinct={METHODS[0]: 8.6, METHODS[1]: 30.0})
    labels = [look.of(m).label for m in METHODS[:3]]
    assert legend_labels(figure)[:3] == [f"{labels[0]} (8.6)", f"{labels[1]} (30)", labels[2]]
    said = figure.legends[0].get_title().get_text()
    assert said.endswith("\nIn brackets: different candidates among 30 queries, mean over runs.")
    assert_readable(figure)


def test_panels_with_unlike_numbers_of_queries_say_so():
    _, line = asked({"mle": [3.9, 9.3]}, 100, what="points", least=50)
    assert line.startswith("In brackets: different points among 50 to 100 queries, mean over runs (least to most")
    assert "among 100 queries" in asked({"mle": [3.9]}, 100, least=100)[1]


def test_a_number_of_queries_that_all_share_is_said_once(runs):
    curves, slices = metrics.regret_curves(runs), metrics.regret_slices(runs, [30])
    figure = plots.regret_figure(curves, slices, "Regret (test)", distinct=dict.fromkeys(METHODS, 30.0))
    assert legend_labels(figure) == [look.of(m).label for m in METHODS]
    assert figure.legends[0].get_title().get_text().endswith("\nEvery run queries 30 different candidates.")
    assert figure.axes[1].get_ylabel() == "simple regret"


def test_a_long_label_widens_its_own_column_of_the_legend_only():
    assert style._columns([4] * 6, 6.3) == 6 and style._columns([4] * 7, 6.3) == 4
    assert style._columns([4] * 11 + [23], 6.3) == 4 and style._columns([90], 6.3) == 1


def test_a_figure_of_every_kind_can_be_read_at_the_width_of_a_column(runs):
    """Text of 9 points is about 5 at 3.3 inches if the figure is no wider than WIDEST."""
    curves, slices = metrics.regret_curves(runs), metrics.regret_slices(runs, [1, 30])
    profiles = metrics.performance_profiles(runs, [0.5, 0.1, 0.05])
    halves = pd.concat([curves.assign(split="held_out"), curves.assign(split="new_rows")], ignore_index=True)
    drawn = [
        plots.regret_figure(curves, slices, "T"),
        plots.profile_panels(profiles, "T"),
        plots.rank_curves(metrics.ranks(runs), "T"),
        plots.split_panels(halves, "T"),
    ]
    for figure in drawn:
        assert figure.get_figwidth() <= style.WIDEST
        assert_readable(figure)


def test_few_repetitions_all_stay_in_sight(runs):
    """A symbol for the median over the dots would hide the middle one of three."""
    few = metrics.regret_slices(runs, [30])
    panel = plots.regret_figure(metrics.regret_curves(runs), few, "T").axes[1]
    for dots, method in zip(panel.lines, METHODS, strict=True):
        np.testing.assert_array_equal(np.sort(dots.get_ydata()), np.sort(few.loc[few["method"] == method, "regret"]))
        assert all(other.get_zorder() < dots.get_zorder() for other in panel.collections)


def test_a_regret_axis_of_less_than_two_decades_has_plain_numbers():
    ax = Figure().subplots()
    style.regret_axis(ax, np.array([0.15, 1.8]))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0.1", "0.2", "0.5", "1", "2"]


def test_few_repetitions_are_dots_and_many_a_density(runs):
    few = metrics.regret_slices(runs, [30])
    many = pd.concat([few.assign(regret=few["regret"] * (1 + 0.01 * n)) for n in range(4)], ignore_index=True)
    for slices, densities in ((few, 0), (many, len(METHODS))):
        panel = plots.regret_figure(metrics.regret_curves(runs), slices, "Regret (test)").axes[1]
        filled = [drawn for drawn in panel.collections if isinstance(drawn, PolyCollection)]
        assert len(filled) == densities


def test_zeros_stay_on_the_regret_axis(runs):
    solved = runs.values["h_nll"] * (runs.iterations < 20)
    runs = Runs({**runs.values, "h_nll": solved}, runs.prior_seeds, runs.tasks, runs.iterations, runs.single_task)
    curves, slices = metrics.regret_curves(runs), metrics.regret_slices(runs, [1, 30])
    figure = plots.regret_figure(curves, slices, "Regret (test)")
    curve, first, last = figure.axes
    assert (curve.get_yscale(), first.get_yscale(), last.get_yscale()) == ("symlog", "log", "symlog")
    line = next(a for a in curve.lines if a.get_label() == "H-NLL")
    assert (line.get_ydata()[19:] == 0).all()
    FigureCanvasAgg(figure).draw()
    for ax in (curve, last):
        assert ax.get_ylim()[0] < 0
        assert next(t.get_text() for t in ax.get_yticklabels()) == "0" and ax.get_yticks()[0] == 0
        bottom, top = ax.get_window_extent().intervaly
        assert bottom < ax.transData.transform((1, 0))[1] < top
        assert any("linear" in t.get_text() for t in ax.texts)
    smallest = curves.loc[curves["low"] > 0, "low"].min()
    assert curve.yaxis.get_transform().linthresh <= smallest, "positive values must lie on the logarithmic part"
    assert_readable(figure)


def test_all_zero_regrets_still_draw(runs):
    zero = Runs({m: 0 * v for m, v in runs.values.items()}, runs.prior_seeds, runs.tasks, runs.iterations, frozenset())
    figure = plots.regret_figure(metrics.regret_curves(zero), metrics.regret_slices(zero, [1]), "Regret (test)")
    FigureCanvasAgg(figure).draw()
    assert all(ax.get_ylim()[0] < 0 < ax.get_ylim()[1] for ax in figure.axes)


def test_one_repetition_and_one_iteration_still_draw():
    runs = Runs({"rand": np.ones((1, 1, 2, 1))}, {"rand": (0,)}, ("a", "b"), np.array([1]), frozenset())
    figure = plots.regret_figure(metrics.regret_curves(runs), metrics.regret_slices(runs, [1]), "Regret (test)")
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == 2


def test_loss_axis_of_a_landscape_spans_half_to_six_times_the_lowest_loss():
    x = np.linspace(-1, 1, 5)
    shape = {"constant": (x, 2.0, 3.0), "lengthscale": (np.exp(x), 5.0, 4.0)}
    curves = [
        pd.DataFrame({"parameter": name, "x": at, "ekl": ekl + 50 * x**2, "nll_scaled": nll + 90 * x**2})
        for name, (at, ekl, nll) in shape.items()
    ]
    figure = studies.landscape_panels(pd.concat(curves), "T")
    assert [ax.get_ylim() for ax in figure.axes] == [(1.0, 12.0), (2.0, 24.0)]
    assert [ax.get_xscale() for ax in figure.axes] == ["linear", "log"]


def test_split_panels_share_their_axes(runs):
    halves = runs.select(METHODS[:2])
    lower = metrics.regret_curves(halves).assign(split="new_rows")
    lower[["median", "low", "high"]] *= 0.01
    curves = pd.concat([metrics.regret_curves(runs).assign(split="held_out"), lower], ignore_index=True)
    figure = plots.split_panels(curves, "Two splits (test)", "normalised regret")
    left, right = figure.axes
    assert [left.get_title(), right.get_title()] == ["split held_out", "split new_rows"]
    named = plots.split_panels(curves, "Two splits (test)", titles={"held_out": "queries may repeat"})
    assert [ax.get_title() for ax in named.axes] == ["queries may repeat", "split new_rows"]
    assert left.get_ylim() == right.get_ylim() and left.get_xlim() == right.get_xlim()
    assert left.get_xscale() == left.get_yscale() == "log"
    assert left.get_ylabel() == "normalised regret, mean over tasks" and not right.get_ylabel()
    assert (len(left.lines), len(right.lines)) == (len(METHODS), 2)
    for drawn, method in zip(right.lines, METHODS[:2], strict=True):
        np.testing.assert_array_equal(drawn.get_ydata(), lower.loc[lower["method"] == method, "median"])
    assert legend_labels(figure) == [look.of(m).label for m in METHODS]
    assert_readable(figure)


def test_profile_panels(runs):
    profiles = metrics.performance_profiles(runs, [0.05, 0.01, 0.001])
    figure = plots.profile_panels(profiles, "Profiles (test)")
    assert [ax.get_title() for ax in figure.axes] == ["C = 0.05", "C = 0.01", "C = 0.001"]
    assert figure.axes[0].get_ylabel() == "fraction of tasks solved"
    assert legend_labels(figure) == [look.of(m).label for m in METHODS]
    expected = profiles[(profiles["threshold"] == 0.01) & (profiles["method"] == "h_ekl")]["fraction"]
    np.testing.assert_array_equal(figure.axes[1].lines[-1].get_ydata(), expected)
    assert_readable(figure)


def test_profile_panels_with_each_tasks_own_threshold(runs):
    profiles = metrics.performance_profiles(runs, [0.05, 0.01, 0.001])
    resolved = metrics.profile_of_resolved(runs, dict.fromkeys(runs.tasks, 0.1))
    figure = plots.profile_panels(profiles, "Profiles (test)", resolved)
    assert len(figure.axes) == 4 and "resolves" in figure.axes[3].get_title()
    last = resolved.loc[resolved["method"] == "h_ekl", "fraction"]
    np.testing.assert_array_equal(figure.axes[3].lines[-1].get_ydata(), last)
    assert_readable(figure)


def test_rank_curves(runs):
    ranks = metrics.ranks(runs)
    figure = plots.rank_curves(ranks, "Ranks (test)")
    above, below = figure.axes
    np.testing.assert_array_equal(above.lines[2].get_ydata(), ranks.loc[ranks["method"] == "stboh", "mean"])
    assert not above.collections, "bands of all methods would cover each other"
    assert below.get_title() == "iterations 1, 10, 30 (left to right), mean ± one standard deviation"
    rows = ranks[(ranks["method"] == "stboh") & ranks["iteration"].isin([1, 10, 30])]
    drawn = below.containers[2]
    np.testing.assert_allclose(drawn.lines[0].get_ydata().astype(float), rows["mean"])
    assert (np.diff(drawn.lines[0].get_xdata()) > 0).all() and drawn.lines[0].get_color() == look.of("stboh").colour
    ends = [bar[:, 1] for bar in drawn.lines[2][0].get_segments()]
    np.testing.assert_allclose(ends, np.column_stack([rows["mean"] - rows["std"], rows["mean"] + rows["std"]]))
    assert legend_labels(figure) == [look.of(m).label for m in METHODS]
    assert_readable(figure)


def test_correlation_panels():
    rng = np.random.default_rng(1)
    points = pd.DataFrame({"method": ["ablr", "h_nll"] * 5, "x": 1e5 * rng.random(10), "y": rng.random(10)})
    results = [Pearson(0.5, 0.1, 0.8, 10), Pearson(np.nan, np.nan, np.nan, 10)]
    names = {"x": "Test NLL", "y": "regret"}
    figure = correlations_figures.correlation_panels(
        points, [("x", "y"), ("y", "x")], results, names, "Correlations (test)"
    )
    first, second = figure.axes
    assert first.get_title() == "r = 0.50 (n = 10)" and second.get_title() == "r undefined (n = 10)"
    assert (first.get_xlabel(), first.get_ylabel()) == ("Test NLL", "regret")
    shown = np.concatenate([c.get_offsets() for c in first.collections])
    assert sorted(shown[:, 0]) == pytest.approx(sorted(points["x"]))
    assert legend_labels(figure) == ["ABLR", "H-NLL"]
    assert_readable(figure)


def test_table_figure_and_bold_cells():
    summary = pd.DataFrame(
        {"task": ["a long task name", "a long task name", "t", "t"], "method": ["ablr", "h_nll"] * 2,
         "mean": [1.2345, 1.2301, -0.001, np.nan], "std": [0.1, 0.22, 0.004, np.nan]}
    )  # fmt: skip
    texts, bold = plots.mean_std_cells(summary, 2)
    assert texts.to_numpy().tolist() == [["1.23 ± 0.10", "1.23 ± 0.22"], ["0.00 ± 0.00", "–"]]
    assert bold.to_numpy().tolist() == [[True, True], [True, False]], "ties at the printed precision are all bold"
    assert texts.columns.tolist() == ["ABLR", "H-NLL"] and texts.index.tolist() == ["a long task name", "t"]
    assert plots.mean_std_cells(summary, 3)[1].iloc[0].tolist() == [False, True]
    assert plots.mean_std_cells(summary, 3, lowest=False)[1].iloc[0].tolist() == [True, False]
    figure = plots.table_figure(texts, bold, "A table (test)", "first note\nsecond note")
    weights = {t.get_text(): t.get_weight() for t in figure.axes[0].texts}
    assert weights["1.23 ± 0.22"] == "bold" and weights["–"] == "normal"
    assert_readable(figure)
    box = figure.bbox
    assert all(box.x0 <= b.x0 and b.x1 <= box.x1 and box.y0 <= b.y0 and b.y1 <= box.y1 for _, b in drawn_texts(figure))


def online(methods: list[str], tasks: int = 9, iterations: int = 30) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Curves and infeasible shares: the last method has no value on the last task, starts late and open on the first;
    the first task's values span a factor of 20, the second's a factor of 2."""
    rng = np.random.default_rng(0)
    t = np.arange(1, iterations + 1)
    frames, shares = [], []
    for k in range(tasks):
        for m, method in enumerate(methods):
            median = (1 + m + (20 if k == 0 else 1) / t) * 3 + (30 if k == 1 else 0)
            frame = pd.DataFrame({"task": f"a_dataset CNNPoolReLU {k}", "metric": "validation error rate (%)"}, index=t)
            frame = frame.assign(method=method, iteration=t, median=median, low=0.9 * median, high=1.2 * median)
            if m == len(methods) - 1 and k in (0, tasks - 1):
                frame.loc[t <= (5 if k == 0 else iterations), ["median", "low", "high"]] = np.nan
                frame.loc[(t > 5) & (t < 9), "high"] = np.inf if k == 0 else np.nan
            frames.append(frame)
            of = {"task": frame["task"].iloc[0], "method": method, "queries": 40}
            shares.append({**of, "infeasible": rng.integers(0, 41)})
    return pd.concat(frames, ignore_index=True), pd.DataFrame(shares)


def test_online_panels():
    curves, shares = online(METHODS[:5])
    figure = online_figures.online_panels(curves, shares, "Online (test)")
    total = shares.groupby("method")[["infeasible", "queries"]].sum().to_dict("index")
    labels = {m: online_figures.percent(total[m]["infeasible"] / total[m]["queries"]) for m in METHODS[:5]}
    assert len(figure.axes) == 9
    assert legend_labels(figure) == [f"{look.of(m).label} ({labels[m]})" for m in METHODS[:5]]
    first, second, last = figure.axes[0], figure.axes[1], figure.axes[-1]
    assert (first.get_yscale(), second.get_yscale()) == ("log", "linear")
    assert first.get_title() == "a_dataset CNNPoolReLU 0" and first.get_ylabel() == "validation error rate (%)"
    assert [bool(ax.get_ylabel()) for ax in figure.axes] == [True, False, False] * 3  # one metric in a row
    assert [bool(ax.get_xlabel()) for ax in figure.axes] == [False] * 6 + [True] * 3
    mine = curves[(curves["task"] == first.get_title()) & (curves["method"] == METHODS[4])].dropna()
    np.testing.assert_array_equal(first.lines[4].get_xdata(), mine["iteration"])
    np.testing.assert_array_equal(first.lines[4].get_ydata(), mine["median"])
    band = first.collections[4].get_paths()[0].vertices[:, 1]
    assert band.max() == first.get_ylim()[1], "open at the top where the 80th percentile has no value"
    assert len(last.lines) == 4
    assert [t.get_text() for t in last.texts] == [f"no line: {look.of(METHODS[4]).label}"] and not second.texts
    ticks = [float(t.get_text()) for t in first.get_yticklabels()]
    assert len(ticks) >= 3 and min(ticks) >= first.get_ylim()[0] and max(ticks) <= first.get_ylim()[1]
    assert_readable(figure)


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0 %"), (1 / 432, "<1 %"), (0.0051, "1 %"), (0.5, "50 %"), (431 / 432, ">99 %"), (1.0, "100 %")],
)
def test_a_share_says_none_and_all_only_if_it_is_so(share, said):
    assert online_figures.percent(share) == said


def test_online_panels_with_zeros_one_iteration_and_few_tasks():
    curves, shares = online(METHODS[:2], tasks=2, iterations=1)
    curves[["median", "low", "high"]] = 0.0
    figure = online_figures.online_panels(curves, shares, "Online (test)")
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == 2 and all(ax.get_ylim()[0] < 0 < ax.get_ylim()[1] for ax in figure.axes)
    curves[["median", "low", "high"]] = np.nan
    figure = online_figures.online_panels(curves, shares, "Online (test)")
    FigureCanvasAgg(figure).draw()
    assert not any(ax.lines for ax in figure.axes)


def correlations(space: str, tasks: int, groups: int) -> pd.DataFrame:
    rng = np.random.default_rng(tasks)
    i, j = np.triu_indices(tasks, 1)
    names = np.array([f"mnist_5k CNNPoolTanh {k}" for k in range(tasks)], dtype=object)
    group = np.array([f"g{k * groups // tasks}" for k in range(tasks)], dtype=object)
    keys = {"space": space, "task": names[i], "other": names[j], "group": group[i], "other_group": group[j]}
    return pd.DataFrame({**keys, "correlation": rng.uniform(-1, 1, len(i))})


def test_one_correlation_matrix_has_labels_numbers_and_group_lines():
    pairs = correlations("s", 24, 6)
    pairs.loc[0, "correlation"] = np.nan
    figure = plots.correlation_matrices(pairs, {"s": "24 tasks"}, "Correlations (test)")
    ax, bar = figure.axes
    names = [f"mnist_5k CNNPoolTanh {k}" for k in range(24)]
    assert [t.get_text() for t in ax.get_xticklabels()] == names == [t.get_text() for t in ax.get_yticklabels()]
    shown = ax.collections[0].get_array().reshape(24, 24)
    row = pairs.iloc[5]
    assert shown[0, 6] == shown[6, 0] == row["correlation"] and shown.mask[0, 1] and shown.mask[1, 0]
    assert len(ax.texts) == 24 * 23 - 2 and f"{row['correlation']:.2f}" in {t.get_text() for t in ax.texts}
    assert len(ax.lines) == 2 * 5, "five lines each way part six groups"
    assert "Spearman" in bar.get_ylabel() and ax.collections[0].get_clim() == (-1, 1)
    assert_readable(figure)
    box = figure.bbox
    assert all(box.x0 <= b.x0 and b.x1 <= box.x1 and box.y0 <= b.y0 and b.y1 <= box.y1 for _, b in drawn_texts(figure))


def test_several_matrices_have_titles_and_no_labels_if_large():
    sizes = (35, 4, 40, 3)
    pairs = pd.concat([correlations(f"space_{n}", n, n) for n in sizes], ignore_index=True)
    titles = {f"space_{n}": f"space_{n}: {n} tasks\nmedian 0.50 (-0.10 to 0.90)" for n in sizes}
    figure = plots.correlation_matrices(pairs, titles, "Correlations (test)")
    panels = [ax for ax in figure.axes if ax.get_title()]
    assert [ax.get_title() for ax in panels] == list(titles.values())
    assert [len(ax.get_xticklabels()) for ax in panels] == [0, 4, 0, 3]
    assert all(not ax.texts and not ax.lines for ax in panels), "no numbers, and no lines where every task is a group"
    assert_readable(figure)
    large = pairs[pairs["space"].isin(["space_35", "space_40"])]
    assert_readable(plots.correlation_matrices(large, titles, "Correlations (test)"))


@pytest.mark.parametrize(("columns", "parts"), [(3, 1), (8, 2), (11, 3)])
def test_a_table_wider_than_a_page_is_drawn_in_parts(columns, parts):
    """Each part has the names of all rows; each heading and cell stands once."""
    names, headings = [f"task {n}, of some length" for n in range(5)], [f"NLL {c}" for c in "abcdefghijk"[:columns]]
    texts = [[f"{100 + 10 * r + c}.25 ± {c}.50" for c in range(columns)] for r in range(5)]
    cells = pd.DataFrame(texts, index=names, columns=headings)
    figure = plots.table_figure(cells, cells.ne(cells), "A table of many methods (test)", "note " * 60)
    drawn = [t.get_text() for t in figure.axes[0].texts]
    assert figure.get_size_inches()[0] <= 6.6 and [drawn.count(name) for name in names] == [parts] * 5
    assert all(drawn.count(text) == 1 for text in [*headings, *cells.to_numpy().ravel()])
    assert " ".join(drawn).count("note") == 60
    assert_readable(figure)
    box = figure.bbox
    assert all(box.x0 <= b.x0 and b.x1 <= box.x1 and box.y0 <= b.y0 and b.y1 <= box.y1 for _, b in drawn_texts(figure))
    words = plots.table_figure(cells, cells.ne(cells), "A table (test)", words=headings)
    assert [t.get_text() for t in words.axes[0].texts].count(names[0]) == 1


def test_words_in_a_table_are_flush_left():
    cells = pd.DataFrame({"model": ["Simple CNN", "MLP"], "points": ["1,024", "7"]}, index=["a", "b"])
    figure = plots.table_figure(cells, cells.ne(cells), "A table (test)", words=["model"])
    texts = {t.get_text(): t for t in figure.axes[0].texts}
    assert {texts[name].get_ha() for name in ("model", "Simple CNN", "MLP")} == {"left"}
    assert {texts[name].get_ha() for name in ("points", "1,024", "7")} == {"right"}
    assert len({texts[name].get_position()[0] for name in ("model", "Simple CNN", "MLP")}) == 1
    assert_readable(figure)
    named = plots.table_figure(cells, cells.ne(cells), "A table (test)", words=["model"], rows="data set")
    texts = {t.get_text(): t for t in named.axes[0].texts}
    assert texts["data set"].get_position()[0] == texts["a"].get_position()[0]
    assert_readable(named)


def test_global_matplotlib_state_is_left_alone(runs):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.rank_curves(metrics.ranks(runs), "Ranks (test)")
    assert dict(matplotlib.rcParams) == before
