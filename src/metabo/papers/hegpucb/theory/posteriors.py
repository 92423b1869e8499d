"""Runs of the algorithms on many functions, and the posteriors before every query, factorised anew from the data.

`metabo.methods.elimination.simulate` updates its posteriors one observation at a time. What a theorem says of all x and
t is judged here on posteriors from one Cholesky factor a run, which share no code with it.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int, Key

from metabo.errors import NumericsError
from metabo.methods.elimination.confidence import greedy_gain
from metabo.methods.elimination.problem import EliminationSettings, Problem
from metabo.methods.elimination.simulate import Trace, run_all, traced

BATCH = 50
"""Runs that are factorised side by side."""


class PosteriorTrace(NamedTuple):
    """Before each of T queries of N runs: how far f is from the mean, max_x |f - μ_{t-1}|/σ_{t-1}; the gain (N, T).

    `gain`: ½ log|I + K_{X_{t-1}}/R²| (nats).
    """

    distance: Float[np.ndarray, "n t"]
    gain: Float[np.ndarray, "n t"]


def simulate(
    problem: Problem,
    rule: str,
    settings: EliminationSettings,
    key: Key[Array, ""],
    f: Float[np.ndarray, "n c"],
    truth: Int[np.ndarray, " n"] | None = None,
) -> Trace:
    """Run `rule` once on every function: NumPy arrays with leading axis N. Raises NumericsError for an unsound run."""
    keys = jax.random.split(key, len(f))
    truths = None if truth is None else jnp.asarray(truth)
    found = run_all(problem, (rule,), traced(settings), keys, jnp.asarray(f), truths)
    trace = jax.tree.map(lambda leaf: np.asarray(leaf)[0], found)
    if not trace.ok.all():
        raise NumericsError(f"theory check: {int((~trace.ok).sum())} iterations of {rule} have no posterior; raise R")
    return trace


def posterior(
    gram: Float[np.ndarray, "c c"],
    mean: Float[np.ndarray, " c"],
    noise: float,
    f: Float[np.ndarray, "n c"],
    index: Int[np.ndarray, "n t"],
    y: Float[np.ndarray, "n t"],
) -> PosteriorTrace:
    """Return the posteriors of the prior (mean, gram) with noise variance `noise` before each query of every run."""
    found = _all_runs(jnp.asarray(gram), jnp.asarray(mean), noise, jnp.asarray(f), jnp.asarray(index), jnp.asarray(y))
    return PosteriorTrace(*(np.asarray(values) for values in found))


def posteriors_at(
    gram: Float[np.ndarray, "c c"],
    mean: Float[np.ndarray, " c"],
    noise: float,
    index: Int[np.ndarray, "n t"],
    y: Float[np.ndarray, "n t"],
) -> tuple[Float[np.ndarray, "n t"], Float[np.ndarray, "n t"]]:
    """Return mean and variance at every query of every run, before it was observed (n, t)."""
    found = _all_queries(jnp.asarray(gram), jnp.asarray(mean), noise, jnp.asarray(index), jnp.asarray(y))
    means, variances = (np.asarray(values) for values in found)
    return means, variances


@jax.jit
def _all_queries(gram, mean, noise, index, y):
    def one(entry):
        at, out = entry
        means, variances, _ = moments(gram, mean, noise, at, out)
        step = jnp.arange(len(at))
        return means[step, at], variances[step, at]

    return jax.lax.map(one, (index, y), batch_size=BATCH)


@jax.jit
def _all_runs(gram, mean, noise, f, index, y):
    def one(entry):
        own, at, out = entry
        means, variances, gain = moments(gram, mean, noise, at, out)
        return jnp.max(jnp.abs(own - means) / jnp.sqrt(variances), axis=1), gain

    return jax.lax.map(one, (f, index, y), batch_size=BATCH)


def moments(
    gram: Float[Array, "c c"],
    mean: Float[Array, " c"],
    noise: Float[Array, ""] | float,
    index: Int[Array, " t"],
    y: Float[Array, " t"],
) -> tuple[Float[Array, "t c"], Float[Array, "t c"], Float[Array, " t"]]:
    """Return μ_{t-1}, σ²_{t-1} on the domain (t, c) and the information gain of X_{t-1} (t,), t = 1..T.

    The factor of the first t - 1 observations is a corner of the factor of all of them.
    """
    factor = jnp.linalg.cholesky(gram[index][:, index] + noise * jnp.eye(len(index)))
    rows = solve_triangular(factor, gram[index], lower=True)
    white = solve_triangular(factor, y - mean[index], lower=True)
    means = mean + _before(rows * white[:, None])
    variances = jnp.diagonal(gram) - _before(rows**2)
    gain = _before(jnp.log(jnp.diagonal(factor)) - 0.5 * jnp.log(noise))
    return means, jnp.maximum(variances, 1e-12), gain


def _before(terms: Float[Array, "t ..."]) -> Float[Array, "t ..."]:
    """Return the sums of the terms before each."""
    return jnp.cumsum(terms, axis=0) - terms


@partial(jax.jit, static_argnums=2)
def greedy(gram: Float[Array, "c c"], noise: Float[Array, ""] | float, length: int) -> Float[Array, " t"]:
    """Return the gain of greedily chosen 0, 1, ..., T - 1 points: γ_{t-1} is at most this over 1 - 1/e."""
    return jnp.concatenate([jnp.zeros(1), greedy_gain(gram, noise, length)])[:length]
