"""x04: on one matched block the training losses differ by a constant; Eq. 6 and unequal blocks break it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from metabo.papers.engine.studies import files as tables
from metabo.papers.hyperbo.studies import training_losses as study


@pytest.fixture(scope="module")
def frames(made):
    return tables.read(made("training_losses"))


def values(frames, kind):
    rows = frames["difference"]
    return rows[rows["kind"] == kind]


def test_the_sample_covariance_is_singular():
    (_, y), (_, other) = study.sample(jax.random.key(0))
    assert np.linalg.matrix_rank(np.cov(y)) == study.FUNCTIONS[0] - 1 < study.POINTS
    assert other.shape == (study.POINTS, study.FUNCTIONS[1])


def test_ekl_minus_nll_is_the_constant_along_the_run(frames):
    rows = values(frames, "one_block")
    assert len(rows) == 13 and rows["expected"].unique().item() == pytest.approx(-study.POINTS / 2 * np.log(2 * np.pi))
    assert (rows["value"] - rows["expected"]).abs().max() < 1e-8
    loss = frames["loss"]
    assert np.ptp(loss[loss["metric"] == "nll_one_block"]["value"]) > 0.5, "the run must move"


@pytest.mark.parametrize("kind", ["eq6", "two_blocks"])
def test_the_controls_break_the_identity(frames, kind):
    assert values(frames, kind)["value"].std() > 1e-2


def test_losses_of_the_first_step_are_those_of_numpy():
    key = jax.random.key(5)
    blocks = study.sample(key)
    gp = study.build(study.MODEL, study.DIM, key)
    data = {"b": study.moments(blocks)}
    found = {k: float(v) for k, v in study.losses(gp, data, {"b": study.rows(blocks)}).items()}
    nll, ekl = [], []
    for x, y in blocks:
        phi = gp.features(jnp.asarray(x))
        mean, cov = np.asarray(gp.mean(phi)), np.asarray(gp.covariance(phi, jnp.ones(len(x), bool)))
        nll += [-multivariate_normal.logpdf(column, mean, cov) for column in y.T]
        shift, inverse = y.mean(axis=1) - mean, np.linalg.inv(cov)
        trace = np.trace(inverse @ np.cov(y, bias=True))
        ekl.append(0.5 * (trace + shift @ inverse @ shift + np.linalg.slogdet(cov)[1]))
    assert found == {"ekl_b": pytest.approx(np.mean(ekl)), "nll_b": pytest.approx(np.mean(nll))}
