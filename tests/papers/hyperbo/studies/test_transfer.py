"""S6: losses and posteriors against NumPy, samples, the single-task fit, and the orders of Table 2."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from metabo.gp.constraints import positive
from metabo.papers.engine.studies import files as tables
from metabo.papers.hyperbo.studies import summaries, transfer

JITTER = 1e-6
POINTS = 20


@pytest.fixture(scope="module")
def truth():
    return transfer.truth(jax.random.key(1))


@pytest.fixture(scope="module")
def data(truth):
    return eqx.filter_jit(transfer.sample)(truth, POINTS, jax.random.key(2))


def gaussian(gp, x):
    """Mean and covariance without noise of the truth in NumPy."""
    h = np.asarray(x)
    for weight, bias in zip(gp.mean.features.weights, gp.mean.features.biases, strict=True):
        h = np.tanh(h @ np.asarray(weight) + np.asarray(bias))
    r = np.sqrt(5.0) * np.abs(np.asarray(x) - np.asarray(x).T)
    return h @ np.asarray(gp.mean.weight), (1 + r + r**2 / 3) * np.exp(-r)


def test_the_truth_has_three_hidden_layers_and_a_stationary_kernel_on_x(truth, data):
    assert len(truth.mean.features.weights) == 3
    mean, cov = gaussian(truth, data.x)
    np.testing.assert_allclose(truth.mean(truth.features(data.x)), mean, rtol=1e-10)
    np.testing.assert_allclose(truth.kernel.gram(truth.features(data.x)), cov, rtol=1e-6, atol=1e-9)
    assert float(positive(truth.raw_noise)) == pytest.approx(transfer.NOISE, rel=1e-6)


def test_losses_and_coverage_are_those_of_numpy(truth, data):
    mean, cov = gaussian(truth, data.x)
    noisy = cov + (transfer.NOISE + JITTER) * np.eye(POINTS)
    seen, f = np.asarray(data.observed), np.asarray(data.test)
    values = {name: float(v) for name, v in eqx.filter_jit(transfer.losses)(truth, data).items()}
    assert values["nll"] == pytest.approx(-np.mean([multivariate_normal.logpdf(y, mean, noisy) for y in data.y.T]))
    assert values["nll_f"] == pytest.approx(-multivariate_normal.logpdf(f, mean, noisy))
    part = noisy[np.ix_(seen, seen)]
    assert values["nll_df"] == pytest.approx(-multivariate_normal.logpdf(f[seen], mean[seen], part))
    gain = np.linalg.solve(part, cov[seen]).T
    post = mean + gain @ (f[seen] - mean[seen])
    std = np.sqrt(np.maximum(1 - np.sum(gain * cov[:, seen], axis=1), 0) + transfer.NOISE)
    for level in (95, 99):
        inside = np.abs(f - post) < norm.ppf(0.5 + level / 200) * std
        assert values[f"coverage_{level}"] == pytest.approx(inside.mean())


def test_posterior_samples_have_the_posterior_moments(truth, data):
    many = eqx.filter_jit(jax.vmap(lambda k: transfer.posterior_samples(truth, data, k)))
    paths = np.asarray(many(jax.random.split(jax.random.key(3), 2000)))
    paths = np.moveaxis(paths, 1, 2).reshape(-1, POINTS)
    mean, std = map(np.asarray, transfer.posterior_moments(truth, data))
    hidden = np.setdiff1d(np.arange(POINTS), np.asarray(data.observed))
    z = (paths.mean(axis=0) - mean) / std * np.sqrt(len(paths))
    assert np.abs(z[hidden]).max() < 5
    assert np.abs(paths.std(axis=0) / std - 1)[hidden].max() < 5 / np.sqrt(2 * len(paths))


def test_the_single_task_fit_beats_a_grid():
    x, y = jnp.asarray([[-3.0], [0.5], [2.0]]), jnp.asarray([0.3, 1.0, -0.8])
    gp = eqx.filter_jit(transfer.fit_single)(x, y, 100)
    fitted = -float(gp.log_prob(x, y, jnp.ones(3, bool)))
    lowest = np.inf
    for lengthscale in np.geomspace(0.1, 30, 15):
        gram = np.exp(-0.5 * ((np.asarray(x) - np.asarray(x).T) / lengthscale) ** 2)
        for ratio in (1e-4, 1e-2, 0.3):
            cov = gram + ratio * np.eye(3)
            inverse = np.linalg.inv(cov)
            mean = inverse.sum(axis=0) @ np.asarray(y) / inverse.sum()
            rest = np.asarray(y) - mean
            scale = rest @ inverse @ rest / 3  # the best variance for this shape
            lowest = min(lowest, -multivariate_normal.logpdf(rest, np.zeros(3), scale * cov))
    assert fitted <= lowest + 1e-3


@pytest.mark.slow
def test_the_prior_comes_nearer_to_the_training_functions_with_every_snapshot(made, smoke):
    frames, sizes = tables.read(made("transfer")), smoke.sizes["studies"]["transfer"]
    band = frames["band"].query("kind == 'prior' and model == 'pretrained'")
    truth = frames["function"].query("kind == 'training'").groupby("x")["y"].mean()
    off = {step: np.abs(rows.set_index("x")["mean"] - truth).mean() for step, rows in band.groupby("step")}
    assert list(off) == [*sizes["snapshots"], sizes["steps"]] and off[0] > off[sizes["steps"]]
    observed = frames["function"].query("kind == 'observed'").set_index("x")["y"]
    post = frames["band"].query("kind == 'posterior' and model == 'truth'").set_index("x").loc[observed.index]
    assert np.abs(post["mean"] - observed).max() < 0.05 and post["std"].max() < 0.03


def test_orders_by_hand():
    values = {"truth": [1, 1], "pretrained": [2, 0], "single_task": [3, 3]}
    rows = [
        {"seed": s, "model": m, "metric": metric, "value": v[s]}
        for metric in summaries.ORDERS for m, v in values.items() for s in range(2)
    ]  # fmt: skip
    orders = summaries.orders(pd.DataFrame(rows)).set_index(["metric", "comparison"])["share"]
    assert orders["nll", "truth < pretrained < single_task"] == 0.5
    assert orders["ekl", "truth < pretrained"] == 0.5 and orders["nll_f", "pretrained < single_task"] == 1
    assert orders["nll_df", "single_task < pretrained < truth"] == 0 and orders["nll_df", "pretrained < truth"] == 0.5
    table = summaries.losses(pd.DataFrame(rows)).set_index(["model", "metric"])
    assert table.loc[("pretrained", "nll")].to_dict() == {"mean": 1, "std": 1, "median": 1}
