"""Online tuning with a GP fitted to the test task alone: STBO and STBOH (hyperbo §7.5).

As in offline BO (`metabo.methods.single_task.policy`), each fit starts from the previous one; the outputs are mapped to
[-2, 2] anew before each.
"""

from typing import Any

from jaxtyping import Array, Bool, Key, PyTree

from metabo.bo.ask_tell import Tuner
from metabo.bo.priors import SpacePrior
from metabo.methods.single_task import policy as single_task
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet


def online(
    trained_from: dict[str, Any],
    prior: SpacePrior,
    training: TrainingSet,
    settings: dict[str, Any],
    acquisition: str,
    budget: int,
) -> Tuner:
    """Return the method for all folds and seeds of the untrained parameters; the training tasks are not read."""
    policy = single_task.policy(prior.params, settings, acquisition, budget)

    def priors(fold: int, prior_seed: int) -> tuple[PyTree, PyTree]:
        return prior.of(fold, prior_seed), ()

    def refit(params: PyTree, context: PyTree, data: Rows, key: Key[Array, ""]) -> tuple[PyTree, Bool[Array, ""]]:
        return policy.fit(params, data)

    search = {key: settings[key] for key in ("starts", "polish", "polish_steps")}
    return Tuner(policy.to_gp, refit, priors, policy.acquisition, prior.dim, budget, **search)
