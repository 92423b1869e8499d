"""Maps between unconstrained leaves and constrained parameters (hyperbo §2.10 of the sheet: softplus warping)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

FLOOR = 1e-10
"""Added after softplus so that lengthscales and variances stay positive (value of the authors' code)."""


def positive(raw: Float[Array, "..."]) -> Float[Array, "..."]:
    """Softplus plus a floor: unconstrained to positive."""
    return jax.nn.softplus(raw) + FLOOR


def inverse_positive(value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Inverse of `positive`; stable for large values, where log(expm1(v)) overflows."""
    v = value - FLOOR
    return v + jnp.log(-jnp.expm1(-v))


def soft_clip(raw: Float[Array, "..."], low: float, high: float) -> Float[Array, "..."]:
    """Smoothly clip to (low, high), close to the identity well inside (composition of two softplus bounds).

    The upper bound is applied after the lower one and rescaled so that the limits are exactly low and high.
    """
    above = low + jax.nn.softplus(raw - low)
    width = high - low
    return high - jax.nn.softplus(high - above) * width / jax.nn.softplus(width)
