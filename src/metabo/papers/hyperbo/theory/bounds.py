"""The regret bounds (HyperBO Theorems 6, 16, 17, 18; appendix C.2, C.3) as functions, printed and repaired.

The repaired theorems change what the printed proofs miss (numbers: inconsistencies of docs/replication-notes.md):
f(x) is bounded at all inputs and iterations, ζ = √(2 ln(3MT/δ)) (I7); Theorem 5 holds for every set of at most T-1
distinct inputs and every x, δ'' = δ/(3n) with n = M Σ_{t<=T} C(M, t-1) (I3, I8); the variance ratio of iteration 1, so
that s² gains (N-1)/(N-T) (I6); the noise at the best observation and at the best observed point, each the largest of
T: 2√(2 ln(3T/δ)) σ* (I4, I5); 2βσ̂ in Theorem 18 (I10); a numerator of PI that may be negative (I14); and, where
inputs may repeat, ρ_T over multisets (I13). Repeated inputs are beyond its proof, as beyond the printed one.
"""

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from metabo.papers.hyperbo.theory.estimates import mean_factor, variance_slack
from metabo.papers.hyperbo.theory.inequalities import information

Number = Float[Array, "..."] | Float[np.ndarray, "..."] | float
"""One value, or one per replicate."""


class TheoremConstants(NamedTuple):
    """Constants of Theorems 16 to 18, printed or repaired.

    `a`, `b`: Theorem 5's; `zeta`: of f around the posterior mean; `selection`: units of σ* lost by choosing the best
    observation; `inflate`: h' with λ < h'λ̂; `s`: h h' with λ̂(x_τ)/λ̂(x*) < s λ(x_τ)/λ(x*); `last`: units of βσ̂ in
    Theorem 18; `floor`: what PI's numerator is at least.
    """

    a: float
    b: float
    zeta: float
    selection: float
    inflate: float
    s: float
    last: float
    floor: float


def required_functions(iterations: int, delta: float) -> float:
    """Return T + 4 ln(12/δ), which N must exceed (all of the theorems); 1 - 2√b is positive then."""
    return iterations + 4.0 * math.log(12.0 / delta)


def printed(iterations: int, functions: int, delta: float) -> TheoremConstants:
    """Return the constants of Theorems 16 to 18 as printed, for T, N and δ."""
    zeta = math.sqrt(2.0 * math.log(3.0 / delta))
    return _constants(iterations, functions, delta / 3.0, zeta, zeta, 1.0, 1.0, -math.inf)


def repaired(iterations: int, functions: int, delta: float, points: int) -> TheoremConstants:
    """Return the constants of the repaired theorems for T, N, δ and M. NaN if N <= T + 4 ln(4/δ'')."""
    sets = sum(math.comb(points, t - 1) for t in range(1, iterations + 1)) * points
    zeta = math.sqrt(2.0 * math.log(3.0 * points * iterations / delta))
    selection = 2.0 * math.sqrt(2.0 * math.log(3.0 * iterations / delta))
    ratio = (functions - 1.0) / (functions - iterations)
    return _constants(iterations, functions, delta / (3.0 * sets), zeta, selection, ratio, 2.0, 0.0)


def _constants(
    iterations: int,
    functions: int,
    share: float,
    zeta: float,
    selection: float,
    ratio: float,
    last: float,
    floor: float,
) -> TheoremConstants:
    a = float(mean_factor(iterations, functions, share))
    b = float(variance_slack(iterations, functions, share))
    low, high = 1.0 - 2.0 * math.sqrt(b), 1.0 + 2.0 * math.sqrt(b) + 2.0 * b
    if low <= 0:
        return TheoremConstants(*(math.nan,) * 8)
    inflate = math.sqrt(functions / ((functions - iterations) * low))
    return TheoremConstants(a, b, zeta, selection, inflate, math.sqrt(high / low * ratio), last, floor)


def ucb_beta(k: TheoremConstants) -> float:
    """Return β = (a + ζ)h' of GP-UCB in Theorems 16 and 18."""
    return (k.a + k.zeta) * k.inflate


def reach(c: Number, rho: Number, iterations: int, noise: Number) -> Number:
    """Return 2cρ_T/(T ln(1 + c/σ²)), which bounds the smallest posterior variance among the queries."""
    return 2.0 * c * rho / (iterations * jnp.log1p(c / noise))


def _selection(k: TheoremConstants, c: Number, noise: Number, share: float) -> Number:
    return k.selection * jnp.sqrt(noise) - share * k.zeta * noise / jnp.sqrt(c + noise)


def theorem16(k: TheoremConstants, c: Number, rho: Number, iterations: int, noise: Number) -> Number:
    """Return the bound of Theorem 16 (GP-UCB, Eq. 31); `noise` is σ*², `rho` is ρ_T of k*, σ*."""
    lead = (k.a + k.zeta) * (1.0 + k.s) * jnp.sqrt(reach(c, rho, iterations, noise) + noise)
    return lead + _selection(k, c, noise, 1.0)


def theorem17(k: TheoremConstants, c: Number, rho: Number, iterations: int, noise: Number, gap: Number) -> Number:
    """Return the bound of Theorem 17 (PI, Eq. 32); `gap` is (f̂* - μ*_{τ-1}(x*))/√(k*_{τ-1}(x*) + σ*²)."""
    eta = k.s * jnp.maximum(gap + k.a, k.floor) + k.a + k.zeta
    return eta * jnp.sqrt(reach(c, rho, iterations, noise) + noise) + _selection(k, c, noise, 0.5)


def theorem18(k: TheoremConstants, c: Number, rho: Number, iterations: int, noise: Number, own_noise: Number) -> Number:
    """Return the bound of Theorem 18 (GP-UCB, Eq. 33); `own_noise` is σ̂², `rho` is ρ_T of k̂, σ̂."""
    beta = ucb_beta(k)
    lead = 2.0 * beta * jnp.sqrt(reach(c, rho, iterations, own_noise)) + k.last * beta * jnp.sqrt(own_noise)
    return lead + _selection(k, c, noise, 1.0)


def theorem6(iterations: int, functions: int, delta: float, rho: Number, noise: Number) -> Number:
    """Return (√(T/(N-T-1)) + √ln(1/δ)) (√(ρ_T/T) + σ*), the right side of Eq. 24 without its O(·)."""
    first = math.sqrt(iterations / (functions - iterations - 1.0)) + math.sqrt(math.log(1.0 / delta))
    return first * (jnp.sqrt(rho / iterations) + jnp.sqrt(noise))


def subsets(points: int, iterations: int, repeats: bool) -> Int[np.ndarray, "n t"]:
    """List all sets of T inputs, or all multisets (sequences that repeat inputs have those)."""
    choose = itertools.combinations_with_replacement if repeats else itertools.combinations
    return np.array(list(choose(range(points), iterations)))


@jax.jit
def max_information(
    gram: Float[Array, "m m"], noise: Number, among: Int[Array, "n t"] | Int[np.ndarray, "n t"]
) -> Float[Array, ""]:
    """Return ρ_T = max_A ½ ln|I + k(A)/σ²| by enumeration of `among`."""
    return jnp.max(jax.vmap(lambda a: information(gram[a][:, a], noise))(jnp.asarray(among)))
