"""Methods that pre-train a GP on past tasks and then run BO with it fixed: H-NLL, H-EKL, FSBO, ABLR (hyperbo §7.2).

They differ in mean, kernel and objective only. Differs from the paper: nothing known; choices that the paper leaves
open (initial values, PI before the first observation) are those of the authors' code, see docs/replication-notes.md.
"""

from typing import Any

import jax
from jaxtyping import Array, Key

from metabo.acquisition import make
from metabo.bo.surrogates import FixedPrior
from metabo.errors import ConfigError, unknown
from metabo.gp.model import GP, build
from metabo.gp.objectives import ekl_training
from metabo.pretrain import Log, adam, batches_per_shuffle, lbfgs, over_pairs
from metabo.training import TrainingSet, moments, pair_indices

# Settings of hyperbo §7.2: MLP (32, 32) with tanh, Matérn-5/2 on its features, Adam 1e-3 for 50,000 steps on 50 points
# a task; H-EKL by L-BFGS for 100 iterations on all matched points (`matched_points` 0); PI with margin 0.1.
VARIANTS = {
    "h_nll": {
        "label": "H-NLL", "colour": "#d62728", "acquisition": "pi", "needs_matched": False,
        "model": {"mean": "linear_mlp", "kernel": "matern52", "features": [32, 32]},
        "pretrain": {"objective": "nll", "optimizer": "adam", "learning_rate": 1e-3, "steps": 50000, "batch": 50},
        "policy": {"pi_threshold": 0.1},
    },
    "h_ekl": {
        "label": "H-EKL", "colour": "#6a3d9a", "acquisition": "pi", "needs_matched": True,
        "model": {"mean": "linear_mlp", "kernel": "matern52", "features": [32, 32]},
        "pretrain": {"objective": "ekl", "optimizer": "lbfgs", "steps": 100, "matched_points": 0},
        "policy": {"pi_threshold": 0.1},
    },
    "fsbo": {
        "label": "FSBO", "colour": "#ff7f0e", "acquisition": "pi", "needs_matched": False,
        "model": {"mean": "zero", "kernel": "matern52", "features": [32, 32]},
        "pretrain": {"objective": "nll", "optimizer": "adam", "learning_rate": 1e-3, "steps": 50000, "batch": 50},
        "policy": {"pi_threshold": 0.1},
    },
    "ablr": {
        "label": "ABLR", "colour": "#17becf", "acquisition": "pi", "needs_matched": False,
        "model": {"mean": "zero", "kernel": "dot_product", "features": [32, 32]},
        "pretrain": {"objective": "nll", "optimizer": "adam", "learning_rate": 1e-3, "steps": 50000, "batch": 50},
        "policy": {"pi_threshold": 0.1},
    },
}  # fmt: skip

RECIPES = {"nll": ("adam", ("learning_rate", "steps", "batch")), "ekl": ("lbfgs", ("steps", "matched_points"))}
"""The optimiser of each objective, and the settings that both read."""


def check_recipe(method: str, settings: dict[str, Any]) -> None:
    """Raise ConfigError when the settings name an unknown objective, or not the optimiser and settings it needs."""
    objective = settings["objective"]
    if objective not in RECIPES:
        raise unknown("objective", objective, RECIPES)
    optimizer, needed = RECIPES[objective]
    if settings["optimizer"] != optimizer or not all(key in settings for key in needed):
        raise ConfigError(
            f"config key 'methods.{method}.pretrain': objective '{objective}' is trained by '{optimizer}' and needs "
            f"{', '.join(needed)}; got optimizer '{settings['optimizer']}' and {', '.join(sorted(settings))}"
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
    check_recipe(spec["method"], settings)
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


def policy(params: GP, settings: dict[str, Any], acquisition: str, budget: int) -> FixedPrior:
    """Return the BO policy of a trained GP: the prior stays fixed during BO."""
    return FixedPrior(params, make(acquisition, settings), budget)
