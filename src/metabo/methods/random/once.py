"""Random search without replacement: uniform over the candidates that are not observed yet (cm-BO §4.1; sheet §3)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.policy import Candidates, Info
from metabo.methods.random.policy import Nothing, pretrain, start
from metabo.tasks.rows import Rows

__all__ = ["Remaining", "RemainingState", "policy", "pretrain", "start"]


class RemainingState(NamedTuple):
    """The valid candidates, and those of them that are not observed yet."""

    mask: Bool[Array, " c"]
    left: Bool[Array, " c"]


class Remaining(eqx.Module):
    """Select every candidate that is left with the same probability; any valid one if none is left."""

    params: Nothing

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> RemainingState:
        """Remember the valid candidates."""
        return RemainingState(candidates.mask, candidates.mask)

    def select(self, state: RemainingState, key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Draw one of the candidates that are left."""
        able = jnp.where(state.left.any(), state.left, state.mask)
        index = jax.random.categorical(key, jnp.where(able, 0.0, -jnp.inf))
        return index, Info(jnp.asarray(jnp.nan), jnp.asarray(jnp.nan), jnp.asarray(True))

    def observe(self, state: RemainingState, index: Int[Array, ""], y: Float[Array, ""]) -> RemainingState:
        """Take the candidate away."""
        return state._replace(left=state.left.at[index].set(False))


def policy(
    params: Nothing, settings: dict[str, Any], acquisition: str, budget: int, past: Rows | None = None
) -> Remaining:
    """Return the policy of random search without replacement."""
    return Remaining(params)
