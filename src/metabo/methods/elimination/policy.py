"""BO with several GPs as candidates: HE-GP-UCB among pre-trained priors, or the likeliest one (hegpucb Algorithm 1).

This is `metabo.methods.elimination.simulate` on the pools of a benchmark, with these differences for pre-trained
priors: every candidate has its own noise variance, which is R² in its ξ; kernels are not scaled to k(x, x) <= 1; β is
the coefficient of the acquisition (UCB); and deviations include the noise, as in HyperBO's acquisitions.
Random priorities break ties (`bo.policy`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.acquisition import Acquisition, make
from metabo.bo.policy import Candidates, Info, argmax, tie_breakers
from metabo.errors import ConfigError, unknown
from metabo.gp import many as beliefs
from metabo.gp.kernels import Pool
from metabo.gp.linalg import jitter
from metabo.gp.many import Belief
from metabo.gp.model import GP
from metabo.methods.elimination.confidence import xi
from metabo.methods.elimination.rules import Tally, empty_tally, without
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows

CHOICES = ("elimination", "optimism", "likelihood")
"""Whose bound to follow: the highest among the remaining candidates, the highest among all, or that of the
likeliest."""


class EliminationState(NamedTuple):
    """Pools (leading axis U), prior means (U, c), their belief, the survivors (U,), the sums for their tests, and the
    best output so far."""

    pool: Pool
    priority: Float[Array, " c"]
    means: Float[Array, "u c"]
    belief: Belief
    alive: Bool[Array, " u"]
    tally: Tally
    best: Float[Array, ""]


class Elimination(eqx.Module):
    """Query where the largest upper bound of the surviving candidates is highest, and drop the candidate that gave it
    once its errors leave its bounds; or drop none, or follow the likeliest one. `gps` is a GP with a leading axis of
    U."""

    gps: GP
    acquisition: Acquisition = eqx.field(static=True)
    rule: str = eqx.field(static=True)
    delta: float = eqx.field(static=True)
    budget: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=True)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> EliminationState:
        """Evaluate every prior on the pool."""

        def prior(gp):
            phi = gp.features(candidates.x)
            return gp.kernel.prepare(phi), gp.mean(phi), gp.kernel.diagonal(phi)

        pool, means, variance = jax.vmap(prior)(self.gps)
        many, count = means.shape
        return EliminationState(
            pool=pool,
            priority=tie_breakers(key, count),
            means=means,
            belief=beliefs.start(variance, self.budget),
            alive=jnp.ones(many, bool),
            tally=empty_tally(many),
            best=jnp.asarray(-jnp.inf),
        )

    def _noise(self) -> Float[Array, " u"]:
        return jax.vmap(lambda gp: gp.noise)(self.gps)

    def bounds(self, state: EliminationState) -> tuple[Float[Array, "u c"], Float[Array, "u c"], Float[Array, "u c"]]:
        """Return posterior means, deviations with noise, and upper confidence bounds (U, c)."""
        mean, std = beliefs.moments(state.belief, state.means, beliefs.raw_scale(), self._noise())
        of_each = jax.vmap(self.acquisition, (0, 0, None, None))
        return mean, std, of_each(mean, std, state.best, state.belief.seen)

    def allowed(self, state: EliminationState) -> Bool[Array, " u"]:
        """Return the mask (U,) of the candidates that the next query may follow."""
        if self.rule != "likelihood":
            return state.alive
        evidence = beliefs.log_evidence(state.belief, beliefs.raw_scale())
        return jnp.arange(len(evidence)) == jnp.argmax(evidence)

    def chosen(self, state: EliminationState, upper: Float[Array, "u c"], index: Int[Array, ""]) -> Int[Array, ""]:
        """Return u_t, the allowed candidate whose bound at the query is highest."""
        return jnp.argmax(jnp.where(self.allowed(state), upper[:, index], -jnp.inf))

    def select(
        self, state: EliminationState, mask: Bool[Array, " c"], key: Key[Array, ""]
    ) -> tuple[Int[Array, ""], Info]:
        """Maximise the largest bound of the allowed candidates over the points that may be queried."""
        mean, std, upper = self.bounds(state)
        score = jnp.max(jnp.where(self.allowed(state)[:, None], upper, -jnp.inf), axis=0)
        index = argmax(score, mask, state.priority)
        u = self.chosen(state, upper, index)
        return index, Info(mean[u, index], std[u, index], jnp.sqrt(self._noise()[u]), state.belief.ok)

    def observe(self, state: EliminationState, index: Int[Array, ""], y: Float[Array, ""]) -> EliminationState:
        """Test the candidate of this query (given initial points count as queries), then update all candidates."""
        mean, _, upper = self.bounds(state)
        u, noise = self.chosen(state, upper, index), self._noise()
        tally = state.tally.added(u, y - mean[u, index], upper[u, index] - mean[u, index])
        level = xi(state.belief.seen + 1, jnp.sqrt(noise[u]), len(noise), self.delta, "pi2")
        _, _, fired = tally.test(u, level)
        row = jax.vmap(lambda gp, pool: gp.kernel.row(pool, index))(self.gps, state.pool)
        residual = y - state.means[:, index]
        return state._replace(
            belief=beliefs.condition(state.belief, row, index, y, residual, noise + jitter(row[:, index])),
            alive=without(state.alive, u, fired) if self.rule == "elimination" else state.alive,
            tally=tally,
            best=jnp.maximum(state.best, y),
        )


@dataclass(frozen=True)
class CandidateSettings:
    """Whose bound to follow (`CHOICES`), and the level δ of the tests."""

    rule: str
    delta: float


def policy(
    params: GP, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Elimination:
    """Return the policy of a set of candidates. `settings`: those of `CandidateSettings`.

    Raises ConfigError for another rule, a δ outside (0, 1), or an acquisition that is not a confidence bound.
    """
    chosen = read(CandidateSettings, settings, "config", "policy")
    if chosen.rule not in CHOICES:
        raise unknown("rule among pre-trained priors", chosen.rule, CHOICES)
    if not acquisition.startswith("ucb"):
        raise ConfigError(f"acquisition '{acquisition}': elimination needs a confidence bound, ucb3 or ucb18")
    if not 0 < chosen.delta < 1:
        raise ConfigError(f"delta is {chosen.delta}; elimination needs a level between 0 and 1")
    return Elimination(params, make(acquisition), chosen.rule, chosen.delta, budget)
