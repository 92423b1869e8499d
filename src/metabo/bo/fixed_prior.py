"""BO with a GP prior whose hyperparameters stay fixed: the policy of pre-trained GPs (hyperbo Algorithm 1)."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.acquisition import Acquisition, make
from metabo.bo.policy import Candidates, Info, argmax, tie_breakers
from metabo.bo.settings import FixedSettings
from metabo.gp.kernels import Pool
from metabo.gp.model import GP
from metabo.gp.update import new_row
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows


class FixedState(NamedTuple):
    """Posterior of the pool under a fixed prior.

    `rows` (budget, c) are the rows of L⁻¹ K(X, pool): row t is written by observation t. `mean` and `variance` (c,) are
    the posterior moments of f after `observed` observations, and `best` is the largest of these observations. `raised`
    is the largest variance that a pivot needed beyond the usual jitter.
    """

    pool: Pool
    priority: Float[Array, " c"]
    mean: Float[Array, " c"]
    variance: Float[Array, " c"]
    rows: Float[Array, "b c"]
    observed: Int[Array, ""]
    best: Float[Array, ""]
    raised: Float[Array, ""]
    ok: Bool[Array, ""]

    def told(self, index: Int[Array, ""], score: Float[Array, ""], noise: Float[Array, ""]) -> Info:
        """Return the `Info` on the selection of candidate `index`, which has that score."""
        std = jnp.sqrt(jnp.maximum(self.variance[index], 0.0) + noise)
        return Info(self.mean[index], std, jnp.sqrt(noise), self.ok & (score < jnp.inf), self.raised)


class FixedPrior(eqx.Module):
    """BO with a GP whose hyperparameters do not change: one new Cholesky row per observation, no refactorisation.

    An observation costs O(budget x c). With v_t the new row, d its diagonal: mean += v_t (y - mean_j)/d and
    variance -= v_t² (hyperbo Eq. 17-18 written incrementally).
    """

    gp: GP
    acquisition: Acquisition = eqx.field(static=True)
    budget: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=True)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> FixedState:
        """Evaluate the prior on the pool."""
        phi = self.gp.features(candidates.x)
        count = phi.shape[0]
        return FixedState(
            pool=self.gp.kernel.prepare(phi),
            priority=tie_breakers(key, count),
            mean=self.gp.mean(phi),
            variance=self.gp.kernel.diagonal(phi),
            rows=jnp.zeros((self.budget, count)),
            observed=jnp.asarray(0),
            best=jnp.asarray(-jnp.inf),
            raised=jnp.asarray(0.0),
            ok=jnp.asarray(True),
        )

    def select(self, state: FixedState, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition over the candidates that may be queried."""
        std = jnp.sqrt(jnp.maximum(state.variance, 0.0) + self.gp.noise)
        scores = self.acquisition(state.mean, std, state.best, state.observed)
        index = argmax(scores, mask, state.priority)
        return index, state.told(index, scores[index], self.gp.noise)

    def observe(self, state: FixedState, index: Int[Array, ""], y: Float[Array, ""]) -> FixedState:
        """Append one row to the factor and update the pool's moments."""
        row, pivot, raised, ok = new_row(self.gp, state.pool, state.rows, state.variance, index)
        return state._replace(
            mean=state.mean + row * (y - state.mean[index]) / jnp.sqrt(pivot),
            variance=state.variance - row**2,
            rows=jax.lax.dynamic_update_index_in_dim(state.rows, row, state.observed, 0),
            observed=state.observed + 1,
            best=jnp.maximum(state.best, y),
            raised=jnp.maximum(state.raised, raised),
            ok=state.ok & ok,
        )


def policy(
    params: GP, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> FixedPrior:
    """Return the policy of a trained GP. `settings` are those of `FixedSettings`."""
    return FixedPrior(params, make(acquisition, read(FixedSettings, settings, "config", "policy").pi_threshold), budget)
