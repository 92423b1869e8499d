"""A problem for hyperparameter elimination, the settings of a run, and checks that both make sense."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from metabo.errors import ConfigError, DataError

BETAS = ("frequentist", "frequentist_printed", "bayes_finite", "bayes_infinite", "bayes_successor", "constant")
"""Confidence constants of `metabo.methods.elimination.confidence`; bayes_successor is √(2d log(t²/δ)) from the authors'
later code; constant is B, to which the printed frequentist form tends for small R."""
SIGMAS = ("before", "after")
ROUNDING = 1e-9
"""Kernels may exceed 1 on the diagonal by this much."""


class Problem(NamedTuple):
    """A function on a pool, and the candidates. x (c, d), `kernels` (U, c, c), prior means (U, c), f (c,).

    `initial` random points come first; outputs have noise of standard deviation `noise_std`. `truth`: the candidate
    that f was drawn from, -1 if none. `scales` (U,): length-scales of the candidates, for A-GP-UCB. `neighbours` (c,
    m): the points of Δ_ε(x), for the robust rules (None: x alone; padded with x). `gains` (U, n): the information gain
    that β uses after 0, 1, ... observations (None: that of the observed points).
    """

    x: Float[Array, "c d"]
    kernels: Float[Array, "u c c"]
    means: Float[Array, "u c"]
    f: Float[Array, " c"]
    initial: int
    noise_std: float | Float[Array, ""]
    truth: int | Int[Array, ""] = -1
    scales: Float[Array, " u"] | None = None
    neighbours: Int[Array, "c m"] | None = None
    gains: Float[Array, "u n"] | None = None


class EliminationSettings(NamedTuple):
    """Settings of a run of `T` iterations. `R`: noise level in ξ and β, and standard deviation of the GPs' noise unless
    `noise` gives another. `beta`, `xi`: their forms (`BETAS`, by name or place; `confidence.XI`). `sigma`: "before" or
    "after", which deviation the test uses. `standardise`: the GPs see outputs with mean 0 and deviation 1 (over those
    so far). `predictive`: deviations include the noise. d, a, b, r: the constants of β for an infinite domain."""

    T: int
    delta: float | Float[Array, ""] = 0.1
    B: float | Float[Array, ""] = 1.0
    R: float | Float[Array, ""] = 0.1
    beta: str | Int[Array, ""] = "frequentist"
    xi: str = "pi2"
    sigma: str = "before"
    noise: float | Float[Array, ""] | None = None
    standardise: bool | Bool[Array, ""] = False
    predictive: bool | Bool[Array, ""] = False
    d: int = 1
    a: float = 1.0
    b: float = 1.0
    r: float = 1.0


def check(problem: Problem, settings: EliminationSettings) -> None:
    """Raise DataError for a problem, and ConfigError for settings, for which the algorithms make no sense.

    This reads values, so it cannot run inside a compiled program; call it once when you make a problem.
    """
    shape, pool = problem.kernels.shape, len(problem.f)
    if shape[0] == 0:
        raise DataError("elimination: the candidate set is empty; give at least one candidate hyperparameter")
    if pool == 0 or shape[1:] != (pool, pool) or problem.means.shape != (shape[0], pool) or len(problem.x) != pool:
        raise DataError(
            f"elimination: {pool} function values, {len(problem.x)} points, kernels {shape}, means "
            f"{problem.means.shape}; needs at least one point, (U, c, c) and (U, c)"
        )
    diagonal = np.asarray(jnp.diagonal(problem.kernels, axis1=1, axis2=2))
    if not (diagonal <= 1.0 + ROUNDING).all():
        u, point = np.argwhere(~(diagonal <= 1.0 + ROUNDING))[0]
        raise DataError(
            f"elimination: candidate {u} has k(x, x) = {diagonal[u, point]:.6g} at point {point}; the confidence "
            "bounds assume k(x, x) <= 1 (hegpucb §3): divide kernel, outputs and noise by its scale"
        )
    values = {"prior mean": problem.means, "function": problem.f, "kernel": problem.kernels}
    for name, array in values.items():
        if not bool(jnp.isfinite(array).all()):
            raise DataError(f"elimination: a {name} value is not finite; look at how the problem was made")
    for name in ("R", "noise"):
        value = getattr(settings, name)
        if value is not None and not float(value) > 0:
            raise ConfigError(f"elimination: noise level '{name}' is {float(value):g}; it must be positive")
    if not float(problem.noise_std) >= 0:
        raise ConfigError(f"elimination: the outputs' noise is {float(problem.noise_std):g}; it must not be negative")
    if not 0 < float(settings.delta) < 1 or settings.T < 1 or problem.initial < 0:
        raise ConfigError(
            f"elimination: delta {float(settings.delta):g}, {settings.T} iterations, {problem.initial} initial points; "
            "needs 0 < delta < 1, at least one iteration and no negative number"
        )
    if not -1 <= int(problem.truth) < shape[0]:
        raise DataError(f"elimination: the true candidate is {int(problem.truth)} of {shape[0]}; -1 if none is")
