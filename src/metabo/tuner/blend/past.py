"""What is learned from past studies: the GP of all studies, which predicts points, and their best trials."""

import io
import math
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve, solve_triangular

from metabo.data.history.description import Configuration, Description
from metabo.data.history.past import PastStudies, oriented
from metabo.errors import DataError
from metabo.records.files import save_npz
from metabo.tuner.blend import hyper, kernel, outcomes, points
from metabo.tuner.blend.hyper import Hyper
from metabo.tuner.blend.points import Points

MOST, FEWEST, STUDIES = 400, 5, 100
"""The most past trials in the GP, the fewest trials that any study may use, and the most studies."""
ELITES = 3
"""The number of best trials of each study, which become candidates."""


class PastTrials(NamedTuple):
    """The past trials in the GP: encoded inputs x (n, d), normal scores z (n,), and the study of each (n,). The
    hyperparameters. The best trials of the studies, as points `elites` (e, p) and as numbers `exact` (e, p) with all
    digits of the history (NaN for parameters that are not floats, not in use, or not known). `quantiles` of each
    study's outcomes (to be maximised, on their scale) at `outcomes.LEVELS`; what older versions wrote has one row, of
    all studies. `owner`, the parameter of each column."""

    x: Float[np.ndarray, "n d"]
    z: Float[np.ndarray, " n"]
    study: Int[np.ndarray, " n"]
    scales: Float[np.ndarray, " p"]
    numbers: Float[np.ndarray, "3"]
    elites: Float[np.ndarray, "e p"]
    exact: Float[np.ndarray, "e p"]
    quantiles: Float[np.ndarray, "s q"]
    owner: Int[np.ndarray, " d"]

    @property
    def hyper(self) -> Hyper:
        """The hyperparameters."""
        return Hyper(self.scales, *self.numbers.tolist())

    def configuration(self, description: Description, pick: Points) -> Configuration:
        """Return the configuration at the only point of `pick`. A past trial is returned with all digits of the
        history."""
        (found,) = description.at(pick.units)
        (same,) = np.nonzero((self.elites == pick.units).all(axis=1))
        for field, value in zip(description.fields, self.exact[same[0]].tolist(), strict=True) if len(same) else ():
            if found[field.name] is not None and math.isfinite(value):
                found[field.name] = value
        return found


class Explained(NamedTuple):
    """The common function at m points: its mean (m,), and V (n, m), where VᵀV is the covariance that the past
    explains."""

    mean: Float[np.ndarray, " m"]
    root: Float[np.ndarray, "n m"]


class ConditionedPast(NamedTuple):
    """The GP of the past, ready to predict: the factor of its covariance, and its weights."""

    past: PastTrials
    low: Float[np.ndarray, "n n"]
    alpha: Float[np.ndarray, " n"]

    def explained(self, x: Float[np.ndarray, "m d"]) -> Explained:
        """Return the past's prediction of the common function at x."""
        h = self.past.hyper
        square = kernel.squared(self.past.x, x, hyper.columns_of(h.scales, self.past.owner))
        cross = h.variance * h.correlation * kernel.matern52(square)
        return Explained(cross.T @ self.alpha, solve_triangular(self.low, cross, lower=True, check_finite=False))


def conditioned(past: PastTrials) -> ConditionedPast:
    """Factorise the covariance of the past trials."""
    cov = hyper.covariance(past.hyper, past.x, past.study[:, None] == past.study, past.owner)
    low = np.linalg.cholesky(cov)
    return ConditionedPast(past, low, cho_solve((low, True), past.z))


def learn(studies: PastStudies, seed: int, steps: int) -> PastTrials:
    """Learn from all usable past studies. `seed` draws the trials that are left out if there are more than `MOST`;
    `steps` is the most steps of L-BFGS."""
    space = studies.description
    tasks, rng = list(studies.tasks.values()), np.random.default_rng([11, seed])
    if len(tasks) > STUDIES:
        tasks = [tasks[i] for i in sorted(rng.permutation(len(tasks))[:STUDIES])]
    values = [oriented(task.metric, space) for task in tasks]
    units = [points.units(space, task.x) for task in tasks]
    scores = [outcomes.normal_scores(y) for y in values]
    kept = [_kept(z, max(FEWEST, MOST // len(tasks)), rng) for z in scores]
    x = np.concatenate([task.x[rows] for task, rows in zip(tasks, kept, strict=True)])
    z = [score[rows] for score, rows in zip(scores, kept, strict=True)]
    z = np.concatenate(z) / np.sqrt(np.mean([np.var(one) for one in z]))
    study = np.repeat(np.arange(len(tasks)), [len(rows) for rows in kept])
    owner = points.owners(space)
    found = hyper.fit(x, z, study, owner, steps)
    best = [np.argsort(-score, kind="stable")[:ELITES] for score in scores]
    elites = np.concatenate([at[rows] for at, rows in zip(units, best, strict=True)])
    exact = np.concatenate([_exact(studies, task.name, rows) for task, rows in zip(tasks, best, strict=True)])
    spread = np.stack([np.quantile(outcomes.filled(y), outcomes.LEVELS) for y in values])
    numbers = np.array([found.variance, found.correlation, found.noise])
    return PastTrials(x, z, study, found.scales, numbers, elites, exact, spread, owner)


def _exact(studies: PastStudies, task: str, rows: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k p"]:
    """Return the floats of the given rows of a task as they are in the history."""
    known = studies.configurations.get(task)
    found = np.full((len(rows), len(studies.description.fields)), np.nan)
    for place, field in enumerate(studies.description.fields):
        if known is not None and field.kind == "float":
            found[:, place] = [np.nan if known[row][field.name] is None else known[row][field.name] for row in rows]
    return found


def _kept(z: Float[np.ndarray, " n"], most: int, rng: np.random.Generator) -> Int[np.ndarray, " k"]:
    """Return the rows of a study to keep, at most `most`: the best ones for a third of them, and random ones for the
    rest."""
    order = np.argsort(-z, kind="stable")
    best = most // 3
    return order if len(z) <= most else np.concatenate([order[:best], rng.permutation(order[best:])[: most - best]])


def save(path: Path, past: PastTrials) -> None:
    """Write what was learned."""
    save_npz(path, past._asdict())


def load(path: Path) -> PastTrials:
    """Read what was learned. Raises DataError if the file cannot be read or lacks a part."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in PastTrials._fields if name != "exact"}
            found["quantiles"] = np.atleast_2d(found["quantiles"])
            found["exact"] = arrays["exact"] if "exact" in arrays else np.full(found["elites"].shape, np.nan)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: cannot be read ({error}); make it again with metabo pretrain") from error
    return PastTrials(**found)
