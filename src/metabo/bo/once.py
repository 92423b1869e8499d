"""BO with a fixed GP prior on a finite search set in which a candidate is queried once (cm-BO §4.1; sheet §2.4)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from metabo.bo import fixed_prior
from metabo.bo.fixed_prior import FixedPrior, FixedState
from metabo.bo.policy import Candidates, Info
from metabo.gp.model import GP
from metabo.tasks.rows import Rows


class Once(eqx.Module):
    """`FixedPrior` whose observed candidates are no candidates any more; all are again when none is left."""

    again: FixedPrior

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> FixedState:
        """Evaluate the prior on the pool."""
        return self.again.init(candidates, key)

    def select(self, state: FixedState, key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition over what is left of the pool."""
        return self.again.select(state, key)

    def observe(self, state: FixedState, index: Int[Array, ""], y: Float[Array, ""]) -> FixedState:
        """Update the pool's moments and take the candidate away."""
        left = state.mask.at[index].set(False)
        return self.again.observe(state, index, y)._replace(mask=jnp.where(left.any(), left, state.mask))


def policy(params: GP, settings: dict[str, Any], acquisition: str, budget: int, past: Rows | None = None) -> Once:
    """Return the policy of `metabo.bo.fixed_prior` that queries a candidate once."""
    return Once(fixed_prior.policy(params, settings, acquisition, budget, past))
