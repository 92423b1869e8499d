"""Inference: correlations, paired differences with bootstrap intervals, and where the variance comes from."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm

from metabo.errors import DataError, unknown
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
    """mean(a) - mean(b) over repetitions and tasks, with a percentile bootstrap interval."""

    estimate: float
    low: float
    high: float


def paired_difference(
    a: np.ndarray,
    b: np.ndarray,
    rng: np.random.Generator,
    tasks: str = "nested",
    resamples: int = 10_000,
    level: float = 0.95,
) -> Difference:
    """Bootstrap the difference of an aggregated metric between two methods (the ORD test of hyperbo's claims).

    `a`, `b`: (Q, K) values (regret, solved or not, ...) of paired repetitions and tasks; the aggregate is their mean.
    Repetitions are drawn with replacement, in pairs. `tasks` says what the interval speaks of: "nested" redraws the
    tasks within each drawn repetition, "fixed" keeps them all (a statement on this suite of tasks), "crossed" draws
    one set of tasks for all repetitions (a statement on new tasks). With Q = 1 and fixed tasks nothing varies and the
    interval is NaN. Cost O(resamples * Q * K), in chunks.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 2 or a.size == 0:
        raise DataError(f"paired difference: needs two equal (repetitions, tasks) arrays, got {a.shape} and {b.shape}")
    if tasks not in ("nested", "fixed", "crossed"):
        raise unknown("treatment of tasks", tasks, ("nested", "fixed", "crossed"))
    d = a - b
    q, k = d.shape
    if q == 1 and (tasks == "fixed" or k == 1):
        return Difference(float(d.mean()), np.nan, np.nan)
    means = []
    step = max(1, _CHUNK // d.size)
    for start in range(0, resamples, step):
        n = min(step, resamples - start)
        drawn = rng.integers(q, size=(n, q))
        if tasks == "fixed":
            means.append(d.mean(axis=1)[drawn].mean(axis=1))
            continue
        columns = rng.integers(k, size=(n, q if tasks == "nested" else 1, k))
        means.append(d[drawn[:, :, None], columns].mean(axis=(1, 2)))
    low, high = np.percentile(np.concatenate(means), [50 * (1 - level), 50 * (1 + level)])
    return Difference(float(d.mean()), float(low), float(high))


def differences(
    runs: Runs, reference: str, iterations: list[int], seed: int, unit: str = "prior", tasks: str = "nested"
) -> pd.DataFrame:
    """Return method, reference, iteration, difference, low, high: regret minus the reference's, 95 % CI.

    `paired_difference` for every other method; the generator of each row is keyed by (seed, iteration, place).
    """
    rows = []
    for iteration in iterations:
        at = runs.at(iteration)
        for place, method in enumerate(m for m in runs.methods if m != reference):
            a, b = paired(at.select([method, reference]), unit)[..., 0]
            found = paired_difference(a, b, np.random.default_rng([seed, iteration, place]), tasks)
            row = {"method": method, "reference": reference, "iteration": iteration}
            rows.append({**row, "difference": found.estimate, "low": found.low, "high": found.high})
    return pd.DataFrame(rows)


def variance_split(runs: Runs, iteration: int | None = None) -> pd.DataFrame:
    """Split each method's regret at one iteration (default: the last) into tasks, priors and BO seeds.

    Balanced nested random-effects model r_kps = m + a_k + b_kp + c_kps: tasks k = 1..K, priors p = 1..P within a task
    (a hold-out fits its own prior, so a prior seed has an effect per task), BO seeds s = 1..S within a prior. The
    analysis-of-variance (moment) estimator from the mean squares

        var_seeds = MS_seed,  var_priors = (MS_prior - MS_seed) / S,  var_tasks = (MS_task - MS_prior) / (P S)

    with negative estimates set to 0. Columns: method, mean, sd_tasks, sd_priors, sd_seeds (square roots of these),
    sd_repetition (standard deviation, ddof 1, over priors of the mean over tasks and seeds; over runs for methods
    without a prior: the spread that a curve's band shows), priors, seeds, tasks.

    A method whose runs do not depend on a seed has 0 there. With one prior of a pre-trained method, or one BO seed,
    that part cannot be told apart and is NaN (one BO seed: its variance is then part of `sd_priors`). Methods without
    pre-training have sd_priors = 0: their runs are all BO seeds.
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
        row: dict[str, object] = {"method": method, "mean": float(r.mean())}
        row |= {f"sd_{name}": float(np.sqrt(part)) for name, part in parts.items()}
        row["sd_repetition"] = float((repeats - repeats[0]).std(ddof=1)) if len(repeats) > 1 else np.nan
        rows.append({**row, "priors": 0 if single else r.shape[0], "seeds": r.shape[1], "tasks": r.shape[2]})
    return pd.DataFrame(rows)


def _nested_variances(r: np.ndarray) -> dict[str, float]:
    """Variance components of (P, S, K) values; see `variance_split`."""
    p, s, k = r.shape
    # Means around the first value: equal runs then have exactly equal means, and a spread of exactly 0.
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
