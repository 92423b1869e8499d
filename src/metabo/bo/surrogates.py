"""GP policies on a finite pool: a fixed prior updated row by row, and a GP re-fitted after every observation."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from metabo.acquisition import Acquisition
from metabo.bo.policy import Candidates, Info, argmax, tie_breakers
from metabo.gp.kernels import Pool
from metabo.gp.linalg import JITTER
from metabo.gp.model import GP


class FixedState(NamedTuple):
    """Posterior of the pool under a fixed prior.

    `rows` (budget, c) are the rows of L⁻¹ K(X, pool): row t is written by observation t. `mean` and `variance` (c,)
    are the posterior moments of f; `count` observations are in; `best` is their maximum.
    """

    pool: Pool
    mask: Bool[Array, " c"]
    priority: Float[Array, " c"]
    mean: Float[Array, " c"]
    variance: Float[Array, " c"]
    rows: Float[Array, "b c"]
    count: Int[Array, ""]
    best: Float[Array, ""]
    ok: Bool[Array, ""]


class FixedPrior(eqx.Module):
    """BO with a GP whose hyperparameters do not change: one new Cholesky row per observation, no refactorisation.

    An observation costs O(budget x c). With v_t the new row, d its diagonal: mean += v_t (y - mean_j)/d and
    variance -= v_t² (hyperbo Eq. 17-18 written incrementally).
    """

    gp: GP
    acquisition: Acquisition = eqx.field(static=True)
    budget: int = eqx.field(static=True)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> FixedState:
        """Evaluate the prior on the pool."""
        phi = self.gp.features(candidates.x)
        count = phi.shape[0]
        return FixedState(
            pool=self.gp.kernel.prepare(phi),
            mask=candidates.mask,
            priority=tie_breakers(key, count),
            mean=self.gp.mean(phi),
            variance=self.gp.kernel.diagonal(phi),
            rows=jnp.zeros((self.budget, count)),
            count=jnp.asarray(0),
            best=jnp.asarray(-jnp.inf),
            ok=jnp.asarray(True),
        )

    def select(self, state: FixedState, key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition over the pool; candidates may be selected again."""
        std = jnp.sqrt(jnp.maximum(state.variance, 0.0) + self.gp.noise)
        scores = self.acquisition(state.mean, std, state.best, state.count == 0)
        index = argmax(scores, state.mask, state.priority)
        return index, Info(state.mean[index], std[index], state.ok)

    def observe(self, state: FixedState, index: Int[Array, ""], y: Float[Array, ""]) -> FixedState:
        """Append one row to the factor and update the pool's moments."""
        known = state.rows[:, index]
        residual = self.gp.kernel.row(state.pool, index) - known @ state.rows
        pivot = state.variance[index] + self.gp.noise + JITTER
        row = residual / jnp.sqrt(pivot)
        return state._replace(
            mean=state.mean + row * (y - state.mean[index]) / jnp.sqrt(pivot),
            variance=state.variance - row**2,
            rows=jax.lax.dynamic_update_index_in_dim(state.rows, row, state.count, 0),
            count=state.count + 1,
            best=jnp.maximum(state.best, y),
            ok=state.ok & (pivot > 0),
        )


class RefitState(NamedTuple):
    """Observations so far, padded to the budget, and the parameters fitted to them. `ok`: the last fit was finite."""

    candidates: Candidates
    priority: Float[Array, " c"]
    params: PyTree
    x: Float[Array, "b d"]
    y: Float[Array, " b"]
    count: Int[Array, ""]
    ok: Bool[Array, ""]


Fit = Callable[[PyTree, Float[Array, "b d"], Float[Array, " b"], Bool[Array, " b"]], tuple[PyTree, Bool[Array, ""]]]


class Refit(eqx.Module):
    """BO with parameters re-fitted by `fit` after every observation, from the previous fit; `to_gp` makes their GP."""

    params: PyTree
    to_gp: Callable[[PyTree], GP] = eqx.field(static=True)
    fit: Fit = eqx.field(static=True)
    acquisition: Acquisition = eqx.field(static=True)
    budget: int = eqx.field(static=True)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> RefitState:
        """Start from the unfitted parameters."""
        count, dim = candidates.x.shape
        x, y = jnp.zeros((self.budget, dim)), jnp.zeros(self.budget)
        return RefitState(candidates, tie_breakers(key, count), self.params, x, y, jnp.asarray(0), jnp.asarray(True))

    def select(self, state: RefitState, key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition under the fitted GP's posterior."""
        seen = jnp.arange(self.budget) < state.count
        gp = self.to_gp(state.params)
        posterior = gp.posterior(state.x, state.y, seen)
        mean, variance = posterior.predict(state.candidates.x)
        std = jnp.sqrt(variance + gp.noise)
        best = jnp.max(jnp.where(seen, state.y, -jnp.inf))
        scores = self.acquisition(mean, std, best, state.count == 0)
        index = argmax(scores, state.candidates.mask, state.priority)
        return index, Info(mean[index], std[index], state.ok & posterior.ok)

    def observe(self, state: RefitState, index: Int[Array, ""], y: Float[Array, ""]) -> RefitState:
        """Append the observation and fit again."""
        x = jax.lax.dynamic_update_index_in_dim(state.x, state.candidates.x[index], state.count, 0)
        ys = jax.lax.dynamic_update_index_in_dim(state.y, y, state.count, 0)
        count = state.count + 1
        params, ok = self.fit(state.params, x, ys, jnp.arange(self.budget) < count)
        return state._replace(params=params, x=x, y=ys, count=count, ok=ok)
