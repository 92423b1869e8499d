"""metabo's GP on its own: a fit, a posterior, and an acquisition over candidates."""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from case import Case
from ours import compiled_case
from problem import Sizes, fit_rows

import metabo
from metabo.bo.acquisition import expected_improvement
from metabo.gp.model import GP, Posterior, build
from metabo.gp.settings import GPSettings


def fit(sizes: Sizes, number: int) -> Case:
    """Maximise the likelihood of `number` observations by `metabo.GP.fit`, the program compiled before."""
    x, y, _ = fit_rows(sizes, number)
    untrained = metabo.GP(sizes.dim)
    start = time.perf_counter()
    fitted = untrained.fit(x, y)
    first = time.perf_counter() - start

    def repeat() -> int:
        for _ in range(sizes.fits):
            untrained.fit(x, y)
        return sizes.fits

    return Case(repeat, compile_s=first, facts={"log_likelihood": fitted.log_likelihood(x, y) / number})


def prior(sizes: Sizes) -> GP:
    """Return the GP that `metabo.GP(dim)` has before it is fitted."""
    return build(GPSettings("constant", "matern52"), sizes.dim, jax.random.key(0))


def predict(gp: GP, x, y, pool) -> tuple:
    """Condition on the observations; return mean and variance at the candidates."""
    return gp.posterior(x, y, jnp.ones(len(y), bool)).predict(pool)


def posterior(sizes: Sizes) -> Case:
    given = map(jnp.asarray, fit_rows(sizes, sizes.fit_points))
    return compiled_case(predict, (prior(sizes), *given), sizes.predictions, sizes.predictions)


def posterior_api(sizes: Sizes) -> Case:
    """Do the same by `metabo.GP`, which checks its arguments, pads rows and compiles the two steps apart."""
    x, y, pool = fit_rows(sizes, sizes.fit_points)
    gp = metabo.GP(sizes.dim)

    def repeat() -> int:
        for _ in range(sizes.predictions):
            gp.posterior(x, y).predict(pool)
        return sizes.predictions

    return Case(repeat)


def score(conditioned: Posterior, pool, best):
    """Return the expected improvement at the candidates."""
    mean, variance = conditioned.predict(pool)
    return expected_improvement(mean, jnp.sqrt(variance + conditioned.gp.noise), best, conditioned.mask.sum())


def improvement(sizes: Sizes) -> Case:
    x, y, pool = map(jnp.asarray, fit_rows(sizes, sizes.fit_points))
    conditioned = prior(sizes).posterior(x, y, jnp.ones(len(y), bool))
    return compiled_case(score, (conditioned, pool, y.max()), sizes.predictions, sizes.predictions)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "gp_fit": {"metabo": lambda sizes: fit(sizes, sizes.fit_points)},
    "gp_fit_large": {"metabo": lambda sizes: fit(sizes, sizes.fit_points_large)},
    "gp_posterior": {"metabo": posterior, "metabo_api": posterior_api},
    "gp_log_ei": {"metabo": improvement},
}
