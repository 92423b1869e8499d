"""Mean functions on (n, p) feature arrays: zero, constant, linear (on MLP features: the paper's linear MLP)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Zero(eqx.Module):
    """μ(φ) = 0."""

    def __call__(self, features: Float[Array, "n p"]) -> Float[Array, " n"]:
        """Return n zeros."""
        return jnp.zeros(features.shape[0], features.dtype)


class Constant(eqx.Module):
    """μ(φ) = c."""

    value: Float[Array, ""]

    def __call__(self, features: Float[Array, "n p"]) -> Float[Array, " n"]:
        """Return c, n times."""
        return jnp.broadcast_to(self.value, features.shape[:1])


class Linear(eqx.Module):
    """μ(φ) = W φ + c (hyperbo §7.2; the bias is in the authors' code)."""

    weight: Float[Array, " p"]
    bias: Float[Array, ""]

    def __call__(self, features: Float[Array, "n p"]) -> Float[Array, " n"]:
        """Return the n values."""
        return features @ self.weight + self.bias


Mean = Zero | Constant | Linear
