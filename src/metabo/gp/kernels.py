"""Kernels on (n, p) feature arrays: Matérn 1/2, 3/2, 5/2, squared exponential, products of these, dot product.

Stationary kernels are functions of r² = sum_j ((φ_j - φ'_j) / ℓ_j)² with a closed-form derivative, so gradients are
finite at coincident points and no square root is differentiated.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from metabo.gp.constraints import positive

COINCIDENT = 1e-14
"""Squared distances below this share of the squared norms are rounding errors of equal points and are set to zero."""


ROUNDING = 1e-14
"""Distances below this share of the norm are rounding errors of the features of equal inputs."""


def squared_distances(a: Float[Array, "n p"], b: Float[Array, "m p"]) -> Float[Array, "n m"]:
    """Return ‖a_i - b_j‖² by one matrix product. Cost O(n m p)."""
    norms = jnp.sum(a**2, 1)[:, None] + jnp.sum(b**2, 1)[None, :]
    raw = norms - 2.0 * (a @ b.T)
    return jnp.where(raw > COINCIDENT * norms, raw, 0.0)


def exact_squared_distances(a: Float[Array, "n p"], b: Float[Array, "m p"]) -> Float[Array, "n m"]:
    """Return ‖a_i - b_j‖² by differences: exact up to rounding, however close two points are. Cost O(n m p) in time and
    memory.

    A network may round the features of equal inputs differently, so distances below that rounding are set to zero.
    """
    norms = jnp.sum(a**2, 1)[:, None] + jnp.sum(b**2, 1)[None, :]
    raw = jnp.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=2)
    return jnp.where(raw > ROUNDING**2 * norms, raw, 0.0)


@jax.custom_vjp
def self_squared_distances(a: Float[Array, "n p"]) -> Float[Array, "n n"]:
    """Return ‖a_i - a_j‖² within one set; its gradient needs one matrix product instead of two."""
    return squared_distances(a, a)


def _self_forward(a):
    squared = squared_distances(a, a)
    return squared, (a, squared > 0.0)


def _self_backward(saved, cotangent):
    # A distance of zero must contribute no gradient. If its terms were left to cancel, their rounding error would grow
    # with a and, for a tiny lengthscale, exceed every other gradient.
    a, apart = saved
    symmetric = jnp.where(apart, cotangent + cotangent.T, 0.0)
    return (2.0 * (symmetric.sum(1)[:, None] * a - symmetric @ a),)


self_squared_distances.defvjp(_self_forward, _self_backward)


def _radial(value: Callable, slope: Callable) -> Callable:
    """Make k(r²) with derivative `slope`; both receive r = sqrt(r²)."""

    @jax.custom_jvp
    def kernel(squared):
        return value(jnp.sqrt(squared))

    @kernel.defjvp
    def _(primals, tangents):
        r = jnp.sqrt(primals[0])
        return value(r), slope(r) * tangents[0]

    return kernel


_S3, _S5 = 3.0**0.5, 5.0**0.5

RADIAL: dict[str, Callable] = {
    # Matérn 1/2 has a kink at r = 0: its slope in r² is infinite there and is set to zero, the symmetric choice.
    "matern12": _radial(
        lambda r: jnp.exp(-r), lambda r: jnp.where(r > 0, -jnp.exp(-r) / (2.0 * jnp.where(r > 0, r, 1.0)), 0.0)
    ),
    "matern32": _radial(lambda r: (1.0 + _S3 * r) * jnp.exp(-_S3 * r), lambda r: -1.5 * jnp.exp(-_S3 * r)),
    "matern52": _radial(
        lambda r: (1.0 + _S5 * r + 5.0 / 3.0 * r**2) * jnp.exp(-_S5 * r),
        lambda r: -5.0 / 6.0 * (1.0 + _S5 * r) * jnp.exp(-_S5 * r),
    ),
    "squared_exponential": lambda squared: jnp.exp(-0.5 * squared),
}
"""Unit-variance stationary kernels as functions of r²."""


class Pool(NamedTuple):
    """A fixed set of features prepared for many kernel rows: scaled features and their squared norms."""

    scaled: Float[Array, "n p"]
    norms: Float[Array, " n"]


KINKED = ("matern12",)
"""Kernels with slope -1 in r at 0. One matrix product gives r² to about 1e-16 of the squared norms, and hence r of
close points to 1e-8. The other kernels are flat at 0 and do not notice; these need distances computed by
differences."""


class Stationary(eqx.Module):
    """s_v k(r), one lengthscale per feature. Leaves are unconstrained."""

    raw_lengthscale: Float[Array, " p"]
    raw_variance: Float[Array, ""]
    shape: str = eqx.field(static=True)

    @property
    def lengthscale(self) -> Float[Array, " p"]:
        """ℓ > 0, one per feature."""
        return positive(self.raw_lengthscale)

    @property
    def variance(self) -> Float[Array, ""]:
        """Signal variance s_v > 0."""
        return positive(self.raw_variance)

    def __call__(self, a: Float[Array, "n p"], b: Float[Array, "m p"]) -> Float[Array, "n m"]:
        """Cross-covariances of two sets of features."""
        squared = exact_squared_distances if self.shape in KINKED else squared_distances
        return self.variance * RADIAL[self.shape](squared(a / self.lengthscale, b / self.lengthscale))

    def gram(self, a: Float[Array, "n p"]) -> Float[Array, "n n"]:
        """Covariances within one set of features."""
        if self.shape in KINKED:
            return self(a, a)
        return self.variance * RADIAL[self.shape](self_squared_distances(a / self.lengthscale))

    def diagonal(self, a: Float[Array, "n p"]) -> Float[Array, " n"]:
        """Prior variances k(a_i, a_i)."""
        return jnp.broadcast_to(self.variance, a.shape[:1])

    def prepare(self, a: Float[Array, "n p"]) -> Pool:
        """Scale features once, for `row`."""
        scaled = a / self.lengthscale
        return Pool(scaled, jnp.sum(scaled**2, 1))

    def row(self, pool: Pool, index: Int[Array, ""]) -> Float[Array, " n"]:
        """Covariances of one pool member with all of them, without scaling again. Cost O(n p)."""
        if self.shape in KINKED:
            return self.variance * RADIAL[self.shape](exact_squared_distances(pool.scaled[index][None], pool.scaled)[0])
        norms = pool.norms + pool.norms[index]
        raw = norms - 2.0 * (pool.scaled @ pool.scaled[index])
        return self.variance * RADIAL[self.shape](jnp.where(raw > COINCIDENT * norms, raw, 0.0))


SHORTEST = 0.01
"""The shortest lengthscale of a product. For an input with two values, maximum likelihood would choose 1e-30, where
distances are nothing but rounding."""


class Product(eqx.Module):
    """s_v Π_i k_i(r_i), a product of stationary factors; `shapes` names them, and `raw_lengthscale` has a row for each.
    Leaves are unconstrained.

    Distances are exactly 0 for equal inputs. With lengthscales near 0.01, the rounding of a² + b² - 2ab (the shortcut
    of `Stationary`) made posterior covariances indefinite.
    """

    raw_lengthscale: Float[Array, "f p"]
    raw_variance: Float[Array, ""]
    shapes: tuple[str, ...] = eqx.field(static=True)

    @property
    def lengthscale(self) -> Float[Array, "f p"]:
        """Lengthscales > 0.01, a row for each factor."""
        return SHORTEST + positive(self.raw_lengthscale)

    @property
    def variance(self) -> Float[Array, ""]:
        """Signal variance s_v > 0."""
        return positive(self.raw_variance)

    def __call__(self, a: Float[Array, "n p"], b: Float[Array, "m p"]) -> Float[Array, "n m"]:
        """Cross-covariances of two sets of features. Cost O(n m p) in time and memory."""
        squared = (a.T[:, :, None] - b.T[:, None, :]) ** 2
        result = self.variance
        for shape, scale in zip(self.shapes, self.lengthscale, strict=True):
            result = result * RADIAL[shape](jnp.tensordot(scale**-2.0, squared, axes=1))
        return result

    def gram(self, a: Float[Array, "n p"]) -> Float[Array, "n n"]:
        """Covariances within one set of features."""
        return self(a, a)

    def diagonal(self, a: Float[Array, "n p"]) -> Float[Array, " n"]:
        """Prior variances k(a_i, a_i)."""
        return jnp.broadcast_to(self.variance, a.shape[:1])

    def prepare(self, a: Float[Array, "n p"]) -> Pool:
        """Keep the features unscaled for `row`: each factor has its own lengthscales."""
        return Pool(a, jnp.zeros(a.shape[0]))

    def row(self, pool: Pool, index: Int[Array, ""]) -> Float[Array, " n"]:
        """Covariances of one pool member with all of them. Cost O(n p)."""
        return self(pool.scaled[index][None], pool.scaled)[0]


class DotProduct(eqx.Module):
    """b² + φᵀφ'/s² (the ABLR kernel, hyperbo §7.2). `bias` is b, unconstrained."""

    raw_scale: Float[Array, ""]
    bias: Float[Array, ""]

    @property
    def scale(self) -> Float[Array, ""]:
        """s > 0."""
        return positive(self.raw_scale)

    def __call__(self, a: Float[Array, "n p"], b: Float[Array, "m p"]) -> Float[Array, "n m"]:
        """Cross-covariances of two sets of features."""
        return self.bias**2 + (a @ b.T) / self.scale**2

    def gram(self, a: Float[Array, "n p"]) -> Float[Array, "n n"]:
        """Covariances within one set of features."""
        return self(a, a)

    def diagonal(self, a: Float[Array, "n p"]) -> Float[Array, " n"]:
        """Prior variances k(a_i, a_i)."""
        return self.bias**2 + jnp.sum(a**2, 1) / self.scale**2

    def prepare(self, a: Float[Array, "n p"]) -> Pool:
        """Scale features once, for `row`."""
        scaled = a / self.scale
        return Pool(scaled, jnp.sum(scaled**2, 1))

    def row(self, pool: Pool, index: Int[Array, ""]) -> Float[Array, " n"]:
        """Covariances of one pool member with all of them. Cost O(n p)."""
        return self.bias**2 + pool.scaled @ pool.scaled[index]


class Corrected(eqx.Module):
    """k(x, x') + u B uᵀ on features φ = [x, u] (`metabo.gp.features.Anchored`): a stationary kernel k whose covariance
    at the anchors is replaced.

    With L Lᵀ = k(Z, Z), B = L⁻¹ Σ L⁻ᵀ - I makes the covariance of the anchors Σ. Elsewhere f, given its values at the
    anchors, keeps its conditional distribution under k. In this whitened form, rounding errors grow only with the
    square root of the condition number. `share` records the share of k's own covariance in Σ.
    """

    base: Stationary
    correction: Float[Array, "m m"]
    share: Float[Array, ""]

    def _split(self, a: Float[Array, "n p"]) -> tuple[Float[Array, "n d"], Float[Array, "n m"]]:
        width = a.shape[1] - self.correction.shape[0]
        return a[:, :width], a[:, width:]

    def __call__(self, a: Float[Array, "n p"], b: Float[Array, "m p"]) -> Float[Array, "n m"]:
        """Cross-covariances of two sets of features."""
        (x, u), (z, v) = self._split(a), self._split(b)
        return self.base(x, z) + u @ self.correction @ v.T

    def gram(self, a: Float[Array, "n p"]) -> Float[Array, "n n"]:
        """Covariances within one set of features."""
        x, u = self._split(a)
        return self.base.gram(x) + u @ self.correction @ u.T

    def diagonal(self, a: Float[Array, "n p"]) -> Float[Array, " n"]:
        """Prior variances k(a_i, a_i)."""
        x, u = self._split(a)
        return self.base.diagonal(x) + jnp.sum((u @ self.correction) * u, axis=1)

    def prepare(self, a: Float[Array, "n p"]) -> Pool:
        """Scale the inputs once, for `row`; the features after them stay as they are."""
        x, u = self._split(a)
        inputs = self.base.prepare(x)
        return Pool(jnp.concatenate([inputs.scaled, u], axis=1), inputs.norms)

    def row(self, pool: Pool, index: Int[Array, ""]) -> Float[Array, " n"]:
        """Covariances of one pool member with all of them. Cost O(n (d + m) + m²)."""
        scaled, u = self._split(pool.scaled)
        return self.base.row(Pool(scaled, pool.norms), index) + u @ (self.correction @ u[index])


Kernel = Stationary | Product | DotProduct | Corrected
