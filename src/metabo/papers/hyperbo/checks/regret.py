"""Checks of regret and solved tasks on trajectories (hyperbo §7.4, §7.6)."""

from collections.abc import Sequence

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
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.ranges import at_least
from metabo.papers.engine.claims.verdicts import (
    MARGIN,
    Finding,
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


def mostly_ahead(
    evidence: Evidence,
    methods: Sequence[Side],
    than: Sequence[Side],
    thresholds: Sequence[float] = (),
    at: Sequence[Moment] = ("area",),
) -> Finding:
    """ORD: in more than half of the comparisons, one of `methods` has less regret than one of `than`, or with
    `thresholds` solves a larger share of tasks.

    Comparisons share runs, so that they are counted by how many are surely won and surely lost. One that cannot be
    made, or whose method fails a gate, counts as not won.
    """
    runs = evidence.runs
    pairs = [(a, b) for a in held(methods, runs) for b in against(than, methods, runs)]
    parts = orders(evidence, pairs, at, thresholds)
    sign = 1 if thresholds else -1
    ahead = [part.value is not None and sign * part.value > 0 for part in parts]
    if lost := [*absent(methods, runs), *absent(than, runs)]:
        missing = len(methods) * len(than) * len(at) * max(1, len(thresholds)) - len(parts)
        parts, ahead = [*parts, *[lost[0]] * missing], [*ahead, *[False] * missing]
    return at_least("comparisons won", parts, ahead, len(parts) // 2 + 1, "share of comparisons")


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
                    one = gap.similar(label, limit, threshold is None, measured)
                    found.append(one)
    found += [*absent(methods, evidence.runs), *absent(by, evidence.runs)]
    return together(found, "comparisons")


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
    return gap.order(label, False, unit(evidence), effect=effect)


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
            one = gap.order(label, False, unit(evidence), effect=effect)
            found.append(one)
    lost = [untestable(f"{name(m)} was not run on both splits") for m in others if m not in there]
    return together([*found, *lost], "comparisons")
