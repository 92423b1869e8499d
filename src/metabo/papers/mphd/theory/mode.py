"""Eq. 6 (MPHD §4): the MAP loss of the package, its gradient, and MAP → MLE.

The paper uses Eq. 6 for the observations of one test function on a fixed space. There, less is known of the rate than
for the independent sub-datasets of Step 1 (§3.1): both are checked.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key
from scipy import stats

from metabo.methods.hierarchical.hyperprior import Hyperprior, Parameters, gamma_log_density, map_loss, to_gp
from metabo.papers.engine.theory.estimated import rate, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import Ruling, identity, inequality
from metabo.papers.mphd.theory import likelihood
from metabo.papers.mphd.theory.lengthscales import (
    POINTS,
    TIE,
    counts,
    covariances,
    grid,
    losses,
    minimise,
    scatters,
    spaced,
    table,
)

CHECKS = {"equation6": "Eq. 6: maximum a posteriori"}
STEP = 1e-3
"""Of the finite differences, of fourth order, in the unconstrained parameters."""
GRADIENT = 1e-5
"""Largest relative difference from them (sheet §7)."""
TRUTH, PRIOR = 0.3, (10.0, 15.0)
"""ℓ* and a Gamma prior with its mode at 0.6."""
SIZES = 2 ** np.arange(4, 11)
"""M: 16 to 1024 sub-datasets of POINTS observations."""
DESIGNS, RUNS = 4, 1000
RATE = (-np.inf, -0.8)
OBSERVATIONS = 10 * 2 ** np.arange(6)
"""n: 10 to 320 observations of one function."""
FUNCTIONS = 50
"""Functions for each of DESIGNS sequences of inputs, uniform in [0, 1]."""
DECREASES = (-np.inf, 0.0)


def priors(rng: np.random.Generator, count: int) -> Hyperprior:
    """Draw a stack of priors: Normal for the constant, Gamma for the others."""

    def gammas(*shape: int) -> Array:
        return jnp.asarray(np.stack([rng.uniform(0.5, 10.0, shape), rng.uniform(0.5, 30.0, shape)], axis=-1))

    normal = jnp.asarray(np.stack([rng.standard_normal(count), rng.uniform(0.2, 2.0, count)], axis=-1))
    return jax.vmap(Hyperprior)(normal, gammas(count, likelihood.DIM), gammas(count), gammas(count))


def log_priors(theta: Parameters, prior: Hyperprior) -> np.ndarray:
    """Return Σ_h log p(θ_h | α_h) (n,) by SciPy's densities."""
    normal = stats.norm.logpdf(theta.constant, *np.asarray(prior.constant).T)
    gammas = [
        stats.gamma.logpdf(value, np.asarray(numbers)[..., 0], scale=1.0 / np.asarray(numbers)[..., 1])
        for value, numbers in zip(theta[1:], prior.numbers[1:], strict=True)
    ]
    return normal + gammas[0].sum(axis=-1) + gammas[1] + gammas[2]


def equation6(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the loss against SciPy, its gradient against finite differences, and that the prior's weight falls."""
    rng = generator(key)
    return [
        statement("Eq. 6", "NLL less the log prior is what MAP minimises", "§4", _loss(rng)),
        statement("Eq. 6, sub-datasets", "MAP → maximum likelihood as the sub-datasets of a domain grow", "§4",
                  [_limit(rng, runs(RUNS, share))], "ours"),
        statement("Eq. 6, one function", "MAP comes closer to maximum likelihood as the observations of one function "
                  "on [0, 1] grow", "§4", [_one_function(rng)], "ours"),
    ]  # fmt: skip


def _loss(rng: np.random.Generator) -> list[StatementPart]:
    drawn = likelihood.cases(rng)
    prior = priors(rng, likelihood.CASES)
    theta = jax.tree.map(jnp.asarray, drawn.theta)
    data = tuple(map(jnp.asarray, drawn[:3]))
    _, unravel = ravel_pytree(to_gp(jax.tree.map(lambda leaf: leaf[0], theta), likelihood.KERNEL))
    flat = jax.vmap(lambda t: ravel_pytree(to_gp(t, likelihood.KERNEL))[0])(theta)

    def loss(raw: Float[Array, " q"], own: Hyperprior, *rows: Array) -> Float[Array, ""]:
        return map_loss(unravel(raw), own, *rows)

    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(loss)))(flat, prior, *data)
    every = jax.jit(jax.vmap(loss))
    steps = np.array([-2.0, -1.0, 1.0, 2.0]) * STEP
    weights = np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * STEP)
    numeric = np.stack(
        [sum(w * every(flat.at[:, i].add(s), prior, *data) for s, w in zip(steps, weights, strict=True))
         for i in range(flat.shape[1])], axis=1,
    )  # fmt: skip
    likelihoods, logs = likelihood.densities(drawn), log_priors(drawn.theta, prior)
    expected = -likelihoods - logs
    # softplus(raw) + 1e-10 is the value, its slope in raw 1 - exp(-value)
    jacobian = sum(np.log(-np.expm1(-v)).reshape(likelihood.CASES, -1).sum(axis=1) for v in drawn.theta[1:])
    only = jax.jit(jax.vmap(jax.grad(lambda raw, own: -own.log_density(unravel(raw)))))(flat, prior)
    return [
        part("loss", "the package's loss = -log N(y; μ, K) - Σ log p(θ_h | α_h), without a Jacobian", "identity",
             [cell(identity(values, expected))],
             control("with the Jacobian of the raw parameters", [cell(identity(values, expected - jacobian))])),
        part("gradient", f"its gradient differs from finite differences by at most {GRADIENT} (relative)", "inequality",
             [cell(_close(gradients, numeric))],
             control("so does that of the log prior alone", [cell(_close(only, numeric))])),
    ]  # fmt: skip


def _close(left: Array | np.ndarray, right: Array | np.ndarray) -> Ruling:
    left, right = np.asarray(left), np.asarray(right)
    return inequality(np.abs(left - right) / (1.0 + np.abs(right)), GRADIENT)


def distances(
    values: np.ndarray, nodes: np.ndarray, weights: tuple[float, ...], rng: np.random.Generator, observations: int
) -> np.ndarray:
    """Return |ℓ_MAP - ℓ_MLE| (len(weights), n) of n data sets with NLL `values` (n, g) at the lengthscales `nodes`
    (g,); the log prior has each of the `weights`."""
    logs, scale = np.log(nodes), TIE * observations
    penalty = -np.asarray(gamma_log_density(*map(jnp.asarray, (nodes, *PRIOR))))
    best = np.exp(minimise(values, logs, rng, scale))
    return np.abs([np.exp(minimise(values + w * penalty, logs, rng, scale)) - best for w in weights])


def _rates(found: np.ndarray, sizes: np.ndarray, allowed: tuple[float, float]) -> list[Cell]:
    """Decide the rate of mean distances, found (k, r), in the k `sizes`."""
    slope = within(rate(found.T, sizes), *allowed)
    slope.numbers["distances"] = found.mean(axis=1)
    return [cell(slope, lengthscale=TRUTH)]


def _limit(rng: np.random.Generator, count: int) -> StatementPart:
    """Mean |ℓ_MAP - ℓ_MLE| against the number of sub-datasets, in one dimension."""
    x = spaced(rng, DESIGNS, POINTS, 1)
    known, have = table(x, grid()), counts(SIZES, DESIGNS)
    roots = np.linalg.cholesky(covariances(x, np.array([[TRUTH]]))[0])
    scatter = scatters(rng, roots, SIZES, count)
    each = []
    for place, m in enumerate(map(int, SIZES)):
        values = losses(known, scatter[:, place], have[place])
        each.append(distances(values, known.nodes[:, 0], (1.0, float(m)), rng, POINTS * m))
    found = np.stack(each, axis=1)
    once, growing = (_rates(own, SIZES * POINTS, RATE) for own in found)
    return part("rate", "E|MAP - MLE| ∝ (observations)^s, s <= -0.8, over 16 to 1024 sub-datasets of 10", "expectation",
                once, control("the same with the prior raised to the power M", growing))  # fmt: skip


def one_function(rng: np.random.Generator, functions: int) -> np.ndarray:
    """Return |ℓ_MAP - ℓ_MLE| (2, k, r) from the first n observations of one function, n in the k OBSERVATIONS: for the
    prior itself, and for its power n/10."""
    found = []
    for x in rng.random((DESIGNS, int(OBSERVATIONS[-1]), 1)):
        root = np.linalg.cholesky(covariances(x[None], np.array([[TRUTH]]))[0, 0])
        y = rng.standard_normal((functions, len(x))) @ root.T
        own = []
        for n in OBSERVATIONS:
            known = table(x[None, :n], grid())
            values = losses(known, (y[:, :n, None] * y[:, None, :n])[:, None], np.ones(1))
            own.append(distances(values, known.nodes[:, 0], (1.0, n / 10.0), rng, int(n)))
        found.append(np.stack(own, axis=1))
    return np.concatenate(found, axis=2)


def _one_function(rng: np.random.Generator) -> StatementPart:
    """Mean |ℓ_MAP - ℓ_MLE| against the number of observations of one function. No rate is claimed, only that it falls:
    ever denser inputs in a fixed interval tell ever less of ℓ."""
    once, growing = (_rates(own, OBSERVATIONS, DECREASES) for own in one_function(rng, FUNCTIONS))
    return part("falls", "E|MAP - MLE| ∝ n^s, s <= 0, over n = 10 to 320 uniform inputs", "expectation", once,
                control("the same with the prior raised to the power n/10", growing))  # fmt: skip
