"""Acquisition functions: maximised over candidates (hyperbo §3, §7.2; sheet §2.9).

Each takes the posterior mean and standard deviation *with noise*, s(x) = sqrt(k∘σ²(x)), and the best observation so
far; `empty` marks that nothing is observed yet. The paper leaves that case open; as in the authors' code the
threshold is then 0.
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from metabo.bo.settings import PI_THRESHOLD
from metabo.errors import unknown

Scores = Float[Array, " m"]
Acquisition = Callable[[Scores, Scores, Float[Array, ""], Bool[Array, ""]], Scores]

ACQUISITIONS = {"pi": "PI", "ei": "EI", "ucb18": "UCB 1.8", "ucb3": "UCB 3", "uniform": "uniform", "learned": "learned"}
"""Slug (used in file names) and label; random search's `uniform` draw has no scores, `learned` is MAF's network."""


def probability_of_improvement(
    mean: Scores, std: Scores, best: Float[Array, ""], empty: Bool[Array, ""], threshold: float = PI_THRESHOLD
) -> Scores:
    """(μ - (best + threshold)) / s, a monotone map of the probability; with no data the target is 0, without margin."""
    target = jnp.where(empty, 0.0, best + threshold)
    return (mean - target) / std


def expected_improvement(mean: Scores, std: Scores, best: Float[Array, ""], empty: Bool[Array, ""]) -> Scores:
    """s [φ(γ) - γ (1 - Φ(γ))] with γ = (best - μ) / s; with no data `best` is 0."""
    gamma = (jnp.where(empty, 0.0, best) - mean) / std
    return std * (norm.pdf(gamma) - gamma * norm.sf(gamma))


def upper_confidence_bound(
    mean: Scores, std: Scores, best: Float[Array, ""], empty: Bool[Array, ""], beta: float
) -> Scores:
    """μ + β s (GP-UCB; β = 3 in D.2, 1.8 for STBOH)."""
    return mean + beta * std


def make(slug: str, pi_threshold: float = PI_THRESHOLD) -> Acquisition:
    """Return the acquisition named by `slug`; `pi_threshold`: the margin of PI."""
    table: dict[str, Acquisition] = {
        "pi": partial(probability_of_improvement, threshold=pi_threshold),
        "ei": expected_improvement,
        "ucb18": partial(upper_confidence_bound, beta=1.8),
        "ucb3": partial(upper_confidence_bound, beta=3.0),
    }
    if slug not in table:
        raise unknown("acquisition", slug, table)
    return table[slug]
