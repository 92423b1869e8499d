"""Regret of Algorithm 1 on random functions, for the coverage of Theorems 6 and 16 to 18."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.papers.engine.theory.replicates import replicate
from metabo.papers.hyperbo.theory import bounds
from metabo.papers.hyperbo.theory.algorithm import Path, noise_variance, noiseless_ucb, noisy_ucb, run, target_pi
from metabo.papers.hyperbo.theory.memory import LawDraws, from_law, kernel_matrix, law_draws, model, pretrained

POINTS, LENGTHSCALE = 10, 2.0
"""The domain 0..9 with a squared-exponential kernel of unit variance: c = k*(x) = 1; μ* = 0."""
MARGIN = 0.1
"""PI's target is max f + MARGIN."""

Outcome = dict[str, np.ndarray]


class RegretDraws(NamedTuple):
    """Random numbers of one replicate (or of n, with a leading axis n), and its N, σ*² and β."""

    law: LawDraws
    test: Array
    errors: Array
    functions: Array
    noise: Array
    beta: Array


Compute = Callable[[RegretDraws], dict[str, Array]]


def true_gram() -> Float[Array, "m m"]:
    """Return k* of the domain."""
    return kernel_matrix(jnp.arange(float(POINTS))[:, None], LENGTHSCALE)


@lru_cache
def simulation(rule: str, iterations: int, repeats: bool = True, multisets: bool = False) -> Compute:
    """Return the function that computes one replicate: pre-train, run T iterations, measure.

    `rule`: "ucb" (Eq. 31), "pi" (Eq. 32) or "noiseless" (Eq. 33). The result has the simple `regret`; for PI `gap` (of
    η), `lead` (the same of x_τ) and `found` (x* was queried); for Eq. 33 `noise` (σ̂²), `c` (the least constant above
    k*, k̂) and `rho`, ρ_T of the pre-trained model over sets or multisets. `repeats`: whether an input may be queried
    again. The same arguments give the same function, so that it is compiled once.
    """
    gram = true_gram()
    values = jnp.linalg.cholesky(gram + 1e-12 * jnp.eye(POINTS))
    sets = bounds.subsets(POINTS, iterations, multisets)
    ties = jax.random.key(0)

    def compute(d: RegretDraws) -> dict[str, Array]:
        zero, total = jnp.zeros(POINTS), gram + d.noise * jnp.eye(POINTS)
        fitted = from_law(zero, jnp.linalg.cholesky(total), d.functions, d.law)
        prior, truth, f = pretrained(fitted), model(zero, total, d.noise), values @ d.test
        rules = {
            "ucb": lambda: noisy_ucb(d.beta),
            "pi": lambda: target_pi(f.max() + MARGIN),
            "noiseless": lambda: noiseless_ucb(d.beta, prior),
        }
        path = run(prior, truth, rules[rule](), f, jnp.sqrt(d.noise) * d.errors, ties, repeats)
        result = {"regret": f.max() - f[path.index[jnp.argmax(path.y)]]}
        if rule == "pi":
            result |= _scores(path, f, d.noise)
        if rule == "noiseless":
            own = noise_variance(prior)
            result |= {"noise": own, "c": jnp.maximum(1.0, prior.kernel.table.max())}
            result["rho"] = bounds.max_information(prior.kernel.table, own, sets)
        return result

    return compute


def _scores(path: Path, f: Float[Array, " m"], noise: Float[Array, ""]) -> dict[str, Array]:
    """Return (f̂* - μ*_{τ-1}(x))/√(k*_{τ-1}(x) + σ*²) at x* and x_τ, τ = argmin_t k*_{t-1}(x_t); was x* queried?"""
    step = jnp.argmin(path.variance[jnp.arange(len(path.index)), path.index])
    best = jnp.argmax(f)

    def score(at: Array) -> Array:
        return (f[best] + MARGIN - path.mean[step, at]) / jnp.sqrt(path.variance[step, at] + noise)

    return {"gap": score(best), "lead": score(path.index[step]), "found": (path.index == best).any()}


def simulate(
    compute: Compute, key: Key[Array, ""], count: int, *, iterations: int, functions: int, noise: float, beta: float
) -> Outcome:
    """Run `count` replicates with N = `functions`, σ*² = `noise` and GP-UCB's β (ignored by PI)."""

    def draw(rng: np.random.Generator, n: int) -> RegretDraws:
        return RegretDraws(
            law=law_draws(rng, n, POINTS, functions),
            test=jnp.asarray(rng.standard_normal((n, POINTS))),
            errors=jnp.asarray(rng.standard_normal((n, iterations))),
            functions=jnp.asarray(np.full(n, float(functions))),
            noise=jnp.asarray(np.full(n, noise)),
            beta=jnp.asarray(np.full(n, beta)),
        )

    return replicate(compute, draw, key, count)
