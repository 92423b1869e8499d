"""The variance ratio at x_τ of Algorithm 1 (HyperBO C.2), in an instance in which τ is early (I6)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.papers.engine.theory.replicates import replicate
from metabo.papers.hyperbo.theory import bounds
from metabo.papers.hyperbo.theory.algorithm import noisy_ucb, predictions, run
from metabo.papers.hyperbo.theory.memory import LawDraws, from_law, law_draws, model, pretrained

NOISE, LESS, LEAD = 1e-4, 0.99, 4.0
"""σ*², and k* and μ* of the first arm; the others have 1 and 0."""


def ratios(
    key: Key[Array, ""], functions: int, iterations: int, delta: float, arms: int, count: int
) -> Float[np.ndarray, " r"]:
    """Simulate λ̂²/λ² (count,) at x_τ, τ = argmin_t k*_{t-1}(x_t), of GP-UCB (Eq. 31) on independent arms.

    No arm is queried twice: Theorem 5 fails at repeated inputs for another reason (I3).
    """
    variances, mean = jnp.ones(arms).at[0].set(LESS), jnp.zeros(arms).at[0].set(LEAD)
    total, ties = jnp.diag(variances + NOISE), jax.random.key(0)
    truth, root = model(mean, total, NOISE), jnp.sqrt(total)
    beta = bounds.ucb_beta(bounds.printed(iterations, functions, delta))

    def compute(d: tuple[LawDraws, Array, Array]) -> Array:
        law, normals, errors = d
        prior = pretrained(from_law(mean, root, float(functions), law))
        f = mean + jnp.sqrt(variances) * normals
        path = run(prior, truth, noisy_ucb(beta), f, jnp.sqrt(NOISE) * errors, ties, repeats=False)
        chosen = path.variance[jnp.arange(iterations), path.index]
        step = jnp.argmin(chosen)
        used = jnp.arange(iterations) < step
        own = predictions(prior, path.index, path.y, used, path.index[step])[1]
        return own / (chosen[step] + NOISE)

    def draw(rng: np.random.Generator, n: int) -> tuple[LawDraws, np.ndarray, np.ndarray]:
        law = law_draws(rng, n, arms, functions)
        return law, rng.standard_normal((n, arms)), rng.standard_normal((n, iterations))

    return replicate(compute, draw, key, count, chunk=200)
