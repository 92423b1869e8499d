"""The Gaussian process: an immutable pytree of features, mean, kernel and noise, and its posterior.

One GP serves all methods (hyperbo §3, §7.2): both mean and kernel act on the shared features φ(x).
"""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Bool, Float, Key

from metabo.gp.constraints import positive
from metabo.gp.features import Features, Identity, make_mlp
from metabo.gp.kernels import DotProduct, Kernel, Stationary
from metabo.gp.linalg import escalated, half_quadratic_logdet, masked_covariance
from metabo.gp.means import Constant, Linear, Mean, Zero
from metabo.gp.settings import GPSettings, read_gp
from metabo.records.files import Json
from metabo.tasks.rows import AnyArray


class GP(eqx.Module):
    """GP(μ, k) with noise variance σ². Leaves are unconstrained; the properties return constrained values."""

    features: Features
    mean: Mean
    kernel: Kernel
    raw_noise: Float[Array, ""]

    @property
    def noise(self) -> Float[Array, ""]:
        """Observation noise variance σ² > 0."""
        return positive(self.raw_noise)

    def covariance(self, phi: Float[Array, "n p"], mask: Bool[Array, " n"]) -> Float[Array, "n n"]:
        """k∘σ²(φ): the Gram matrix plus noise, with unit rows where `mask` is False."""
        return masked_covariance(self.kernel.gram(phi), self.noise, mask)

    def log_prob(
        self, x: Float[AnyArray, "n d"], y: Float[AnyArray, " n"], mask: Bool[AnyArray, " n"]
    ) -> Float[Array, ""]:
        """Log marginal likelihood of the valid rows (hyperbo Eq. 14). Cost O(n³)."""
        x, y, mask = map(jnp.asarray, (x, y, mask))
        phi = self.features(x)
        residual = jnp.where(mask, y - self.mean(phi), 0.0)
        core = half_quadratic_logdet(self.covariance(phi, mask), residual[:, None])
        return -core - 0.5 * jnp.sum(mask) * jnp.log(2.0 * jnp.pi)

    def posterior(self, x: Float[AnyArray, "n d"], y: Float[AnyArray, " n"], mask: Bool[AnyArray, " n"]) -> "Posterior":
        """Condition on the valid rows (hyperbo Eq. 17-18).

        If their covariance cannot be factorised, more is added to its diagonal (`Posterior.jitter`).
        """
        x, y, mask = map(jnp.asarray, (x, y, mask))
        phi = self.features(x)
        factor, jitter, ok = escalated(self.covariance(phi, mask))
        weights = cho_solve((factor, True), jnp.where(mask, y - self.mean(phi), 0.0))
        return Posterior(self, phi, mask, factor, weights, ok, jitter)


class Posterior(NamedTuple):
    """A GP conditioned on n rows: features, mask, Cholesky factor, Σ⁻¹(y - μ), whether Σ factorised, and the variance
    that its diagonal needed for that, beyond the usual jitter."""

    gp: GP
    phi: Float[Array, "n p"]
    mask: Bool[Array, " n"]
    factor: Float[Array, "n n"]
    weights: Float[Array, " n"]
    ok: Bool[Array, ""]
    jitter: Float[Array, ""]

    def predict(self, x: Float[Array, "m d"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Posterior mean and variance of f (without noise) at m inputs. Cost O(n² m)."""
        phi = self.gp.features(x)
        cross = jnp.where(self.mask[:, None], self.gp.kernel(self.phi, phi), 0.0)
        mean = self.gp.mean(phi) + cross.T @ self.weights
        whitened = solve_triangular(self.factor, cross, lower=True)
        return mean, jnp.maximum(self.gp.kernel.diagonal(phi) - jnp.sum(whitened**2, 0), 0.0)

    def joint(self, x: Float[Array, "m d"]) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
        """Posterior mean and covariance of f (without noise) at m inputs. Cost O(n² m + n m²)."""
        phi = self.gp.features(x)
        cross = jnp.where(self.mask[:, None], self.gp.kernel(self.phi, phi), 0.0)
        whitened = solve_triangular(self.factor, cross, lower=True)
        return self.gp.mean(phi) + cross.T @ self.weights, self.gp.kernel.gram(phi) - whitened.T @ whitened


def build(model: GPSettings | Mapping[str, Json], dim: int, key: Key[Array, ""]) -> GP:
    """Make an untrained GP for `dim` inputs.

    `model`: settings, or a mapping that `metabo.gp.settings.read_gp` accepts, e.g. {"mean": "zero", "kernel":
    "matern52", "features": [32, 32], "initial": {"lengthscale": 1.0}}. The raw (unconstrained) scale of the dot product
    and all biases start at 0, and MLP weights are LeCun-normal draws from `key`. Raises ConfigError for an unknown
    mean, kernel or initial value.
    """
    settings = model if isinstance(model, GPSettings) else read_gp(model)
    initial, sizes = settings.initial, settings.features
    feature_key, mean_key = jax.random.split(key)
    features = make_mlp(dim, sizes, feature_key) if sizes else Identity()
    width = sizes[-1] if sizes else dim
    zero = jnp.zeros(())
    if settings.mean == "zero":
        mean: Mean = Zero()
    elif settings.mean == "constant":
        mean = Constant(jnp.asarray(initial.constant, jnp.float64))
    else:
        mean = Linear(jax.nn.initializers.lecun_normal()(mean_key, (width, 1), jnp.float64)[:, 0], zero)
    if settings.kernel == "dot_product":
        kernel: Kernel = DotProduct(zero, zero)
    else:
        lengthscale = jnp.broadcast_to(jnp.asarray(initial.lengthscale, jnp.float64), (width,))
        kernel = Stationary(lengthscale, jnp.asarray(initial.variance, jnp.float64), settings.kernel)
    return GP(features, mean, kernel, jnp.asarray(initial.noise, jnp.float64))
