"""Confidence constants of HE-GP-UCB: β, ξ and the maximum information gain (hegpucb Theorems 3.1 to 4.2, Lemma 5.1).

All are functions of the iteration t = 1, 2, ..., the level δ and the quantities in the theorem, which may be numbers or
arrays of NumPy or JAX. δ is the level of the whole statement: one half goes to the confidence intervals, the other to
the noise.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from metabo.errors import unknown

XI = ("printed", "pi2", "corrected")
"""Forms of ξ: with π in place of π² (Theorem 4.1 as printed), with π² (Theorem 4.2, Lemma 5.1 as printed), and with π²
and the factor 2 of the two-sided tail that the proof of Lemma 5.1 loses."""


def beta_frequentist(
    B: ArrayLike, R: ArrayLike, gain: ArrayLike, delta: ArrayLike, factor: bool | ArrayLike = False
) -> Float[Array, "..."]:
    """Return β = B + √(2(γ + 1 + ln(2/δ))), with the square root multiplied by R if `factor` (hegpucb Theorem 4.1 as
    printed).

    `B`: bound on the RKHS norm, `gain`: information gain γ_{t-1} (nats). The factor R belongs to the regulariser 1 +
    2/T of IGP-UCB; with the regulariser R² of this paper it must be 1.
    """
    root = jnp.sqrt(2.0 * (gain + 1.0 + jnp.log(2.0 / jnp.asarray(delta))))
    return jnp.add(B, jnp.where(factor, R, 1.0) * root)


def beta_bayes_finite(count: ArrayLike, t: ArrayLike, delta: ArrayLike) -> Float[Array, "..."]:
    """Return β_t = √(2 log(|X| π² t²/(3δ))) for `count` = |X| points (hegpucb Theorem 4.2(A))."""
    return jnp.sqrt(2.0 * jnp.log(count * jnp.pi**2 * jnp.asarray(t) ** 2 / (3.0 * delta)))


def beta_bayes_infinite(
    t: ArrayLike, d: ArrayLike, a: ArrayLike, b: ArrayLike, r: ArrayLike, delta: ArrayLike
) -> Float[Array, "..."]:
    """Return β_t = √(2 log(2π²t²/(3δ)) + 4d log(d t b r √(log(4da/δ)))) (hegpucb Theorem 4.2(B), as printed).

    X ⊂ [0, r]^d; P(sup |∂f/∂x_j| > L) <= a exp(-L²/b) (Assumption B.1). It is meaningful only where d t b r √(...) >=
    1.
    """
    inner = d * jnp.asarray(t) * b * r * jnp.sqrt(jnp.log(4.0 * d * a / jnp.asarray(delta)))
    return jnp.sqrt(2.0 * jnp.log(2.0 * jnp.pi**2 * jnp.asarray(t) ** 2 / (3.0 * delta)) + 4.0 * d * jnp.log(inner))


def xi(
    t: ArrayLike, R: ArrayLike, candidates: ArrayLike, delta: ArrayLike, kind: str = "corrected"
) -> Float[Array, "..."]:
    """Return ξ_t = 2R² log(|U| c t²/(3δ)) for |U| = `candidates` (hegpucb Theorems 4.1, 4.2; Lemma 5.1 with δ/2).

    `kind`: c = π ("printed", Theorem 4.1), π² ("pi2", Theorem 4.2), or 2π² ("corrected": the proof of Lemma 5.1 loses a
    factor 2, which a level of δ/4 compensates). Raises ConfigError for another name.
    """
    if kind not in XI:
        raise unknown("form of xi", kind, XI)
    constant = {"printed": jnp.pi, "pi2": jnp.pi**2, "corrected": 2.0 * jnp.pi**2}[kind]
    return 2.0 * jnp.asarray(R) ** 2 * jnp.log(candidates * constant * jnp.asarray(t) ** 2 / (3.0 * delta))


def greedy_gain(gram: Float[Array, "c c"], noise: ArrayLike, T: int) -> Float[Array, " t"]:
    """Return the information gain (nats) of the greedy choice of 1, 2, ..., T points: ½ log|I + K_A/noise|.

    `noise`: variance R². Points may repeat, as queries may. The gain is monotone and submodular, so γ_greedy <= γ <=
    γ_greedy/(1 - 1/e). Cost O(T² c).
    """

    def step(carry, number):
        variance, rows = carry
        index = jnp.argmax(variance)
        pivot = variance[index] + noise
        row = (gram[index] - rows[:, index] @ rows) / jnp.sqrt(pivot)
        rows = jax.lax.dynamic_update_index_in_dim(rows, row, number, 0)
        gained = 0.5 * jnp.log(pivot / noise)
        return (jnp.maximum(variance - row**2, 0.0), rows), gained

    start = (jnp.diagonal(gram), jnp.zeros((T, gram.shape[0]), gram.dtype))
    _, gains = jax.lax.scan(step, start, jnp.arange(T))
    return jnp.cumsum(gains)
