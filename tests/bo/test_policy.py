"""Choosing a candidate: ties, masks, and scores that are not numbers."""

import jax
import jax.numpy as jnp
import pytest

from metabo.bo.policy import argmax, tie_breakers

PRIORITY = jnp.asarray([0.2, 0.9, 0.5, 0.1])
EVERY = jnp.ones(4, dtype=bool)


@pytest.mark.parametrize(
    ("scores", "mask", "chosen"),
    [
        ([0.0, 1.0, 3.0, 2.0], [1, 1, 1, 1], 2),
        ([0.0, 1.0, 3.0, 2.0], [1, 1, 0, 1], 3),
        ([5.0, 5.0, 5.0, 5.0], [1, 1, 1, 1], 1),  # all tie: the highest priority
        ([5.0, 5.0, 5.0, 5.0], [1, 0, 1, 1], 2),
        ([jnp.nan, 1.0, 3.0, 2.0], [1, 1, 1, 1], 2),  # one score is not a number: the best of the others
        ([jnp.nan] * 4, [1, 1, 1, 1], 1),  # none is: by priority, not always the first
        ([-jnp.inf] * 4, [0, 0, 1, 1], 2),
    ],
)
def test_argmax_by_hand(scores, mask, chosen):
    assert int(argmax(jnp.asarray(scores), jnp.asarray(mask, dtype=bool), PRIORITY)) == chosen


def test_priorities_differ_between_runs():
    first, other = (tie_breakers(jax.random.key(seed), 50) for seed in (0, 1))
    assert ((first >= 0) & (first < 1)).all()
    assert int(first.argmax()) != int(other.argmax())
