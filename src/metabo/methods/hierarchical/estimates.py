"""Step 1 of MPHD (Eq. 3): collect the parameters of the GPs that were fitted to the training tasks of each space."""

from typing import NamedTuple

import jax
import numpy as np

from metabo.bo.priors import SpacePrior
from metabo.errors import DataError, NumericsError
from metabo.gp.linalg import JITTER
from metabo.methods.hierarchical import contexts
from metabo.methods.hierarchical.hyperprior import NAMES, Parameters, of_gp
from metabo.tasks.training_set import TrainingSet

LIMITS = {"lengthscale": (1e-3, 30.0), "signal variance": (JITTER, np.inf), "noise variance": (JITTER, np.inf)}
"""Beyond these limits the likelihood hardly moves an estimate of Step 1: no inputs in the unit cube are that close or
that far apart (30 is the largest value in App. E.2), and the diagonal includes the jitter anyway."""


class Estimates(NamedTuple):
    """Step-1 estimates θ̂ of N spaces for each of S pre-training seeds. `values` has constant, variance and noise (S,
    N), and lengthscale (S, L) with all spaces one after another. `owner` (L,) is the space of each lengthscale,
    `context` (L, 4) its context."""

    spaces: tuple[str, ...]
    values: Parameters
    owner: np.ndarray
    context: np.ndarray


def step1(sets: list[TrainingSet], fits: list[SpacePrior] | None, seeds: int) -> Estimates:
    """Collect the estimates of Eq. 3 from the fitted GPs of all spaces. Raises DataError for fits that do not belong to
    these sets, or that have several folds or another number of seeds, and NumericsError for an estimate that is not
    finite."""
    fits = fits or []
    needed = [(one.space, one.dim) for one in sets]
    found = [(fit.space, fit.dim) for fit in fits]
    if found != needed:
        raise DataError(f"Step 1: needs a fit of each space (name, inputs), {needed}; got {found}; make them again")
    for fit in fits:
        if len(fit.folds) != 1 or fit.seeds != seeds:
            raise DataError(
                f"Step 1 of space '{fit.space}': {len(fit.folds)} folds, {fit.seeds} seeds; needs one fold (a split "
                f"with one training set per space) and {seeds} seeds, those of the method that reads it"
            )
    each = [Parameters(*map(np.asarray, jax.vmap(of_gp)(fit.params))) for fit in fits]
    names = tuple(one.space for one in sets)
    for space, values in zip(names, each, strict=True):
        for name, value in zip(NAMES, values, strict=True):
            if not np.isfinite(value).all():
                raise NumericsError(
                    f"Step 1 of space '{space}': the {name} is {value[~np.isfinite(value)][0]}; look at the loss trace "
                    "in the sidecar of its fits, and change learning rate or steps (config key 'methods.base_gp')"
                )
    wide = [value.lengthscale for value in each]
    values = Parameters(
        constant=np.stack([value.constant for value in each], axis=1),
        lengthscale=np.concatenate(wide, axis=1),
        variance=np.stack([value.variance for value in each], axis=1),
        noise=np.stack([value.noise for value in each], axis=1),
    )
    owner = np.repeat(np.arange(len(sets)), [value.shape[1] for value in wide])
    context = np.concatenate([contexts.of_space(one.described) for one in sets])
    return Estimates(names, values, owner, context)


def remarks(sets: list[TrainingSet], fits: list[SpacePrior]) -> list[str]:
    """Return, for the sidecar, what a person should know about Step 1: spaces with one training task, estimates beyond
    LIMITS, and fits that stopped. None of them is left out."""
    few = [one.space for one in sets if (one.present.sum(axis=-1) == 1).any()]
    alone = [f"step 1, space '{space}': one training task, its GP is that of one function" for space in few]
    return [*alone, *_beyond(fits), *_stopped(fits)]


def _beyond(fits: list[SpacePrior]) -> list[str]:
    found = []
    for fit in fits:
        for name, value in zip(NAMES, map(np.asarray, jax.vmap(of_gp)(fit.params)), strict=True):
            low, high = LIMITS.get(name, (-np.inf, np.inf))
            for count, side in (((value < low).sum(), f"below {low:g}"), ((value > high).sum(), f"above {high:g}")):
                if count:
                    found.append(f"step 1, space '{fit.space}': {count} of {value.size} estimates of the {name} {side}")
    return found


def _stopped(fits: list[SpacePrior]) -> list[str]:
    told = "step 1, space '{}', seed {}: training stopped at step {}, which was not finite"
    steps = [(fit.space, seed, step) for fit in fits for seed, step in enumerate(np.asarray(fit.stopped).tolist())]
    return [told.format(*one) for one in steps if one[2] >= 0]
