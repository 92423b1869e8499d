"""What cm-BO reports about its runs (§4.1, §4.2): mean normalised simple regret, average rank, share of runs solved.

A run is a target task, a split and a repetition; all runs count the same. Intervals: 95 %, from resamples of the target
tasks (the runs of one target are not independent), those about one data set together, or of the repetitions where all
tasks are of one data set and none stands for a new one (`Runs.drawn`). `names` are runs as
`artefacts.load_trajectories` names them: ``method`` or ``method-acquisition``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from metabo.errors import DataError
from metabo.metrics.clusters import clusters
from metabo.metrics.runs import Runs, paired
from metabo.plan.runs import acquisition_of, method_of

LEVEL, RESAMPLES = 0.95, 4000
SOLVED = 0.005
"""Normalised regret below which a run is solved (§4.2)."""
VARIANTS = ("cm_jef_jef", "cm_wss_wss", "cm_jef_wss", "cm_wss_jef", "cm_wss_bary")
WITHOUT_CLUSTERS = ("cm_global", "cm_tasks")
BASELINES = ("rand_once", "gp32", "rgpe", "rm_gp_ucb", "hyperbo")
READINGS = ("_fixed", "_scaled")
"""Ends of the names of methods under another reading of the noise."""


def reading_of(method: str) -> str:
    """Return the end of a method's name that tells its reading of the noise (READINGS); empty for the paper's."""
    return next((reading for reading in READINGS if method.endswith(reading)), "")


def printed(method: str) -> str:
    """Return the method of the paper that a method under some reading of the noise stands for."""
    return method.removesuffix(reading_of(method))


def of_acquisition(names: Iterable[str], acquisition: str) -> list[str]:
    """Keep the runs with this acquisition, and those of methods without one (random search)."""
    return [name for name in names if acquisition_of(name) in (acquisition, "uniform")]


def of_reading(runs: Runs, reading: str) -> Runs:
    """Keep the runs of cm-BO under this reading of the noise (an end of names, empty for the paper's), and those of the
    methods that no reading changes."""
    own = {*VARIANTS, *WITHOUT_CLUSTERS}
    found = {name: method_of(name) for name in runs.methods}
    return runs.select([n for n, m in found.items() if printed(m) not in own or reading_of(m) == reading])


def pooled(parts: Mapping[str, Runs]) -> Runs:
    """Join the runs of several acquisitions as if they were repetitions, of the methods that all of them have.

    Methods lose their acquisition. Raises DataError if no method is in all of them.
    """
    every = [{method_of(name): values for name, values in runs.values.items()} for runs in parts.values()]
    shared = [method for method in every[0] if all(method in one for one in every)]
    if not shared:
        raise DataError(f"no method was run with all of {', '.join(parts)}; give its trajectories")
    first = next(iter(parts.values()))
    arrays = {method: np.concatenate([one[method] for one in every], axis=1) for method in shared}
    seeds = {method: tuple(range(values.shape[0])) for method, values in arrays.items()}
    single = frozenset(method_of(name) for name in first.single_task) & set(shared)
    return replace(first, values=arrays, prior_seeds=seeds, single_task=single)


def by_target(runs: Runs) -> np.ndarray:
    """Return (methods, repetitions, targets, iterations), the runs of all methods paired."""
    return paired(runs, "run")


def _intervals(runs: Runs, values: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bootstrap interval (..., T) of the mean over repetitions and targets of (..., Q, K, T); targets
    about one data set are drawn together. NaN where one repetition of a single data set leaves nothing to draw."""
    units = values.mean(axis=-2 if runs.drawn == "fixed" else -3)
    count = units.shape[-2]
    if count == 1 and runs.drawn == "fixed":
        return (np.full((*units.shape[:-2], units.shape[-1]), np.nan),) * 2
    own = np.arange(count)
    cluster = own if runs.drawn == "fixed" else clusters(count, own, runs.data_sets or None).unit
    groups = int(cluster.max()) + 1
    drawn = np.random.default_rng([seed, groups]).multinomial(groups, np.full(groups, 1 / groups), RESAMPLES)
    weights = drawn[:, cluster] / drawn[:, cluster].sum(axis=1, keepdims=True)
    means = np.einsum("bk,...kt->...bt", weights, units)
    low, high = np.percentile(means, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=-2)
    return low, high


def _tidy(runs: Runs, values: np.ndarray, seed: int) -> pd.DataFrame:
    """Lay out means over repetitions and targets of (methods, Q, K, T) with their intervals."""
    low, high = _intervals(runs, values, seed)
    frames = [
        pd.DataFrame({"method": m, "iteration": runs.iterations, "mean": v, "low": a, "high": b})
        for m, v, a, b in zip(runs.methods, values.mean(axis=1).mean(axis=1), low, high, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)


def mean_regret(runs: Runs, seed: int = 0) -> pd.DataFrame:
    """Return method, iteration, mean, low, high of the normalised regret (MNSR)."""
    return _tidy(runs, by_target(runs), seed)


def average_rank(runs: Runs, seed: int = 0) -> pd.DataFrame:
    """Return method, iteration, mean, low, high of the rank of a method's regret within each run, ties averaged."""
    return _tidy(runs, rankdata(by_target(runs), axis=0, method="average"), seed)


def solved(runs: Runs, threshold: float = SOLVED, seed: int = 0) -> pd.DataFrame:
    """Return method, iteration, mean, low, high of the share of runs with a regret below the threshold."""
    return _tidy(runs, (by_target(runs) < threshold).astype(np.float64), seed)


def unsolved(runs: Runs, threshold: float = SOLVED) -> pd.DataFrame:
    """Return method, targets, never, runs at the last iteration: how many targets there are, how many of them no
    repetition solves (regret below the threshold), and the share of runs that are not solved."""
    open_ = by_target(runs)[..., -1] >= threshold  # (methods, repetitions, targets)
    never, share = open_.all(axis=1).sum(axis=1), open_.mean(axis=(1, 2))
    return pd.DataFrame({"method": list(runs.methods), "targets": len(runs.tasks), "never": never, "runs": share})


def differences(runs: Runs, references: Sequence[str], seed: int = 0) -> pd.DataFrame:
    """Return method, reference, difference, low, high, area, area_low, area_high, better.

    `difference`: last regret of the method minus the reference's, paired by run; `area`: the same of the mean over all
    iterations. `better`: 1 if the interval of the difference is below 0, -1 above, 0 if it has 0 in it.
    """
    values = by_target(runs)
    place = {name: i for i, name in enumerate(runs.methods)}
    rows = []
    for reference in [name for name in references if name in place]:
        for method in [name for name in runs.methods if name != reference]:
            gap = values[place[method]] - values[place[reference]]
            both = np.stack([gap[..., -1], gap.mean(axis=-1)], axis=-1)
            low, high = _intervals(runs, both, seed)
            better = float(high[0] < 0) - float(low[0] > 0)
            last, area = both.mean(axis=0).mean(axis=0)
            row = {"difference": last, "low": low[0], "high": high[0], "area": area}
            row |= {"area_low": low[1], "area_high": high[1], "better": better}
            rows.append({"method": method, "reference": reference, **row})
    numbers = ["difference", "low", "high", "area", "area_low", "area_high", "better"]
    return pd.DataFrame(rows, columns=["method", "reference", *numbers])


def overtaken(runs: Runs, method: str, reference: str) -> float:
    """Return the first iteration from which on the method's mean regret stays below the reference's; NaN: never."""
    means = by_target(runs.select([method, reference])).mean(axis=(1, 2))
    stays = np.logical_and.accumulate((means[0] < means[1])[::-1])[::-1]
    return float(runs.iterations[np.argmax(stays)]) if stays.any() else np.nan


class Ends(NamedTuple):
    """Means over runs of every method: `curve` (methods, T), its `last` values and `area` (mean over iterations);
    `place` of each method, and the places of the variants of cm-BO that were run (`ours`)."""

    runs: Runs
    curve: np.ndarray
    last: np.ndarray
    area: np.ndarray
    place: dict[str, int]
    ours: list[int]

    def places(self, methods: Iterable[str]) -> list[int]:
        """Return the places of those of the methods that were run."""
        return [self.place[method] for method in methods if method in self.place]


Row = tuple[str, str, float, bool]


def claims(runs: Runs) -> pd.DataFrame:
    """Return claim, comparison, value, holds for what the paper says of one space and acquisition (sheet §8): `value`
    is the number that the claim is about, `holds` 1 or 0.

    Means over runs, without intervals: `differences` has these. Claims of methods without runs are left out. A method
    under another reading of the noise (READINGS) stands for itself.
    """
    curve = by_target(runs).mean(axis=(1, 2))
    place = {printed(method_of(name)): i for i, name in enumerate(runs.methods)}
    ours = [place[method] for method in VARIANTS if method in place]
    ends = Ends(runs, curve, curve[:, -1], curve.mean(axis=1), place, ours)
    parts = (_variants, _single_task, _baselines, _without_clusters, _hyperbo)
    rows = [row for part in parts for row in part(ends)] if ours else []
    table = pd.DataFrame(rows, columns=["claim", "comparison", "value", "holds"])
    return table.astype({"value": np.float64, "holds": np.float64})


def _variants(ends: Ends) -> Iterator[Row]:
    others = ends.places((*BASELINES, *WITHOUT_CLUSTERS))
    if others:
        for words, own in (("best", ends.last[ends.ours].min()), ("median", np.median(ends.last[ends.ours]))):
            share = float(np.mean(own < ends.last[others]))
            yield "B1", f"{words} variant: share of other methods with a larger last regret", share, share > 0.5


def _single_task(ends: Ends) -> Iterator[Row]:
    meta = ends.places((*VARIANTS, *WITHOUT_CLUSTERS, "rgpe", "rm_gp_ucb", "hyperbo"))
    for name in ("rand_once", "gp32"):
        for i in ends.places([name]):
            share = float(np.mean(ends.last[meta] < ends.last[i]))
            yield "B2", f"share of meta methods with a smaller last regret than {name}", share, share > 0.5


def _baselines(ends: Ends) -> Iterator[Row]:
    for i in ends.places(["rgpe"]):
        gap = float(ends.area[i] - np.median(ends.area[ends.ours]))
        yield "B3", "area of rgpe minus that of the median variant", gap, gap > 0
    rest = ends.places(method for method in BASELINES if method != "rm_gp_ucb")
    for i in ends.places(["rm_gp_ucb"]) if rest else []:
        gap = float(ends.last[rest].min() - ends.last[i])
        yield "B4", "least last regret of the other baselines minus that of rm_gp_ucb", gap, gap > 0


def _without_clusters(ends: Ends) -> Iterator[Row]:
    for name in WITHOUT_CLUSTERS:
        for i in ends.places([name]):
            gap = float(ends.last[i] - np.median(ends.last[ends.ours]))
            yield "B9", f"last regret of {name} minus that of the median variant", gap, gap > 0


def _hyperbo(ends: Ends) -> Iterator[Row]:
    for i in ends.places(["hyperbo"]):
        at = ends.runs.iterations
        if at[-1] >= 50:
            begin, end = ends.curve[i, np.searchsorted(at, [20, 50])]
            gain = float(1.0 - end / begin) if begin > 0 else 0.0
            yield "B5", "relative gain of hyperbo from iteration 20 to 50", gain, gain < 0.1
        never = int(at[-1]) + 1
        first = [overtaken(ends.runs, ends.runs.methods[j], ends.runs.methods[i]) for j in ends.ours]
        # A variant that never overtakes must count against the claim, not drop out of it.
        median = float(np.median(np.nan_to_num(first, nan=never)))
        words = f"first iteration from which on the median variant stays below hyperbo ({never}: never)"
        yield "B15", words, median, median < 25


def repeats(table: pd.DataFrame) -> pd.DataFrame:
    """Return method, share: of the queries, those of a candidate that the run has observed before."""
    keys = ["method", "space", "task", "prior_seed", "seed"]
    ordered = table.sort_values([*keys, "iteration"])
    again = ordered.duplicated([*keys, "candidate"])
    queries = ordered["iteration"] >= 1
    share = again[queries].groupby(ordered.loc[queries, "method"], sort=False).mean()
    return share.rename("share").rename_axis("method").reset_index()


def endings(runs: Runs) -> pd.DataFrame:
    """Return method, last, area: mean normalised regret at the last iteration and over all iterations."""
    curve = by_target(runs).mean(axis=(1, 2))
    return pd.DataFrame({"method": list(runs.methods), "last": curve[:, -1], "area": curve.mean(axis=1)})
