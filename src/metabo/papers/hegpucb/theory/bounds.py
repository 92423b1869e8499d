"""The regret bounds (HE-GP-UCB Theorems 4.1, 4.2, 6.1, Lemma 5.3, Table 1) as functions, with explicit constants."""

import math

import numpy as np
from jaxtyping import Real

Number = Real[np.ndarray, "..."] | float


def width_constant(noise: float) -> float:
    """Return C = 2/log(1 + R^-2) of Lemma 5.3 for R = `noise`: σ² <= ½ C log(1 + σ²/R²) for σ² <= 1."""
    return 2.0 / math.log1p(noise**-2)


def width_sum(beta: Number, gain: Number, many: int, iterations: Number, constant: float) -> Number:
    """Return β_T √(C T |U| γ_T), the right side of Lemma 5.3."""
    return beta * np.sqrt(constant * iterations * many * gain)


def regret_bound(
    norm: float,
    beta: Number,
    xi: Number,
    gain: Number,
    many: int,
    iterations: Number,
    noise: float,
    *,
    robust: bool = False,
    infinite: bool = False,
) -> Number:
    """Return 2|U|B + 2√(|U| ξ_T T) + 2β_T √(CT|U|γ_T), the last line of the proof of Theorem 4.1.

    `robust`: 4β_T in place of 2β_T (Theorem 6.1); `infinite`: plus Σ 1/t² <= π²/6 (Theorem 4.2(B)). `norm`: B.
    """
    widths = width_sum(beta, gain, many, iterations, width_constant(noise))
    noises = np.sqrt(many * xi * iterations)
    extra = math.pi**2 / 6.0 if infinite else 0.0
    return 2.0 * many * norm + 2.0 * noises + (4.0 if robust else 2.0) * widths + extra


def table_row(norm: float, gain: Number, many: Number, iterations: Number, *, per_root: bool = False) -> Number:
    """Return |U|B + √T (B√γ_T + γ_T), the frequentist bound of HE-GP-UCB in Table 1 without its logarithms.

    `per_root`: with √(|U|T) in place of √T, as the theorem has it. With |U| = 0 it is that of GP-UCB and IGP-UCB.
    """
    root = np.sqrt(np.maximum(many, 1) * iterations) if per_root else np.sqrt(iterations)
    return many * norm + root * (norm * np.sqrt(gain) + gain)


def table_row_bayes(norm: float, gain: Number, many: Number, iterations: Number, dim: int, points: int) -> Number:
    """Return |U|B + √(Tγ_T E), E = min{d, log|X|}: the Bayesian bound of Table 1."""
    return many * norm + np.sqrt(iterations * gain * min(dim, math.log(points)))
