"""Study of MPHD's Lemma 1 in one dimension: sub-datasets shifted apart as one pseudo sub-dataset (§3.1, Figure 4).

The lemma's construction: with Q' = sup ‖x' - x‖ + 1, sub-dataset j is moved by (Q + Q') j, so that points of two
sub-datasets are more than Q apart. The negative log likelihood of the whole then approaches the sum of those of the
sub-datasets as Q grows; `gap` says how far it is from it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Key

from metabo.compute.keys import stream
from metabo.gp.constraints import inverse_positive
from metabo.gp.features import Identity
from metabo.gp.kernels import Stationary
from metabo.gp.means import Zero
from metabo.gp.model import GP
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames

STUDIES = {"mphd_lemma1": {}}

FUNCTIONS, POINTS = 3, 8
LENGTHSCALE, NOISE, KERNEL = 0.5, 1e-2, "matern52"
SPACING = 0.06
"""Least distance of two inputs of a sub-dataset (Assumption 1); inputs are in [0, 1]."""
DISTANCES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
"""Q of the gaps, in lengthscales."""
SHOWN = 2.0
"""Q of the pseudo sub-dataset that is drawn, in lengthscales."""


def truth() -> GP:
    """Return the GP: zero mean, signal variance 1."""
    raw = inverse_positive(jnp.asarray([LENGTHSCALE, 1.0, NOISE]))
    return GP(Identity(), Zero(), Stationary(raw[:1], raw[1], KERNEL), raw[2])


def inputs(key: Key[Array, ""]) -> Float[Array, " n"]:
    """Draw POINTS inputs in [0, 1] that are at least SPACING apart, in ascending order.

    Uniform among all such sets: sorted points of a shorter interval, the k-th moved by k times the spacing.
    """
    free = 1.0 - SPACING * (POINTS - 1)
    return jnp.sort(jax.random.uniform(key, (POINTS,), maxval=free)) + SPACING * jnp.arange(POINTS)


def sample(gp: GP, grid: int, key: Key[Array, ""]) -> tuple[Array, Array, Array, Array]:
    """Draw the functions: inputs and noisy outputs (j, n), and a grid on [0, 1] with the values there (j, grid)."""
    at = jnp.linspace(0.0, 1.0, grid)

    def one(key):
        input_key, value_key, noise_key = jax.random.split(key, 3)
        x = inputs(input_key)
        points = jnp.concatenate([x, at])[:, None]
        # The noise on the diagonal keeps the factorisation stable; it is not part of the function that is drawn.
        gram = gp.kernel.gram(points) + 1e-8 * jnp.eye(len(points))
        values = jnp.linalg.cholesky(gram) @ jax.random.normal(value_key, (len(points),))
        y = values[:POINTS] + jnp.sqrt(gp.noise) * jax.random.normal(noise_key, (POINTS,))
        return x, y, values[POINTS:]

    x, y, values = jax.vmap(one)(jax.random.split(key, FUNCTIONS))
    return x, y, at, values


def shifts(distance: float | Array) -> Float[Array, " j"]:
    """Return (Q + Q') j of each sub-dataset, with Q' = 2 on [0, 1] and j from 0."""
    return (distance + 2.0) * jnp.arange(FUNCTIONS)


def gap(gp: GP, x: Float[Array, "j n"], y: Float[Array, "j n"], distance: float | Array) -> Float[Array, ""]:
    """Return |NLL of the pseudo sub-dataset - Σ_j NLL of sub-dataset j|."""
    every = jnp.ones(POINTS, bool)
    apart = jax.vmap(lambda x, y: -gp.log_prob(x[:, None], y, every))(x, y)
    moved = (x + shifts(distance)[:, None]).reshape(-1, 1)
    return jnp.abs(-gp.log_prob(moved, y.ravel(), jnp.ones(y.size, bool)) - apart.sum())


class ShiftSpec(StudySpec):
    """Points of a drawn function."""

    grid: int


def run(spec: ShiftSpec) -> Frames:
    """Return "point" (kind, function, x, y), "path" (kind, function, x, y) and "gap" (x, gap).

    `kind`: "sub-dataset" where it was observed, "pseudo" where the
    lemma moves it; "path": the functions without noise. x of "gap": Q in lengthscales.
    """
    gp = truth()
    x, y, at, values = sample(gp, spec["grid"], stream(spec["seed"], "mphd_lemma1"))
    moved = np.asarray(shifts(SHOWN * LENGTHSCALE))
    points, paths = [], []
    for kind, offsets in (("sub-dataset", np.zeros(FUNCTIONS)), ("pseudo", moved)):
        for function, offset in enumerate(offsets):
            keyed = {"kind": kind, "function": function}
            points.append(pd.DataFrame({**keyed, "x": np.asarray(x[function]) + offset, "y": np.asarray(y[function])}))
            paths.append(pd.DataFrame({**keyed, "x": np.asarray(at) + offset, "y": np.asarray(values[function])}))
    gaps = [float(gap(gp, x, y, distance * LENGTHSCALE)) for distance in DISTANCES]
    return {
        "point": pd.concat(points, ignore_index=True),
        "path": pd.concat(paths, ignore_index=True),
        "gap": pd.DataFrame({"x": DISTANCES, "gap": gaps}),
    }
