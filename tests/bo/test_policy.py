"""Choosing a candidate: ties, masks, and scores that are not numbers."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import metabo
from metabo.bo.policy import argmax, remaining, tie_breakers

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


def test_what_may_be_queried_after_a_query():
    valid = jnp.asarray([1, 1, 0, 1], dtype=bool)
    after = remaining(valid, valid, jnp.asarray(1), repeats=False)
    assert after.tolist() == [True, False, False, True]
    assert remaining(valid, valid, jnp.asarray(1), repeats=True).tolist() == valid.tolist()
    last = jnp.asarray([0, 0, 0, 1], dtype=bool)
    assert remaining(last, valid, jnp.asarray(3), repeats=False).tolist() == valid.tolist()  # all are left again


SOURCE = Path(metabo.__file__).parent
STEPS = ("select", "observe")
ELSEWHERE = {
    "bo/protocol.py": "it asks each once, to say which of them is to blame for a run that failed",
    "bo/replay.py": "it tells the policy what is recorded, and compares what it would have chosen",
    "papers/cmbo/studies/timing.py": "it times one step",
    "papers/hyperbo/theory/algorithm.py": "a policy that hands both calls on",
}


def test_one_loop_asks_policies_and_tells_them():
    def called(path):
        tree = ast.parse(path.read_text())
        return {node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "attr")}

    loops = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if set(STEPS) <= called(path)}
    assert loops - {"bo/loop.py"} == set(ELSEWHERE), "a run of a policy is `metabo.bo.loop.play`"
