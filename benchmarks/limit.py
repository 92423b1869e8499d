"""What a step of Adam, and the loss of a re-fit inside BO, could cost on this machine: a limit with a fixed formula,
measured in the same run.

    limit = FLOP of the compiled step / speed of batched products + tasks x time of (potrf + potri)

- The FLOP are XLA's own count (`cost_analysis`) for loss, gradient and update of one step of `metabo.gp.fit.adam`,
  compiled alone: the same functions in the same order, without the shuffle of the rows and the guard. XLA knows nothing
  of LAPACK's routines and counts each call as -1, so that the factorisations and triangular solves are not in it;
  exponentials and the like are counted apart ("transcendentals") and are not in it either.
- Of a re-fit they are those of one evaluation of its loss and gradient; there is one task.
- The speed is that of (tasks, n, n) x (tasks, n, n) in float64 through JAX, n the points of a task: the best of several
  tries and of batches of 1, 2 and 4 times as many matrices.
- potrf + potri are SciPy's LAPACK (which JAX calls too) on one n x n covariance, the best of several tries.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from case import Timed
from jax.flatten_util import ravel_pytree
from ours import refit_evaluation, to_gp
from problem import Sizes, parameters, training_rows
from scipy.linalg import lapack

from metabo.gp.objectives import nll

COPIES = (1, 2, 4)
"""The batches of products, in tasks: more matrices hide more of the cost of a call."""
CALLS = 20
"""Calls in one try, so that the clock's resolution does not count."""


def step(sizes: Sizes) -> tuple[Callable, tuple]:
    """Return one step of Adam as `metabo.gp.fit.adam` makes it, and its arguments (flat parameters, moments, batch)."""
    x, y = (jnp.asarray(part[:, : sizes.batch]) for part in training_rows(sizes))
    flat, unravel = ravel_pytree(to_gp(parameters(sizes)))
    optimiser = optax.adam(1e-3)

    def one(params, moments, *batch):
        loss, gradient = jax.value_and_grad(lambda vector: nll(unravel(vector), *batch))(params)
        updates, moments = optimiser.update(gradient, moments)
        return optax.apply_updates(params, updates), moments, loss

    return one, (flat, optimiser.init(flat), x, y, jnp.ones(y.shape, bool))


def flop(function: Callable, arguments: tuple) -> float:
    """Return XLA's count of floating-point operations of the compiled function, without calls of libraries."""
    counted = jax.jit(function).lower(*arguments).compile().cost_analysis()
    return float(counted.get("flops", 0.0))


def best_seconds(call: Callable[[], Any], tries: int) -> float:
    """Return the seconds of one call in the fastest of `tries` rows of calls."""
    found = []
    for _ in range(tries):
        start = time.perf_counter()
        for _ in range(CALLS):
            result = call()
        jax.block_until_ready(result)
        found.append(time.perf_counter() - start)
    return min(found) / CALLS


def products(matrices: int, n: int) -> tuple[Callable[[], jax.Array], float]:
    """Return a call of the compiled product of two stacks (matrices, n, n) in float64, and its FLOP."""
    a, b = (jnp.asarray(np.random.default_rng(seed).normal(size=(matrices, n, n))) for seed in (1, 2))
    program = jax.jit(jnp.matmul).lower(a, b).compile()
    program(a, b).block_until_ready()
    return partial(program, a, b), 2.0 * matrices * n**3


def factor_and_invert(covariance: np.ndarray) -> np.ndarray:
    """Return the lower half of the inverse by potrf and potri. `covariance`: in Fortran's order, it is kept."""
    factor, failed = lapack.dpotrf(covariance, lower=1, clean=0)
    inverse, failed_too = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed or failed_too:
        raise ValueError("potrf or potri failed on a positive definite matrix")
    return inverse


def covariance(n: int) -> np.ndarray:
    """Return an n x n covariance that is well conditioned, in Fortran's order."""
    places = np.linspace(0.0, 5.0, n)
    return np.asfortranarray(np.exp(-np.abs(places[:, None] - places)) + 0.1 * np.eye(n))


def limit(function: Callable, arguments: tuple, tasks: int, n: int, tries: int) -> Timed:
    """Measure the formula anew in each turn; the facts are those of the lowest limit so far."""
    needed = flop(function, arguments)
    stacks = [products(copies * tasks, n) for copies in COPIES]
    inverted = partial(factor_and_invert, covariance(n))
    facts: dict[str, float] = {"flop": needed}
    lowest = [np.inf]

    def turn() -> float:
        speed = max(work / best_seconds(call, tries) for call, work in stacks)
        inverse_s = best_seconds(inverted, tries)
        seconds = needed / speed + tasks * inverse_s
        if seconds < lowest[0]:
            lowest[0] = seconds
            facts.update(product_gflops=speed / 1e9, inverse_us=1e6 * inverse_s)
        return 1e3 * seconds

    return Timed(turn, facts=facts)


def of_adam(sizes: Sizes) -> Timed:
    return limit(*step(sizes), sizes.tasks, sizes.batch, sizes.limit_tries)


def of_refit(sizes: Sizes) -> Timed:
    return limit(*refit_evaluation(sizes), 1, sizes.fit_points, sizes.limit_tries)


CASES: dict[str, dict[str, Callable[[Sizes], Timed]]] = {
    "adam": {"limit": of_adam},
    "refit_loss": {"limit": of_refit},
}
