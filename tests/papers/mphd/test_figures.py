"""Figures of MPHD show what their tables hold, in panels with room for every text."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from metabo.papers.mphd import figures as mphd
from metabo.papers.mphd import metrics
from metabo.papers.mphd import schematics as mphd_schematics
from metabo.papers.mphd.studies import summaries
from metabo.plan.runs import method_of
from metabo.plots import look, style
from tests.readable import assert_readable

METHODS = ["rand", "hgp_hand", "hgp_flat", "h_nll", "ablr", "fsbo", "base_gp", "mphd_non_nn", "mphd", "mphd_squashed"]
TRUE = ["hgp_truth", "gp_truth"]


def curves(acquisitions, panels, zero=False) -> pd.DataFrame:
    frames, at = [], np.arange(1, 31)
    for acquisition, panel in itertools.product(acquisitions, panels):
        for i, method in enumerate([*METHODS, *TRUE]):
            name = method if acquisition == "pi" or method == "rand" else f"{method}-{acquisition}"
            name += "@new_space" if panel == "ntot" and method.startswith("mphd") else ""
            mean = (1 + i) / at / 20
            mean = np.where(at > 20, 0.0, mean) if zero and i == 0 else mean
            keys = {"acquisition": acquisition, "panel": panel, "method": name, "iteration": at}
            frames.append(pd.DataFrame({**keys, "mean": mean, "low": mean - 0.004, "high": mean + 0.004, "seeds": 5}))
    return pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize("acquisitions", [["pi"], ["ucb3", "ei"]])
def test_regret_panels(acquisitions):
    table = curves(acquisitions, ["default", "ntot"])
    headings = {panel: metrics.PANELS[panel] for panel in ("default", "ntot")}
    figure = mphd.regret_panels(table, "Regret (test)", headings)
    assert len(figure.axes) == 2 * len(acquisitions)
    places = itertools.product(acquisitions, headings)
    for ax, (acquisition, panel) in zip(figure.axes, places, strict=True):
        assert ax.get_title() == f"{look.ACQUISITIONS[acquisition]}, {headings[panel]}"
        assert (
            ax.get_yscale() == "log" and ax.get_xscale() == "linear" and ax.get_xlim()[0] < 1 and ax.get_xlim()[1] > 30
        )
        lines = {line.get_label(): line for line in ax.lines}
        mine = table[(table["acquisition"] == acquisition) & (table["panel"] == panel)]
        for method in [*METHODS, *TRUE]:
            rows = mine[mine["method"].map(method_of) == method]
            np.testing.assert_array_equal(lines[look.of(method).label].get_ydata(), rows["mean"])
            assert lines[look.of(method).label].get_color() == look.of(method).colour
        low, high = ax.get_ylim()
        assert low < mine["mean"].min() and high > mine["high"].max()
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [look.of(m).label for m in [*METHODS, *TRUE]]
    assert figure.axes[0].get_ylabel() == "normalised regret,\nmean over spaces"
    assert "over 5 seeds" in figure.legends[0].get_title().get_text()
    assert_readable(figure, [*METHODS, *TRUE])


def test_the_legend_says_how_many_different_candidates_are_queried():
    table = curves(["pi"], ["default", "ntot"])
    last = int(table["iteration"].max())
    rows = table.drop_duplicates(["panel", "method"])[["panel", "method"]]
    headings = {panel: metrics.PANELS[panel] for panel in ("default", "ntot")}
    once = mphd.regret_panels(table, "Once (test)", headings, distinct=rows.assign(distinct=float(last)))
    assert f"Every run queries {last} different candidates." in once.legends[0].get_title().get_text()
    asked = rows.assign(distinct=np.where(rows["panel"] == "ntot", 4.4, 12.6))
    figure = mphd.regret_panels(table, "Repeats (test)", headings, distinct=asked)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    across = [method_of(name) for name in rows["method"][rows["method"].map(method_of).duplicated()]]
    assert f"{look.of(across[0]).label} (4.4 to 12.6)" in labels
    assert f"different candidates among {last} queries" in figure.legends[0].get_title().get_text()
    assert_readable(figure, [*METHODS, *TRUE])


def test_rows_of_a_single_column_share_their_axis():
    table = curves(["pi", "ei"], ["default"])
    table.loc[table["acquisition"] == "ei", ["mean", "low", "high"]] *= 10
    first, second = mphd.regret_panels(table, "One column (test)", {"default": "default"}).axes
    assert first.get_ylim() == second.get_ylim() and first.get_ylim()[1] > table["high"].max()


def test_a_band_below_zero_is_cut_and_a_mean_of_zero_stays_in_sight():
    headings = {panel: metrics.PANELS[panel] for panel in ("ntot", "homogeneous")}
    figure = mphd.regret_panels(curves(["pi"], headings, zero=True), "Zero (test)", headings)
    for ax in figure.axes:
        assert ax.get_yscale() == "symlog" and ax.get_ylim()[0] < 0
        bands = [path.vertices[:, 1].min() for c in ax.collections for path in c.get_paths()]
        assert min(bands) == 0
    assert_readable(figure, [*METHODS, *TRUE])


def priors(sizes) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    rng, rows = np.random.default_rng(0), []
    true = {"constant": (1.0, 1.0), "lengthscale": (10.0, 30.0), "variance": (1.0, 1.0), "noise": (10.0, 1e5)}
    for (name, (first, second)), size, seed in itertools.product(true.items(), sizes, range(5)):
        shift = np.exp(rng.normal() / size)
        rows.append((size, seed, name, first * shift, second * shift))
    prior = pd.DataFrame(rows, columns=["train", "seed", "parameter", "first", "second"])
    truth = pd.DataFrame([(name, *pair) for name, pair in true.items()], columns=["parameter", "first", "second"])
    nll = pd.DataFrame(
        [(n, s, 50 + 30 / n + rng.normal()) for n in sizes for s in range(5)], columns=["train", "seed", "value"]
    )
    return prior, truth, nll


@pytest.mark.parametrize(
    ("parameters", "with_nll"), [(["lengthscale"], True), (["constant", "variance", "noise"], False)]
)
def test_prior_panels(parameters, with_nll):
    sizes = range(2, 17)
    prior, truth, nll = priors(sizes)
    density = {p: summaries.densities(prior, truth, p, [2, 16]) for p in parameters}
    figure = mphd.prior_panels(prior, truth, density, "Priors (test)", nll if with_nll else None)
    assert len(figure.axes) == (3 if with_nll else 2 * len(parameters))
    for i, parameter in enumerate(parameters):
        left, right = figure.axes[2 * i : 2 * i + 2]
        own = prior[prior["parameter"] == parameter]
        lines = {line.get_label(): line for line in left.lines}
        np.testing.assert_allclose(lines["mean"].get_ydata(), own.groupby("train")["first"].mean())
        expected = truth.set_index("parameter").loc[parameter, "first"]
        assert list(lines["truth"].get_ydata()) == [expected, expected]
        assert left.get_yscale() == ("linear" if parameter == "constant" else "log")
        assert len(right.lines) == 11
        drawn = density[parameter][density[parameter]["train"].isin([0, 16])]
        log = parameter == "noise"
        assert right.get_xscale() == ("log" if log else "linear")
        top = (drawn["density"] * (drawn["x"] if log else 1.0)).max()
        assert right.get_ylim() == pytest.approx((0, 1.15 * top))
    if with_nll:
        means = nll.groupby("train")["value"].mean()
        drawn = {line.get_label(): line for line in figure.axes[2].lines}
        np.testing.assert_allclose(drawn["mean"].get_ydata(), means)
        assert "truth" not in drawn
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == sorted(["seeds", "median", "mean", "truth", "2 domains", "16 domains"])
    assert figure.get_figwidth() <= style.WIDEST
    assert_readable(figure, [])


def test_a_prior_that_is_worse_by_far_is_named_at_the_end_of_its_axis():
    prior, truth, nll = priors(range(2, 17))
    nll = pd.concat([nll.assign(seed=nll["seed"] + 5 * part) for part in range(4)], ignore_index=True)
    density = {"lengthscale": summaries.densities(prior, truth, "lengthscale", [2, 16])}

    def drawn(table):
        figure = mphd.prior_panels(prior, truth, density, "Priors (test)", table)
        assert_readable(figure, [])
        said = {text.get_position()[0]: text.get_text() for text in figure.axes[2].texts}
        return figure.axes[2].get_ylim(), said

    (_, plain), none = drawn(nll)
    assert not none and plain > nll["value"].max()
    one = nll["train"].eq(4) & nll["seed"].eq(3)
    rest = nll.loc[~one, "value"]
    (low, top), said = drawn(nll.assign(value=nll["value"].mask(one, 612.3)))
    assert said == {2: "beyond: 612, mean 85"} and top < 85 and low < rest.min() and rest.max() < top
    assert drawn(nll.assign(value=nll["value"].mask(one, 5e5)))[1][2].startswith("beyond: 500000, mean 25")
    assert drawn(nll.assign(value=nll["value"].mask(one, np.inf)))[1] == {2: "beyond: ∞, mean ∞"}


def test_divergence_panels():
    rng, grids = np.random.default_rng(1), {"few": [1, 2, 3, 4], "many": [4, 8, 12, 16]}
    rows = [
        (o, n, s, k / n + 0.1 * rng.random() + 0.2)
        for k, o in enumerate(mphd.OUTPUTS, 1) for n in (1, 2, 3, 4, 8, 12, 16) for s in range(5)
    ]  # fmt: skip
    means = pd.DataFrame(rows, columns=["output", "train", "seed", "kl"])
    figure = mphd.divergence_panels(means, {"squashed": 0.105, "non_nn": 0.38}, grids, "KL (test)")
    assert figure.get_figwidth() <= style.WIDEST
    for ax, (heading, grid) in zip(figure.axes, grids.items(), strict=True):
        assert ax.get_title() == heading
        assert [t.get_text() for t in ax.get_xticklabels()] == [str(n) for n in grid]
        assert ax.get_yscale() == "log"
        across = [line for line in ax.lines if line.get_linestyle() == ":"]
        assert {line.get_ydata()[0]: line.get_color() for line in across} == {
            0.105: look.of("mphd_squashed").colour, 0.38: look.of("mphd_non_nn").colour,
        }  # fmt: skip
        for output, method in mphd.OUTPUTS.items():
            own = means[means["output"] == output]
            expected = [own.loc[own["train"] == n, "kl"].mean() for n in grid]
            drawn = [
                line
                for line in ax.lines
                if len(line.get_xdata()) == len(grid) and line.get_color() == look.of(method).colour
            ]
            np.testing.assert_allclose(drawn[-1].get_ydata(), expected)
            for place, x in enumerate(drawn[-1].get_xdata()):
                assert place - 0.5 < x < place + 0.5, "each number of domains has a band of its own"
    labels = [t.get_text() for t in figure.legends[0].get_texts()]
    methods = [f"{look.of(m).label}, mean" for m in mphd.OUTPUTS.values()]
    assert labels == [*methods, *mphd.LIMITS.values(), "seeds", "median"]
    assert not any(ax.texts for ax in figure.axes), "no text hides a violin"
    assert_readable(figure, [])


def test_a_legend_shows_what_violins_have():
    """With many seeds no method's symbol is drawn: the legend has none, but tick, dot and bar."""
    rows = [(o, n, s, 1.0 + 0.1 * s) for o in mphd.OUTPUTS for n in (1, 2) for s in range(20)]
    means = pd.DataFrame(rows, columns=["output", "train", "seed", "kl"])
    (legend,) = mphd.divergence_panels(means, {"non_nn": 0.9}, {"few": [1, 2]}, "KL (test)").legends
    handles = {text.get_text(): line for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)}
    assert [*handles][-3:] == ["seeds", "median", "20th to 80th percentile"]
    assert {handles[f"{look.of(m).label}, mean"].get_marker() for m in mphd.OUTPUTS.values()} == {"none"}


def test_single_panels():
    rng, names = np.random.default_rng(2), ("constant", "lengthscale", "variance", "noise")
    rows = [(n, r, p, np.exp(rng.normal() / n)) for n in range(5, 101, 5) for r in range(50) for p in names]
    estimate = pd.DataFrame(rows, columns=["functions", "run", "parameter", "value"])
    truth = pd.DataFrame({"parameter": names, "value": [1.0] * 4})
    figure = mphd.single_panels(estimate, truth, "Single (test)")
    assert [ax.get_title() for ax in figure.axes] == [
        "length-scale",
        "constant mean",
        "signal variance",
        "noise variance",
    ]
    for ax, name in zip(figure.axes, ("lengthscale", "constant", "variance", "noise"), strict=True):
        mean = next(line for line in ax.lines if line.get_label() == "mean")
        np.testing.assert_allclose(
            mean.get_ydata(), estimate[estimate["parameter"] == name].groupby("functions")["value"].mean()
        )
    assert_readable(figure, [])


def test_the_graphical_model_has_the_arrows_and_plates_of_the_paper():
    tables = mphd_schematics.graphical_model()
    parents = tables["edge"].groupby("end")["start"].agg(set).to_dict()
    assert parents == {
        "alpha": {"context", "phi"}, "theta": {"alpha"}, "mean": {"theta"}, "kernel": {"theta"}, "noise": {"theta"},
        "f": {"mean", "kernel"}, "y": {"f", "x", "noise"},
    }  # fmt: skip
    nodes, plates = tables["node"].set_index("name"), tables["plate"].set_index("name")
    inside = {
        "parameters": {"context", "alpha", "theta"}, "points": {"x", "y"}, "functions": {"f", "x", "y"},
        "domains": set(nodes.index) - {"phi"},
    }  # fmt: skip
    for plate, expected in inside.items():
        box = plates.loc[plate]
        radius = 0.36
        across = nodes["x"].between(box.x0 + radius, box.x1 - radius)
        assert set(nodes[across & nodes["y"].between(box.y0 + radius, box.y1 - radius)].index) == expected
        assert set(nodes[nodes["x"].between(box.x0, box.x1) & nodes["y"].between(box.y0, box.y1)].index) == expected
    (ax,) = mphd_schematics.model_figure("T").axes
    counts = {
        kind: sum(type(p) is kind for p in ax.patches) for kind in (Circle, Rectangle, FancyArrowPatch, FancyBboxPatch)
    }
    assert list(counts.values()) == [len(nodes) - 1, 1, len(tables["edge"]), len(plates)]
    places = nodes[["x", "y"]].to_numpy()
    distance = np.linalg.norm(places[:, None] - places, axis=2) + 10 * np.eye(len(places))
    assert distance.min() > 0.8


def test_the_scheme_has_one_density_per_length_scale():
    rows = [("A", 1, 2, 1.0, 5.0), ("A", 2, 2, 1.0, 5.0), *(("T", k, 3, 1.1, 4.6) for k in (1, 2, 3))]
    table = pd.DataFrame(rows, columns=["domain", "index", "dims", "shape", "rate"])
    figure = mphd_schematics.prior_scheme(table, "Scheme (test)")
    insets = figure.axes[0].child_axes
    titles = [ax.get_title() for ax in insets]
    assert len(insets) == 5 and titles[0] == "$\\ell_1$: $\\Gamma$(1.00, 5.00)" and titles[4].startswith("$\\ell_3$")
    x, height = insets[4].lines[0].get_data()
    assert height[100] == pytest.approx(summaries.density("lengthscale", x[100], 1.1, 4.6))
    texts = " ".join(t.get_text() for t in figure.axes[0].texts)
    assert "(0, 1, 0, 2)" in texts and "(0, 1, 0, 3)" in texts


@pytest.mark.parametrize("unseen", [0, 1])
def test_the_super_dataset_has_a_square_per_input(unseen):
    dims = {"first_3": 3, "second_16": 16, "pd1": 4}
    rows = [(space, i, int(i % 3 == 0)) for space, dim in dims.items() for i in range(1, dim + 1)]
    dimension = pd.DataFrame(rows, columns=["space", "index", "discrete"])
    size = pd.DataFrame(
        [(s, 8, 2, 12345, unseen * (s == "pd1")) for s in dims], columns=["space", "train", "test", "points", "unseen"]
    )
    figure = mphd_schematics.super_dataset_figure(dimension, size, "Super-dataset (test)")
    (ax,) = figure.axes
    assert len(ax.patches) == 23
    assert {t.get_text() for t in ax.texts} >= {"first_3", "8, 2; 12,345", "pd1 *" if unseen else "pd1"}
    colours = [patch.get_facecolor() for patch in ax.patches]
    assert len(set(colours)) == 2 and sum(c == colours[2] for c in colours) == dimension["discrete"].sum()
    assert_readable(figure, [])


def test_the_lemma_is_drawn_with_its_gap():
    rows = [
        (k, f, x + 3 * f * (k == "pseudo"), f - x)
        for k in ("sub-dataset", "pseudo")
        for f in range(3)
        for x in (0, 0.5, 1)
    ]
    table = pd.DataFrame(rows, columns=["kind", "function", "x", "y"])
    gap = pd.DataFrame({"x": [0.1, 1.0, 40.0], "gap": [0.1, 1e-4, 0.0]})
    figure = mphd_schematics.lemma_figure(table, table, gap, "Lemma (test)")
    near, beside, far = figure.axes
    assert [near.get_title(), beside.get_title(), far.get_title()] == [
        "sub-datasets of one GP", "gap", "pseudo sub-dataset: moved apart",
    ]  # fmt: skip
    assert len(near.lines) == 6 and far.lines[-1].get_xdata().tolist() == [6, 6.5, 7]
    assert beside.lines[0].get_ydata().tolist() == [0.1, 1e-4, np.finfo(float).eps] and beside.get_yscale() == "log"
    assert_readable(figure, [])
