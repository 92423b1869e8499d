"""The Gaussian process: an immutable pytree of features, mean, kernel and noise, and its posterior.

One GP serves all methods (hyperbo §3, §7.2): both mean and kernel act on the shared features φ(x).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Bool, Float, Key

from metabo.errors import ConfigError, unknown
from metabo.gp.constraints import positive
from metabo.gp.features import Features, Identity, make_mlp
from metabo.gp.kernels import DotProduct, Kernel, Stationary
from metabo.gp.linalg import cholesky, half_quadratic_logdet, masked_covariance
from metabo.gp.means import Constant, Linear, Mean, Zero
from metabo.tasks.rows import AnyArray

MEANS = ["zero", "constant", "linear_mlp"]
KERNELS = ["matern12", "matern32", "matern52", "squared_exponential", "dot_product"]
INITIAL = {"constant": 0.0, "lengthscale": 0.0, "variance": 0.0, "noise": -4.0}
"""Initial values before warping, unless a model gives its own (open in hyperbo; sheet §2.10): softplus makes them 0.693
for lengthscales and signal variance, 0.018 for the noise variance."""


class GP(eqx.Module):
    """GP(μ, k) with noise variance σ². Leaves are unconstrained; properties constrain."""

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
        """Condition on the valid rows (hyperbo Eq. 17-18)."""
        x, y, mask = map(jnp.asarray, (x, y, mask))
        phi = self.features(x)
        factor, ok = cholesky(self.covariance(phi, mask))
        weights = cho_solve((factor, True), jnp.where(mask, y - self.mean(phi), 0.0))
        return Posterior(self, phi, mask, factor, weights, ok)


class Posterior(NamedTuple):
    """A GP conditioned on n rows: features, mask, Cholesky factor, Σ⁻¹(y - μ), and whether Σ factorised."""

    gp: GP
    phi: Float[Array, "n p"]
    mask: Bool[Array, " n"]
    factor: Float[Array, "n n"]
    weights: Float[Array, " n"]
    ok: Bool[Array, ""]

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


def check_model(model: dict[str, Any]) -> None:
    """Raise ConfigError when a model description names an unknown mean or kernel, lacks the features it needs, or gives
    an initial value of what it does not have."""
    if model["mean"] not in MEANS:
        raise unknown("mean", model["mean"], MEANS)
    if model["kernel"] not in KERNELS:
        raise unknown("kernel", model["kernel"], KERNELS)
    if model["mean"] == "linear_mlp" and not model["features"]:
        raise ConfigError("mean 'linear_mlp' needs at least one layer in 'features', e.g. [32, 32]")
    absent = {"constant"} if model["mean"] != "constant" else set()
    absent |= {"lengthscale", "variance"} if model["kernel"] == "dot_product" else set()
    for name in model.get("initial", {}):
        if name not in INITIAL.keys() - absent:
            raise unknown("initial value of this mean and kernel", name, INITIAL.keys() - absent)


def build(model: dict[str, Any], dim: int, key: Key[Array, ""]) -> GP:
    """Make an untrained GP for `dim` inputs.

    `model`: {"mean": zero | constant | linear_mlp, "kernel": matern12 | matern32 | matern52 | squared_exponential |
    dot_product, "features": layer sizes, [] for the raw inputs, "initial" (optional): values before warping in place of
    those in `INITIAL`, e.g. {"lengthscale": 1.0}}. Scale of the dot product and all biases start at 0, MLP weights
    LeCun-normal from `key`. Raises ConfigError for an unknown mean, kernel or initial value.
    """
    check_model(model)
    begin = {name: jnp.asarray(value, jnp.float64) for name, value in (INITIAL | model.get("initial", {})).items()}
    sizes = tuple(model["features"])
    feature_key, mean_key = jax.random.split(key)
    features = make_mlp(dim, sizes, feature_key) if sizes else Identity()
    width = sizes[-1] if sizes else dim
    zero = jnp.zeros(())
    if model["mean"] == "zero":
        mean: Mean = Zero()
    elif model["mean"] == "constant":
        mean = Constant(begin["constant"])
    else:
        mean = Linear(jax.nn.initializers.lecun_normal()(mean_key, (width, 1), jnp.float64)[:, 0], zero)
    if model["kernel"] == "dot_product":
        kernel: Kernel = DotProduct(zero, zero)
    else:
        lengthscale = jnp.broadcast_to(begin["lengthscale"], (width,))
        kernel = Stationary(lengthscale, begin["variance"], model["kernel"])
    return GP(features, mean, kernel, begin["noise"])
