"""Eq. 6 (MPHD §2.4): the MAP loss of the package, its gradient, and MAP → MLE as observations grow."""

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
    """Check the loss against SciPy, its gradient against finite differences, and that the prior's weight vanishes."""
    rng = generator(key)
    return [
        statement("Eq. 6", "NLL less the log prior is what MAP minimises", "§2.4", _loss(rng)),
        statement("Eq. 6, limit", "MAP → maximum likelihood as observations grow", "§2.4",
                  [_limit(rng, runs(RUNS, share))], "ours"),
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


def _limit(rng: np.random.Generator, count: int) -> StatementPart:
    """Mean |ℓ_MAP - ℓ_MLE| against the number of observations, in one dimension."""
    x = spaced(rng, DESIGNS, POINTS, 1)
    known, have = table(x, grid()), counts(SIZES, DESIGNS)
    roots = np.linalg.cholesky(covariances(x, np.array([[TRUTH]]))[0])
    scatter, logs = scatters(rng, roots, SIZES, count), np.log(known.nodes[:, 0])
    penalty = -np.asarray(gamma_log_density(*map(jnp.asarray, (known.nodes[:, 0], *PRIOR))))
    once, growing = [], []
    for place, m in enumerate(SIZES):
        values, scale = losses(known, scatter[:, place], have[place]), TIE * POINTS * m
        best = np.exp(minimise(values, logs, rng, scale))
        for found, weight in ((once, 1.0), (growing, float(m))):
            found.append(np.abs(np.exp(minimise(values + weight * penalty, logs, rng, scale)) - best))

    def cells(found: list[np.ndarray]) -> list[Cell]:
        absolute = np.stack(found, axis=1)
        slope = within(rate(absolute, SIZES * POINTS), *RATE)
        slope.numbers["distances"] = absolute.mean(axis=0)
        return [cell(slope, lengthscale=TRUTH)]

    return part("rate", "E|MAP - MLE| ∝ (observations)^s, s <= -0.8, over 160 to 10,240", "expectation", cells(once),
                control("the same with the prior raised to the power M", cells(growing)))  # fmt: skip
