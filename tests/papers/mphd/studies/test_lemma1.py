"""Lemma 1 in one dimension: the construction, the gap against SciPy, and its limit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from metabo.papers.mphd.studies import lemma1 as study

JITTER = 1e-6


@pytest.fixture(scope="module")
def frames():
    return study.run({"seed": 0, "grid": 30})


@pytest.fixture(scope="module")
def drawn():
    return tuple(map(np.asarray, study.sample(study.truth(), 20, jax.random.key(4))))


def covariance(x):
    r = np.sqrt(5.0) * np.abs(x[:, None] - x) / study.LENGTHSCALE
    return (1 + r + r**2 / 3) * np.exp(-r) + (study.NOISE + JITTER) * np.eye(len(x))


def nll(x, y):
    return -multivariate_normal.logpdf(y, np.zeros(len(y)), covariance(x))


def test_inputs_keep_their_distance(drawn):
    x = drawn[0]
    assert x.shape == (study.FUNCTIONS, study.POINTS) and x.min() >= 0 and x.max() <= 1
    assert np.diff(x, axis=1).min() >= study.SPACING - 1e-12
    free = 1 - study.SPACING * (study.POINTS - 1)
    many = np.asarray(jax.vmap(study.inputs)(jax.random.split(jax.random.key(0), 3000)))
    # the k-th of n sorted uniform numbers has mean k / (n + 1)
    expected = free * np.arange(1, study.POINTS + 1) / (study.POINTS + 1) + study.SPACING * np.arange(study.POINTS)
    np.testing.assert_allclose(many.mean(axis=0), expected, atol=5 * free * 0.17 / np.sqrt(3000))


@pytest.mark.parametrize("q", [0.0, 0.1, 1.0, 10.0])
def test_the_gap_is_that_of_scipy(drawn, q):
    x, y = drawn[:2]
    moved = x + (q + 2.0) * np.arange(study.FUNCTIONS)[:, None]
    expected = abs(nll(moved.ravel(), y.ravel()) - sum(nll(a, b) for a, b in zip(x, y, strict=True)))
    assert float(study.gap(study.truth(), jnp.asarray(x), jnp.asarray(y), q)) == pytest.approx(expected, abs=1e-10)


def test_the_gap_vanishes_in_the_limit_only(frames):
    gap = frames["gap"].set_index("x")["gap"]
    total = study.FUNCTIONS * study.POINTS
    assert gap[0.1] > 1e-3 and (gap[[20.0, 40.0]] < 1e-9 * total).all()
    assert gap[10.0] < gap[0.1]


def test_the_pseudo_sub_dataset_is_moved_and_not_changed(frames):
    for name in ("point", "path"):
        wide = frames[name].groupby(["kind", "function"])
        for function in range(study.FUNCTIONS):
            own, moved = wide.get_group(("sub-dataset", function)), wide.get_group(("pseudo", function))
            assert own["y"].tolist() == moved["y"].tolist()
            shift = (study.SHOWN * study.LENGTHSCALE + 2) * function
            np.testing.assert_allclose(moved["x"].to_numpy() - own["x"].to_numpy(), shift, atol=1e-12)
    x = frames["point"].query("kind == 'pseudo'").sort_values("function")["x"].to_numpy().reshape(study.FUNCTIONS, -1)
    between = x[1:].min(axis=1) - x[:-1].max(axis=1)
    assert between.min() > study.SHOWN * study.LENGTHSCALE


def test_functions_go_through_their_observations_up_to_noise(drawn):
    x, y, at, values = drawn
    assert values.shape == (study.FUNCTIONS, 20) and at[0] == 0 and at[-1] == 1
    error = [np.interp(a, at, v) - b for a, b, v in zip(x, y, values, strict=True)]
    assert np.abs(error).max() < 6 * np.sqrt(study.NOISE)
