"""A GP on its own, written the straightforward way; it imports nothing of metabo."""

import time
from collections.abc import Callable

import numpy as np
from case import Case
from problem import JITTER, THETA, Sizes, fit_rows, likelihood_per_point
from scipy.optimize import minimize
from scipy.stats import norm
from textbook import flat_objective, flatten, posterior, softplus
from textbook_mphd import nll

UNTRAINED = {"constant": 0.0, "lengthscale": 0.0, "variance": 0.0, "noise": THETA["noise"]}
"""Unconstrained values of metabo's GP before a fit."""


def start(dim: int) -> dict[str, np.ndarray]:
    return {k: np.full(dim, v) if k == "lengthscale" else np.array(v) for k, v in UNTRAINED.items()}


def fit(sizes: Sizes, number: int) -> Case:
    """SciPy's L-BFGS-B on the negative log likelihood, with the jitted gradient by automatic differentiation."""
    x, y, _ = fit_rows(sizes, number)
    begin = start(sizes.dim)
    objective = flat_objective(nll, begin, x, y)

    def once() -> np.ndarray:
        return minimize(objective, flatten(begin), jac=True, method="L-BFGS-B", options={"maxiter": 100}).x

    before = time.perf_counter()
    ends = np.cumsum([value.size for value in begin.values()])[:-1]
    raw = dict(zip(begin, np.split(once(), ends), strict=True))
    first = time.perf_counter() - before
    values = {name: np.asarray(softplus(raw[name])) for name in ("lengthscale", "variance", "noise")}
    values["noise"] = values["noise"] + JITTER

    def repeat() -> int:
        for _ in range(sizes.fits):
            once()
        return sizes.fits

    quality = likelihood_per_point(x, y, raw["constant"].item(), **values)
    return Case(repeat, compile_s=first, facts={"log_likelihood": quality})


def predict(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance at the candidates after the observations, with one full Cholesky factor."""
    x, y, pool = fit_rows(sizes, sizes.fit_points)
    every, seen = np.concatenate([x, pool]), list(range(len(x)))
    scale, variance, noise = (np.asarray(softplus(UNTRAINED[k])) for k in ("lengthscale", "variance", "noise"))
    found = posterior(every, np.zeros(len(every)), y, seen, np.full(sizes.dim, scale), variance.item(), noise.item())
    return tuple(part[len(x) :] for part in found)


def predicting(sizes: Sizes) -> Case:
    def repeat() -> int:
        predict(sizes)
        return 1

    return Case(repeat)


def log_improvement(mean: np.ndarray, variance: np.ndarray, best: float) -> np.ndarray:
    """Return the log of the expected improvement over `best`; -inf where it is 0 in double precision."""
    std = np.sqrt(np.maximum(variance, 0.0) + float(softplus(UNTRAINED["noise"])))
    z = (mean - best) / std
    with np.errstate(divide="ignore"):
        return np.log(std) + np.log(np.maximum(norm.pdf(z) + z * norm.cdf(z), 0.0))


def scoring(sizes: Sizes) -> Case:
    best = fit_rows(sizes, sizes.fit_points)[1].max()

    def repeat() -> int:
        log_improvement(*predict(sizes), best)
        return 1

    return Case(repeat)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "gp_fit": {"textbook": lambda sizes: fit(sizes, sizes.fit_points)},
    "gp_fit_large": {"textbook": lambda sizes: fit(sizes, sizes.fit_points_large)},
    "gp_posterior": {"textbook": predicting},
    "gp_log_ei": {"textbook": scoring},
}
