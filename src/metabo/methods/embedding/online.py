"""Online tuning with a network that is trained on all tasks at every iteration: MIMO and RFGP (hyperbo §7.5, D.1).

This works as offline (`metabo.methods.embedding.policy`), but the test task's outputs are mapped anew before each
training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from metabo.bo.acquisition import make
from metabo.bo.ask_tell import Predictive, Tuner
from metabo.bo.priors import SpacePrior
from metabo.errors import ConfigError
from metabo.methods.embedding.networks import EmbeddingNetwork, no_moments, pooled, with_own
from metabo.methods.embedding.policy import EmbeddingTraining, retrain
from metabo.methods.embedding.settings import Schedule
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import AnyArray, Rows
from metabo.tasks.training_set import TrainingSet, outputs_of


class EmbeddingRun(NamedTuple):
    """The state of one run: the network, Adam's moments, and what predictions need from the past rows."""

    network: EmbeddingNetwork
    moments: PyTree
    prepared: PyTree


class Surrogate(eqx.Module):
    """A network as the model of a `Tuner`. Its predictions already include any noise."""

    run: EmbeddingRun
    noise: float = 0.0

    def posterior(self, x: Float[AnyArray, "b d"], y: Float[AnyArray, " b"], mask: Bool[AnyArray, " b"]) -> Predictive:
        """Return the prediction for the test task, whose observations are given."""
        return self.run.network.posterior(self.run.prepared, Rows(x, y, mask))


@dataclass(frozen=True)
class RetrainedOnlineSettings(Schedule):
    """Settings of the training at every iteration, which starts from the last parameters if `warm_start`, and of the
    search over the unit cube (`metabo.bo.continuous`)."""

    warm_start: bool
    starts: int
    polish: int
    polish_steps: int


def online(
    trained_from: TrainingSpec,
    prior: SpacePrior,
    training: TrainingSet,
    settings: Mapping[str, Json],
    acquisition: str,
    budget: int,
) -> Tuner:
    """Return the method for all folds and seeds of a prior. `trained_from` is the specification of its pre-training.

    Raises ConfigError if the prior was not trained on mapped outputs.
    """
    method, outputs = trained_from["method"], outputs_of(trained_from)
    if outputs != "mapped":
        raise ConfigError(
            f"method '{method}': online tuning needs a prior trained with outputs 'mapped'; got '{outputs}'"
        )
    chosen = read(RetrainedOnlineSettings, settings, "config", f"methods.{method}.online")
    prepare = jax.jit(lambda network, past: network.prepare(past))

    def priors(fold: int, prior_seed: int) -> tuple[EmbeddingRun, Rows]:
        network, past = prior.of(fold, prior_seed), training.past(fold, prior_seed)
        return EmbeddingRun(network, no_moments(network), prepare(network, past)), past

    def refit(run: EmbeddingRun, past: Rows, data: Rows, key: Key[Array, ""]) -> tuple[EmbeddingRun, Bool[Array, ""]]:
        pool = with_own(pooled(past, budget), data)
        state = EmbeddingTraining(run.network, run.moments, pool, key, jnp.asarray(True))
        state = retrain(state, chosen, chosen.warm_start, jnp.asarray(True))
        return EmbeddingRun(state.network, state.moments, run.prepared), state.ok

    search = (chosen.starts, chosen.polish, chosen.polish_steps)
    return Tuner(Surrogate, refit, priors, make(acquisition), prior.dim, budget, *search)
