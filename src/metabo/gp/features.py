"""Features φ(x): the identity or an MLP with tanh after every layer (hyperbo §7.2)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


class Identity(eqx.Module):
    """φ(x) = x."""

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Return x."""
        return x


class MLP(eqx.Module):
    """Dense layers with tanh after each one."""

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """Map n inputs to n feature vectors."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            x = jnp.tanh(x @ weight + bias)
        return x


Features = Identity | MLP


def make_mlp(dim: int, sizes: tuple[int, ...], key: Key[Array, ""]) -> MLP:
    """LeCun-normal weights (truncated, as in the authors' library) and zero biases."""
    init = jax.nn.initializers.lecun_normal()
    keys = jax.random.split(key, len(sizes))
    shapes = zip((dim, *sizes[:-1]), sizes, strict=True)
    weights = tuple(init(k, shape, jnp.float64) for k, shape in zip(keys, shapes, strict=True))
    return MLP(weights, tuple(jnp.zeros(size) for size in sizes))
