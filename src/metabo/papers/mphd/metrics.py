"""Regret over several search spaces as MPHD reports it: spaces weigh equally, mean and deviation over seeds (§4.3).

`parts` holds the `Runs` of each space. A space's value is the mean over its test tasks; the value of a seed is the mean
over the spaces. A seed is a (pre-training seed, BO seed) pair: there is one prior in the paper, and the seeds are BO's.

Panels. "default": every method may learn from the test space's training tasks. "ntot" ("not trained on test space"):
those that need nothing from it. "homogeneous": these, and the methods that learn from the test space alone.

Intervals of differences are of two estimands, as in `metabo.papers.engine.claims.comparing`. "suite": these spaces and
tasks; what varies are the priors, or, where there is but one, the seeds of BO (the paper reports these). "new": a new
space; spaces, their tasks and the seeds are drawn, and because spaces share what methods learn from, the variance of
their mean is larger (`metabo.metrics.runs.shared_training`: each space is a fold). A prior that all spaces share, as
in the default panel, has no luck in the first one.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from metabo.errors import DataError, unknown
from metabo.gp.constraints import FLOOR
from metabo.metrics.budgets import budgets
from metabo.metrics.runs import Runs, paired
from metabo.papers.mphd.intervals import (
    freedom_of,
    half_width,
    share_data_sets,
    task_gaps,
    training_overlap,
    units_of,
    with_data_sets,
)
from metabo.plan import registry
from metabo.plan.entries import MethodEntry
from metabo.plan.runs import RunId, acquisition_of, method_of, on_splits

PANELS = {
    "default": "default",
    "ntot": "φ not trained on the test space",
    "homogeneous": "with methods trained on the test space alone",
}
"""Panels and their titles."""
RESAMPLES = 10_000


def by_setting(table: pd.DataFrame, plain: str) -> pd.DataFrame:
    """Rename the runs of methods that learn across spaces ``method@split``, but not on the split `plain`.

    The other methods are the same on both: what they learn from does not depend on it.
    """
    across = {name: registry.made_of(method_of(name)).across_spaces for name in table["method"].unique()}
    renamed = table["method"].map(across).astype(bool) & (table["split"] != plain)
    return table.assign(method=table["method"].mask(renamed, on_splits(table["method"], table["split"])))


def noise_floors(table: pd.DataFrame) -> pd.DataFrame:
    """Return method, `floor`: the share of a method's queries before which the noise variance of its GP lay at its
    lower bound (within the bound again), where a MAP fit ends if the Gamma prior of the noise has a shape below 1.

    `table`: trajectories, `noise` (standard deviations) NaN for methods without a GP, which are left out.
    """
    own = table[(table["iteration"] >= 1) & table["noise"].notna()]
    low = (own["noise"] ** 2 < 2 * FLOOR).groupby(own["method"], sort=False).mean()
    return low.rename("floor").rename_axis("method").reset_index()


def unmoved_fits(table: pd.DataFrame) -> pd.DataFrame:
    """Return method, `unmoved`: the share of a method's queries but the first before which the noise of its GP is
    exactly that before the query before, so that the fit in between was discarded, or did not move. A noise variance at
    its lower bound (within the bound again) is the same after every fit, and is not counted.

    `table`: as in `noise_floors`; methods that do not fit to the test task are left out.
    """
    fits = [name for name in table["method"].unique() if "refit_steps" in registry.method(method_of(name)).policy]
    own = table[(table["iteration"] >= 1) & table["method"].isin(fits)].sort_values("iteration", kind="stable")
    run = [column for column in ("space", "task", "prior_seed", "seed") if column in own]
    same = own.groupby(["method", *run], sort=False, observed=True)["noise"].diff() == 0.0
    later = own[own["iteration"] >= 2]
    counted = same[later.index] & (later["noise"] ** 2 >= 2 * FLOOR)
    share = counted.groupby(later["method"], sort=False, observed=True).mean()
    return share.rename("unmoved").rename_axis("method").reset_index()


def _entry(name: str) -> MethodEntry:
    """Return the registration of the method of a run."""
    return registry.method(method_of(name))


def shown_in(name: str, panel: str) -> bool:
    """Tell whether a run (``method``, perhaps ``-acquisition``, perhaps ``@split``) belongs to a panel.

    A name with a split is one on which φ has not learned from the test space. Raises ConfigError for another panel.
    """
    if panel not in PANELS:
        raise unknown("panel", panel, PANELS)
    entry, split = _entry(name), RunId.parse(name).split
    if panel == "default":
        return not split
    if registry.made_of(method_of(name)).across_spaces:
        return bool(split)
    learns = bool(entry.pretrain) and not entry.needs_truth
    return not split and (panel == "homogeneous" or not learns)


def row_of(name: str, acquisitions: Sequence[str]) -> list[str]:
    """Return the acquisitions in whose panels a run is drawn: its own, or all if it scores nothing (random search)."""
    own = acquisition_of(name)
    return list(acquisitions) if own == "uniform" else [a for a in acquisitions if a == own]


def seed_curves(parts: Mapping[str, Runs], methods: Sequence[str]) -> np.ndarray:
    """Return (methods, seeds, iterations): mean over the test tasks of each space, then over the spaces.

    Raises DataError if the spaces have different numbers of seeds or iterations.
    """
    means = {space: paired(runs.select(methods), "run").mean(axis=2) for space, runs in parts.items()}
    shapes = {space: mean.shape for space, mean in means.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{space} {shape[1:]}" for space, shape in shapes.items())
        raise DataError(f"spaces have different numbers of (seeds, iterations): {listed}; run them with one setting")
    return np.mean(list(means.values()), axis=0)


def space_curves(parts: Mapping[str, Runs], methods: Sequence[str]) -> pd.DataFrame:
    """Return method, iteration, mean, std, low, high, seeds: regret against BO iteration.

    Mean and one standard deviation (ddof 0) over seeds; low and high are mean ∓ std.
    """
    iterations = next(iter(parts.values())).iterations
    frames = []
    for method, values in zip(methods, seed_curves(parts, methods), strict=True):
        mean, std = values.mean(axis=0), values.std(axis=0)
        columns = {"mean": mean, "std": std, "low": mean - std, "high": mean + std, "seeds": len(values)}
        frames.append(pd.DataFrame({"method": method, "iteration": iterations, **columns}))
    return pd.concat(frames, ignore_index=True)


def endings(parts: Mapping[str, Runs], methods: Sequence[str]) -> pd.DataFrame:
    """Return method, last, std, area, place: mean and deviation of the last regret, the mean over all iterations (area
    below the curve), and the place by the last regret (1 = lowest)."""
    curves = seed_curves(parts, methods)
    last = curves[..., -1]
    table = {"last": last.mean(axis=1), "std": last.std(axis=1), "area": curves.mean(axis=(1, 2))}
    return pd.DataFrame({"method": list(methods), **table}).assign(place=lambda t: t["last"].rank(method="min"))


def distinct_queries(parts: Mapping[str, Runs], asked: Mapping[str, Runs], methods: Sequence[str]) -> pd.DataFrame:
    """Return method, distinct: the number of different candidates that a run queries, mean over the runs of a space,
    then over the spaces. `asked` has the candidates of the same runs in place of regrets."""
    chosen = list(methods)
    of_spaces = [
        budgets(runs.select(chosen), asked[space].select(chosen), runs.last, "run").set_index("method")["distinct"]
        for space, runs in parts.items()
    ]
    mean = pd.concat(of_spaces, axis=1).mean(axis=1)
    return pd.DataFrame({"method": chosen, "distinct": mean.loc[chosen].to_numpy()})


def resampled(parts: Mapping[str, Runs], method: str, reference: str, seed: int) -> np.ndarray:
    """Return (resamples, iterations): bootstrap means of the regret of `method` minus that of `reference`.

    Pairs of runs on the same test task with the same seed. Spaces are drawn with replacement, then test tasks within
    each (some have one only), and seeds once for all spaces, since the spaces of a method share its prior.
    """
    rng = np.random.default_rng([seed, 0])
    total = 0.0
    weights: np.ndarray | None = None
    spaces = rng.multinomial(len(parts), np.full(len(parts), 1 / len(parts)), RESAMPLES)
    for runs, times in zip(parts.values(), spaces.T, strict=True):
        both = paired(runs.select([method, reference]), "run")
        gap = both[0] - both[1]
        seeds, tasks, iterations = gap.shape
        if weights is None:
            weights = rng.multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES) / seeds
        # a space that was drawn twice has two draws of its tasks
        drawn = rng.multinomial(times * tasks, np.full(tasks, 1 / tasks)) / tasks
        of_tasks = (weights @ gap.reshape(seeds, -1)).reshape(RESAMPLES, tasks, iterations)
        total = total + np.einsum("bkt,bk->bt", of_tasks, drawn) / len(parts)
    return np.asarray(total)


def resampled_repetitions(parts: Mapping[str, Runs], method: str, reference: str, seed: int) -> tuple[np.ndarray, int]:
    """Return (resamples, iterations): bootstrap means of the regret of `method` minus that of `reference` on these
    spaces and tasks, and of how many repetitions.

    A repetition is a pre-training seed with all its BO seeds, or, where there is one alone, a BO seed.
    """
    several = any(len(runs.values[name]) > 1 for runs in parts.values() for name in (method, reference))
    pairs = [paired(runs.select([method, reference]), "prior" if several else "run") for runs in parts.values()]
    gaps = np.mean([both[0] - both[1] for both in (pair.mean(axis=2) for pair in pairs)], axis=0)
    number, rng = len(gaps), np.random.default_rng([seed, 1])
    return rng.multinomial(number, np.full(number, 1 / number), RESAMPLES) / number @ gaps, number


def differences(
    parts: Mapping[str, Runs], methods: Sequence[str], reference: str, iterations: Sequence[int], seed: int
) -> pd.DataFrame:
    """Return method, reference, iteration, difference, area, overtaken, units, suite_units, freedom, and intervals.

    Their ends: low, high, area_low, area_high, overtaken_low, overtaken_high for a new space, suite_low and so on for
    this suite.

    `difference`: regret of the method minus the reference's at an iteration. `area`: the same for the mean over all
    iterations. `overtaken`: first iteration from which on the reference's mean regret stays the lower one; one beyond
    the last if it never does. Intervals of 95 %: Student's t times the deviation of the bootstrap means (of the
    bootstrap's iterations), since percentiles are too narrow for few draws;
    NaN if there is but one. They are symmetric, as p values need them, so those of `overtaken` may reach beyond the
    iterations. Where several spaces test on the same data sets, those are units of a difference and an
    area too (`with_data_sets`). `units`, `suite_units`: independent draws that the intervals rest on (`units_of`,
    `resampled_repetitions`). `freedom`: degrees of freedom of the intervals of a difference and an area for a new
    space; all others have one fewer than units.
    """
    every = next(iter(parts.values())).iterations
    rows = []
    for method in [m for m in methods if m != reference]:
        both = seed_curves(parts, [method, reference]).mean(axis=1)
        gap, whole = both[0] - both[1], {}
        tasks = task_gaps(parts, method, reference)
        suite, repetitions = resampled_repetitions(parts, method, reference, seed)
        drawn = {
            "": (resampled(parts, method, reference, seed), units_of(parts, [method, reference])),
            "suite_": (suite, repetitions),
        }
        ends = {}
        for kind, (draws, units) in drawn.items():
            more = training_overlap(parts, [method, reference]) if not kind else 0.0
            half, area, crossed = (
                half_width(of, units, more) for of in (draws, draws.mean(axis=1, keepdims=True), _lead(draws)[:, None])
            )
            if not kind:
                shared = units > 1 and share_data_sets(parts)
                freedom = freedom_of(parts, units) if shared else units - 1
                whole["freedom"] = freedom
                if shared:
                    half, area = (
                        with_data_sets(parts, of, width, units, freedom, more)
                        for of, width in ((tasks, half), (tasks.mean(axis=1, keepdims=True), area))
                    )
            first = float(_lead(gap[None])[0])
            ends |= {f"{kind}low": gap - half, f"{kind}high": gap + half}
            whole |= {"area": gap.mean(), "overtaken": first, f"{kind}units": units}
            whole |= {f"{kind}area_low": gap.mean() - area[0], f"{kind}area_high": gap.mean() + area[0]}
            whole |= {f"{kind}overtaken_low": first - crossed[0], f"{kind}overtaken_high": first + crossed[0]}
        for place in np.flatnonzero(np.isin(every, iterations)):
            keys = {"method": method, "reference": reference, "iteration": int(every[place])}
            own = {name: values[place] for name, values in ends.items()}
            rows.append({**keys, "difference": gap[place], **own, **whole})
    return pd.DataFrame(rows)


def _lead(gap: np.ndarray) -> np.ndarray:
    """Return, for each row of (b, T), the first iteration (from 1) from which on all entries are positive, or T + 1."""
    stays = np.logical_and.accumulate(gap[:, ::-1] > 0, axis=1)
    return gap.shape[1] + 1.0 - stays.sum(axis=1)
