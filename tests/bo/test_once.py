"""A fixed prior that queries each candidate once."""

import jax
import jax.numpy as jnp
import numpy as np

from metabo.bo import fixed_prior, once
from metabo.bo.loop import run
from metabo.bo.policy import Candidates
from metabo.gp.model import build

POOL, PADDING = 9, 2


def test_every_candidate_is_queried_once_and_the_choice_is_that_of_the_fixed_prior():
    rng = np.random.default_rng(0)
    pool = Candidates(jnp.asarray(rng.uniform(size=(POOL + PADDING, 2))), jnp.arange(POOL + PADDING) < POOL)
    outputs = jnp.asarray(np.append(rng.normal(size=POOL), np.zeros(PADDING)))
    gp = build({"mean": "constant", "kernel": "matern52", "features": []}, 2, jax.random.key(0))
    settings, first = {"pi_threshold": 0.1}, jnp.asarray([4])
    steps = POOL + 3
    policies = (module.policy(gp, settings, "pi", steps + 1) for module in (once, fixed_prior))
    without, again = (np.asarray(run(p, pool, outputs, first, jax.random.key(1), steps).candidate) for p in policies)
    assert sorted(without[:POOL]) == list(range(POOL)) and without.max() < POOL
    assert len(set(again[:POOL])) < POOL  # it does repeat itself here, and up to then both choose alike
    repeat = next(i for i in range(1, POOL) if again[i] in again[:i])
    np.testing.assert_array_equal(without[:repeat], again[:repeat])
