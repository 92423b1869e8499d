"""BO with parameters that are re-fitted after every observation: the policy of single-task methods."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from metabo.bo.acquisition import Acquisition
from metabo.bo.policy import Candidates, Info, argmax, tie_breakers
from metabo.gp.model import GP
from metabo.tasks.rows import Rows


class RefitState(NamedTuple):
    """Observations so far, padded to the budget, and the parameters fitted to them. `ok`: the last fit was finite."""

    pool: Float[Array, "c d"]
    priority: Float[Array, " c"]
    params: PyTree
    x: Float[Array, "b d"]
    y: Float[Array, " b"]
    observed: Int[Array, ""]
    ok: Bool[Array, ""]


Fit = Callable[[PyTree, Rows], tuple[PyTree, Bool[Array, ""]]]


class Refit(eqx.Module):
    """BO with parameters that `fit` re-fits after every observation, starting from the previous fit; `to_gp` makes
    their GP.

    The first fit follows observation number `first`; until then, the policy uses its initial parameters.
    """

    params: PyTree
    to_gp: Callable[[PyTree], GP] = eqx.field(static=True)
    fit: Fit = eqx.field(static=True)
    acquisition: Acquisition = eqx.field(static=True)
    budget: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=True)
    first: int = eqx.field(static=True, default=1)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> RefitState:
        """Start from the unfitted parameters."""
        count, dim = candidates.x.shape
        x, y = jnp.zeros((self.budget, dim)), jnp.zeros(self.budget)
        return RefitState(candidates.x, tie_breakers(key, count), self.params, x, y, jnp.asarray(0), jnp.asarray(True))

    def select(self, state: RefitState, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition under the fitted GP's posterior over the candidates that may be queried."""
        seen = jnp.arange(len(state.y)) < state.observed
        gp = self.to_gp(state.params)
        posterior = gp.posterior(state.x, state.y, seen)
        mean, variance = posterior.predict(state.pool)
        std = jnp.sqrt(variance + gp.noise)
        best = jnp.max(jnp.where(seen, state.y, -jnp.inf))
        scores = self.acquisition(mean, std, best, state.observed)
        index = argmax(scores, mask, state.priority)
        sound = state.ok & posterior.ok & (scores[index] < jnp.inf)
        return index, Info(mean[index], std[index], jnp.sqrt(gp.noise), sound, posterior.jitter)

    def observe(self, state: RefitState, index: Int[Array, ""], y: Float[Array, ""]) -> RefitState:
        """Append the observation and fit again."""
        x = jax.lax.dynamic_update_index_in_dim(state.x, state.pool[index], state.observed, 0)
        ys = jax.lax.dynamic_update_index_in_dim(state.y, y, state.observed, 0)
        observed = state.observed + 1
        data = Rows(x, ys, jnp.arange(len(ys)) < observed)
        params, ok = self.fit(state.params, data) if self.first <= 1 else self._fit_later(state.params, data, observed)
        return state._replace(params=params, x=x, y=ys, observed=observed, ok=ok)

    def _fit_later(self, last: PyTree, data: Rows, observed: Int[Array, ""]) -> tuple[PyTree, Bool[Array, ""]]:
        return jax.lax.cond(observed >= self.first, lambda: self.fit(last, data), lambda: (last, jnp.asarray(True)))

    def resized(self, state: RefitState, budget: int) -> RefitState:
        """Return the state with room for `budget` observations. A fit costs the cube of that number, because it
        includes the padding."""
        spare = max(0, budget - len(state.y))
        x, y = jnp.pad(state.x, [(0, spare), (0, 0)]), jnp.pad(state.y, (0, spare))
        return state._replace(x=x[:budget], y=y[:budget])
