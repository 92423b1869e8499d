"""A fixed prior under other readings of the acquisitions: PI's margin in deviations, the authors' n/(n-1)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import fixed_prior, readings
from metabo.bo.loop import run
from metabo.bo.policy import Candidates
from metabo.errors import ConfigError
from metabo.gp.model import build
from metabo.tasks.rows import Rows
from tests import references

POOL, STEPS, TASKS = 40, 8, 3


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(2)
    pool = Candidates(jnp.asarray(rng.uniform(size=(POOL, 2))), jnp.ones(POOL, dtype=bool))
    outputs = jnp.asarray(rng.normal(size=POOL))
    gp = build({"mean": "constant", "kernel": "matern52", "features": []}, 2, jax.random.key(0))
    lengths = (6, 4, 1)
    mask = np.arange(6) < np.array(lengths)[:, None]
    y = np.where(mask, 3.0 * rng.normal(size=(TASKS, 6)), 1e6)  # padding must not be read
    return gp, pool, outputs, Rows(rng.uniform(size=(TASKS, 6, 2)), y, mask)


def chosen(module, world, settings, acquisition):
    gp, pool, outputs, past = world
    policy = module.policy(gp, settings, acquisition, STEPS + 1, past)
    return run(policy, pool, outputs, jnp.asarray([4]), jax.random.key(1), STEPS)


def test_the_factor_counts_the_test_task_once_it_has_an_observation():
    factor = lambda tasks, observed: float(readings.variance_factor(jnp.asarray(tasks), jnp.asarray(observed)))  # noqa: E731
    assert factor(20.0, 0) == pytest.approx(20 / 19) and factor(20.0, 1) == factor(20.0, 7) == pytest.approx(21 / 20)
    assert factor(1.0, 0) == 1.0 and factor(1.0, 1) == 2.0
    assert factor(0.0, 0) == factor(0.0, 5) == 1.0, "the switch is off"


def test_the_deviation_of_outputs_is_the_mean_over_tasks_with_two_rows(world):
    past = world[3]
    expected = np.mean([np.std(past.y[k][past.mask[k]]) for k in (0, 1)])
    assert float(readings.output_deviation(past)) == pytest.approx(expected, rel=1e-12)


def test_a_margin_in_deviations_is_that_margin_times_the_deviation(world):
    found = chosen(readings, world, {"pi_threshold": 0.1, "margin": "deviations"}, "pi")
    wanted = {"pi_threshold": 0.1 * float(readings.output_deviation(world[3]))}
    same, other = (chosen(fixed_prior, world, settings, "pi") for settings in (wanted, {"pi_threshold": 0.1}))
    np.testing.assert_array_equal(found.candidate, same.candidate)
    assert (np.asarray(found.candidate) != np.asarray(other.candidate)).any(), "the margin changes a query here"
    plain = chosen(fixed_prior, world, {}, "ei")
    np.testing.assert_array_equal(chosen(readings, world, {"margin": "deviations"}, "ei").candidate, plain.candidate)


@pytest.mark.parametrize("acquisition", ["pi", "ei", "ucb3"])
def test_an_unbiased_variance_is_what_a_dense_computation_scores_by(world, acquisition):
    """Only PI has the same maximiser with and without the factor; what is told is the model's own deviation."""
    gp, pool, outputs, _ = world
    found = chosen(readings, world, {"unbiased": True}, acquisition)
    picked, y = [*map(int, found.candidate)], np.asarray(outputs)
    x = np.asarray(pool.x)
    dense = references.DenseGP(gp)
    for step in range(1, len(picked)):
        mean, variance = dense.posterior(x[picked[:step]], y[picked[:step]], x)
        std = np.sqrt(np.maximum(variance, 0.0) + dense.noise)
        assert float(found.info.std[step]) == pytest.approx(std[picked[step]], rel=1e-6)
        scores = references.score(acquisition, mean, np.sqrt((TASKS + 1) / TASKS) * std, y[picked[:step]].max(), step)
        assert scores[picked[step]] == pytest.approx(scores.max(), rel=1e-8)
    plain = chosen(fixed_prior, world, {}, acquisition)
    if acquisition == "pi":
        np.testing.assert_array_equal(found.candidate, plain.candidate)


def test_a_unit_that_there_is_not_is_refused(world):
    with pytest.raises(ConfigError, match="margin"):
        chosen(readings, world, {"margin": "inches"}, "pi")
