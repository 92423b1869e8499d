"""Portfolios: the candidates in an order that past tasks determine beforehand; observed outputs change nothing.

- `mean_rank` sorts by the mean over past tasks of a candidate's rank within the task.
- `mean_z` sorts by the mean over past tasks of a candidate's output, where each task is standardised by the mean and
  the standard deviation of its own evaluations. Unlike a rank, this measures by how much a candidate is worse.
- `greedy` (Wistuba, Schilling and Schmidt-Thieme 2015; Feurer et al. 2018): each next candidate is the one that most
  lowers the mean over past tasks of the best normalised regret so far; if none lowers it, mean rank decides.

Given initial points come first in the sequence. Priorities that are drawn once per run break ties. Both papers use
configurations that all past tasks evaluated; where a task did not, `metabo.methods.portfolio.look_up` interpolates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.policy import Candidates, Info, argmax, tie_breakers
from metabo.errors import ConfigError, unknown
from metabo.methods.portfolio.look_up import DIGITS, deviations, ranks, regrets_at
from metabo.methods.random.policy import Nothing
from metabo.plan.typed import Count, read
from metabo.records.files import Json
from metabo.tasks.rows import Rows

RULES = ("greedy", "mean_rank", "mean_z")


@dataclass(frozen=True)
class PortfolioSettings:
    """The rule that orders the candidates, one of `RULES`, and the number of nearest evaluations in an
    interpolation."""

    rule: str
    neighbours: Count


class PortfolioState(NamedTuple):
    """The normalised regret of c candidates in m past tasks, the best so far in each task, the sort key of the
    candidates (mean rank or, for `mean_z`, mean number of deviations below the best), and priorities."""

    regrets: Float[Array, "m c"]
    best: Float[Array, " m"]
    rank: Float[Array, " c"]
    priority: Float[Array, " c"]


class Portfolio(eqx.Module):
    """Query the candidates in the order of a rule. `past` has the rows of the past tasks."""

    params: Nothing
    past: Rows
    rule: str = eqx.field(static=True)
    neighbours: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=False)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> PortfolioState:
        """Look up every candidate in every past task. Before the first query, a task's regret is 1, the worst."""
        regrets = regrets_at(candidates.x, self.past, self.neighbours)
        present = jnp.any(jnp.asarray(self.past.mask), axis=1)
        if self.rule == "mean_z":
            of_each = regrets * jax.vmap(deviations)(jnp.asarray(self.past.y), jnp.asarray(self.past.mask))[:, None]
        else:
            of_each = jax.vmap(ranks, in_axes=(0, None))(regrets, candidates.mask)
        rank = jnp.sum(jnp.where(present[:, None], of_each, 0.0), axis=0) / jnp.maximum(jnp.sum(present), 1)
        best = jnp.where(present, 1.0, 0.0)
        return PortfolioState(regrets, best, jnp.round(rank, DIGITS), tie_breakers(key, len(rank)))

    def select(
        self, state: PortfolioState, mask: Bool[Array, " c"], key: Key[Array, ""]
    ) -> tuple[Int[Array, ""], Info]:
        """Return the next candidate; there is no prediction."""
        gains = jnp.sum(jnp.maximum(state.best[:, None] - state.regrets, 0.0), axis=0)
        some = jnp.any(mask & (gains > 0)) & (self.rule == "greedy")
        index = argmax(jnp.where(some, gains, -state.rank), mask, state.priority)
        return index, Info(*[jnp.asarray(jnp.nan)] * 3, ok=jnp.asarray(True))

    def observe(self, state: PortfolioState, index: Int[Array, ""], y: Float[Array, ""]) -> PortfolioState:
        """Record which candidate was queried, but not its output."""
        return state._replace(best=jnp.minimum(state.best, state.regrets[:, index]))


def policy(
    params: Nothing, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Portfolio:
    """Return the policy; `settings`: those of `PortfolioSettings`.

    Raises ConfigError without the rows of the past tasks, or for another rule or acquisition.
    """
    if past is None:
        raise ConfigError("portfolios look candidates up in past tasks; say `uses_past=True` in their Method")
    if acquisition != "sequence":
        raise ConfigError(f"portfolios score no posterior: their acquisition is 'sequence', not '{acquisition}'")
    chosen = read(PortfolioSettings, settings, "config", "policy")
    if chosen.rule not in RULES:
        raise unknown("rule of a portfolio", chosen.rule, RULES)
    return Portfolio(params, past, chosen.rule, chosen.neighbours)
