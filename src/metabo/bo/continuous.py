"""Maximise an acquisition over the unit cube from many Halton starts, the best of which are polished by L-BFGS in
parallel."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import qmc

from metabo.gp.fit import lbfgs

Score = Callable[[Float[Array, "m d"]], Float[Array, " m"]]

MEMORY, LINE_SEARCH_STEPS, TOLERANCE = 6, 8, 1e-6
"""Limits of the polishing L-BFGS: number of pairs kept, number of line search steps, and gradient norm at which it
stops."""


def halton(count: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `count` points of a scrambled Halton sequence in [0, 1)^dim."""
    return qmc.Halton(dim, scramble=True, rng=rng).random(count)


def maximise(
    score: Score, starts: Float[Array, "n d"], priority: Float[Array, " n"], polish: int, steps: int
) -> Float[Array, " d"]:
    """Return a point of the unit cube that scores at least as high as every start.

    The `polish` best starts (all, if fewer) are improved by `steps` iterations of L-BFGS in u with x = sin²(u), which
    stays in the box and reaches its faces. Ties go to the start with the highest `priority`, so a flat score gives a
    random start. A NaN score never wins. Cost: n + O(polish x steps) evaluations.
    """
    raw = score(starts)
    values = jnp.where(jnp.isnan(raw), -jnp.inf, raw)
    best = jnp.lexsort((priority, values))[::-1][: min(polish, len(starts))]

    def improved(start: Float[Array, " d"]) -> Float[Array, " d"]:
        u, _ = lbfgs(
            lambda u: -score(jnp.sin(u[None]) ** 2)[0], jnp.arcsin(jnp.sqrt(start)), steps=steps, memory=MEMORY,
            line_search_steps=LINE_SEARCH_STEPS, tolerance=TOLERANCE,
        )  # fmt: skip
        return jnp.sin(u) ** 2

    polished = jax.vmap(improved)(starts[best])
    found = jnp.concatenate([starts[best[:1]], polished])
    scores = score(found)
    # argmax takes the first of equals: a polished point must be better than the best start.
    return found[jnp.argmax(jnp.where(jnp.isnan(scores), -jnp.inf, scores))]
