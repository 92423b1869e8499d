"""Random search: uniform over the candidates, with replacement (hyperbo §3, "Rand")."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.policy import Candidates, Info
from metabo.plan.specs import TrainingSpec
from metabo.records.files import Json
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet


class Nothing(NamedTuple):
    """Random search learns nothing; one number per (fold, seed) keeps the shape of a prior."""

    pair: Float[Array, ""]


class Uniform(eqx.Module):
    """Select every candidate with the same probability, whatever was observed."""

    params: Nothing
    repeats: bool = eqx.field(static=True, default=True)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> None:
        """Remember nothing."""

    def select(self, state: None, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Draw one of the candidates that may be queried."""
        index = jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf))
        return index, Info(*[jnp.asarray(jnp.nan)] * 3, ok=jnp.asarray(True))

    def observe(self, state: None, index: Int[Array, ""], y: Float[Array, ""]) -> None:
        """Ignore the observation."""


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> Nothing:
    """Return the empty prior."""
    return Nothing(jnp.zeros(()))


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[Nothing, None]:
    """Return one empty prior per (fold, seed)."""
    return Nothing(jnp.zeros(keys.size)), None


def policy(
    params: Nothing, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Uniform:
    """Return the uniform policy."""
    return Uniform(params)
