"""Numbers of HE-GP-UCB's figures, from tables small enough to work out by hand."""

import numpy as np
import pandas as pd
import pytest

from metabo.papers.hegpucb.studies import summaries

PLAIN = {"problem": "lengthscale", "profile": "plain"}


def run(regrets, method="mle", **columns):
    """One row per query of seeds (rows) and iterations (columns)."""
    regrets = np.asarray(regrets, float)
    seeds, length = regrets.shape
    frame = pd.DataFrame(
        {
            "method": method,
            "seed": np.repeat(np.arange(seeds), length), "iteration": np.tile(range(1, length + 1), seeds),
            "cumulative": regrets.cumsum(axis=1).ravel(), "simple": np.minimum.accumulate(regrets, axis=1).ravel(),
        }
    )  # fmt: skip
    flat = {name: np.asarray(value).ravel() if np.ndim(value) else value for name, value in columns.items()}
    return frame.assign(**PLAIN | flat)


def test_curves_and_endings():
    table = run([[3.0, 1.0], [1.0, 2.0]], rejected=[[False, True], [False, False]])
    curve = summaries.curves(table).set_index(["measure", "iteration"])
    assert curve.loc[("cumulative", 2), ["mean", "error"]].tolist() == pytest.approx([3.5, 0.5])
    assert curve.loc[("simple", 1), ["mean", "error"]].tolist() == pytest.approx([2.0, 1.0])
    ends = summaries.endings(table)
    assert ends["iteration"].unique().tolist() == [2] and len(ends) == 2
    assert (ends[["dropped", "most", "runs"]] == [0.5, 1, 2]).all(axis=None)


def test_differences_are_paired_and_have_a_verdict():
    rng = np.random.default_rng(0)
    shared = rng.normal(scale=5, size=(20, 1)) + 10
    rows = [run(shared, "he_gp_ucb"), run(shared + 1 + 0.1 * rng.normal(size=(20, 1)), "mle"),
            run(shared - 1 + 0.1 * rng.normal(size=(20, 1)), "gp_ucb"),
            run(rng.permutation(shared), "uniform")]  # fmt: skip
    found = summaries.differences(summaries.last(pd.concat(rows))).query("measure == 'cumulative'").set_index("method")
    assert found.loc["mle", "verdict"] == "lower" and found.loc["mle", "difference"] == pytest.approx(-1, abs=0.1)
    assert found.loc["gp_ucb", "verdict"] == "higher" and found.loc["uniform", "verdict"] == "undecided"
    assert (found["low"] < found["difference"]).all() and (found["difference"] < found["high"]).all()


def test_nearly_equal_by_hand():
    rows = pd.concat([run([[v], [v]], m) for m, v in (("he_gp_ucb", 2.0), ("a_gp_ucb", 3.0), ("mle", 4.0))])
    found = summaries.nearly_equal(rows)
    assert found["apart"].tolist() == [0.25, 0.25] and not found["agrees"].any()
    assert summaries.nearly_equal(rows, 0.3)["agrees"].all()


def test_choices_and_chosen_lengthscales():
    table = run(np.ones((3, 2)), u=[[0, 1], [0, 1], [2, 0]])
    first = summaries.choices(table).query("iteration == 1")
    assert dict(zip(first["u"], first["fraction"], strict=True)) == pytest.approx({0: 2 / 3, 2: 1 / 3})
    later = table.assign(profile="successor")
    scales = {"plain": (0.3, 0.5, 1.0), "successor": (3.0, 5.0, 10.0)}
    median = summaries.chosen_scales(pd.concat([table, later]), scales)
    assert median["median"].tolist() == [0.3, 0.5, 3.0, 5.0]


def test_stuck_runs_have_all_late_queries_at_the_end():
    x = np.full((3, 30), 0.97)
    x[0, 5] = 0.2  # before the last twenty
    x[1, 25] = 0.2
    regrets = np.ones((3, 30))
    regrets[1, 25] = 0.07  # below half of 0.145
    found = summaries.stuck(run(regrets, x=x))
    assert found["fraction"].item() == pytest.approx(2 / 3) and found["missed"].item() == pytest.approx(2 / 3)


def test_comparisons_beside_those_of_the_method():
    rows = [run([[v], [v + 1], [v]], m) for m, v in (("he_gp_ucb", 4.0), ("mle", 3.0), ("expected_ucb", 2.0))]
    second = [one.assign(problem="mean") for one in rows]
    rows += [run([[1.0], [2.0], [1.0]], "a_gp_ucb")]
    found = summaries.comparisons(pd.concat(rows + second)).query("measure == 'cumulative'")
    others = found[found["reference"] != "he_gp_ucb"]
    assert others[["problem", "reference", "method", "difference"]].to_numpy().tolist() == [
        ["lengthscale", "expected_ucb", "mle", -1.0], ["mean", "expected_ucb", "mle", -1.0],
        ["lengthscale", "a_gp_ucb", "mle", -2.0], ["lengthscale", "a_gp_ucb", "expected_ucb", -1.0],
    ]  # fmt: skip
    assert len(found) == 3 + 2 + 4


def test_wrong_candidates_by_hand():
    """Truth 1. Seeds: settles at the third query; is right throughout; leaves it at the end."""
    u = [[0, 2, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]]
    table = run(np.ones((3, 4)), u=u, mle=[[1] * 4, [1] * 4, [0] * 4], truth=1)
    found = summaries.wrong(table).iloc[0]
    assert (
        found["wrong"] == pytest.approx(3 / 12) and found["settled"] == 3 and found["recovered"] == pytest.approx(2 / 3)
    )
    last = summaries.wrong(table[table["seed"] == 2]).iloc[0]
    assert last["settled"] == 5, "one beyond the last: never"
    assert summaries.wrong(run(np.ones((2, 2)), u=0, mle=0, truth=-1)).empty


def test_phases_compare_early_and_late():
    he = run(np.repeat([[1.0], [1.1], [0.9]], 20, axis=1), "he_gp_ucb").assign(problem="decomposition")
    other = he.assign(method="mle", cumulative=he["cumulative"] + np.where(he["iteration"] < 18, 1.0, 0.0))
    found = summaries.phases(pd.concat([he, other])).query("measure == 'cumulative'")
    assert found["iteration"].tolist() == [15, 20] and found["difference"].tolist() == pytest.approx([-1.0, 0.0])


def test_drops_by_hand():
    table = run(
        np.ones((2, 3)), "he_gp_ucb", u=[[0, 1, 1], [2, 2, 2]], mle=[[0, 0, 2], [2, 2, 2]], truth=2,
        rejected=[[True, True, False], [False, True, False]],
    )  # fmt: skip
    found = summaries.drops(table).iloc[0]
    assert found[["dropped", "likeliest", "true", "runs"]].tolist() == [3, 1, 1, 2]


def test_cells():
    settings = {
        "variant": "code",
        "beta": 1.0,
        "noise": 0.01,
        "standardise": 0,
        "predictive": 0,
        "height": 0.0,
        "width": 0.0,
    }
    rows = []
    for cell, gap in ((0, 1.0), (1, -1.0)):
        base = run([[5.0], [6.0], [7.0]], "he_gp_ucb", alive=2, cell=cell)
        rows += [
            base,
            base.assign(method="mle", cumulative=base["cumulative"] + gap, simple=base["simple"] + [1, -1, 0]),
        ]
    ending = pd.concat(rows).assign(**settings)
    orders = summaries.cell_orders(ending)
    counts = summaries.verdict_counts(orders).set_index("measure")
    assert counts.loc["cumulative", ["lower", "higher", "undecided"]].tolist() == [1, 1, 0]
    assert counts.loc["simple", ["lower", "higher", "undecided"]].tolist() == [0, 0, 2]
    means = summaries.cell_means(ending).query("measure == 'cumulative' and method == 'he_gp_ucb'")
    assert means["mean"].tolist() == [6.0, 6.0] and means["error"].tolist() == pytest.approx([3**-0.5] * 2)
    assert means["alive"].tolist() == [2.0, 2.0]


def test_robust_curves():
    table = run([[3.0, 1.0], [1.0, 2.0]]).assign(reported=[3.0, 3.0, 1.0, 1.0])
    found = summaries.robust_curves(table).set_index(["measure", "iteration"])
    assert found.loc[("reported", 2), ["mean", "error"]].tolist() == pytest.approx([2.0, 1.0])


def test_period_fits():
    columns = {"period": [0.2, 0.3, 0.97], "lengthscale": [1.0, 2.0, 9.0], "margin": [1.0, 2.0, 3.0]}
    fit = pd.DataFrame({"piece": 0, "low": 0.0, "high": 0.25, "scale": 1.0, **columns})
    found = summaries.period_fits(fit).iloc[0]
    assert found[["period", "lengthscale", "least", "most", "margin"]].tolist() == [0.3, 2.0, 0.2, 0.97, 2.0]
    assert found["one"] == pytest.approx(1 / 3)


def of_betas(heights, methods=("he_gp_ucb", "mle")):
    """Means of cells along β: problem -> the highest end per β; the other method ends at half of it."""
    settings = {"variant": "v", "noise": 0.01, "standardise": 0, "predictive": 0, "height": 0.0, "width": 0.0}
    return pd.DataFrame([
        {"problem": problem, "beta": beta, **settings, "method": method, "measure": "cumulative", "mean": end * share}
        for problem, ends in heights.items() for beta, end in ends.items()
        for method, share in zip(methods, (1.0, 0.5), strict=True)
    ])  # fmt: skip


def test_calibration_lands_on_the_axes_and_does_not_see_who_is_better():
    heights = {"lengthscale": {1.0: 3.5, 2.0: 4.5}, "period": {1.0: 14.9, 2.0: 30.0}}
    found = summaries.calibration(of_betas(heights), ["he_gp_ucb", "mle"])
    # (a): 3.6 to 6, (b): 9 to 15
    assert found["lands"].tolist() == [0, 1, 1, 0]
    # equal counts: |log 3.5/4| + |log 1.49| is less than log 4.5/4 + log 3
    assert found.loc[found["chosen"] == 1, "beta"].unique().tolist() == [1.0]
    swapped = summaries.calibration(of_betas(heights, ("mle", "he_gp_ucb")), ["he_gp_ucb", "mle"])
    pd.testing.assert_frame_equal(found, swapped)
    nearer = {"lengthscale": {1.0: 3.5, 2.0: 4.5}, "period": {1.0: 14.9, 2.0: 10.0}}
    found = summaries.calibration(of_betas(nearer), ["he_gp_ucb", "mle"])
    assert found.loc[found["chosen"] == 1, "beta"].unique().tolist() == [2.0]
    others = pd.concat([of_betas(heights), of_betas({"period": {1.5: 11.0}}).assign(noise=1e-4),
                        of_betas({"period": {0.0: 11.0}})])  # fmt: skip
    assert summaries.calibration(others, ["he_gp_ucb", "mle"])["beta"].tolist() == [1.0, 2.0] * 2


def test_candidates_left():
    table = run(np.ones((2, 3)), "he_gp_ucb", alive=[[5, 4, 4], [5, 5, 2]])
    found = summaries.left(pd.concat([table, table.assign(method="mle", alive=1)]))
    assert found["alive"].tolist() == [5.0, 4.5, 3.0] and found["least"].tolist() == [5, 4, 2]


def test_points_that_are_asked_again_count_once():
    """Also points of equal regret; (c) is not counted, since its table has one input of three."""
    regret = [[3.0, 1.0, 3.0], [1.0, 1.0, 1.0]]
    table = run(regret, x=[[0.0, 0.5, 0.0], [0.2, 0.2, 0.4]], regret=regret)
    long = run([[1.0] * 5] * 2, "he_gp_ucb", x=[[0.1, 0.2, 0.3, 0.4, 0.1]] * 2, problem="mean", regret=1.0)
    of_c = table.assign(problem="decomposition")
    found = summaries.distinct(pd.concat([table, long, of_c]))
    columns = ["problem", "profile", "method", "distinct", "queries"]
    assert found[columns].to_numpy().tolist() == [
        ["lengthscale", "plain", "mle", 2.0, 3], ["mean", "plain", "he_gp_ucb", 4.0, 5],
    ]  # fmt: skip
    assert summaries.distinct(table, [])[["method", "distinct"]].to_numpy().tolist() == [["mle", 2.0]]
