"""S3: both losses against NumPy, and the count of differing minima."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from metabo.compute.keys import stream
from metabo.papers.engine.studies import files as tables
from metabo.papers.hyperbo.studies import landscapes, summaries

JITTER = 1e-6


@pytest.fixture(scope="module")
def drawn():
    return tuple(map(np.asarray, landscapes.sample(stream(3, "test"))))


def covariance(x, lengthscale, amplitude):
    gram = amplitude**2 * np.exp(-0.5 * ((x - x.T) / lengthscale) ** 2)
    return gram + (landscapes.NOISE + JITTER) * np.eye(len(x))


def eq6(mean, cov, y):
    """Eq. 6 by the eigenvectors of the sample covariance."""
    n = y.shape[1]
    sample = np.cov(y, bias=True)
    value, vector = np.linalg.eigh(sample)
    keep = value > 1e-10 * value.max()
    assert keep.sum() == n - 1
    pseudo = (vector[:, keep] / np.sqrt(value[keep])).T
    projected = pseudo @ cov @ pseudo.T
    shift = pseudo @ (mean - y.mean(axis=1))
    inverse = np.linalg.inv(projected)
    return 0.5 * (np.trace(inverse) + shift @ inverse @ shift + np.linalg.slogdet(projected)[1] - keep.sum())


@pytest.mark.parametrize("parameter", list(landscapes.RANGES))
def test_both_losses_are_those_of_numpy(drawn, parameter):
    x, y = drawn
    curve = landscapes.landscape(x, y, parameter, 9)
    assert (curve["x"].iloc[0], curve["x"].iloc[-1]) == pytest.approx(landscapes.RANGES[parameter])
    for row in curve.itertuples():
        values = landscapes.TRUTH | {parameter: row.x}
        mean = np.full(len(x), values["constant"])
        cov = covariance(x, values["lengthscale"], values["amplitude"])
        nll = -np.mean([multivariate_normal.logpdf(column, mean, cov) for column in y.T])
        assert row.nll == pytest.approx(nll, rel=1e-8)
        assert row.ekl == pytest.approx(eq6(mean, cov, y), rel=1e-6)


def test_functions_come_from_the_matern_truth():
    draws = [landscapes.sample(stream(0, "many", i)) for i in range(200)]
    white = []
    for x, y in (map(np.asarray, draw) for draw in draws):
        r = np.sqrt(5.0) * np.abs(x - x.T)
        cov = (1 + r + r**2 / 3) * np.exp(-r) + (landscapes.NOISE + JITTER) * np.eye(len(x))
        white.append(np.linalg.solve(np.linalg.cholesky(cov), y))
    white = np.array(white)
    # 3000 standard normal numbers: mean within 5 / sqrt(3000), variance within 5 sqrt(2 / 3000)
    assert abs(white.mean()) < 0.092 and abs(white.var() - 1) < 0.13


def test_a_run_shows_a_draw_whose_minima_are_positive(made, smoke):
    frames, sizes = tables.read(made("landscapes")), smoke.sizes["studies"]["landscapes"]
    argmin, curve = frames["argmin"], frames["curve"]
    assert len(argmin) == sizes["draws"] * 3 * 2 and len(curve) == 3 * sizes["grid"] and curve["draw"].nunique() == 1
    shown = argmin[argmin["draw"] == curve["draw"].iloc[0]]
    assert (shown["loss"] > 0).all()
    for row in shown.itertuples():
        own = curve[curve["parameter"] == row.parameter]
        assert own[row.metric].min() == row.loss and own["x"].iloc[own[row.metric].argmin()] == row.x
    assert argmin.groupby(["parameter", "metric"])["loss"].nunique().min() == sizes["draws"], "every draw is its own"


def test_differing_minima_are_counted():
    rows = [(draw, "c", metric, x) for draw, (a, b) in enumerate([(1, 1), (1, 3), (2, 3)]) for metric, x in
            (("ekl", a), ("nll", b))]  # fmt: skip
    table = summaries.differing_argmins(pd.DataFrame(rows, columns=["draw", "parameter", "metric", "x"]))
    assert table["share"].item() == pytest.approx(2 / 3) and table["distance"].item() == 1
    # exact interval of 2 of 3
    assert (table["low"].item(), table["high"].item()) == pytest.approx((0.0943, 0.9916), abs=1e-4)
