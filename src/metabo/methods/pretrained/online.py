"""Online tuning with a pre-trained GP that is trained further at every iteration: H-NLL and H-EKL (hyperbo §7.5).

The outputs of the test task are mapped anew at every iteration, so the prior must follow. The paper leaves open how,
and we chose (docs/replication-notes.md): training continues from the current parameters for `retrain_steps` steps, on
the training tasks and on the test task's observations as one more task, by the optimiser of the pre-training (Adam on
mini-batches for NLL, L-BFGS for EKL + 0.1 NLL), which starts without memory each time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PyTree

from metabo.bo.acquisition import make
from metabo.bo.ask_tell import Tuner
from metabo.bo.priors import SpacePrior
from metabo.errors import ConfigError
from metabo.gp.fit import adam, batches_per_shuffle, lbfgs
from metabo.gp.model import GP
from metabo.methods.pretrained.settings import JointSettings, NLLSettings, read_objective
from metabo.methods.pretrained.train import joint_data, joint_loss
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet, prior_keys


@dataclass(frozen=True)
class RetrainingSettings:
    """The number of training steps at every iteration, Adam's rate there (None: that of the first step of
    pre-training), and the settings of the search over the unit cube (`metabo.bo.continuous`)."""

    retrain_steps: int
    starts: int
    polish: int
    polish_steps: int
    retrain_rate: float | None = None


def online(
    trained_from: TrainingSpec,
    prior: SpacePrior,
    training: TrainingSet,
    settings: Mapping[str, Json],
    acquisition: str,
    budget: int,
) -> Tuner:
    """Return the method for all folds and seeds of a prior. `trained_from` is the specification of its pre-training.

    Raises ConfigError if the prior was not trained on mapped outputs, or was trained by EKL alone: the test task's
    observations are not matched, so EKL cannot use them.
    """
    method = trained_from["method"]
    pretrain = read_objective(method, trained_from["pretrain"])
    if pretrain.outputs != "mapped" or not isinstance(pretrain, NLLSettings | JointSettings):
        raise ConfigError(
            f"method '{method}': online tuning needs a prior trained with outputs 'mapped' and objective 'nll' or "
            f"'ekl_nll'; got '{pretrain.outputs}', '{pretrain.objective}'"
        )
    chosen = read(RetrainingSettings, settings, "config", f"methods.{method}.online")
    if isinstance(pretrain, NLLSettings):
        rate = pretrain.learning_rate if chosen.retrain_rate is None else chosen.retrain_rate
        context, refit = _nll(training, pretrain, chosen.retrain_steps, rate, budget)
    else:
        keys = prior_keys(training, trained_from["seed"], trained_from["seeds"])
        context, refit = _joint(training, keys, pretrain, chosen.retrain_steps)

    def priors(fold: int, prior_seed: int) -> tuple[PyTree, PyTree]:
        return prior.of(fold, prior_seed), context(fold, prior.pair(fold, prior_seed))

    search = (chosen.starts, chosen.polish, chosen.polish_steps)
    return Tuner(lambda gp: gp, refit, priors, make(acquisition), prior.dim, budget, *search)


def _nll(training: TrainingSet, pretrain: NLLSettings, steps: int, rate: float, budget: int):
    """Adam on the NLL of all training rows; the test task is the last task of the padded rows."""
    spare = max(0, budget - training.rows.mask.shape[1])
    padded = [np.pad(a, [(0, 1), (0, spare), *[(0, 0)] * (a.ndim - 2)]) for a in training.rows]
    rows, own = Rows(*map(jnp.asarray, padded)), len(training.rows.mask)
    # One shuffle must not serve more batches than the test task can fill; once it has a full batch, that is one.
    counts = (*training.counts, pretrain.batch) if budget >= pretrain.batch else training.counts
    per_shuffle = batches_per_shuffle(counts, pretrain.batch)

    def context(fold: int, pair: int) -> PyTree:
        of_pair = (array.reshape(-1, training.tasks)[pair] for array in (training.members, training.present))
        members, present = (np.append(array, last) for array, last in zip(of_pair, (own, True), strict=True))
        return rows, jnp.asarray(members), jnp.asarray(present)

    def refit(gp: GP, context: PyTree, data: Rows, key: Key[Array, ""]) -> tuple[GP, Bool[Array, ""]]:
        rows, members, present = context
        rows = Rows(*(all_rows.at[own, :budget].set(new) for all_rows, new in zip(rows, data, strict=True)))
        trained, log = adam(
            gp, rows, members, present, key, steps=steps, learning_rate=rate,
            batch=pretrain.batch, per_shuffle=per_shuffle,
        )  # fmt: skip
        return trained, log.stopped < 0

    return context, refit


def _joint(training: TrainingSet, keys: Key[Array, "folds seeds"], pretrain: JointSettings, steps: int):
    """L-BFGS on EKL + weight x NLL, on the matched points and rows that the prior was trained on."""
    joint = joint_data(training, keys, pretrain)

    def context(fold: int, pair: int) -> PyTree:
        return jax.tree.map(lambda leaf: leaf[pair], joint)

    def refit(gp: GP, context: PyTree, data: Rows, key: Key[Array, ""]) -> tuple[GP, Bool[Array, ""]]:
        matched, rows = context

        def loss(candidate: GP) -> Float[Array, ""]:
            return joint_loss(candidate, matched, rows, pretrain.nll_weight, data)

        trained, log = lbfgs(loss, gp, steps=steps)
        return trained, log.stopped < 0

    return context, refit
