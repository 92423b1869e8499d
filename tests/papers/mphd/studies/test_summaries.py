"""Numbers of the MPHD studies, by hand and against SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import quad

from metabo.papers.mphd.studies import summaries

TRUTH = pd.DataFrame(
    {"parameter": ["constant", "lengthscale", "noise"], "first": [1.0, 10.0, 10.0], "second": [1.0, 30.0, 1e5]}
)
PRIOR = pd.DataFrame(
    [(2, 0, "lengthscale", 4.0, 20.0), (2, 1, "lengthscale", 30.0, 60.0), (16, 0, "lengthscale", 9.0, 27.0),
     (16, 1, "lengthscale", 12.0, 36.0), (2, 0, "constant", 0.0, 2.0), (2, 1, "constant", 3.0, 1.0),
     (16, 0, "constant", 1.0, 1.0), (16, 1, "constant", 1.2, 1.0)],
    columns=["train", "seed", "parameter", "first", "second"],
)  # fmt: skip


def test_divergence_from_the_truth_by_integration():
    def integral(p, q):
        return quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), p.ppf(1e-13), p.isf(1e-13), limit=200)[0]

    normal = summaries.from_truth("constant", (1.0, 1.0), np.array([0.0, 3.0]), np.array([2.0, 1.0]))
    expected = [integral(stats.norm(1, 1), stats.norm(0, 2)), integral(stats.norm(1, 1), stats.norm(3, 1))]
    np.testing.assert_allclose(normal, expected, rtol=1e-6)
    gammas = summaries.from_truth("noise", (2.0, 3.0), np.array([4.0]), np.array([5.0]))
    assert gammas[0] == pytest.approx(integral(stats.gamma(2, scale=1 / 3), stats.gamma(4, scale=1 / 5)), rel=1e-6)


def test_densities_are_those_of_scipy_at_the_ends_and_of_the_truth():
    table = summaries.densities(PRIOR, TRUTH, "lengthscale", [2, 16])
    assert set(zip(table["train"], table["seed"], strict=True)) == {(0, 0), (2, 0), (2, 1), (16, 0), (16, 1)}
    own = table[(table["train"] == 16) & (table["seed"] == 1)]
    np.testing.assert_allclose(own["density"], stats.gamma.pdf(own["x"], 12, scale=1 / 36))
    assert own["x"].min() > 0 and own["x"].max() == 2.0
    normal = summaries.densities(PRIOR, TRUTH, "constant", [2])
    np.testing.assert_allclose(
        normal.query("train == 0")["density"], stats.norm.pdf(normal.query("train == 0")["x"], 1, 1)
    )


def test_convergence_by_hand():
    table = summaries.convergence(PRIOR, TRUTH).set_index(["parameter", "train"])
    row = table.loc[("lengthscale", 2)]
    assert (row["mean"], row["error"]) == (17.0, 7.0) and row["std"] == pytest.approx(np.std([4, 30], ddof=1))
    kl = summaries.from_truth("lengthscale", (10.0, 30.0), np.array([4.0, 30.0]), np.array([20.0, 60.0]))
    assert row["kl"] == pytest.approx(kl.mean())
    p, q = stats.gamma(4, scale=1 / 20), stats.gamma(30, scale=1 / 60)
    # variance of two numbers, ddof 1, is half their squared difference
    expected = quad(lambda x: (p.pdf(x) - q.pdf(x)) ** 2 / 2, 0, 2, limit=200)[0]
    assert row["spread"] == pytest.approx(expected, rel=1e-3)
    assert table.loc[("constant", 16), "error"] == pytest.approx(0.1)


def test_levene_compares_the_ends():
    rng = np.random.default_rng(0)
    rows = [(n, s, "noise", v, 1.0) for n, width in ((2, 5.0), (9, 2.0), (16, 1.0))
            for s, v in enumerate(10 + width * rng.normal(size=20))]  # fmt: skip
    prior = pd.DataFrame(rows, columns=PRIOR.columns)
    found = summaries.spread_tests(prior).iloc[0]
    ends = [prior.loc[prior["train"] == n, "first"] for n in (2, 16)]
    assert found["p"] == pytest.approx(stats.levene(*ends).pvalue) and found["p"] < 0.01
    assert np.isnan(summaries.spread_tests(prior[prior["seed"] < 2])["p"].item())
    assert (found["fewest"], found["most"]) == pytest.approx(tuple(v.std(ddof=1) for v in ends))


def test_trends_by_hand():
    table = pd.DataFrame({"train": [1, 1, 2, 2, 3, 3], "value": [5.0, 7, 4, 5, 1, 4]})
    found = summaries.trend(table, "train", "value")
    assert found["mean"] == pytest.approx(-1) and found["variance"] == pytest.approx(0.5)  # variances 2, 0.5, 4.5
    assert found["mean_p"] == pytest.approx(2 / 6) and found["variance_p"] == 1  # of six orders
    flat = summaries.trend(table.assign(value=1.0), "train", "value")
    assert np.isnan(flat["mean"]) and np.isnan(flat["variance"])
    two = summaries.trend(table[table["train"] < 3], "train", "value")
    assert np.isnan(list(two.values())).all()


def test_mass_below_a_limit():
    prior = pd.DataFrame([(2, 0, "noise", 1.0, 1e4), (2, 1, "noise", 2.0, 1e4)], columns=PRIOR.columns)
    found = summaries.mass(prior, "noise", 2e-4).iloc[0]
    expected = [1 - np.exp(-2), 1 - 3 * np.exp(-2)]  # cdf of Γ(1) and of Γ(2) at 2
    assert (found["mean"], found["low"], found["high"]) == pytest.approx(
        (np.mean(expected), min(expected), max(expected))
    )


def test_networks_are_compared_in_pairs():
    values = {
        ("linear", 0): (0.1, 0.3),
        ("linear", 1): (0.2, 0.2),
        ("non_nn", 0): (0.5, 0.5),
        ("non_nn", 1): (0.1, 0.1),
    }
    rows = [(o, 4, seed, dim, kl) for (o, seed), pair in values.items() for dim, kl in zip((2, 3), pair, strict=True)]
    means = summaries.mean_divergence(pd.DataFrame(rows, columns=["output", "train", "seed", "dim", "kl"]))
    assert means.set_index(["output", "seed"])["kl"].round(12).to_dict() == {
        ("linear", 0): 0.2, ("linear", 1): 0.2, ("non_nn", 0): 0.5, ("non_nn", 1): 0.1,
    }  # fmt: skip
    found = summaries.network_differences(means)
    assert found["output"].tolist() == ["linear"] and found["wins"].item() == 0.5
    assert found["difference"].item() == pytest.approx(-0.1)
    half = stats.t.ppf(0.975, 1) * np.std([-0.3, 0.1], ddof=1) / np.sqrt(2)
    assert (found["low"].item(), found["high"].item()) == pytest.approx((-0.1 - half, -0.1 + half))
    alone = summaries.network_differences(means[means["seed"] == 0])
    assert alone["difference"].item() == pytest.approx(-0.3) and np.isnan(alone["low"].item())


def test_spread_of_single_estimates():
    truth = pd.DataFrame({"parameter": ["noise"], "value": [2.0]})
    rows = [(n, run, "noise", 2.0 + run * width) for n, width in ((5, 3.0), (10, 2.0), (15, 1.0)) for run in (-1, 0, 1)]
    spread = summaries.estimate_spread(pd.DataFrame(rows, columns=["functions", "run", "parameter", "value"]), truth)
    assert spread["std"].tolist() == [3.0, 2.0, 1.0] and spread["error"].tolist() == [0, 0, 0]
    assert summaries.spread_trends(spread)["spearman"].item() == pytest.approx(-1)
    assert np.isnan(summaries.spread_trends(spread[:2])["spearman"].item())
    assert summaries.spread_trends(spread)["p"].item() == pytest.approx(2 / 6)  # of six orders
