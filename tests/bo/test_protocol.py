"""A policy that breaks the protocol is told by method, file and function; one that keeps it is not looked at twice."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo.policy import Candidates, Info
from metabo.bo.protocol import Blamed, refuse_forbidden, require_policy, told
from metabo.errors import ConfigError, DataError
from metabo.methods.random.policy import Nothing, Uniform

POOL = Candidates(jnp.zeros((4, 2)), jnp.asarray([True, True, True, False]))
BLAMED = Blamed("tests/bo/test_protocol.py", "mine")
SAID = Info(jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(jnp.nan), jnp.asarray(True))


class State(NamedTuple):
    best: jax.Array


class Good(eqx.Module):
    repeats = False

    def init(self, candidates, key):
        return State(jnp.asarray(-jnp.inf))

    def select(self, state, mask, key):
        return jnp.argmax(mask), SAID

    def observe(self, state, index, y):
        return State(jnp.maximum(state.best, y))


def of(**functions) -> type:
    return type("Bad", (Good,), {"__annotations__": {}, **functions})


def growing(self, state, index, y):
    return State(jnp.append(state.best, y))


def numpy_only(self, state, index, y):
    return State(jnp.asarray(max(state.best, y)))


def choosing(give) -> type:
    """A policy that selects what a function of the mask gives."""
    return of(select=lambda self, state, mask, key: give(mask))


def leaving(give) -> type:
    """A policy whose state after a query is what a function of the output gives."""
    return of(observe=lambda self, state, index, y: give(y))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (choosing(jnp.argmax), r"`select` returns \w+, no pair; return a candidate's index and its `Info`"),
        (choosing(lambda mask: SAID), "`select` returns Info, no pair"),
        (choosing(lambda mask: (jnp.argmax(mask), 3.0)), "`select` says nothing of mean, std, noise, ok"),
        (choosing(lambda mask: (jnp.sum(1.0 * mask), SAID)), r"`select` chooses float64\[\]; return one whole number"),
        (choosing(lambda mask: (jnp.where(mask)[0], SAID)), "`select` fails in line [0-9]+ .*write jax.numpy, fixed"),
        (of(select=lambda self, state, mask: (0, SAID)), r"`select` fails \(TypeError: .*positional arguments"),
        (leaving(lambda y: None), "`observe` returns nothing; return the state, of the shapes that `init` gave it"),
        (leaving(lambda y: y), "`observe` returns .* of other parts than State before it"),
        (of(observe=growing), r"`observe` changes best from float64\[\] to float64\[2\]"),
        (of(observe=numpy_only), r"`observe` fails in line [0-9]+ \(TracerBool.*jnp.where in place of `if`"),
        (of(init=lambda self, candidates: 3), r"`init` fails \(TypeError"),
        (lambda: Good(3), r"`policy` fails in line [0-9]+ \(TypeError"),
        (lambda: {}["scale"], r"`policy` fails in line [0-9]+ \(KeyError: 'scale'\); mend it"),
    ],
)
def test_what_breaks_the_protocol_is_told_by_function_and_line(policy, said):
    with pytest.raises(ConfigError, match=f"^tests/bo/test_protocol.py: the policy of method 'mine': {said}") as error:
        require_policy(policy, POOL, BLAMED)
    assert len(str(error.value).splitlines()) == 1


def test_one_that_keeps_it_is_traced_without_a_word_and_not_before_something_fails():
    require_policy(Good, POOL, BLAMED)
    require_policy(lambda: Uniform(Nothing(jnp.zeros(()))), POOL, BLAMED)  # it remembers nothing
    made = []
    with told(lambda: made.append(1), POOL, BLAMED):
        pass
    assert not made
    with pytest.raises(ZeroDivisionError), told(Good, POOL, BLAMED):
        raise ZeroDivisionError
    with pytest.raises(DataError, match=r"a\.csv"), told(of(init=None), POOL, BLAMED):
        raise DataError("a.csv")
    with pytest.raises(ConfigError, match="`observe` returns"), told(leaving(lambda y: None), POOL, BLAMED):
        raise TypeError


VALID = np.array([[True, True, True, False]])


@pytest.mark.parametrize(
    ("chosen", "given", "repeats", "said"),
    [
        ([0, 1, 2], 0, False, ""),
        ([0, 1, 2, 0, 1], 0, False, ""),  # all were queried, so all may be again
        ([0, 0, 0], 0, True, ""),
        ([0, 0, 1], 2, False, ""),  # given points may be equal
        ([0, 0, 1], 0, False, "chooses candidate 0 at step 2, which was queried before"),
        ([0, 1, 1], 1, False, "chooses candidate 1 at step 2, which was queried before"),
        ([0, 1, 2, 0, 0], 0, False, "chooses candidate 0 at step 5, which was queried before"),
        ([0, 3], 0, True, "chooses candidate 3 at step 2, which does not exist"),  # it is padding
        ([0, 4], 0, True, "chooses candidate 4 at step 2, which does not exist"),
        ([-1], 0, True, "chooses candidate -1 at step 1, which does not exist"),
    ],
)
def test_queries_of_what_may_not_be_queried_are_refused(chosen, given, repeats, said):
    if not said:
        refuse_forbidden(np.array([chosen]), VALID, given, repeats, BLAMED)
        return
    with pytest.raises(ConfigError, match=f"method 'mine' {said}; choose where the `mask` of `select` is True"):
        refuse_forbidden(np.array([chosen]), VALID, given, repeats, BLAMED)
