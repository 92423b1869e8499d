"""Priors of GP parameters (MPHD §2.1, §2.3): their densities, maximum-likelihood fits, divergence, and the MAP loss.

A GP has a constant mean, one lengthscale per input, a signal variance and a noise variance. Each is drawn independently
from a prior with two numbers: Normal (mean c, standard deviation d) for the constant, Gamma (shape a, rate b) for the
others; or, for the non-informative baseline (App. E.2), uniform between two bounds for all.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float
from scipy.special import digamma, polygamma
from scipy.special import gammaln as log_gamma

from metabo.errors import ConfigError, DataError
from metabo.gp.constraints import inverse_positive
from metabo.gp.features import Identity
from metabo.gp.kernels import Stationary
from metabo.gp.means import Constant
from metabo.gp.model import GP

SPREAD = 1e-12
"""Samples that differ by less than this share of the largest count as equal, because their spread is rounding."""
NEWTON_STEPS, NARROW = 10, 5e-5
"""Constants of the Gamma fit. The start is within 2 % of the solution, and each step squares the error. Where log(mean)
- mean(log) is below `NARROW` (shape above 10⁴), the start is exact to twelve digits, and rounding in ψ would spoil
it."""


class Parameters(NamedTuple):
    """One entry for each kind of parameter θ of a GP with constant mean and stationary kernel: constrained values
    (lengthscale (d,), the others scalars), the numbers of their priors, or their names."""

    constant: Any
    lengthscale: Any
    variance: Any
    noise: Any


NAMES = Parameters("constant mean", "lengthscale", "signal variance", "noise variance")
"""The names of the parameters in messages."""


def of_gp(gp: GP) -> Parameters:
    """Return θ of a GP; for a stack of GPs, use `jax.vmap(of_gp)`. Raises ConfigError for a GP of another kind."""
    if not isinstance(gp.mean, Constant) or not isinstance(gp.kernel, Stationary):
        found = f"mean {type(gp.mean).__name__}, kernel {type(gp.kernel).__name__}"
        raise ConfigError(f"priors of GP parameters: a GP needs a constant mean and a stationary kernel; got {found}")
    return Parameters(gp.mean.value, gp.kernel.lengthscale, gp.kernel.variance, gp.noise)


def to_gp(values: Parameters, kernel: str) -> GP:
    """Return the GP on the raw inputs with parameters θ. `kernel` is the name of a stationary kernel."""
    constant, *positive = map(jnp.asarray, values)
    lengthscale, variance, noise = map(inverse_positive, positive)
    return GP(Identity(), Constant(constant), Stationary(lengthscale, variance, kernel), noise)


def normal_log_density(
    value: Float[Array, "..."], mean: Float[Array, "..."], std: Float[Array, "..."]
) -> Float[Array, "..."]:
    """log N(value; c, d²) with mean c and standard deviation d."""
    return -0.5 * ((value - mean) / std) ** 2 - jnp.log(std) - 0.5 * jnp.log(2.0 * jnp.pi)


def gamma_log_density(
    value: Float[Array, "..."], shape: Float[Array, "..."], rate: Float[Array, "..."]
) -> Float[Array, "..."]:
    """log Γ(value; a, b) = a log b - log Γ(a) + (a - 1) log value - b value, for value > 0."""
    return shape * jnp.log(rate) - gammaln(shape) + (shape - 1.0) * jnp.log(value) - rate * value


def uniform_log_density(
    value: Float[Array, "..."], low: Float[Array, "..."], high: Float[Array, "..."]
) -> Float[Array, "..."]:
    """-log(high - low) on [low, high], and -inf outside."""
    return jnp.where((value >= low) & (value <= high), -jnp.log(high - low), -jnp.inf)


class Hyperprior(eqx.Module):
    """Priors Θ(α) of all parameters of a GP with d inputs: two numbers each, by `kind` (one of `KINDS`).

    "gamma": (mean, standard deviation) of a Normal for the constant, (shape, rate) of a Gamma for the others.
    "uniform": (low, high) for all. Two zeros stand for no prior, as for a column of zeros (`metabo.tasks.padding`), and
    contribute no density.
    """

    constant: Float[Array, "2"]
    lengthscale: Float[Array, "d 2"]
    variance: Float[Array, "2"]
    noise: Float[Array, "2"]
    kind: str = eqx.field(static=True, default="gamma")

    def log_density(self, gp: GP) -> Float[Array, ""]:
        """Σ_h log p(θ_h | α_h) on the constrained values themselves, without the Jacobian of their warping (sheet
        §2.4)."""
        others = gamma_log_density if self.kind == "gamma" else uniform_log_density
        constant = normal_log_density if self.kind == "gamma" else uniform_log_density
        densities = Parameters(constant, others, others, others)
        terms = [
            jnp.sum(jnp.where(_there(numbers), density(value, *jnp.moveaxis(_filled(numbers), -1, 0)), 0.0))
            for density, value, numbers in zip(densities, of_gp(gp), self.numbers, strict=True)
        ]
        return jnp.sum(jnp.stack(terms))

    def log_jacobian(self, gp: GP) -> Float[Array, ""]:
        """Σ_h log θ_h over the positive parameters that have a prior: log density of log θ minus that of θ."""
        _, *positive = zip(of_gp(gp), self.numbers, strict=True)
        return jnp.sum(jnp.stack([jnp.sum(jnp.where(_there(n), jnp.log(v), 0.0)) for v, n in positive]))

    @property
    def numbers(self) -> Parameters:
        """The two numbers of each parameter's prior, on the last axis."""
        return Parameters(self.constant, self.lengthscale, self.variance, self.noise)


def _there(numbers: Float[Array, "... 2"]) -> Bool[Array, "..."]:
    return (numbers != 0.0).any(axis=-1)


def _filled(numbers: Float[Array, "... 2"]) -> Float[Array, "... 2"]:
    """Replace a missing prior by numbers with finite densities, because otherwise gradients would not be finite."""
    return jnp.where(_there(numbers)[..., None], numbers, jnp.asarray([1.0, 2.0]))


def map_loss(
    gp: GP, prior: Hyperprior, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]
) -> Float[Array, ""]:
    """-log p(D | θ) - Σ_h log p(θ_h | α_h): the loss that MAP minimises (Eq. 6), on the rows where `mask` is True."""
    return -gp.log_prob(x, y, mask) - prior.log_density(gp)


class Support(NamedTuple):
    """A uniform prior's ranges as coordinates u without bounds: value = low + (high - low) (m + (1 - 2m) σ(u)).

    `margin` m keeps every value away from the bounds by that share of its range, which is far more than rounding, so no
    fit in u can leave the support. `begin` starts no closer to a bound than `inner`, because closer to it σ is so flat
    that a fit could not get away again.
    """

    prior: Hyperprior
    margin: float = 1e-6
    inner: float = 1e-3

    def begin(self, gp: GP) -> Parameters:
        """Return the coordinates of a GP's parameters, moved to a distance of `inner` from a bound if they are
        closer."""

        def coordinate(value: Float[Array, "..."], bounds: Float[Array, "... 2"]) -> Float[Array, "..."]:
            low, high = jnp.moveaxis(_filled(bounds), -1, 0)
            share = jnp.clip((value - low) / (high - low), self.inner, 1.0 - self.inner)
            inside = (share - self.margin) / (1.0 - 2.0 * self.margin)
            return jnp.log(inside) - jnp.log1p(-inside)

        return jax.tree.map(coordinate, of_gp(gp), self.prior.numbers)

    def to_gp(self, raw: Parameters, kernel: str) -> GP:
        """Return the GP at coordinates `raw`."""

        def value(u: Float[Array, "..."], bounds: Float[Array, "... 2"]) -> Float[Array, "..."]:
            low, high = jnp.moveaxis(_filled(bounds), -1, 0)
            return low + (high - low) * (self.margin + (1.0 - 2.0 * self.margin) * jax.nn.sigmoid(u))

        return to_gp(jax.tree.map(value, raw, self.prior.numbers), kernel)


def fit_normal(
    values: Float[np.ndarray, "*batch n"], parameter: str = NAMES.constant, spaces: Sequence[str] = ()
) -> tuple[np.ndarray | np.floating, np.ndarray | np.floating]:
    """Return mean c and population standard deviation d of n samples (Eq. 4 in closed form); leading axes are batches.

    `parameter` and `spaces` (one name per sample) are for messages. Raises DataError for samples that are not finite,
    and for fewer than two different samples, from which no width can be estimated.
    """
    _require(values, np.isfinite(values), "not finite", parameter, spaces)
    _require_spread(values, parameter, spaces)
    return values.mean(axis=-1), values.std(axis=-1)


def fit_gamma(
    values: Float[np.ndarray, "*batch n"], parameter: str = NAMES.lengthscale, spaces: Sequence[str] = ()
) -> tuple[np.ndarray | np.floating, np.ndarray | np.floating]:
    """Return the maximum-likelihood shape a and rate b of n samples; leading axes are batches.

    a solves log a - ψ(a) = log(mean) - mean(log), b = a / mean (sheet §2.3), by Minka's Newton steps on 1/a.
    `parameter` and `spaces` (one name per sample) are for messages. Raises DataError for samples that are not positive
    and finite, and for fewer than two different samples, for which the shape has no finite estimate.
    """
    _require(values, np.isfinite(values) & (values > 0), "not positive and finite", parameter, spaces)
    _require_spread(values, parameter, spaces)
    ratio = values / values.mean(axis=-1, keepdims=True)
    # log(mean) - mean(log) without cancellation, both near the mean and far below it
    log_ratio = np.where(np.abs(ratio - 1.0) < 0.5, np.log1p(np.clip(ratio - 1.0, -0.5, 0.5)), np.log(ratio))
    gap = (ratio - 1.0 - log_ratio).mean(axis=-1)
    wide = np.maximum(gap, NARROW)
    shape = _first_shape(wide)
    for _ in range(NEWTON_STEPS):
        slope = shape - shape**2 * polygamma(1, shape)
        shape = 1.0 / (1.0 / shape + (np.log(shape) - digamma(shape) - wide) / slope)
    shape = np.where(gap < NARROW, _first_shape(gap), shape)[()]
    return shape, shape / values.mean(axis=-1)


def _first_shape(gap: np.ndarray | np.floating) -> np.ndarray | np.floating:
    """Solve log a - ψ(a) = gap approximately (Minka 2002), within 2 % everywhere."""
    return (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)


def kl_gamma(
    shape1: np.ndarray | float, rate1: np.ndarray | float, shape2: np.ndarray | float, rate2: np.ndarray | float
) -> np.ndarray | np.floating:
    """KL(Γ(a1, b1) ‖ Γ(a2, b2)) in nats (sheet §5, Fig. 6); the arguments broadcast."""
    return (
        (shape1 - shape2) * digamma(shape1)
        - log_gamma(shape1)
        + log_gamma(shape2)
        + shape2 * (np.log(rate1) - np.log(rate2))
        + shape1 * (rate2 - rate1) / rate1
    )


def _require(values: np.ndarray, good: np.ndarray, fault: str, parameter: str, spaces: Sequence[str]) -> None:
    if good.all():
        return
    place = tuple(np.argwhere(~good)[0])
    where = f" of space '{spaces[place[-1]]}'" if spaces else f" (sample {int(place[-1])})"
    raise DataError(
        f"prior of the {parameter}: the estimate{where} is {values[place]}, {fault}; look at the fit of that space "
        "(its sidecar), or leave it out"
    )


def _require_spread(values: np.ndarray, parameter: str, spaces: Sequence[str]) -> None:
    if values.shape[-1] > 1 and (np.ptp(values, axis=-1) > SPREAD * np.abs(values).max(axis=-1)).all():
        return
    names = set(spaces)
    count = f" from {len(names)} space{'' if len(names) == 1 else 's'}" if spaces else ""
    raise DataError(
        f"prior of the {parameter}: fewer than two different estimates among {values.shape[-1]}{count}; pre-train on "
        "two spaces at least"
    )
