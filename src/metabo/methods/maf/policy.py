"""BO with a trained neural acquisition function: the policy of MAF (Volpp et al. 2020, hyperbo D.5)."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.policy import Candidates, Info, argmax, tie_breakers
from metabo.errors import ConfigError
from metabo.gp.model import GP
from metabo.methods.maf import network as maf_network
from metabo.methods.maf.network import MafPrior, PoolBelief, Standard
from metabo.records.files import Json
from metabo.tasks.rows import Rows


class LearnedState(NamedTuple):
    """The belief about the pool under the test task's own GP, and the other inputs of the network."""

    gp: GP
    standard: Standard
    belief: PoolBelief
    x: Float[Array, "c d"]
    priority: Float[Array, " c"]


class LearnedAcquisition(eqx.Module):
    """Query the candidate with the largest logit, as the authors do at test time."""

    prior: MafPrior
    budget: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=True)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> LearnedState:
        """Take the GP and the standardisation of this task."""
        gp, standard = jax.tree.map(lambda leaf: leaf[candidates.task], (self.prior.gps, self.prior.standard))
        belief = maf_network.prior_belief(gp, candidates.x, self.budget)
        priority = tie_breakers(key, candidates.x.shape[0])
        return LearnedState(gp, standard, belief, candidates.x, priority)

    def select(self, state: LearnedState, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the learned acquisition over the candidates that may be queried."""
        logits = self.prior.network(maf_network.features(state.belief, state.x, self.prior.horizon))
        index = argmax(logits, mask, state.priority)
        mean, std = (moment[index] for moment in maf_network.moments(state.belief))
        offset, scale = state.standard
        ok = state.belief.ok & jnp.isfinite(logits[index])
        noise, raised = state.gp.noise, scale**2 * state.belief.raised
        return index, Info(offset + scale * mean, scale * jnp.sqrt(std**2 + noise), scale * jnp.sqrt(noise), ok, raised)

    def observe(self, state: LearnedState, index: Int[Array, ""], y: Float[Array, ""]) -> LearnedState:
        """Add the standardised output to the belief."""
        offset, scale = state.standard
        return state._replace(belief=maf_network.observe(state.gp, state.belief, index, (y - offset) / scale))


def policy(
    params: MafPrior, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> LearnedAcquisition:
    """Return the policy of a trained acquisition function. Raises ConfigError for any acquisition but `learned`."""
    if acquisition != "learned":
        raise ConfigError(f"MAF learns its acquisition function ('learned') and has no other; got '{acquisition}'")
    return LearnedAcquisition(params, budget)
