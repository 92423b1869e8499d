"""The limits of a step of Adam and of the loss of a re-fit: the formula, and that its parts are what they say."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import limit
import numpy as np
import ours
import problem
import pytest
from jax.flatten_util import ravel_pytree

from metabo.gp.fit import lbfgs
from metabo.methods.single_task import policy as single_task
from metabo.tasks.rows import Rows

SIZES = replace(problem.QUICK, tasks=3, rows=10, batch=10)


def test_the_step_is_that_of_the_training():
    """With a batch of all rows, one step of `fit.adam` gives the same parameters and loss."""
    step, (flat, moments, *batch) = limit.step(SIZES)
    found, _, loss = jax.jit(step)(flat, moments, *batch)
    trained, log = ours.trainer(SIZES, 1)(ours.to_gp(problem.parameters(SIZES)), jax.random.key(0))
    assert not np.allclose(found, flat, atol=1e-4)
    np.testing.assert_allclose(found, ravel_pytree(trained)[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(loss, log.loss[0], rtol=1e-12)


def test_products_are_counted():
    a = jnp.ones((3, 10, 10))
    assert limit.flop(jnp.matmul, (a, a)) == limit.products(3, 10)[1] == 2 * 3 * 10**3


@pytest.mark.parametrize("call", [jnp.linalg.cholesky, lambda a: jax.scipy.linalg.solve_triangular(a, a, lower=True)])
def test_calls_of_lapack_are_not_counted(call):
    """The formula adds potrf + potri because of that."""
    n = 60
    assert limit.flop(call, (jnp.eye(n),)) < n**3 / 3


def test_exponentials_are_not_counted():
    assert limit.flop(jnp.exp, (jnp.ones(1000),)) == 0


def test_the_step_holds_the_work_of_its_products():
    """Two products of the inverse alone are 4 n^3 for each task; a thousand times that would be no step."""
    sizes = replace(SIZES, rows=50, batch=50)
    counted = limit.flop(*limit.step(sizes)) / (sizes.tasks * 50**3)
    assert 2 < counted < 100
    more = limit.flop(*limit.step(replace(sizes, tasks=6)))
    assert more / 6 / 50**3 == pytest.approx(counted, rel=0.05)


def test_inverse_is_the_inverse():
    matrix = limit.covariance(12)
    kept = matrix.copy()
    lower = np.tril(limit.factor_and_invert(matrix))
    np.testing.assert_allclose(lower + np.tril(lower, -1).T, np.linalg.inv(kept), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(matrix, kept)
    with pytest.raises(ValueError, match="failed"):
        limit.factor_and_invert(np.asfortranarray(-np.eye(3)))


def test_the_formula(monkeypatch):
    """FLOP / speed + tasks x inverse, with clocks that we set: the largest batch is the fastest for its work."""
    asked = []

    def seconds(call, tries):
        asked.append(tries)
        return 2e-6 if getattr(call, "func", None) is limit.factor_and_invert else 1e-3

    monkeypatch.setattr(limit, "best_seconds", seconds)
    case = limit.of_adam(SIZES)
    needed = limit.flop(*limit.step(SIZES))
    speed = 2 * 4 * 3 * 10**3 / 1e-3
    assert case.turn() == pytest.approx(1e3 * (needed / speed + 3 * 2e-6))
    assert case.facts == pytest.approx({"flop": needed, "product_gflops": speed / 1e9, "inverse_us": 2.0})
    assert set(asked) == {SIZES.limit_tries}


def test_a_refit_has_one_task(monkeypatch):
    monkeypatch.setattr(limit, "best_seconds", lambda call, tries: 1e-3)
    case = limit.of_refit(SIZES)
    needed = limit.flop(*ours.refit_evaluation(SIZES))
    assert needed > 2 * SIZES.fit_points**3
    assert case.turn() == pytest.approx(1e3 * (needed / (2 * 4 * SIZES.fit_points**3 / 1e-3) + 1e-3))


def test_the_loss_is_that_of_the_policy():
    """Where a fit of STBOH's policy ends, the gradient is 0; where it begins it is not."""
    evaluate, (flat, x, y, mask) = ours.refit_evaluation(SIZES)
    start = single_task.start(
        {"mean": "constant", "kernel": "matern52", "features": []}, SIZES.dim, 1, jax.random.key(0)
    )
    np.testing.assert_array_equal(ravel_pytree(start)[0], flat)
    fitted, ok = single_task.policy(start, {"refit_steps": 500}, "ei", len(y)).fit(start, Rows(x, y, mask))
    assert ok
    begin, end = (np.linalg.norm(evaluate(ravel_pytree(raw)[0], x, y, mask)[1]) for raw in (start, fitted))
    assert end < 2e-3 < 0.1 < begin


def test_evaluations_are_counted(monkeypatch):
    """As often as Python enters the loss where nothing is compiled."""
    entered = []

    def evaluate(vector):
        return jax.value_and_grad(lambda v: jnp.sum(v**4) + v[0] * v[1])(vector)

    def loss(vector):
        entered.append(1)
        return jnp.sum(vector**4) + vector[0] * vector[1]

    start = jnp.asarray([3.0, -2.0])
    monkeypatch.setattr(ours, "refit_evaluation", lambda _: (evaluate, (start,)))
    found = ours.evaluations_per_step(replace(SIZES, refit_steps=4))
    with jax.disable_jit():
        _, log = lbfgs(loss, start, steps=4)
    assert found == len(entered) / ours.moves(log) > 1


def test_facts_are_those_of_the_lowest_limit(monkeypatch):
    clock = iter([1e-3] * 3 + [1e-6] + [1e-4] * 3 + [1e-6] + [1e-2] * 3 + [1e-6])
    monkeypatch.setattr(limit, "best_seconds", lambda call, tries: next(clock))
    case = limit.of_adam(SIZES)
    turns = [case.turn() for _ in range(3)]
    assert turns[1] < turns[0] < turns[2]
    assert case.facts["product_gflops"] == pytest.approx(2 * 4 * 3 * 10**3 / 1e-4 / 1e9)


def test_best_is_the_fastest_try(monkeypatch):
    now = iter([0.0, 3.0, 10.0, 12.0, 20.0, 29.0])
    monkeypatch.setattr(limit.time, "perf_counter", lambda: next(now))
    assert limit.best_seconds(lambda: np.zeros(1), 3) == 2.0 / limit.CALLS
