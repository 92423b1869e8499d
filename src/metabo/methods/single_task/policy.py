"""Methods that fit a GP to the test task alone, after every observation: STBO and STBOH (hyperbo §7.2).

STBO takes the untrained GP of H-NLL. L-BFGS fits all its parameters, including MLP weights, to the marginal likelihood
with priors LogNormal(0, 0.1) on lengthscales and signal variance and Normal(0, 0.1) on the noise variance. STBOH has a
constant mean, a Matérn-5/2 kernel on the inputs, log signal variance ~ N(-1, 1), log lengthscales ~ N(0, 1), log noise
variance ~ N(-6, 3), all soft-clipped to the priors' 1 to 99 % range, and GP-UCB with coefficient 1.8.

The paper leaves open, and we chose (docs/replication-notes.md): each fit starts from the previous one; `use_prior` says
whether the prior density counts in the fit (yes), or for STBOH only the priors' range.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key
from scipy.stats import norm

from metabo.bo.acquisition import make
from metabo.bo.refit import Refit
from metabo.bo.settings import PI_THRESHOLD
from metabo.errors import ConfigError
from metabo.gp.constraints import inverse_positive, soft_clip
from metabo.gp.features import Identity
from metabo.gp.fit import lbfgs
from metabo.gp.kernels import Product, Stationary
from metabo.gp.means import Constant
from metabo.gp.model import GP, build
from metabo.gp.settings import read_gp
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet

PRIOR_VARIANCE = (-1.0, 1.0)
PRIOR_LENGTHSCALE = (0.0, 1.0)
PRIOR_NOISE = (-6.0, 3.0)
"""Mean and standard deviation of STBOH's normal priors on the log parameters."""


class HandTuned(NamedTuple):
    """STBOH's unclipped parameters: the constant as it is, the others on the log scale."""

    constant: Float[Array, ""]
    lengthscale: Float[Array, " d"]
    variance: Float[Array, ""]
    noise: Float[Array, ""]


def _clip(raw: Float[Array, "..."], prior: tuple[float, float]) -> Float[Array, "..."]:
    low, high = norm(*prior).ppf([0.01, 0.99])
    return soft_clip(raw, float(low), float(high))


def hand_tuned_gp(raw: HandTuned) -> GP:
    """Build STBOH's GP from its unclipped parameters."""
    lengthscale = jnp.exp(_clip(raw.lengthscale, PRIOR_LENGTHSCALE))
    variance = jnp.exp(_clip(raw.variance, PRIOR_VARIANCE))
    noise = jnp.exp(_clip(raw.noise, PRIOR_NOISE))
    kernel = Stationary(inverse_positive(lengthscale), inverse_positive(variance), "matern52")
    return GP(Identity(), Constant(raw.constant), kernel, inverse_positive(noise))


def hand_tuned_log_prior(raw: HandTuned) -> Float[Array, ""]:
    """Log density (up to a constant) of STBOH's priors at the clipped log parameters."""

    def normal(value, prior):
        return -0.5 * jnp.sum(((_clip(value, prior) - prior[0]) / prior[1]) ** 2)

    return (
        normal(raw.lengthscale, PRIOR_LENGTHSCALE)
        + normal(raw.variance, PRIOR_VARIANCE)
        + normal(raw.noise, PRIOR_NOISE)
    )


def stbo_log_prior(gp: GP) -> Float[Array, ""]:
    """Log density (up to a constant) of STBO's priors on the warped parameters; scale 0.1 throughout."""

    def lognormal(value):
        logs = jnp.log(value)
        return jnp.sum(-0.5 * (logs / 0.1) ** 2 - logs)

    assert isinstance(gp.kernel, Stationary | Product), "`start` refuses what has no lengthscales"
    return lognormal(gp.kernel.lengthscale) + lognormal(gp.kernel.variance) - 0.5 * (gp.noise / 0.1) ** 2


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> GP | HandTuned:
    """Return the unfitted parameters: H-NLL's untrained GP, or, without features, STBOH's at its prior means.

    Raises ConfigError for a model that the priors of these methods do not cover.
    """
    settings = read_gp(model)
    if settings.features:
        if settings.kernel == "dot_product":
            raise ConfigError("STBO's priors are on lengthscales, which the kernel 'dot_product' has none of")
        return build(settings, dim, key)
    if (settings.mean, settings.kernel) != ("constant", "matern52"):
        raise ConfigError(
            "without features the model is STBOH's: mean 'constant', kernel 'matern52'; "
            f"got mean '{settings.mean}', kernel '{settings.kernel}'"
        )
    lengthscale = jnp.full(dim, PRIOR_LENGTHSCALE[0])
    return HandTuned(jnp.zeros(()), lengthscale, jnp.asarray(PRIOR_VARIANCE[0]), jnp.asarray(PRIOR_NOISE[0]))


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[GP | HandTuned, None]:
    """Return untrained parameters, one per (fold, seed): these methods learn nothing from past tasks."""
    flat = keys.reshape(-1)
    return jax.vmap(lambda k: start(spec["model"], training.dim, training.tasks, jax.random.fold_in(k, 0)))(flat), None


@dataclass(frozen=True)
class SingleTaskSettings:
    """The number of L-BFGS steps of each fit, the margin of PI, and whether the prior density counts in the fit."""

    refit_steps: int
    pi_threshold: float = PI_THRESHOLD
    use_prior: bool = True


def policy(
    params: GP | HandTuned, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Refit:
    """Return the BO policy that fits after every observation: STBOH's for its parameters, STBO's for a plain GP.
    `settings` are those of `SingleTaskSettings`."""
    return refitting(params, read(SingleTaskSettings, settings, "config", "policy"), acquisition, budget)


def refitting(params: GP | HandTuned, settings: SingleTaskSettings, acquisition: str, budget: int) -> Refit:
    """Return the policy of `policy` for settings that have been read."""
    hand_tuned = isinstance(params, HandTuned)
    to_gp, log_prior = (hand_tuned_gp, hand_tuned_log_prior) if hand_tuned else (_same, stbo_log_prior)
    weight = 1.0 if settings.use_prior else 0.0

    def fit(raw, data):
        def loss(candidate):
            return -to_gp(candidate).log_prob(*data) - weight * log_prior(candidate)

        fitted, log = lbfgs(loss, raw, steps=settings.refit_steps)
        return fitted, log.stopped < 0

    return Refit(params, to_gp, fit, make(acquisition, settings.pi_threshold), budget)


def _same(gp: GP) -> GP:
    return gp
