"""Checks of regret, solved tasks and ranks on trajectories (hyperbo §7.4, §7.6)."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from metabo.metrics import Difference, paired, paired_difference, regret_curves
from metabo.papers.engine.claims.comparing import (
    OTHERS,
    Moment,
    Side,
    absent,
    against,
    at_moment,
    difference,
    held,
    name,
    orders,
    solved,
    unit,
)
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    FAILED,
    MARGIN,
    REPLICATED,
    WEAK,
    Finding,
    counted,
    interval,
    known,
    order,
    together,
    untestable,
)
from metabo.plan.runs import RunId


def lower_in_pairs(evidence: Evidence, pairs: Sequence[Sequence[str]], at: Sequence[Moment] = (100,)) -> Finding:
    """ORD: in every pair, the first has less regret than the second, at every moment of `at`."""
    there = [(a, b) for a, b in pairs if len(held([a, b], evidence.runs)) == 2]
    lost = absent([run for pair in pairs for run in pair], evidence.runs)
    return together([*orders(evidence, there, at), *lost], "comparisons", 1)


def more_solved(
    evidence: Evidence,
    more: Sequence[Side],
    thresholds: Sequence[float],
    than: str | Sequence[Side] = OTHERS,
    at: Sequence[Moment] = (100,),
) -> Finding:
    """ORD: each of `more` solves a larger share of tasks than each of `than`, for every threshold and moment."""
    runs = evidence.runs
    pairs = [(a, b) for a in held(more, runs) for b in against(than, more, runs)]
    lost = [*absent(more, runs), *absent(than, runs)]
    return together([*orders(evidence, pairs, at, thresholds), *lost], "comparisons", -1)


def not_beaten(
    evidence: Evidence,
    methods: Sequence[Side],
    by: str | Sequence[Side] = OTHERS,
    at: Sequence[Moment] = (100,),
    thresholds: Sequence[float] = (),
) -> Finding:
    """Each of `methods` is similar to each of `by`, or better.

    Better: less regret, or with `thresholds` a larger share of tasks solved. Similar: worse by at most MARGIN of
    Random's with the end of the interval, or (weak) with the estimate alone.
    """
    found = []
    for threshold in thresholds or [None]:
        runs = evidence.runs if threshold is None else solved(evidence.runs, threshold)
        for moment in at:
            here, when = at_moment(runs, moment)
            when += "" if threshold is None else f", C = {threshold:g}"
            limit = MARGIN * float(here.values["rand"].mean()) if "rand" in here.values else 0.0
            for own in held(methods, runs):
                for other in against(by, methods, runs):
                    gap = difference(here, own, other, len(found))
                    said = f"{name(own)} minus {name(other)} {when}: {interval(*gap)}, margin {limit:.3g}"
                    measured = unit(evidence) if threshold is None else "share solved"
                    found.append(Finding(_similar(gap, limit, threshold is None), said, *map(known, gap), measured))
    found += [*absent(methods, evidence.runs), *absent(by, evidence.runs)]
    return together(found, "comparisons", -1 if thresholds else 1)


def _similar(gap: Difference, limit: float, below: bool) -> str:
    """Return the verdict of "no worse": the interval ends within the limit, or (weak) the estimate alone is within.
    `below` says that a positive difference is worse."""
    worse, most = (gap.estimate, gap.high) if below else (-gap.estimate, -gap.low)
    return REPLICATED if most <= limit else WEAK if worse <= limit else FAILED


def _means(evidence: Evidence, moment: Moment) -> tuple[list[str], np.ndarray, str]:
    """Return the methods, their mean regret at a moment, and how the moment is called."""
    here, when = at_moment(evidence.runs, moment)
    return list(here.methods), np.array([v.mean() for v in here.values.values()]), when


def place(evidence: Evidence, method: str, at: Moment, first: int | None = None, last: int | None = None) -> Finding:
    """CNT: by mean regret (1 = lowest) a method has a place not before `first` and not after `last`."""
    methods, means, when = _means(evidence, at)
    if method not in methods:
        return untestable(f"{name(method)} was not run")
    own = int(rankdata(means, method="min")[methods.index(method)])
    holds = (first or 1) <= own <= (last or len(methods))
    said = f"{name(method)} has place {own} of {len(methods)} by mean regret {when}"
    return Finding(counted(holds), said, own, unit="place")


def below_most(evidence: Evidence, method: str, than: str | Sequence[str] = OTHERS, at: Moment = 100) -> Finding:
    """CNT: more than half of the others have a lower mean regret than `method`."""
    methods, means, when = _means(evidence, at)
    others = [run for run in against(than, [method], evidence.runs) if isinstance(run, str)]
    if method not in methods or not others:
        return untestable(f"{name(method)} or the others were not run")
    level = means[methods.index(method)]
    ahead = [run for run in others if means[methods.index(run)] < level]
    listed = ", ".join(name(run) for run in ahead) or "none"
    said = f"{len(ahead)} of {len(others)} have less regret than {name(method)} ({level:.3g}) {when}: {listed}"
    said += "".join(f"; {lost.said}" for lost in absent(than, evidence.runs))
    return Finding(counted(2 * len(ahead) > len(others)), said, len(ahead), unit="methods")


def always_first(evidence: Evidence, method: str, share: float = 1.0) -> Finding:
    """CNT: a method has the lowest mean regret in at least this share of the iterations."""
    if method not in evidence.runs.methods:
        return untestable(f"{name(method)} was not run")
    curves = np.stack([v.mean(axis=(0, 1, 2)) for v in evidence.runs.values.values()])
    own = curves[evidence.runs.methods.index(method)]
    lowest = own <= curves.min(axis=0)
    said = f"{name(method)} has the lowest mean regret in {int(lowest.sum())} of {len(own)} iterations"
    return Finding(counted(lowest.mean() >= share), said, float(lowest.mean()), unit="share of iterations")


def reaches_place(evidence: Evidence, method: str, best: int, within: Sequence[int]) -> Finding:
    """CNT: at some iteration of [from, to] a method has at least this place by mean regret (1 = lowest)."""
    runs = evidence.runs
    if method not in runs.methods:
        return untestable(f"{name(method)} was not run")
    curves = np.stack([v.mean(axis=(0, 1, 2)) for v in runs.values.values()])
    chosen = (runs.iterations >= within[0]) & (runs.iterations <= within[1])
    places = rankdata(curves[:, chosen], axis=0, method="min")[runs.methods.index(method)]
    said = f"best place of {name(method)} by mean regret in iterations {within[0]} to {within[1]}: {int(places.min())}"
    return Finding(counted(bool((places <= best).any())), said, float(places.min()), unit="place")


def plateaus(evidence: Evidence, method: str, start: int, most: float = 0.1) -> Finding:
    """CNT: from iteration `start` to the last, the mean regret falls by less than the share `most`."""
    if method not in evidence.runs.methods:
        return untestable(f"{name(method)} was not run")
    before, after = (at_moment(evidence.runs, t)[0].values[method].mean() for t in (start, evidence.runs.last))
    fall = 1 - after / before if before > 0 else 0.0
    said = f"mean regret of {name(method)}: {before:.3g} at iteration {start}, {after:.3g} at the last"
    said += f" ({fall:.0%} less, below {most:.0%} wanted)"
    return Finding(counted(fall < most), said, float(fall), unit="share of the regret")


def _ranks(evidence: Evidence) -> np.ndarray:
    """Return (methods, repetitions, iterations): rank of the mean regret over tasks, ties averaged (hyperbo §7.3)."""
    return rankdata(paired(evidence.runs).mean(axis=2), axis=0, method="average")


def _rank_difference(a: np.ndarray, b: np.ndarray, number: int) -> tuple[float, float, float]:
    """Return the mean difference of two ranks over repetitions with its interval (Student's t)."""
    return paired_difference(a[:, None], b[:, None], np.random.default_rng([1, number]), "fixed")


def lowest_rank(evidence: Evidence, method: str, within: Sequence[int]) -> Finding:
    """ORD: over the iterations [from, to], a method's mean rank is below that of every other method.

    Paired by repetition; a rank has no tasks to draw.
    """
    runs = evidence.runs
    if method not in runs.methods:
        return untestable(f"{name(method)} was not run")
    last = min(within[1], runs.last)
    chosen = (runs.iterations >= within[0]) & (runs.iterations <= last)
    if not chosen.any():
        return untestable(f"the runs end at iteration {runs.last}")
    means = _ranks(evidence)[..., chosen].mean(axis=-1)
    own = means[runs.methods.index(method)]
    when = f"over iterations {within[0]} to {last}"
    found = [
        order(f"rank of {name(method)} minus {name(other)} {when}:", _rank_difference(own, rank, i), unit="ranks")
        for i, (other, rank) in enumerate(zip(runs.methods, means, strict=True))
        if other != method
    ]
    return together(found, "comparisons", 1)


def rank_improves(evidence: Evidence, method: str, early: Sequence[int], late: int) -> Finding:
    """ORD: the rank at iteration `late` is below the mean rank over the iterations [from, to] of `early`."""
    runs = evidence.runs
    if method not in runs.methods:
        return untestable(f"{name(method)} was not run")
    ranks = _ranks(evidence)[runs.methods.index(method)]
    end = min(late, runs.last)
    start = ranks[:, (runs.iterations >= early[0]) & (runs.iterations <= early[1])].mean(axis=-1)
    label = f"rank of {name(method)} at iteration {end} minus over iterations {early[0]} to {early[1]}:"
    return order(label, _rank_difference(ranks[:, runs.iterations == end][:, 0], start, 0), unit="ranks")


def rank_within(evidence: Evidence, method: str, at: int, last: int) -> Finding:
    """CNT: in every panel of the figure, the mean rank of a method has a place not after `last`; ties share it."""
    ranks = evidence.table("rank")
    ranks = ranks[ranks["iteration"] == min(at, int(ranks["iteration"].max()))]
    found = []
    for panel, rows in ranks.groupby("panel", sort=False) if "panel" in ranks else [("all tasks", ranks)]:
        places = rows.set_index("method")["mean"].rank(method="min")
        if method not in places:
            return untestable(f"{name(method)} was not run")
        said = f"{name(method)} has place {int(places[method])} of {len(places)} by mean rank in {panel}"
        found.append(Finding(counted(places[method] <= last), said, float(places[method]), unit="place"))
    return together(found, "panels")


def larger_gain(evidence: Evidence, methods: Sequence[str], others: Sequence[str], fewer: str, more: str) -> Finding:
    """CNT: from the split `fewer` to `more`, the median regret of each of `methods` falls by more than any of `others`.

    At the last iteration; `fewer` and `more` are names of splits.
    """
    curves = regret_curves(evidence.runs.at(evidence.runs.last)).set_index("method")["median"]
    runs = {m: [str(RunId.parse(m).on(split)) for split in (fewer, more)] for m in (*methods, *others)}
    known = [m for m, pair in runs.items() if {*pair} <= set(curves.index)]
    if not set(methods) <= set(known) or set(known) == set(methods):
        return untestable(f"the splits {fewer} and {more} were not run for these methods")
    gain = {m: float(curves[runs[m][0]] - curves[runs[m][1]]) for m in known}
    least, best = min(gain[m] for m in methods), max(gain[m] for m in known if m not in methods)
    listed = ", ".join(f"{name(m)} {g:.3g}" for m, g in sorted(gain.items(), key=lambda item: -item[1]))
    lost = [m for m in others if m not in known]
    listed += f"; {', '.join(map(name, lost))} not run" if lost else ""
    return Finding(counted(least > best), f"fall of the median regret: {listed}", least - best, unit=unit(evidence))
