"""Online tuning with a GP fitted to the test task alone: STBO and STBOH (hyperbo §7.5).

As in offline BO (`metabo.methods.single_task.policy`), each fit starts from the previous one. The outputs are mapped to
[-2, 2] anew before each fit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Array, Bool, Key, PyTree

from metabo.bo.ask_tell import Tuner
from metabo.bo.priors import SpacePrior
from metabo.methods.single_task.policy import SingleTaskSettings, refitting
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet


@dataclass(frozen=True)
class RefitOnlineSettings:
    """The number of L-BFGS steps of each fit, the settings of the search over the unit cube (`metabo.bo.continuous`),
    and whether the prior density counts in the fit."""

    refit_steps: int
    starts: int
    polish: int
    polish_steps: int
    use_prior: bool = True


def online(
    trained_from: TrainingSpec,
    prior: SpacePrior,
    training: TrainingSet,
    settings: Mapping[str, Json],
    acquisition: str,
    budget: int,
) -> Tuner:
    """Return the method for all folds and seeds of the untrained parameters; the training tasks are not read."""
    chosen = read(RefitOnlineSettings, settings, "config", f"methods.{trained_from['method']}.online")
    fits = SingleTaskSettings(chosen.refit_steps, use_prior=chosen.use_prior)
    policy = refitting(prior.params, fits, acquisition, budget)

    def priors(fold: int, prior_seed: int) -> tuple[PyTree, PyTree]:
        return prior.of(fold, prior_seed), ()

    def refit(params: PyTree, context: PyTree, data: Rows, key: Key[Array, ""]) -> tuple[PyTree, Bool[Array, ""]]:
        return policy.fit(params, data)

    search = (chosen.starts, chosen.polish, chosen.polish_steps)
    return Tuner(policy.to_gp, refit, priors, policy.acquisition, prior.dim, budget, *search)
