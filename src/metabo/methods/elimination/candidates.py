"""Candidates for hyperparameter elimination that are pre-trained priors (not in the paper; hegpucb_x04).

The candidates of pre-training seed s are the priors that the method registered under `fits` has for the same fold and
all seeds but s. So there are as many sets of candidates as seeds, and no candidate has seen the test task.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Key

from metabo.bo.priors import SpacePrior
from metabo.errors import ConfigError, DataError
from metabo.gp.model import GP, build
from metabo.gp.settings import GPSettings
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.training_set import TrainingSet


@dataclass(frozen=True)
class CandidatesModel:
    """The settings of the GPs (`metabo.gp.settings.GPSettings`), and the number of priors; each set of candidates
    leaves one of them out."""

    mean: str
    kernel: str
    features: tuple[int, ...]
    candidates: int


def read_candidates(model: Mapping[str, Json]) -> CandidatesModel:
    """Read a model. Raises ConfigError for fewer than two priors."""
    settings = read(CandidatesModel, model, "model")
    if settings.candidates < 2:
        raise ConfigError(
            f"elimination among {settings.candidates} priors: every set leaves one out, so it needs at least two; "
            "raise config key 'elimination.seeds'"
        )
    return settings


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> GP:
    """Return untrained candidates: a GP with a leading axis of `candidates` - 1 on every leaf.

    Raises ConfigError for fewer than two priors.
    """
    settings = read_candidates(model)
    gp = GPSettings(settings.mean, settings.kernel, settings.features)
    return jax.vmap(lambda own: build(gp, dim, own))(jax.random.split(key, settings.candidates - 1))


def pretrain_across(
    spec: TrainingSpec,
    sets: list[TrainingSet],
    keys: list[Key[Array, "folds seeds"]],
    fits: list[SpacePrior] | None,
    accelerator: bool,
) -> list[tuple[GP, None]]:
    """Return the candidates of every (fold, seed) of every space, fold-major.

    Raises DataError if the fits do not have as many seeds as the model has candidates, and ConfigError for fewer than
    two candidates.
    """
    seeds = read_candidates(spec["model"]).candidates
    found = []
    for training, fit in zip(sets, fits or [], strict=True):
        if fit.seeds != seeds or spec["seeds"] != seeds:
            raise DataError(
                f"space '{training.space}': priors of {fit.seeds} seeds for {seeds} candidates and {spec['seeds']} "
                f"sets; make those of '{spec.get('fits')}' again with as many seeds"
            )
        index = np.array([[fit.pair(f, s) for s in members(seeds, own)] for f, own in pairs(training, seeds)])
        found.append((jax.tree.map(lambda leaf, index=index: leaf[index], fit.params), None))
    return found


def remarks(sets: list[TrainingSet], fits: list[SpacePrior]) -> list[str]:
    """Return, for the sidecar, which candidates come from a training that stopped. None of them is left out."""
    return [
        f"space '{fit.space}', fold '{fit.folds[pair // fit.seeds].name}': the candidate of seed {pair % fit.seeds} is "
        f"from a training that stopped at step {step}, which was not finite"
        for fit in fits
        for pair, step in enumerate(np.asarray(fit.stopped).tolist())
        if step >= 0
    ]


def pairs(training: TrainingSet, seeds: int) -> list[tuple[int, int]]:
    """List the (fold, seed) pairs of a training set, fold-major."""
    return [(f, s) for f in range(len(training.folds)) for s in range(seeds)]


def members(seeds: int, left_out: int) -> list[int]:
    """Return the seeds of the priors in the set that leaves out seed `left_out`, in order."""
    return [s for s in range(seeds) if s != left_out]
