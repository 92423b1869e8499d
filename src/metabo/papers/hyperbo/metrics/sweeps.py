"""Regret against the amount of training data, points or tasks (hyperbo §7.4.3, 7.4.4, 7.6.2).

Runs of priors on several splits are named ``method@split`` (`metabo.artefacts.api.by_split`); methods without
pre-training keep their names and serve as references. `training_sizes` says how much data each of those priors was
trained on. The rest reads `Runs` at one iteration.
"""

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from metabo.artefacts import settings as sidecars
from metabo.errors import DataError, unknown
from metabo.metrics.aggregate import regret_curves, regret_slices
from metabo.metrics.inference import differences, paired_difference, pearson
from metabo.metrics.runs import Runs, paired, repetitions
from metabo.papers.hyperbo.metrics.losses import loss_runs, means_per_repeat
from metabo.plan import registry, splits
from metabo.plan.runs import RunId, method_of
from metabo.records import sidecars as records
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.task import restrict

VARIED = ("points", "tasks")
"""What a sweep varies: the most points of a training task, or the number of training tasks."""


def block_limits(paths: Iterable[str]) -> dict[str, int]:
    """Return, for every ``method@split`` that reads matched points only, how many of each block its training took at
    most (0: all), by the sidecars of the trajectory tables at `paths` and of their priors; 0 too where these do not
    say."""
    limits = {}
    for run in sidecars.settings(paths).to_dict("records"):
        method = method_of(run["method"])  # a table without a sidecar is named with its acquisition
        if registry.method(method).needs_matched:
            trained = records.of(run["prior"])["spec"]["pretrain"] if run["record"] == "complete" else {}
            limits[f"{method}@{run['split']}"] = int(trained.get("matched_points", 0))
    return limits


def training_sizes(
    names: Collection[str], benchmark: Benchmark, varied: str, matched: Mapping[str, int] | None = None
) -> pd.DataFrame:
    """Return name, method, split, size of every ``method@split`` in `names`; sizes ascend within a method.

    `size` is the split's limit of `varied` ("points" or "tasks"). Without a limit, or with one above
    what is available, the size is the number of points of the largest training task, or of tasks of the widest fold.
    Runs in `matched` read only inputs that several training tasks share, and from each block no more of them than
    `block_limits` allows. If several splits of a method have the same size, the last of them in `names` stays. Raises
    ConfigError for another `varied` or an unknown split, DataError if a size is 0.
    """
    matched = matched or {}
    if varied not in VARIED:
        raise unknown("quantity that a sweep varies", varied, VARIED)
    rows = []
    for name in names:
        run = RunId.parse(name)
        if run.split:
            method = str(run.on(""))
            size = _size(benchmark, run.split, varied, matched.get(f"{run.method}@{run.split}"))
            rows.append({"name": name, "method": method, "split": run.split, "size": size})
    table = pd.DataFrame(rows, columns=["name", "method", "split", "size"])
    table = table.drop_duplicates(["method", "size"], keep="last")
    order = {method: place for place, method in enumerate(dict.fromkeys(table["method"]))}
    table["order"] = table["method"].map(order)
    return table.sort_values(["order", "size"]).drop(columns="order").reset_index(drop=True)


def _size(benchmark: Benchmark, split: str, varied: str, per_block: int | None) -> int:
    limit = {"points": splits.past(split).points, "tasks": splits.past(split).tasks}[varied]
    folds = benchmark.split(splits.base(split))
    if varied == "tasks":
        most = max(len(fold.train) for fold in folds)
    else:
        most = max(_points(benchmark, fold, per_block) for fold in folds)
    if most == 0:
        raise DataError(
            f"split '{split}' of benchmark '{benchmark.name}': no training task has matched points; leave out methods "
            "that need them"
        )
    return most if limit is None else min(limit, most)


def _points(benchmark: Benchmark, fold: Fold, per_block: int | None) -> int:
    """Points of the fold's largest training task; unless `per_block` is None, the most that one of them shares with
    others, of every block at most `per_block` (0: all)."""
    if per_block is None:
        return max(len(benchmark.tasks[name].y) for name in fold.train)
    blocks = restrict(benchmark.matched, fold.train)
    read = [(block.tasks, min(len(block.x), per_block or len(block.x))) for block in blocks]
    return max(sum(points for tasks, points in read if name in tasks) for name in fold.train)


def sweep_curves(runs: Runs, places: pd.DataFrame, iteration: int, unit: str = "prior") -> pd.DataFrame:
    """Return method, split, size, median, low, high, mean, repetitions: regret at one iteration against size.

    `places`: from `training_sizes`. Median, 20th and 80th percentile over repetitions of the mean over tasks, as in
    `metrics.regret_curves`.
    """
    curves = regret_curves(runs.at(iteration).select(list(places["name"])), unit)
    return _placed(places, curves.drop(columns="iteration"))


def sweep_slices(
    runs: Runs, places: pd.DataFrame, sizes: list[int], iteration: int, unit: str = "prior"
) -> pd.DataFrame:
    """Return size, method, used, repetition, regret: the repetitions (the violins' points) at each of `sizes`.

    `used`: the largest size of the method that is not above `size`; a method without one is left out. A size beyond
    the largest of all becomes the largest. Methods without pre-training are in every slice, `used` NaN.
    """
    alone = [m for m in runs.methods if not RunId.parse(m).split]
    frames = []
    for size in sorted({min(size, int(places["size"].max())) for size in sizes}):
        nearest = places[places["size"] <= size].groupby("method", sort=False).tail(1).set_index("name")
        slices = regret_slices(runs.select([*nearest.index, *alone]), [iteration], unit)
        name = slices["method"]
        method, used = name.map(nearest["method"]).fillna(name), name.map(nearest["size"]).astype(np.float64)
        columns = {"size": size, "method": method, "used": used}
        frames.append(pd.DataFrame({**columns, "repetition": slices["repetition"], "regret": slices["regret"]}))
    return pd.concat(frames, ignore_index=True)


def size_trends(runs: Runs, places: pd.DataFrame, iteration: int, unit: str = "prior") -> pd.DataFrame:
    """Return method, spearman, p, points, smallest, largest: rank correlation of size and regret (claims C47, C50).

    Over the repetitions at every size (`points` of them); two-sided p, as if they were independent. NaN for a method
    with one size or constant regret. `smallest` and `largest`: median regret there.
    """
    slices = regret_slices(runs.select(list(places["name"])), [iteration], unit)
    joined = _placed(places, slices.drop(columns="iteration"))
    rows = []
    for method, own in joined.groupby("method", sort=False):
        varies = np.ptp(own["size"]) > 0 and np.ptp(own["regret"]) > 0
        rho, p = spearmanr(own["size"], own["regret"]) if varies else (np.nan, np.nan)
        ends = [own.loc[own["size"] == size, "regret"].median() for size in (own["size"].min(), own["size"].max())]
        row = {"method": method, "spearman": float(rho), "p": float(p), "points": len(own)}
        rows.append({**row, "smallest": ends[0], "largest": ends[1]})
    return pd.DataFrame(rows)


def sweep_differences(
    runs: Runs, places: pd.DataFrame, reference: str, iteration: int, seed: int, unit: str = "prior"
) -> pd.DataFrame:
    """Return method, split, size, reference, ratio, difference, low, high: mean regret beside that of `reference`.

    `difference`: minus the reference's, with a 95 % interval (`metrics.differences`); `ratio`: divided by it (NaN if
    that is 0).
    """
    at = runs.at(iteration).select([*places["name"], reference])
    table = differences(at, reference, [iteration], seed, unit).drop(columns="iteration")
    base = float(at.values[reference].mean())
    means = [float(at.values[name].mean()) for name in table["method"]]
    table["ratio"] = np.array(means) / base if base > 0 else np.nan
    placed = _placed(places, table)
    return placed[["method", "split", "size", "reference", "ratio", "difference", "low", "high"]]


def sizes_below(curves: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return method, first, lasting: the smallest size whose median regret is at most `level`, and the smallest from
    which on it stays there (NaN: none); `curves` from `sweep_curves`. Claims C44 to C46, C49, C51."""
    rows = []
    for method, own in curves.groupby("method", sort=False):
        below = (own["median"] <= level).to_numpy()
        stays = np.logical_and.accumulate(below[::-1])[::-1]
        size = own["size"].to_numpy(dtype=np.float64)
        ends = {name: size[flag][0] if flag.any() else np.nan for name, flag in (("first", below), ("lasting", stays))}
        rows.append({"method": method, **ends})
    return pd.DataFrame(rows)


def twin_differences(runs: Runs, pairs: list[tuple[str, str]], seed: int, unit: str = "prior") -> pd.DataFrame:
    """Return method, reference, metric, difference, low, high: regret of one variant minus that of its twin (C66).

    `pairs`: (variant, twin) among the runs' methods. `metric`: "last", regret at the last iteration, or "mean", its
    mean over all iterations (the area below the curve); paired by repetition, with the 95 % interval of
    `metabo.metrics.inference.differences`.
    """
    rows = []
    for place, (variant, twin) in enumerate(pairs):
        both = paired(runs.select([variant, twin]), unit)
        for i, (metric, values) in enumerate({"last": both[..., -1], "mean": both.mean(axis=-1)}.items()):
            rng = np.random.default_rng([seed, place, i])
            overlap = runs.overlap_of([variant, twin])
            found = paired_difference(*values, rng, runs.drawn, **runs.clusters, overlap=overlap)
            keys = {"method": variant, "reference": twin, "metric": metric}
            rows.append({**keys, "difference": found.estimate, "low": found.low, "high": found.high})
    return pd.DataFrame(rows, columns=["method", "reference", "metric", "difference", "low", "high"])


def window_means(table: pd.DataFrame, column: str, ends: list[int]) -> pd.DataFrame:
    """Return method, window, value: mean of `column` over the iterations up to each of `ends`, from the one before it.

    `table`: method, iteration and the column. Windows are (0, e1], (e1, e2], ..., and what is beyond the last of
    `ends`; those without an iteration are left out. `window` reads "1 to 30". Claim C52.
    """
    last = int(table["iteration"].max())
    frames = []
    for low, high in zip([0, *ends], [*ends, last], strict=True):
        rows = table[(table["iteration"] > low) & (table["iteration"] <= high)]
        if not rows.empty:
            means = rows.groupby("method", sort=False)[column].mean().rename("value").reset_index()
            means.insert(1, "window", f"{low + 1} to {min(high, last)}")
            frames.append(means)
    return pd.concat(frames, ignore_index=True)


def transfer_by_space(runs: dict[str, Runs], evaluations: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return (space, method, metric, mean, std, repetitions) and (space, r, low, high, points): hyperbo Table 7.

    `runs`: those of each space. `metric`: "regret" at the last iteration, mean over the space's test tasks, and
    "train_nll" of the methods in `evaluations`; mean and standard deviation (ddof 0) over repetitions. `r`: Pearson's
    correlation of the two over these methods and their pre-training seeds, with its 95 % interval.
    """
    cells, correlations = [], []
    for space, own in runs.items():
        losses = evaluations[evaluations["space"] == space]
        trained = [method for method in own.methods if method in set(losses["method"])]
        nll = loss_runs(losses, "train_nll")[0].select(trained)
        for metric, source in (("regret", own.at(own.last)), ("train_nll", nll)):
            for method, values in repetitions(source).items():
                v = values.mean(axis=(1, 2))
                row = {"space": space, "method": method, "metric": metric, "mean": v.mean(), "std": v.std()}
                cells.append({**row, "repetitions": len(v)})
        points, _ = means_per_repeat(losses, own.select(trained))
        found = pearson(points["train_nll"].to_numpy(), points["regret"].to_numpy())
        correlations.append({"space": space, "r": found.r, "low": found.low, "high": found.high, "points": found.n})
    return pd.DataFrame(cells), pd.DataFrame(correlations)


def _placed(places: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Replace the names in column `method` by method, split and size, in the order of `places`."""
    return places.merge(table.rename(columns={"method": "name"}), on="name").drop(columns="name")
