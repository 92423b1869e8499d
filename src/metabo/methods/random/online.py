"""Online random search: uniform over the unit cube, that is, over the warped space (hyperbo §3, "Rand")."""

from collections.abc import Mapping

import jax
import numpy as np
from jaxtyping import Array, Key, PyTree

from metabo.bo.ask_tell import Proposal
from metabo.bo.priors import SpacePrior
from metabo.plan.specs import TrainingSpec
from metabo.records.files import Json
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet


class Random:
    """Suggest a uniform point, whatever was observed."""

    def __init__(self, dim: int, budget: int) -> None:
        self.dim, self.budget = dim, budget

    def begin(self, fold: int, prior_seed: int) -> tuple[PyTree, PyTree]:
        """Return nothing, because random search has no parameters."""
        return (), ()

    def suggest(self, params: PyTree, context: PyTree, data: Rows, key: Key[Array, ""]) -> Proposal:
        """Draw one point."""
        return Proposal((), np.asarray(jax.random.uniform(key, (self.dim,))), float("nan"), float("nan"), True)


def online(
    trained_from: TrainingSpec,
    prior: SpacePrior,
    training: TrainingSet,
    settings: Mapping[str, Json],
    acquisition: str,
    budget: int,
) -> Random:
    """Return the method for the space of a prior."""
    return Random(prior.dim, budget)
