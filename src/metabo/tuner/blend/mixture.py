"""The new study under several priors: the probability of each after its trials, and their joint prediction.

A component models z(x) = m + s (w μ(x) + ...): it uses the common function of the past with trust w, or ignores it (w =
0) and has hyperparameters of its own. m is integrated over a flat prior in closed form, and s over a grid, so both
adapt to the new study's unit.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import root_scalar
from scipy.special import logsumexp, ndtr, ndtri

Vector = Float[np.ndarray, " n"]
SPREADS = np.exp(np.linspace(np.log(0.2), np.log(4.0), 9))
"""The grid of s."""
LOG_DEVIATION = 0.8
"""The standard deviation of the Normal prior of log s."""


class Component(NamedTuple):
    """A prior at the n observed and m candidate points, in units of s: the means, the covariance of the observed
    points, their covariance with the candidates, the variance of the candidates, the noise variance, and the log of its
    prior probability."""

    mean: Vector
    mean_new: Float[np.ndarray, " m"]
    cov: Float[np.ndarray, "n n"]
    cross: Float[np.ndarray, "n m"]
    variance_new: Float[np.ndarray, " m"]
    noise: float
    log_weight: float


class Predicted(NamedTuple):
    """Means and deviations (g, m) at the candidates for each pair of component and spread, without noise; the noise
    variance of an outcome (g,), in the squared unit of the outcomes; and the probabilities (g,)."""

    mean: Float[np.ndarray, "g m"]
    std: Float[np.ndarray, "g m"]
    noise: Float[np.ndarray, " g"]
    weight: Float[np.ndarray, " g"]


def predict(components: list[Component], y: Vector) -> Predicted:
    """Weight the components by the evidence of the outcomes y, and predict the candidates."""
    means, stds, noises, logs = [], [], [], []
    n = len(y)
    log_prior = -0.5 * (np.log(SPREADS) / LOG_DEVIATION) ** 2
    log_prior -= logsumexp(log_prior)
    for one in components:
        low = factor(one.cov + one.noise * np.eye(n))
        solved = cho_solve((low, True), np.stack([np.ones(n), y, one.mean], axis=1))
        ones, ys, mu = solved.T
        total = ones.sum()

        # With m integrated out Σ⁻¹ becomes P = Σ⁻¹ - Σ⁻¹ 1 1ᵀ Σ⁻¹ / (1ᵀ Σ⁻¹ 1); below yᵀPy, yᵀPμ and μᵀPμ.
        a = y @ ys - ys.sum() ** 2 / total
        b = y @ mu - ys.sum() * mu.sum() / total
        c = one.mean @ mu - mu.sum() ** 2 / total
        quadratic = a / SPREADS**2 - 2 * b / SPREADS + c
        evidence = -(n - 1) * np.log(SPREADS) - np.sum(np.log(np.diag(low))) - 0.5 * np.log(total) - 0.5 * quadratic
        logs.append(one.log_weight + log_prior + evidence)
        half = solve_triangular(low, one.cross, lower=True, check_finite=False)
        left = 1.0 - ones @ one.cross
        variance = np.maximum(one.variance_new - np.sum(half**2, axis=0) + left**2 / total, 1e-12)
        flat = one.cross.T @ np.stack([ys, mu], axis=1)
        offset = (ys.sum() - SPREADS * mu.sum()) / total
        means.append(offset[:, None] * left + flat[:, 0] + SPREADS[:, None] * (one.mean_new - flat[:, 1]))
        stds.append(SPREADS[:, None] * np.sqrt(variance))
        noises.append(SPREADS**2 * one.noise)
    log = np.concatenate(logs)
    weight = np.exp(log - logsumexp(log))
    return Predicted(np.concatenate(means), np.concatenate(stds), np.concatenate(noises), weight)


def factor(cov: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Return the Cholesky factor with 1e-8 added to the diagonal, or with more if rounding has made the matrix
    indefinite."""
    for more in (1e-8, 1e-6, 1e-4, 1e-2):
        try:
            return np.linalg.cholesky(cov + more * np.eye(len(cov)))
        except np.linalg.LinAlgError:
            continue
    return np.linalg.cholesky(cov + np.trace(cov) * np.eye(len(cov)))


def mean_of(predicted: Predicted) -> Float[np.ndarray, " m"]:
    """Return the mean of the mixture at each candidate."""
    return predicted.weight @ predicted.mean


def deviation_of(predicted: Predicted) -> Float[np.ndarray, " m"]:
    """Return the standard deviation of the mixture at each candidate, without noise."""
    return np.sqrt(predicted.weight @ (predicted.std**2 + (predicted.mean - mean_of(predicted)) ** 2))


def quantile_of(predicted: Predicted, share: float) -> float:
    """Return the quantile of an outcome, with its noise, at the only candidate of `predicted`."""
    mean, std = predicted.mean[:, 0], np.sqrt(predicted.std[:, 0] ** 2 + predicted.noise)
    of_parts, more = mean + ndtri(share) * std, 1e-6 * std.max()
    ends = of_parts.min() - more, of_parts.max() + more  # the mixture's quantile lies between those of its parts
    return float(root_scalar(lambda z: predicted.weight @ ndtr((z - mean) / std) - share, bracket=ends).root)


Scores = Float[np.ndarray, " m"]


def expected_improvement(predicted: Predicted, best: float) -> Scores:
    """Return the mixture's expected improvement over `best`."""
    kept = predicted.weight > 1e-4 * predicted.weight.max()
    mean, std = predicted.mean[kept], predicted.std[kept]
    gamma = (mean - best) / std
    density = np.exp(-0.5 * gamma**2) / np.sqrt(2 * np.pi)
    return predicted.weight[kept] @ (std * (gamma * ndtr(gamma) + density))


def probability_of_improvement(predicted: Predicted, best: float) -> Scores:
    """Return the mixture's probability of exceeding `best`."""
    return predicted.weight @ ndtr((predicted.mean - best) / predicted.std)


def upper_confidence_bound(predicted: Predicted, _best: float, beta: float) -> Scores:
    """Return the mixture's mean plus `beta` of its standard deviations."""
    return mean_of(predicted) + beta * deviation_of(predicted)


ACQUISITIONS: dict[str, Callable[[Predicted, float], Scores]] = {
    "ei": expected_improvement,
    "pi": probability_of_improvement,
    "ucb18": partial(upper_confidence_bound, beta=1.8),
    "ucb3": partial(upper_confidence_bound, beta=3.0),
}
"""The acquisitions that have a form of their own for the mixture, by the names of `metabo.bo.acquisition`."""


def scores(name: str, predicted: Predicted, best: float, count: int) -> Scores:
    """Return an acquisition at each candidate, after `count` outcomes of which `best` is the largest: the mixture's own
    form, or else the registered function of the mixture's mean and deviation. Raises ConfigError for an unknown
    name."""
    if name in ACQUISITIONS:
        return ACQUISITIONS[name](predicted, best)
    import jax.numpy as jnp  # here: nothing else in the mixture needs JAX, which takes a second to import

    from metabo.bo import acquisition
    from metabo.compute import precision

    with precision.scope():
        given = map(jnp.asarray, (mean_of(predicted), deviation_of(predicted), best, count))
        return np.asarray(acquisition.make(name)(*given))
