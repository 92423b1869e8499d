"""Stored priors: the parameters of every (fold, seed) of a split, with loss traces, as arrays and JSON, never
pickle."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from metabo.errors import DataError, MetaboError
from metabo.gp.fit import Log
from metabo.plan import registry
from metabo.plan.specs import TrainingSpec
from metabo.records.files import save_npz
from metabo.tasks import padding
from metabo.tasks.folds import Fold
from metabo.tasks.training_set import TrainingSet

TRACE_POINTS = 500
"""The most points stored of a loss trace; longer traces are averaged over equal stretches of steps."""


@dataclass(frozen=True)
class SpacePrior:
    """The priors of one space: `params` has a leading axis of folds x seeds, fold-major. `tasks` is the number of
    training tasks of the fold that has the most.

    `loss` (pairs, points) is the trace, one point per `stride` steps; `stopped` (pairs,) the first non-finite step or
    -1. `loss` has no points for methods that do not train.
    """

    space: str
    dim: int
    tasks: int
    folds: tuple[Fold, ...]
    params: PyTree
    loss: np.ndarray
    stride: int
    stopped: np.ndarray

    @property
    def seeds(self) -> int:
        """Number of pre-training seeds."""
        return len(self.stopped) // len(self.folds)

    def pair(self, fold: int, seed: int) -> int:
        """Return the position of a (fold, seed) pair on the leading axis."""
        return fold * self.seeds + seed

    def of(self, fold: int, seed: int) -> PyTree:
        """Return the parameters of a (fold, seed) pair."""
        pair = self.pair(fold, seed)
        return jax.tree.map(lambda leaf: leaf[pair], self.params)


def of_training(training: TrainingSet, params: PyTree, log: Log | None) -> SpacePrior:
    """Return the priors that were trained on a training set."""
    trace = shorten(log, training.members.shape[0] * training.members.shape[1])
    return SpacePrior(training.space, training.dim, training.tasks, training.folds, params, *trace)


def shorten(log: Log | None, pairs: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Return (trace, stride, stopped): the losses averaged over `stride` steps so that at most 500 points remain."""
    if log is None:
        return np.zeros((pairs, 0)), 1, np.full(pairs, -1)
    loss = np.asarray(log.loss)
    stride = -(-loss.shape[1] // TRACE_POINTS)
    whole = loss.shape[1] // stride * stride
    return loss[:, :whole].reshape(len(loss), -1, stride).mean(axis=2), stride, np.asarray(log.stopped)


def _names(tree: PyTree) -> list[str]:
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]


class SpaceHeader(TypedDict):
    """The header of a space in a file of priors. A fold is its name, its space, its training tasks and its test
    tasks."""

    space: str
    dim: int
    tasks: int
    folds: Sequence[tuple[str, str, Sequence[str], Sequence[str]]]
    stride: int


def save(path: str | Path, spec: TrainingSpec, priors: list[SpacePrior]) -> None:
    """Write the priors of all spaces of one split with the specification they were trained from."""
    spaces: list[SpaceHeader] = []
    arrays: dict[str, np.ndarray] = {}
    for i, prior in enumerate(priors):
        spaces.append(
            {"space": prior.space, "dim": prior.dim, "tasks": prior.tasks, "folds": prior.folds, "stride": prior.stride}
        )
        leaves = zip(_names(prior.params), jax.tree.leaves(prior.params), strict=True)
        arrays |= {f"{i}{name}": np.asarray(leaf) for name, leaf in leaves}
        arrays |= {f"{i}/loss": prior.loss, f"{i}/stopped": prior.stopped}
    header = json.dumps({"spec": spec, "spaces": spaces}, sort_keys=True)
    save_npz(path, arrays | {"header": np.array(header)})


def load(path: str | Path) -> tuple[TrainingSpec, list[SpacePrior]]:
    """Read (spec, priors). Raises DataError, which names the file and the parameter that does not fit."""
    try:
        with open(path, "rb") as stored_file, np.load(stored_file, allow_pickle=False) as data:
            arrays = {key: data[key] for key in data.files}
        header = json.loads(str(arrays.pop("header")))
        return header["spec"], _priors(path, header["spec"], header["spaces"], arrays)
    except MetaboError:
        raise
    except Exception as error:
        raise DataError(f"{path}: not a readable prior file ({error!r}); delete it and run again") from error


def _priors(
    path: str | Path, spec: TrainingSpec, spaces: list[SpaceHeader], arrays: dict[str, np.ndarray]
) -> list[SpacePrior]:
    start = registry.training_module(spec["method"]).start
    priors = []
    for i, space in enumerate(spaces):
        sizes = space["dim"], space["tasks"]
        shape = padding.shapes(start, spec["model"], *sizes)
        folds = tuple(Fold(f[0], f[1], tuple(f[2]), tuple(f[3])) for f in space["folds"])
        pairs = len(folds) * spec["seeds"]
        leaves = []
        for name, leaf in zip(_names(shape), jax.tree.leaves(shape), strict=True):
            stored = arrays.get(f"{i}{name}")
            if stored is None or stored.shape != (pairs, *leaf.shape):
                found = "missing" if stored is None else f"of shape {stored.shape}"
                raise DataError(
                    f"{path}: parameter '{name}' is {found}, needs {(pairs, *leaf.shape)}; delete it and run again"
                )
            leaves.append(jnp.asarray(stored))
        params = jax.tree.unflatten(jax.tree.structure(shape), leaves)
        trace, stopped = arrays.get(f"{i}/loss"), arrays.get(f"{i}/stopped")
        if trace is None or stopped is None:
            raise DataError(f"{path}: the loss trace of space '{space['space']}' is missing; delete it and run again")
        priors.append(SpacePrior(space["space"], *sizes, folds, params, trace, space["stride"], stopped))
    return priors


def widened(prior: SpacePrior, spec: TrainingSpec, width: int) -> SpacePrior:
    """Return priors for inputs with columns of zeros up to `width`. Use it only for methods that such columns do not
    change."""
    start = registry.training_module(spec["method"]).start
    shapes = padding.shapes(start, spec["model"], width, prior.tasks)
    return replace(prior, dim=width, params=padding.widened(prior.params, shapes))


def summary(prior: SpacePrior) -> dict[str, object]:
    """Return the first and last stored losses (None if not finite) and the fits that stopped at a non-finite step."""
    stopped = [
        {"fold": fold.name, "seed": seed, "step": int(prior.stopped[prior.pair(f, seed)])}
        for f, fold in enumerate(prior.folds)
        for seed in range(prior.seeds)
        if prior.stopped[prior.pair(f, seed)] >= 0
    ]
    trained = prior.loss.shape[1] > 0
    first, last = ([float(v) if np.isfinite(v) else None for v in prior.loss[:, i]] if trained else [] for i in (0, -1))
    return {"space": prior.space, "loss_first": first, "loss_last": last, "stopped_at_non_finite_step": stopped}
