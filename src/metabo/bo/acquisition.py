"""Acquisition functions, which are maximised over candidates (hyperbo §3, §7.2; sheet §2.9).

Each takes the posterior mean and standard deviation *with noise*, s(x) = sqrt(k∘σ²(x)) (hyperbo §6.2.2; RFGP, RGPE and
cm-BO leave it out), the best observation so far and the `count` of observations, including given ones. The paper leaves
open what happens before the first observation; as in the authors' code the threshold is then 0. An acquisition that
needs more inputs is a policy of its own (docs/new-method.md).
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from metabo.bo.settings import PI_THRESHOLD
from metabo.errors import unknown

Scores = Float[Array, " m"]
Acquisition = Callable[[Scores, Scores, Float[Array, ""], Int[Array, ""]], Scores]

SCORED = {
    "pi": "PI",
    "ei": "EI",
    "ucb18": "UCB 1.8",
    "ucb3": "UCB 3",
}
"""Functions that `make` returns, for every method that predicts: slug (used in file names) and label."""
OWN = {
    "uniform": "uniform",
    "learned": "learned",
    "sequence": "sequence",
}
"""The same for acquisitions of a single method's policy: random search's draw, MAF's network, the order of
portfolios."""


def probability_of_improvement(
    mean: Scores, std: Scores, best: Float[Array, ""], count: Int[Array, ""], threshold: float = PI_THRESHOLD
) -> Scores:
    """(μ - (best + threshold)) / s, a monotone map of the probability; without data the target is 0, with no margin."""
    target = jnp.where(count == 0, 0.0, best + threshold)
    return (mean - target) / std


def expected_improvement(mean: Scores, std: Scores, best: Float[Array, ""], count: Int[Array, ""]) -> Scores:
    """s [φ(γ) - γ (1 - Φ(γ))] with γ = (best - μ) / s; without data `best` is 0."""
    gamma = (jnp.where(count == 0, 0.0, best) - mean) / std
    return std * (norm.pdf(gamma) - gamma * norm.sf(gamma))


def upper_confidence_bound(
    mean: Scores, std: Scores, best: Float[Array, ""], count: Int[Array, ""], beta: float
) -> Scores:
    """μ + β s (GP-UCB; β = 3 in D.2, 1.8 for STBOH)."""
    return mean + beta * std


def make(slug: str, pi_threshold: float = PI_THRESHOLD) -> Acquisition:
    """Return the acquisition named `slug`; `pi_threshold` is the margin of PI. Raises ConfigError for an unknown
    name."""
    table: dict[str, Acquisition] = {
        "pi": partial(probability_of_improvement, threshold=pi_threshold),
        "ei": expected_improvement,
        "ucb18": partial(upper_confidence_bound, beta=1.8),
        "ucb3": partial(upper_confidence_bound, beta=3.0),
    }
    if slug not in table:
        raise unknown("acquisition", slug, table)
    return table[slug]
