"""Pre-training of the methods that learn a GP from past tasks: H-NLL, H-EKL, FSBO, ABLR (hyperbo §7.2).

BO then runs with that GP fixed (`metabo.bo.fixed_prior`), or, in online tuning, trains it further
(`metabo.methods.pretrained.online`). The methods differ only in mean, kernel and objective. Differs from the paper:
nothing known; docs/replication-notes.md lists choices that the paper leaves open (initial values).
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from metabo.gp.fit import Log, adam, batches_per_shuffle, lbfgs, over_pairs
from metabo.gp.model import GP, build
from metabo.gp.objectives import ekl_training, nll
from metabo.methods.pretrained.settings import EKLSettings, JointSettings, Objective, read_objective
from metabo.plan.specs import TrainingSpec
from metabo.records.files import Json
from metabo.tasks.padding import narrowed, shapes, widened
from metabo.tasks.rows import Moments, Rows
from metabo.tasks.training_set import TrainingSet, moments, pair_indices, sample_rows


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> GP:
    """Return the untrained GP."""
    return build(model, dim, key)


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[GP, Log]:
    """Train one GP per (fold, seed), and return pytrees with a leading axis of folds x seeds, fold-major.

    `keys` seed the initial weights and the mini-batches; folds share the structure of the weights, not their values.
    Raises ConfigError for settings that do not belong together, and DataError for EKL without matched data.
    """
    settings = read_objective(spec["method"], spec["pretrain"])
    flat = keys.reshape(-1)
    starts = jax.vmap(lambda k: start(spec["model"], training.dim, training.tasks, jax.random.fold_in(k, 0)))(flat)
    own, shared = (shapes(start, spec["model"], width, training.tasks) for width in (training.dim, training.width))
    trained, log = _trained(settings, training.widened(), keys, widened(starts, shared), accelerator)
    return narrowed(trained, own), log


def _trained(
    settings: Objective, training: TrainingSet, keys: Key[Array, "folds seeds"], starts: GP, accelerator: bool
) -> tuple[GP, Log]:
    """Train GPs from `starts`, whose inputs are as wide as those of the training set."""
    (folds, seeds), flat = keys.shape, keys.reshape(-1)
    if isinstance(settings, JointSettings):
        joint = joint_data(training, keys, settings)

        def fit_joint(pair):
            gp, block, sample = pair
            return lbfgs(lambda g: joint_loss(g, block, sample, settings.nll_weight), gp, steps=settings.steps)

        return over_pairs(fit_joint, (starts, *joint), accelerator)
    draws = _draws(flat)
    if isinstance(settings, EKLSettings):
        data = moments(training, draws.reshape(keys.shape), settings.matched_points)

        def fit_moments(pair):
            gp, block = pair
            return lbfgs(lambda g: ekl_training(g, block), gp, steps=settings.steps)

        return over_pairs(fit_moments, (starts, data), accelerator)
    fold, seed = pair_indices(folds, seeds)
    rows = jax.tree.map(jnp.asarray, training.rows)
    per_shuffle = batches_per_shuffle(training.counts, settings.batch)

    def fit_rows(pair, rows):
        gp, members, present, key = pair
        return adam(
            gp, rows, members, present, key, steps=settings.steps, learning_rate=settings.learning_rate,
            batch=settings.batch, per_shuffle=per_shuffle, decay=settings.decay,
        )  # fmt: skip

    pairs = (starts, jnp.asarray(training.members)[fold, seed], jnp.asarray(training.present)[fold, seed], draws)
    return over_pairs(fit_rows, pairs, accelerator, rows)


def _draws(keys: Key[Array, " p"]) -> Key[Array, " p"]:
    """Return the keys for drawing data, one per pair."""
    return jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys)


def joint_data(training: TrainingSet, keys: Key[Array, "folds seeds"], settings: JointSettings) -> tuple[Moments, Rows]:
    """Return the data of the objective "ekl_nll", with a leading axis of folds x seeds: matched moments and drawn
    rows."""
    draws = _draws(keys.reshape(-1)).reshape(keys.shape)
    rows = jax.vmap(lambda k: jax.random.fold_in(k, 1))(draws.reshape(-1)).reshape(keys.shape)
    return moments(training, draws, settings.matched_points), sample_rows(training, rows, settings.batch)


def joint_loss(
    gp: GP,
    matched: Moments,
    rows: Rows,
    weight: float | Float[Array, ""],
    own: Rows | None = None,
) -> Float[Array, ""]:
    """EKL + weight x NLL (hyperbo §7.5, weight 0.1). The NLL is the mean over the training tasks and, if `own` (the
    test task's observations) has a row, over the test task as one more."""
    likelihood = nll(gp, *rows)
    if own is not None:
        tasks, more = jnp.sum(jnp.any(rows.mask, axis=1)), jnp.any(own.mask)
        likelihood = (tasks * likelihood - jnp.where(more, gp.log_prob(*own), 0.0)) / (tasks + more)
    return ekl_training(gp, matched) + weight * likelihood
