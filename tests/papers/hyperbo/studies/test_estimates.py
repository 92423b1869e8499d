"""S4 and S5: posteriors against closed forms in NumPy, the rescaling, the pre-trained fit, the summaries."""

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from metabo.compute.keys import stream
from metabo.papers.engine.studies import files as tables
from metabo.papers.hyperbo.studies import estimates, summaries

JITTER = 1e-6 + 1e-10


@pytest.fixture(scope="module")
def frames(made):
    return tables.read(made("estimates"))


@pytest.fixture(scope="module")
def drawn(frames):
    """The first draw of ten functions: x in the order of observation, training functions (5, 10), test function."""
    training = frames["training"].query("functions == 10").pivot(index="x", columns="function", values="y")
    test = frames["test"].query("functions == 10").sort_values("observed_from")
    x = test["x"].to_numpy()
    return x, training.loc[x].to_numpy(), test["y"].to_numpy()


@pytest.fixture(scope="module")
def posteriors(frames, drawn):
    """Mean, variance and KL of that draw by (observations, model), points in the order of observation."""
    shown = frames["marginal"].query("functions == 10 and draw == 0")
    cells = {case: rows.set_index("x") for case, rows in shown.groupby(["observations", "model"])}
    return {(n, m): c.loc[drawn[0][n:], ["mean", "variance", "kl"]].to_numpy() for (n, m), c in cells.items()}


def conditional(mean, cov, n, y):
    """Mean and variance of the entries after the first n, by the precision matrix of the joint Gaussian."""
    precision = np.linalg.inv(cov)[n:, n:]
    post = np.linalg.inv(precision)
    shift = -post @ np.linalg.inv(cov)[n:, :n] @ (y[:n] - mean[:n])
    return mean[n:] + shift, np.diag(post)


def kernel(x, lengthscale, variance):
    return variance * np.exp(-0.5 * ((x[:, None] - x) / lengthscale) ** 2) + JITTER * np.eye(len(x))


def test_posteriors_of_truth_and_estimates_are_the_closed_forms(drawn, posteriors):
    x, y, test = drawn
    joint = {"truth": (np.zeros(5), kernel(x, 1, 1)), "mle": (y.mean(axis=1), np.cov(y, bias=True))}
    for n in range(5):
        true_mean, true_variance = conditional(*joint["truth"], n, test)
        for model, factor in (("truth", 1.0), ("mle", 1.0), ("unbiased", 10 / (10 - n - 1))):
            mean, variance = conditional(*joint["mle" if model == "unbiased" else model], n, test)
            variance = factor * variance
            kl = 0.5 * (true_variance / variance + (mean - true_mean) ** 2 / variance - 1)
            kl += 0.5 * np.log(variance / true_variance)
            np.testing.assert_allclose(posteriors[n, model], np.stack([mean, variance, kl], 1), rtol=1e-7, atol=1e-10)


def test_without_observations_the_unbiased_estimate_is_the_sample_covariance(drawn, posteriors):
    _, y, _ = drawn
    np.testing.assert_allclose(posteriors[0, "unbiased"][:, 1], y.var(axis=1, ddof=1), rtol=1e-12)


def test_the_pretrained_gp_minimises_ekl(drawn, posteriors):
    x, y, _ = drawn
    sample_mean, sample_cov = y.mean(axis=1), np.cov(y, bias=True)

    def ekl(log):
        cov = kernel(x, *np.exp(log))
        inverse = np.linalg.inv(cov)
        quadratic = sample_mean @ inverse @ sample_mean
        gap = np.linalg.slogdet(cov)[1] - np.linalg.slogdet(sample_cov)[1]
        return 0.5 * (np.trace(inverse @ sample_cov) + quadratic + gap - 5)

    best = minimize(ekl, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    variance = np.exp(best.x[1]) + JITTER
    np.testing.assert_allclose(posteriors[0, "pretrained"][:, 1], variance, rtol=1e-3)
    assert abs(variance - 1) > 1e-3, "it must not be the truth"


def test_tables_of_a_run(frames, smoke):
    draws = smoke.sizes["studies"]["estimates"]["draws"]
    counts = frames["marginal"].groupby(["functions", "observations", "model"]).size()
    assert all(counts[n, t, m] == draws * (5 - t) for n in (10, 50) for t in range(5) for m in estimates.MODELS)
    assert frames["training"].groupby("functions").size().to_dict() == {10: 50, 50: 250}
    priors = frames["marginal"].query("observations == 0 and model == 'mle'")
    assert priors["mean"].nunique() == len(priors), "draws and sizes have their own functions"


def test_functions_come_from_the_truth():
    keys = jax.random.split(stream(0, "test"), 300)
    order, y, test = map(np.asarray, jax.jit(jax.vmap(lambda key: estimates.sample(key, 10)))(keys))
    white = []
    for x, training, f in zip(np.asarray(estimates.DOMAIN)[order], y, test, strict=True):
        white.append(np.linalg.solve(np.linalg.cholesky(kernel(x, 1, 1)), np.column_stack([training, f])))
    white = np.array(white)  # 16500 standard normal numbers: mean within 5 / sqrt(16500), variance 5 sqrt(2 / 16500)
    assert abs(white.mean()) < 0.039 and abs(white.var() - 1) < 0.056
    assert {tuple(sorted(o)) for o in order.tolist()} == {(0, 1, 2, 3, 4)} and len(np.unique(order, axis=0)) > 60


def marginal(models: dict[str, list[float]], column: str) -> pd.DataFrame:
    """Two draws of one point each."""
    rows = [
        {"functions": 10, "observations": 3, "draw": d, "model": m, "x": 1.0, column: v[d]}
        for m, v in models.items() for d in range(2)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_summaries_by_hand():
    kl = marginal({"truth": [0, 0], "mle": [4, 2], "unbiased": [1, 2], "pretrained": [0.5, 3]}, "kl")
    medians = summaries.kl_medians(kl).set_index("model")["median"]
    assert medians.to_dict() == {"mle": 3, "unbiased": 1.5, "pretrained": 1.75}
    assert summaries.pretrained_wins(kl)["share"].item() == 0.5
    variance = marginal({"truth": [1, 2], "mle": [0.5, 1.4], "unbiased": [1, 2.4], "pretrained": [1, 1]}, "variance")
    ratio = summaries.variance_ratios(variance).set_index("model")
    assert ratio.loc["mle", "expected"] == 0.6 and ratio.loc["unbiased", "expected"] == 1
    assert ratio["ratio"].tolist() == pytest.approx([0.6, 1.1]) and ratio["error"].tolist() == pytest.approx([0.1, 0.1])
    assert ratio["z"].tolist() == pytest.approx([0.0, 1.0])
