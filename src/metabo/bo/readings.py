"""BO with a fixed GP prior under two other readings of HyperBO's acquisitions.

`margin: deviations` measures PI's margin in standard deviations of the outputs. The paper's 0.1 is in units of the
outputs (§7.2), a tenth of -log(error) on PD1; where outputs are accuracies it is out of reach. `unbiased: true`
multiplies the predictive variance by n/(n-1), as in the authors' code, where n counts the training tasks and, once it
has an observation, the test task. PI has the same maximiser with and without it.
"""

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo import fixed_prior
from metabo.bo.fixed_prior import FixedPrior, FixedState
from metabo.bo.policy import Candidates, Info, argmax
from metabo.bo.settings import ReadingSettings
from metabo.gp.model import GP
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows


class Reading(eqx.Module):
    """A policy of `metabo.bo.fixed_prior` that scores with another variance and another margin.

    `tasks` is the number n of training tasks, or 0 for an unscaled variance. `shift` is added to the margin of PI, in
    units of the outputs.
    """

    prior: FixedPrior
    tasks: Float[Array, ""]
    shift: Float[Array, ""]
    repeats: bool = eqx.field(static=True, default=True)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> FixedState:
        """Evaluate the prior on the pool."""
        return self.prior.init(candidates, key)

    def select(self, state: FixedState, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition over the candidates that may be queried. The reported prediction is the model's
        own."""
        std = jnp.sqrt(jnp.maximum(state.variance, 0.0) + self.prior.gp.noise)
        scaled = jnp.sqrt(variance_factor(self.tasks, state.observed)) * std
        scores = self.prior.acquisition(state.mean, scaled, state.best + self.shift, state.observed)
        index = argmax(scores, mask, state.priority)
        return index, state.told(index, scores[index], self.prior.gp.noise)

    def observe(self, state: FixedState, index: Int[Array, ""], y: Float[Array, ""]) -> FixedState:
        """Append an observation."""
        return self.prior.observe(state, index, y)


def variance_factor(tasks: Float[Array, ""], observed: Int[Array, ""]) -> Float[Array, ""]:
    """Return n/(n-1), where n is `tasks`, plus one after an observation; return 1 if n is at most 1."""
    number = tasks + (observed > 0)
    return jnp.where((tasks > 0) & (number > 1), number / jnp.maximum(number - 1.0, 1.0), 1.0)


def output_deviation(past: Rows) -> Float[Array, ""]:
    """Return the standard deviation (ddof 0) of a task's outputs, averaged over the tasks with two rows or more."""
    mask, y = jnp.asarray(past.mask), jnp.asarray(past.y)
    count = mask.sum(axis=-1)
    mean = jnp.where(mask, y, 0.0).sum(axis=-1) / jnp.maximum(count, 1)
    square = jnp.where(mask, (y - mean[..., None]) ** 2, 0.0).sum(axis=-1)
    some = count > 1
    own = jnp.where(some, jnp.sqrt(square / jnp.maximum(count, 1)), 0.0)
    return own.sum() / jnp.maximum(some.sum(), 1)


def policy(
    params: GP, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Reading:
    """Return the policy of a trained GP. `settings` are those of `ReadingSettings`, `past` has the training rows."""
    assert past is not None, "METHOD says uses_past"
    chosen = read(ReadingSettings, settings, "config", "policy")
    prior = fixed_prior.policy(params, {"pi_threshold": chosen.pi_threshold}, acquisition, budget)
    tasks = jnp.asarray(past.mask).any(axis=-1).sum().astype(float) if chosen.unbiased else jnp.asarray(0.0)
    shift = jnp.asarray(0.0)
    if acquisition == "pi" and chosen.margin == "deviations":
        shift = chosen.pi_threshold * (output_deviation(past) - 1.0)
    return Reading(prior, tasks, shift)
