"""Pre-training of the methods that learn a GP from past tasks: H-NLL, H-EKL, FSBO, ABLR (hyperbo §7.2).

BO then runs with that GP fixed (`metabo.bo.fixed_prior`). The methods differ in mean, kernel and objective only.
Differs from the paper: nothing known; choices that the paper leaves open (initial values) are in
docs/replication-notes.md.
"""

from typing import Any

import jax
from jaxtyping import Array, Key

from metabo.errors import ConfigError, unknown
from metabo.gp.model import GP, build
from metabo.gp.objectives import ekl_training
from metabo.pretrain import Log, adam, batches_per_shuffle, lbfgs, over_pairs
from metabo.training import TrainingSet, moments, pair_indices

OBJECTIVES = {"nll": {"learning_rate", "steps", "batch"}, "ekl": {"steps", "matched_points"}}
"""Objectives and the settings each reads: NLL is trained by Adam on mini-batches, EKL by L-BFGS on all points."""


def check_settings(method: str, settings: dict[str, Any]) -> None:
    """Raise ConfigError when the settings name an unknown objective or are not those it reads."""
    objective = settings["objective"]
    if objective not in OBJECTIVES:
        raise unknown("objective", objective, OBJECTIVES)
    needed, found = OBJECTIVES[objective], set(settings) - {"objective"}
    if found != needed:
        raise ConfigError(
            f"config key 'methods.{method}.pretrain': objective '{objective}' reads {', '.join(sorted(needed))}; "
            f"got {', '.join(sorted(found))}"
        )


def start(model: dict[str, Any], dim: int, key: Key[Array, ""]) -> GP:
    """Return the untrained GP."""
    return build(model, dim, key)


def pretrain(
    spec: dict[str, Any], training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[GP, Log]:
    """Train one GP per (fold, seed): pytrees with a leading axis of folds x seeds, fold-major.

    `keys` start the initial weights and the mini-batches; folds share the weights' structure, not their values.
    Raises ConfigError for settings that do not belong together, DataError for EKL without matched data.
    """
    settings = spec["pretrain"]
    check_settings(spec["method"], settings)
    folds, seeds = keys.shape
    flat = keys.reshape(-1)
    starts = jax.vmap(lambda k: start(spec["model"], training.dim, jax.random.fold_in(k, 0)))(flat)
    draws = jax.vmap(lambda k: jax.random.fold_in(k, 1))(flat)
    if settings["objective"] == "ekl":
        data = moments(training, draws.reshape(keys.shape), settings["matched_points"])

        def fit(pair):
            gp, block = pair
            return lbfgs(lambda g: ekl_training(g, block), gp, steps=settings["steps"])

        return over_pairs(fit, (starts, data), accelerator)
    fold, _ = pair_indices(folds, seeds)
    rows = jax.tree.map(jax.numpy.asarray, training.rows)
    per_shuffle = batches_per_shuffle(training.counts, settings["batch"])

    def fit(pair):
        gp, members, present, key = pair
        return adam(
            gp, rows, members, present, key, steps=settings["steps"], learning_rate=settings["learning_rate"],
            batch=settings["batch"], per_shuffle=per_shuffle,
        )  # fmt: skip

    pairs = (starts, jax.numpy.asarray(training.members)[fold], jax.numpy.asarray(training.present)[fold], draws)
    return over_pairs(fit, pairs, accelerator)
