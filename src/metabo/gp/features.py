"""Features φ(x): the identity, an MLP with tanh after every layer (hyperbo §7.2), or covariances with anchors."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Key

from metabo.gp.kernels import Stationary


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


class Anchored(eqx.Module):
    """φ(x) = [x, L⁻¹ k(Z, x)]: the inputs, followed by the whitened covariances of x with m anchors Z under `kernel`.

    `factor` is the Cholesky factor L of k(Z, Z) with jitter. `present` is 1 for an anchor and 0 for padding, which has
    a unit row in L and the feature 0. A mean that is linear in these features, and a kernel that adds a quadratic form
    in them (`metabo.gp.kernels.Corrected`), extend a prior that is known at the anchors to all inputs.
    """

    kernel: Stationary
    anchors: Float[Array, "m d"]
    present: Float[Array, " m"]
    factor: Float[Array, "m m"]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """Map n inputs to features (n, d + m). Cost O(n m (d + m))."""
        cross = self.present[:, None] * self.kernel(self.anchors, x)
        return jnp.concatenate([x, solve_triangular(self.factor, cross, lower=True).T], axis=1)


Features = Identity | MLP | Anchored


def make_mlp(dim: int, sizes: tuple[int, ...], key: Key[Array, ""]) -> MLP:
    """LeCun-normal weights (truncated, as in the authors' library) and zero biases."""
    init = jax.nn.initializers.lecun_normal()
    keys = jax.random.split(key, len(sizes))
    shapes = zip((dim, *sizes[:-1]), sizes, strict=True)
    weights = tuple(init(k, shape, jnp.float64) for k, shape in zip(keys, shapes, strict=True))
    return MLP(weights, tuple(jnp.zeros(size) for size in sizes))
