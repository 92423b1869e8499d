"""Pre-training on few functions with many points (HyperBO §6.3.2): with a stationary kernel, points make up for
functions.

Truth: a GP with a squared-exponential kernel on an interval, observed with noise of known variance. Pre-trained: the
same kernel with a constant mean, fitted by the NLL (Eq. 13) to N = 3 functions of few points or many, so that
Theorem 5, which needs N > T + 1, says nothing. Predictions of a fourth function after three observations are compared.
The control's functions are constant on the interval: more points of the same three say nothing more.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.gp.constraints import inverse_positive
from metabo.gp.features import Identity
from metabo.gp.fit import lbfgs
from metabo.gp.kernels import Stationary
from metabo.gp.means import Constant
from metabo.gp.model import GP
from metabo.gp.objectives import gaussian_kl, nll
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import probability

CHECKS = {"augmentation": "Few functions with many points each"}
FUNCTIONS, OBSERVED, TESTED = 3, 3, 20
"""Training functions, observations of the test function, inputs at which its predictions are compared."""
FEW, MANY = 10, 160
"""Points of each training function."""
WIDTH, NOISE = 10.0, 1e-2
"""The interval, in length-scales of the truth, and the variance of the noise; the signal has variance 1."""
CONSTANT = 1e3
"""Length-scale of the control's truth and start, in lengths of 1: functions that are constant on the interval."""
STEPS, RUNS, LEAST = 60, 400, 20
LIMIT = 0.25
"""Share of draws in which many points may predict worse than few."""


class AugmentationDraws(NamedTuple):
    """Random numbers of one replicate: the inputs, and standard normals for the four functions and their noise."""

    x: Float[Array, " points"]
    values: Float[Array, "points 4"]
    errors: Float[Array, "points 4"]


def _gp(lengthscale: float | Float[Array, ""], fitted: bool) -> GP:
    """Return the truth, or where a fit of it starts: at twice its length-scale and half its variance."""
    scale, variance = (2.0, 0.5) if fitted else (1.0, 1.0)
    raw = inverse_positive(jnp.asarray(scale * lengthscale))[None]
    kernel = Stationary(raw, inverse_positive(jnp.asarray(variance)), "squared_exponential")
    return GP(Identity(), Constant(jnp.zeros(())), kernel, inverse_positive(jnp.asarray(NOISE)))


def predictions(
    gp: GP, x: Float[Array, "n 1"], y: Float[Array, " n"], at: Float[Array, "m 1"]
) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
    """Return mean and covariance, noise included, of the outputs at `at` given n observations."""
    mean, covariance = gp.posterior(x, y, jnp.ones(len(x), bool)).joint(at)
    return mean, covariance + gp.noise * jnp.eye(len(at))


def losses(d: AugmentationDraws, lengthscale: float) -> dict[str, Array]:
    """Return KL(true predictions ‖ those of a GP pre-trained on FEW points), and on MANY of the same functions."""
    truth = _gp(lengthscale, False)
    x = WIDTH * d.x[:, None]
    factor = jnp.linalg.cholesky(truth.kernel.gram(x) + 1e-9 * jnp.eye(len(x)))
    y = factor @ d.values + jnp.sqrt(NOISE) * d.errors
    seen, tested = slice(MANY, MANY + OBSERVED), slice(MANY + OBSERVED, None)
    right = predictions(truth, x[seen], y[seen, FUNCTIONS], x[tested])

    def loss(points: int) -> Array:
        tasks = jnp.broadcast_to(x[:points], (FUNCTIONS, points, 1)), y[:points, :FUNCTIONS].T
        rows = (*tasks, jnp.ones((FUNCTIONS, points), bool))
        start = _gp(lengthscale, True)

        def with_noise(parts: tuple[Constant, Stationary]) -> GP:
            return GP(start.features, *parts, start.raw_noise)

        found, _ = lbfgs(lambda parts: nll(with_noise(parts), *rows), (start.mean, start.kernel), steps=STEPS)
        fitted = with_noise(found)
        return gaussian_kl(*right, *predictions(fitted, x[seen], y[seen, FUNCTIONS], x[tested]))

    return {"few": loss(FEW), "many": loss(MANY)}


@jax.jit
def _all(draws: AugmentationDraws, lengthscale: float) -> dict[str, Array]:
    # one after another: side by side, all fits would wait for the one that takes the most steps
    return jax.lax.map(partial(losses, lengthscale=lengthscale), draws)


def augmentation(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check that many points of three functions predict a fourth one better than few, in most draws."""
    claim = f"P[KL of predictions with {MANY} points a function > with {FEW}] <= {LIMIT:g}, N = {FUNCTIONS}"
    helps = part(
        "points", claim, "probability", [_cell(1.0, jax.random.fold_in(key, 0), share)],
        control(f"{claim}, functions that are constant", [_cell(CONSTANT, jax.random.fold_in(key, 1), share)]),
    )  # fmt: skip
    return [statement("Function augmentation", "Points make up for functions, in part", "§6.3.2", [helps], "reading")]


def _cell(lengthscale: float, key: Key[Array, ""], share: float) -> Cell:
    points = MANY + OBSERVED + TESTED
    rng, count = generator(key), max(LEAST, round(RUNS * share))
    size = (count, points, FUNCTIONS + 1)
    drawn = rng.random((count, points)), rng.standard_normal(size), rng.standard_normal(size)
    got = _all(AugmentationDraws(*map(jnp.asarray, drawn)), lengthscale)
    few, many = np.asarray(got["few"]), np.asarray(got["many"])
    ruled = probability(int((~(many <= few)).sum()), len(few), LIMIT)
    medians = {"few": float(np.median(few)), "many": float(np.median(many))}
    return cell(ruled._replace(numbers=ruled.numbers | medians), functions=FUNCTIONS)
