"""Checks of regret, solved tasks and ranks on trajectories (hyperbo §7.4, §7.6)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as student

from metabo.metrics import Runs, paired, paired_difference
from metabo.metrics.aggregate import DECIMALS
from metabo.papers.engine.claims.comparing import (
    OTHERS,
    Moment,
    Side,
    absent,
    against,
    at_moment,
    compared,
    difference,
    held,
    name,
    orders,
    side_values,
    solved,
    unit,
)
from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    LEVEL,
    MARGIN,
    UNDECIDED,
    Finding,
    interval,
    order,
    similar,
    untestable,
)
from metabo.plan.runs import RunId


def lower_in_pairs(evidence: Evidence, pairs: Sequence[Sequence[str]], at: Sequence[Moment] = (100,)) -> Finding:
    """ORD: in every pair, the first has less regret than the second, at every moment of `at`."""
    there = [(a, b) for a, b in pairs if len(held([a, b], evidence.runs)) == 2]
    lost = absent([run for pair in pairs for run in pair], evidence.runs)
    return together([*orders(evidence, there, at), *lost], "comparisons")


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
    return together([*orders(evidence, pairs, at, thresholds), *lost], "comparisons")


def not_beaten(
    evidence: Evidence,
    methods: Sequence[Side],
    by: str | Sequence[Side] = OTHERS,
    at: Sequence[Moment] = (100,),
    thresholds: Sequence[float] = (),
) -> Finding:
    """Each of `methods` is similar to each of `by`, or better.

    Better: less regret, or with `thresholds` a larger share of tasks solved. Similar: worse by at most MARGIN of
    Random's, with the end of the interval.
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
                    gap = difference(evidence, here, own, other, len(found))
                    label = f"{name(own)} minus {name(other)} {when}:"
                    measured = unit(evidence) if threshold is None else "share solved"
                    one = similar(label, gap.estimate, limit, threshold is None, measured, gap.clusters)
                    found.append(gap.told(one))
    found += [*absent(methods, evidence.runs), *absent(by, evidence.runs)]
    return together(found, "comparisons")


def _places(evidence: Evidence, method: str, runs: Runs, others: Sequence[str]) -> tuple[int, int, int]:
    """Return a method's place by mean regret (1 = lowest) among itself and `others`, and the ends of its interval.

    A place is better than the next if the interval of the difference says so, all intervals at 95 % together
    (Bonferroni). `runs` hold one iteration.
    """
    level = 1 - LEVEL / max(len(others), 1)
    gaps = [difference(evidence, runs, method, other, place, level) for place, other in enumerate(others)]
    return _place_of([gap.estimate for gap in gaps])


def _place_of(gaps: Sequence[tuple[float, float, float]]) -> tuple[int, int, int]:
    """Return a place and its ends from the differences (value, low, high) to all others."""
    ahead, surely = (sum(gap[end] > 0 for gap in gaps) for end in (0, 1))
    return 1 + ahead, 1 + surely, 1 + len(gaps) - sum(gap[2] < 0 for gap in gaps)


def place(evidence: Evidence, method: str, at: Moment, first: int | None = None, last: int | None = None) -> Finding:
    """By mean regret (1 = lowest) a method has a place not before `first` and not after `last`.

    The interval of a place counts the methods that are ahead, and not behind, by intervals at 95 % together.
    """
    if method not in evidence.runs.methods:
        return untestable(f"{name(method)} was not run")
    here, when = at_moment(evidence.runs, at)
    others = [m for m in here.methods if m != method]
    own, low, high = _places(evidence, method, here, others)
    said = f"{name(method)} has place {interval(own, low, high)} of {len(others) + 1} by mean regret {when}"
    return _within(said, (own, low, high), first or 1, last or len(others) + 1)


def _within(said: str, estimate: tuple[int, int, int], first: int, last: int) -> Finding:
    """Return the finding of a place that should lie in [first, last]."""
    own, low, high = estimate
    inside, outside = first <= low and high <= last, high < first or low > last
    verdict = HOLDS if inside else CONTRADICTED if outside else UNDECIDED
    return Finding(verdict, said, own, low, high, "place", against=LEVEL / 2 if outside else 1.0)


def below_most(evidence: Evidence, method: str, than: str | Sequence[str] = OTHERS, at: Moment = 100) -> Finding:
    """More than half of the others have a lower mean regret than `method`: its place has as many before it."""
    runs = evidence.runs
    others = [run for run in against(than, [method], runs) if isinstance(run, str) and run != method]
    if method not in runs.methods or not others:
        return untestable(f"{name(method)} or the others were not run")
    here, when = at_moment(runs, at)
    own, low, high = _places(evidence, method, here, others)
    said = f"{own - 1} of {len(others)} have less regret than {name(method)} {when}"
    said += f", {low - 1} to {high - 1} by intervals"
    found = _within(said, (own, low, high), len(others) // 2 + 2, len(others) + 1)
    return together([found, *absent(than, runs)], "comparisons")


def always_first(evidence: Evidence, method: str) -> Finding:
    """ORD: at every iteration a method has less regret than every other; contradicted with Holm's correction."""
    runs = evidence.runs
    if method not in runs.methods:
        return untestable(f"{name(method)} was not run")
    pairs = [(method, other) for other in runs.methods if other != method]
    found = together(orders(evidence, pairs, [int(t) for t in runs.iterations]), "comparisons")
    curves = np.stack([v.mean(axis=(0, 1, 2)) for v in runs.values.values()])
    lowest = curves[runs.methods.index(method)] <= curves.min(axis=0)
    said = f"{name(method)} has the lowest mean regret in {int(lowest.sum())} of {len(lowest)} iterations; {found.said}"
    return replace(found, said=said)


def reaches_place(evidence: Evidence, method: str, best: int, within: Sequence[int]) -> Finding:
    """At some iteration of [from, to] a method has at least this place by mean regret (1 = lowest).

    Every iteration is tested at the level of all together (Bonferroni).
    """
    runs = evidence.runs
    if method not in runs.methods:
        return untestable(f"{name(method)} was not run")
    others = [m for m in runs.methods if m != method]
    times = [int(t) for t in runs.iterations if within[0] <= t <= within[1]]
    if not times:
        return untestable(f"the runs end at iteration {runs.last}")
    level, found = 1 - LEVEL / (len(others) * len(times)), []
    for number, moment in enumerate(times):
        here, when = at_moment(runs, moment)
        gaps = [difference(evidence, here, method, m, number * len(others) + i, level) for i, m in enumerate(others)]
        own, low, high = _place_of([gap.estimate for gap in gaps])
        said = f"{name(method)} has place {interval(own, low, high)} of {len(others) + 1} {when}"
        found.append(_within(said, (own, low, high), 1, best))
    return any_of(found, "iterations")


def plateaus(evidence: Evidence, method: str, start: int, most: float = 0.1) -> Finding:
    """ORD: from iteration `start` to the last, the mean regret falls by less than the share `most`.

    Compared are the last regret and 1 - `most` of that at `start`, in the same runs.
    """
    runs = evidence.runs
    if method not in runs.methods:
        return untestable(f"{name(method)} was not run")
    before, after = (side_values(at_moment(runs, t)[0], [method])[0] for t in (start, runs.last))
    gap = compared(evidence, after - (1 - most) * before, 0, trained=method not in runs.single_task)
    fall = 1 - after.mean() / before.mean() if before.mean() > 0 else 0.0
    label = f"mean regret of {name(method)}: {before.mean():.3g} at iteration {start}, {after.mean():.3g} at the last"
    label += f" ({fall:.0%} less); the last minus {1 - most:.0%} of the first:"
    effect = most * float(before.mean())
    return gap.told(order(label, gap.estimate, False, unit(evidence), effect=effect, clusters=gap.clusters))


def _ranks(evidence: Evidence) -> np.ndarray:
    """Return (methods, repetitions, iterations): rank of the mean regret over tasks, ties averaged (hyperbo §7.3).

    Regrets that differ by rounding alone tie (`metabo.metrics.aggregate.DECIMALS`).
    """
    return rankdata(np.round(paired(evidence.runs).mean(axis=2), DECIMALS), axis=0, method="average")


def _rank_order(label: str, a: np.ndarray, b: np.ndarray, number: int) -> Finding:
    """Return the finding that rank `a` is below `b`, over repetitions (Student's t): a rank has no tasks to draw."""
    gap = paired_difference(a[:, None], b[:, None], np.random.default_rng([1, number]), "fixed")
    found = order(label, gap, unit="ranks", effect=1.0, clusters=len(a))
    return replace(found, suite=(gap.low, gap.high))


def lowest_rank(evidence: Evidence, method: str, within: Sequence[int]) -> Finding:
    """ORD: over the iterations [from, to], a method's mean rank is below that of every other method.

    Paired by repetition; power is for a difference of one rank.
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
        _rank_order(f"rank of {name(method)} minus {name(other)} {when}:", own, rank, i)
        for i, (other, rank) in enumerate(zip(runs.methods, means, strict=True))
        if other != method
    ]
    return together(found, "comparisons")


def rank_improves(evidence: Evidence, method: str, early: Sequence[int], late: int) -> Finding:
    """ORD: the rank at iteration `late` is below the mean rank over the iterations [from, to] of `early`."""
    runs = evidence.runs
    if method not in runs.methods:
        return untestable(f"{name(method)} was not run")
    ranks = _ranks(evidence)[runs.methods.index(method)]
    end = min(late, runs.last)
    start = ranks[:, (runs.iterations >= early[0]) & (runs.iterations <= early[1])].mean(axis=-1)
    label = f"rank of {name(method)} at iteration {end} minus over iterations {early[0]} to {early[1]}:"
    return _rank_order(label, ranks[:, runs.iterations == end][:, 0], start, 0)


def rank_within(evidence: Evidence, method: str, at: int, last: int) -> Finding:
    """In every panel of the figure, the mean rank of a method has a place not after `last`.

    A place lies between 1 + the methods whose rank is lower, and that of those whose rank is not higher, by normal
    intervals of the mean ranks over repetitions, at 95 % for all pairs of a panel together.
    """
    ranks = evidence.table("rank")
    ranks = ranks[ranks["iteration"] == min(at, int(ranks["iteration"].max()))]
    found = []
    for panel, rows in ranks.groupby("panel", sort=False) if "panel" in ranks else [("all tasks", ranks)]:
        wide = rows.set_index("method")
        if method not in wide.index:
            return untestable(f"{name(method)} was not run")
        others = wide.drop(index=method)
        own = wide.loc[method]
        repetitions = max(int(own.get("repetitions", 2)), 2)
        reach = student.ppf(1 - LEVEL / (2 * max(len(others), 1)), repetitions - 1)
        half = reach * np.sqrt((own["std"] ** 2 + others["std"] ** 2) / (repetitions - 1))  # std has ddof 0
        gap = own["mean"] - others["mean"]
        place = _place_of(list(zip(gap, gap - half, gap + half, strict=True)))
        said = f"{name(method)} has place {interval(*place)} of {len(wide)} by mean rank in {panel}"
        found.append(_within(said, place, 1, last))
    return together(found, "panels")


def larger_gain(evidence: Evidence, methods: Sequence[str], others: Sequence[str], fewer: str, more: str) -> Finding:
    """ORD: from the split `fewer` to `more`, the mean regret of each of `methods` falls by more than that of `others`.

    At the last iteration; `fewer` and `more` are names of splits.
    """
    runs = evidence.runs.at(evidence.runs.last)
    named = {m: [str(RunId.parse(m).on(split)) for split in (fewer, more)] for m in (*methods, *others)}
    there = [m for m, pair in named.items() if {*pair} <= set(runs.methods)]
    if not set(methods) <= set(there) or set(there) == set(methods):
        return untestable(f"the splits {fewer} and {more} were not run for these methods")
    found = []
    for own in methods:
        for other in (m for m in there if m not in methods):
            few, many, other_few, other_many = side_values(runs, [*named[own], *named[other]])
            gap = compared(evidence, (few - many) - (other_few - other_many), len(found))
            label = f"fall of regret of {name(own)} minus that of {name(other)}:"
            effect = MARGIN * abs(float(few.mean()))
            one = order(label, gap.estimate, False, unit(evidence), effect=effect, clusters=gap.clusters)
            found.append(gap.told(one))
    lost = [untestable(f"{name(m)} was not run on both splits") for m in others if m not in there]
    return together([*found, *lost], "comparisons")
