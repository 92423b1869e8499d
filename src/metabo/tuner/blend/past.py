"""What is learned from past studies, and what it says of points: the GP of all studies, and their best trials."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve, solve_triangular

from metabo.data.history.past import PastStudies, oriented
from metabo.errors import DataError
from metabo.records.files import save_npz
from metabo.tuner.blend import hyper, kernel, outcomes, points
from metabo.tuner.blend.hyper import Hyper

MOST, FEWEST, STUDIES = 400, 5, 100
"""Past trials that the GP has room for, those of a study at least, and studies at most."""
ELITES = 3
"""Best trials of each study, which are candidates."""


class PastTrials(NamedTuple):
    """Past trials that the GP knows: encoded inputs x (n, d), normal scores z (n,), study of each (n,); the
    hyperparameters; the best trials of the studies as points `elites` (e, p); `quantiles` of all past outcomes (to be
    maximised, on their scale) at `outcomes.LEVELS`; `owner`, the parameter of each column."""

    x: Float[np.ndarray, "n d"]
    z: Float[np.ndarray, " n"]
    study: Int[np.ndarray, " n"]
    scales: Float[np.ndarray, " p"]
    numbers: Float[np.ndarray, "3"]
    elites: Float[np.ndarray, "e p"]
    quantiles: Float[np.ndarray, " q"]
    owner: Int[np.ndarray, " d"]

    @property
    def hyper(self) -> Hyper:
        """Return the hyperparameters."""
        return Hyper(self.scales, *self.numbers.tolist())


class Explained(NamedTuple):
    """The common function at m points: its mean (m,), and V (n, m) with VᵀV the covariance that the past explains."""

    mean: Float[np.ndarray, " m"]
    root: Float[np.ndarray, "n m"]


class ConditionedPast(NamedTuple):
    """The GP of the past, ready to predict: the factor of its covariance, and its weights."""

    past: PastTrials
    low: Float[np.ndarray, "n n"]
    alpha: Float[np.ndarray, " n"]

    def explained(self, x: Float[np.ndarray, "m d"]) -> Explained:
        """Return what the past says of the common function at x."""
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
    """Learn from all usable past studies. `seed`: of which trials are left out where there are more than `MOST`;
    `steps`: of L-BFGS, at most."""
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
    best = [at[np.argsort(-score, kind="stable")[:ELITES]] for at, score in zip(units, scores, strict=True)]
    spread = np.quantile(np.concatenate(values), outcomes.LEVELS)
    numbers = np.array([found.variance, found.correlation, found.noise])
    return PastTrials(x, z, study, found.scales, numbers, np.concatenate(best), spread, owner)


def _kept(z: Float[np.ndarray, " n"], most: int, rng: np.random.Generator) -> Int[np.ndarray, " k"]:
    """Return the rows that are kept of a study: the best third of `most`, the others at random."""
    order = np.argsort(-z, kind="stable")
    best = most // 3
    return order if len(z) <= most else np.concatenate([order[:best], rng.permutation(order[best:])[: most - best]])


def save(path: Path, past: PastTrials) -> None:
    """Write what was learned."""
    save_npz(path, past._asdict())


def load(path: Path) -> PastTrials:
    """Read what was learned. Raises DataError if the file does not hold it."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            found: Mapping[str, np.ndarray] = {name: arrays[name] for name in PastTrials._fields}
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: cannot be read ({error}); make it again with metabo pretrain") from error
    return PastTrials(**found)
