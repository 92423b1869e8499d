"""BO with a network that is re-trained on all tasks after every observation: the policy of MIMO and RFGP."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from metabo.bo.acquisition import Acquisition, make
from metabo.bo.policy import Candidates, Info, argmax, tie_breakers
from metabo.bo.settings import PI_THRESHOLD
from metabo.errors import ConfigError
from metabo.methods.embedding.networks import (
    EmbeddingNetwork,
    TrainingPool,
    batches,
    no_moments,
    own,
    pooled,
    tell,
    train,
)
from metabo.methods.embedding.settings import Schedule
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows


class EmbeddingTraining(NamedTuple):
    """A network under training: Adam's moments, all rows, the key of the next training, and whether the last one was
    finite."""

    network: EmbeddingNetwork
    moments: PyTree
    pool: TrainingPool
    key: Key[Array, ""]
    ok: Bool[Array, ""]


class RetrainedState(NamedTuple):
    """The candidates, their random priorities, the network under training, and what predictions need from the past
    rows."""

    candidates: Float[Array, "c d"]
    priority: Float[Array, " c"]
    training: EmbeddingTraining
    prepared: PyTree


def begin(network: EmbeddingNetwork, past: Rows, budget: int, key: Key[Array, ""]) -> EmbeddingTraining:
    """Return the pre-trained network before any observation."""
    return EmbeddingTraining(network, no_moments(network), pooled(past, budget), key, jnp.asarray(True))


def retrain(
    training: EmbeddingTraining, schedule: Schedule, warm_start: bool, wanted: Bool[Array, ""]
) -> EmbeddingTraining:
    """Train on all rows if `wanted`, starting from the last parameters and moments of Adam (`warm_start`) or from new
    ones."""
    now, later, fresh = jax.random.split(training.key, 3)
    network, moments = training.network, training.moments
    if not warm_start:
        network = jax.tree.map(lambda a, b: jnp.where(wanted, a, b), network.fresh(fresh), network)
        moments = no_moments(network)
    count = jnp.where(wanted, batches(schedule, training.pool.counts.sum()), 0)
    trained = train(network, moments, training.pool, now, count, schedule)
    return training._replace(network=trained.network, moments=trained.moments, key=later, ok=trained.stopped < 0)


class Retrained(eqx.Module):
    """BO with a network that is trained again after every observation but the last.

    `past` has the rows of the training tasks. A non-finite step ends a training, and `Info.ok` is False until the next
    training.
    """

    network: EmbeddingNetwork
    past: Rows
    acquisition: Acquisition = eqx.field(static=True)
    schedule: Schedule = eqx.field(static=True)
    warm_start: bool = eqx.field(static=True)
    budget: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=True)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> RetrainedState:
        """Start from the pre-trained network, with the embedding of the test task untrained."""
        ties, fit = jax.random.split(key)
        training = begin(self.network, self.past, self.budget, fit)
        priority = tie_breakers(ties, candidates.x.shape[0])
        return RetrainedState(candidates.x, priority, training, self.network.prepare(self.past))

    def select(
        self, state: RetrainedState, mask: Bool[Array, " c"], key: Key[Array, ""]
    ) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition under the network's prediction over the candidates that may be queried."""
        network, pool = state.training.network, state.training.pool
        seen = own(pool, self.budget)
        posterior = network.posterior(state.prepared, seen)
        mean, variance = posterior.predict(state.candidates)
        std = jnp.sqrt(variance)
        best = jnp.max(jnp.where(seen.mask, seen.y, -jnp.inf))
        scores = self.acquisition(mean, std, best, pool.counts[-1])
        index = argmax(scores, mask, state.priority)
        return index, Info(mean[index], std[index], jnp.asarray(jnp.nan), state.training.ok & posterior.ok)

    def observe(self, state: RetrainedState, index: Int[Array, ""], y: Float[Array, ""]) -> RetrainedState:
        """Append the observation and train again, unless no further prediction is needed."""
        pool = tell(state.training.pool, state.candidates[index], y)
        wanted = pool.counts[-1] < self.budget
        training = retrain(state.training._replace(pool=pool), self.schedule, self.warm_start, wanted)
        return state._replace(training=training)


@dataclass(frozen=True)
class RetrainedSettings(Schedule):
    """Settings of the training after every observation (from the last parameters if `warm_start`), and the margin of
    PI."""

    warm_start: bool
    pi_threshold: float = PI_THRESHOLD


def policy(
    params: EmbeddingNetwork, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Retrained:
    """Return the policy of a pre-trained network. `settings`: those of `RetrainedSettings`.

    Raises ConfigError without the rows of the training tasks.
    """
    if past is None:
        raise ConfigError("networks are trained on past tasks at every iteration; say `uses_past=True` in its Method")
    chosen = read(RetrainedSettings, settings, "config", "policy")
    return Retrained(params, past, make(acquisition, chosen.pi_threshold), chosen, chosen.warm_start, budget)
