"""Inference: correlations, paired differences with intervals, and the sources of variance."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as t_distribution

from metabo.errors import DataError, unknown
from metabo.metrics.clusters import Labels, TaskClusters, clusters, two_way, variance_of_mean
from metabo.metrics.runs import Runs, paired

_CHUNK = 2_000_000


class Pearson(NamedTuple):
    """Sample correlation r with its Fisher-z interval; n points. NaN where undefined."""

    r: float
    low: float
    high: float
    n: int


def pearson(x: np.ndarray, y: np.ndarray, level: float = 0.95) -> Pearson:
    """Return the plain sample Pearson correlation and its Fisher-z interval (hyperbo §6 and claim C41).

    r is NaN for fewer than two points or a constant sample; the interval is NaN for fewer than four points. The
    interval assumes independent points; repeats of few methods are clustered, so read it as optimistic.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n = len(x)
    if n < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Pearson(np.nan, np.nan, np.nan, n)
    a, b = x - x.mean(), y - y.mean()
    r = float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))
    if n < 4:
        return Pearson(r, np.nan, np.nan, n)
    if abs(r) == 1.0:
        return Pearson(r, r, r, n)
    half = norm.ppf(0.5 + level / 2) / np.sqrt(n - 3)
    low, high = np.tanh(np.arctanh(r) + np.array([-half, half]))
    return Pearson(r, float(low), float(high), n)


class Difference(NamedTuple):
    """mean(a) - mean(b) over repetitions and tasks, with its interval. The bounds are NaN if there is nothing to
    resample."""

    estimate: float
    low: float
    high: float


TREATMENTS = ("nested", "fixed", "crossed")


def paired_difference(
    a: np.ndarray,
    b: np.ndarray,
    rng: np.random.Generator,
    tasks: str = "nested",
    resamples: int = 10_000,
    level: float = 0.95,
    folds: Sequence[int] | np.ndarray | None = None,
    overlap: float = 0.0,
    data_sets: Labels | None = None,
) -> Difference:
    """Compare an aggregated metric of two methods (the ORD test of hyperbo's claims).

    `a` and `b` are (Q, K) values (regret, solved or not, ...) of paired repetitions and tasks; the aggregate is their
    mean. `tasks` says what varies, and hence what the interval generalises to:

    - "nested": folds, each with all its tasks and repetitions: a new data set. Tasks of one fold share data set and
      priors, so they are not independent draws; the spread of the folds already includes the variation between
      repetitions. `folds` (K,) has the number of each task's fold; by default every task is its own fold.
      Folds that share training tasks are correlated: `overlap` is the share by which this increases the variance of
      their mean (`metabo.metrics.runs.shared_training`). With a single fold, "crossed" is used. `data_sets` (K,) has
      the number or name of each task's data set: where several folds test on the same ones, data sets are units too
      (`metabo.metrics.clusters`).
    - "crossed" draws repetitions, and one set of tasks for all of them: new tasks that share priors.
    - "fixed" draws repetitions only: this suite of tasks.

    "nested" draws nothing: the interval is the estimate ± Student's t times the root of the cluster-robust variance CR2
    times √(1 + overlap), with Satterthwaite's degrees of freedom (Bell and McCaffrey 2002), which are fewer than the
    folds less one where folds differ in size (`metabo.metrics.clusters`). Where folds and data sets are crossed, the
    variance is the two-way one of Cameron, Gelbach and Miller (2011), `overlap` increases the part of the folds, and
    the degrees of freedom are the fewer. Otherwise it is the estimate ± Student's t times the standard deviation of
    `resamples` resampled means times √(n/(n-1)), with n - 1 degrees of freedom; n is the smaller of Q and K (ignoring a
    1), or Q. For few draws percentile intervals would be too narrow: nominal 95 % intervals cover about 72 % with three
    folds and 86 % with seven. The bounds are NaN for one unit.

    Cost O(Q * K), or O(resamples * Q * K) in chunks. Raises DataError for arrays of other shapes and unless there is
    one fold and one data set per task, and ConfigError for an unknown treatment of tasks.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 2 or a.size == 0:
        raise DataError(f"paired difference: needs two equal (repetitions, tasks) arrays, got {a.shape} and {b.shape}")
    d = a - b
    of = clusters(d.shape[1], folds, data_sets)
    tasks, units = _treatment(d.shape, tasks, of)
    if units == 1:
        return Difference(float(d.mean()), np.nan, np.nan)
    reach = t_distribution.ppf(0.5 + level / 2, of.freedom if tasks == "nested" else units - 1)
    if tasks == "nested":
        half = reach * np.sqrt(two_way(of, partial(variance_of_mean, d.mean(axis=0)), overlap))
        return Difference(float(d.mean()), float(d.mean() - half), float(d.mean() + half))
    draw = {"crossed": _by_both, "fixed": _by_repetition}[tasks]
    step = max(1, _CHUNK // d.size)
    means = np.concatenate([draw(d, rng, min(step, resamples - at)) for at in range(0, resamples, step)])
    half = reach * means.std() * np.sqrt(units / (units - 1))
    return Difference(float(d.mean()), float(d.mean() - half), float(d.mean() + half))


def independent_units(
    shape: tuple[int, int],
    tasks: str = "nested",
    folds: Sequence[int] | np.ndarray | None = None,
    data_sets: Labels | None = None,
) -> int:
    """Return the number n of independent units behind an interval of `paired_difference`, for values of this shape: of
    crossed folds and data sets, the number of the fewer."""
    return _treatment(shape, tasks, clusters(shape[1], folds, data_sets))[1]


def _treatment(shape: tuple[int, ...], tasks: str, of: TaskClusters) -> tuple[str, int]:
    """Return what is drawn ("crossed" for one fold) and the number of units."""
    if tasks not in TREATMENTS:
        raise unknown("treatment of tasks", tasks, TREATMENTS)
    if tasks == "nested" and of.folds == 1:
        tasks = "crossed"
    varying = [size for size in shape if size > 1]
    return tasks, {"nested": of.units, "crossed": min(varying, default=1), "fixed": shape[0]}[tasks]


def _by_both(d: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    """Return `count` means over repetitions and tasks, both drawn with replacement."""
    rows, columns = (rng.integers(size, size=(count, size)) for size in d.shape)
    return d[rows[:, :, None], columns[:, None]].mean(axis=(1, 2))


def _by_repetition(d: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    """Return `count` means over repetitions drawn with replacement."""
    return d.mean(axis=1)[rng.integers(len(d), size=(count, len(d)))].mean(axis=1)


def differences(
    runs: Runs, reference: str, iterations: list[int], seed: int, unit: str = "prior", tasks: str | None = None
) -> pd.DataFrame:
    """Return method, reference, iteration, difference, low, high: regret minus the reference's, 95 % CI.

    The rows are the `paired_difference` of every other method, with the runs' own `drawn` unless `tasks` is given. The
    generator of each row is keyed by (seed, iteration, place).
    """
    rows = []
    for iteration in iterations:
        at = runs.at(iteration)
        for place, method in enumerate(m for m in runs.methods if m != reference):
            a, b = paired(at.select([method, reference]), unit)[..., 0]
            rng = np.random.default_rng([seed, iteration, place])
            overlap = runs.overlap_of([method, reference])
            found = paired_difference(a, b, rng, tasks or runs.drawn, **runs.clusters, overlap=overlap)
            row = {"method": method, "reference": reference, "iteration": iteration}
            rows.append({**row, "difference": found.estimate, "low": found.low, "high": found.high})
    return pd.DataFrame(rows)


def variance_split(runs: Runs, iteration: int | None = None) -> pd.DataFrame:
    """Split each method's regret at one iteration (default: the last) into tasks, priors and BO seeds.

    The model is a balanced nested random-effects model r_kps = m + a_k + b_kp + c_kps: tasks k = 1..K, priors p = 1..P
    within a task (a hold-out fits its own prior, so a prior seed has an effect per task), BO seeds s = 1..S within a
    prior. The analysis-of-variance (moment) estimator uses the mean squares,

        var_seeds = MS_seed,  var_priors = (MS_prior - MS_seed) / S,  var_tasks = (MS_task - MS_prior) / (P S)

    with negative estimates set to 0. Columns: method, mean, sd_tasks, sd_priors, sd_seeds (square roots of these),
    sd_repetition (standard deviation, ddof 1, over priors of the mean over tasks and seeds; over runs for methods
    without a prior; this is the spread that a curve's band shows), priors, seeds, tasks.

    A component is 0 for a method whose runs do not depend on that seed. With a single prior of a pre-trained method, or
    a single BO seed, that component cannot be separated and is NaN (with one BO seed, its variance is part of
    `sd_priors`). Methods without pre-training have sd_priors = 0, because their runs count as BO seeds.
    """
    at = runs.at(iteration or runs.last)
    rows = []
    for method, v in at.values.items():
        single = method in runs.single_task
        r = v[..., 0].reshape(1, -1, v.shape[2]) if single else v[..., 0]
        parts = _nested_variances(r)
        if single:
            parts["priors"] = 0.0
        repeats = r.mean(axis=2).ravel() if single else r.mean(axis=(1, 2))
        row: dict[str, str | float] = {"method": method, "mean": float(r.mean())}
        row |= {f"sd_{name}": float(np.sqrt(part)) for name, part in parts.items()}
        row["sd_repetition"] = float((repeats - repeats[0]).std(ddof=1)) if len(repeats) > 1 else np.nan
        rows.append({**row, "priors": 0 if single else r.shape[0], "seeds": r.shape[1], "tasks": r.shape[2]})
    return pd.DataFrame(rows)


def _nested_variances(r: np.ndarray) -> dict[str, float]:
    """Variance components of (P, S, K) values; see `variance_split`."""
    p, s, k = r.shape
    # Compute means relative to the first value: equal runs then have exactly equal means and a spread of exactly 0.
    by_prior = r[:, 0] + (r - r[:, :1]).mean(axis=1)
    by_task = by_prior[0] + (by_prior - by_prior[:1]).mean(axis=0)
    ms_seed = ((r - by_prior[:, None]) ** 2).sum() / (k * p * (s - 1)) if s > 1 else 0.0
    ms_prior = s * ((by_prior - by_task) ** 2).sum() / (k * (p - 1)) if p > 1 else ms_seed
    ms_task = p * s * ((by_task - by_task.mean()) ** 2).sum() / (k - 1) if k > 1 else np.nan
    return {
        "tasks": max(0.0, (ms_task - ms_prior) / (p * s)) if k > 1 else np.nan,
        "priors": max(0.0, (ms_prior - ms_seed) / s) if p > 1 else np.nan,
        "seeds": ms_seed if s > 1 else np.nan,
    }
