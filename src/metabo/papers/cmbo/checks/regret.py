"""Checks of cm-BO's orders of regret (cm-BO §4.2, Figure 1).

Orders are over all search spaces of the benchmark, paired by run, with splits as the folds of their intervals; a panel
is an acquisition.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from metabo.metrics import Runs, paired
from metabo.papers.cmbo.panels import absent, is_lower, most, panels, runs_of
from metabo.papers.engine.claims.comparing import (
    Moment,
    at_moment,
    barred,
    compared,
    name,
    orders,
    side_values,
    unit,
)
from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    HOLDS,
    LEVEL,
    MARGIN,
    UNDECIDED,
    UNTESTABLE,
    Finding,
    fact,
    share,
    untestable,
)
from metabo.plan.runs import acquisition_of, method_of

HALF, TIE = 0.5, 1e-12
"""The share that "mostly" is above, and the difference of regrets that rounding gives."""
HARDLY, SPAN = 0.1, 30
"""Claim B5 says that HyperBO's regret hardly falls: by less than HARDLY of itself over SPAN iterations."""
STEP = 10


def overtakes_early(evidence: Evidence, method: str, variants: Sequence[str], before: int) -> Finding:
    """ORD: in every panel, most variants have less regret than a method at every iteration from `before` - 1 on."""
    runs = evidence.runs
    times = [int(t) for t in runs.iterations if t >= before - 1]
    if not times:
        return untestable(f"the runs end at iteration {runs.last}")
    found = []
    for panel, names in panels(runs).items():
        ours = [names[variant] for variant in variants if variant in names]
        if method not in names or not ours:
            found.append(untestable(f"{panel}: {name(method)} or the variants were not run"))
            continue
        parts = [together(orders(evidence, [(own, names[method])], times), "iterations") for own in ours]
        label = f"{panel}: variants below {name(method)} from iteration {times[0]} on"
        lower = [_stays_below(runs, own, names[method], times) for own in ours]
        found.append(
            most(label, parts, [b and part.verdict != UNTESTABLE for b, part in zip(lower, parts, strict=True)])
        )
    return together(found, "panels")


def _stays_below(runs: Runs, first: str, second: str, times: Sequence[int]) -> bool:
    """Tell whether the mean regret of `first` is the lower one at all these iterations."""
    chosen = np.isin(runs.iterations, times)
    means = paired(runs.select([first, second]))[..., chosen].mean(axis=(1, 2))
    return bool((means[0] < means[1]).all())


def wins_most(evidence: Evidence, variants: Sequence[str], others: Sequence[str]) -> Finding:
    """ORD: in most of (acquisition, other method), most variants have less last regret, over all search spaces.

    Comparisons share runs, so that they are counted by how many are surely won and surely lost.
    """
    runs = evidence.runs
    found = absent([*variants, *others], runs)
    ahead = [False] * len(found)
    for panel, names in panels(runs).items():
        ours = [names[m] for m in variants if m in names]
        for other in [names[m] for m in others if m in names] if ours else []:
            parts = orders(evidence, [(own, other) for own in ours], [runs.last])
            lower = [is_lower(part) for part in parts]
            found.append(most(f"{panel}: variants below {name(other)}", parts, lower))
            ahead.append(2 * sum(lower) > len(lower))
    return most("comparisons in which most variants are lower", found, ahead, "comparisons")


def behind_most(
    evidence: Evidence, methods: Sequence[str], than: Sequence[str], at: Sequence[Moment] = ("area",)
) -> Finding:
    """ORD: in every panel, most of `than` have less regret than each of `methods`, at each of these moments."""
    runs = evidence.runs
    found = []
    for panel, names in panels(runs).items():
        others = [names[m] for m in than if m in names]
        for own in [names[m] for m in methods if m in names] if others else []:
            for moment in at:
                parts = orders(evidence, [(other, own) for other in others], [moment])
                label = f"{panel}: methods below {name(own)} {at_moment(runs, moment)[1]}"
                found.append(most(label, parts, [is_lower(part) for part in parts], "methods"))
    return together([*found, *absent([*methods, *than], runs)], "comparisons")


def small_gain(evidence: Evidence, method: str, variants: Sequence[str], start: int, limit: float) -> Finding:
    """ORD: in every panel, a method has less mean regret than most variants over the iterations up to `start`; from
    there to the last, its mean regret falls by less than the share `limit`, and by a smaller share than that of most
    variants."""
    runs = evidence.runs
    if start >= runs.last:
        return untestable(f"the runs end at iteration {runs.last}")
    found = []
    for panel, names in panels(runs).items():
        if method not in names:
            continue
        if lost := barred(evidence, names[method]):
            found.append(lost)
            continue
        others = [names[v] for v in variants if v in names]
        sides = [names[method], *others]
        before, after = (side_values(at_moment(runs, t)[0], sides) for t in (start, runs.last))
        gap = compared(evidence, after[0] - (1 - limit) * before[0], len(found))
        label = f"{panel}: last regret of {name(method)} minus {1 - limit:.0%} of that at iteration {start}:"
        effect = limit * float(before[0].mean())
        found.append(gap.order(label, False, unit(evidence), effect=effect))
        if not others:
            continue
        early = orders(evidence, [(names[method], other) for other in others], [[1, start]])
        label = f"{panel}: variants above {name(method)} over iterations 1 to {start}"
        found.append(most(label, early, [is_lower(part) for part in early]))
        parts = [
            barred(evidence, other) or _falls_less(evidence, name(method), name(other), before, after, i)
            for i, other in enumerate(others, 1)
        ]
        ahead = [(part.value or 0.0) > 0 for part in parts]
        found.append(most(f"{panel}: variants that fall by more than {name(method)}", parts, ahead))
    return together([*found, *absent([method, *variants], runs)], "conditions")


def _falls_less(evidence: Evidence, own: str, other: str, before: np.ndarray, after: np.ndarray, place: int) -> Finding:
    """ORD: the share of its regret that side 0 keeps is larger than that of side `place`.

    A ratio of means varies as its linear approximation about them does (delta method).
    """
    scale = [float(before[side].mean()) for side in (0, place)]
    if min(scale) <= 0:
        return untestable(f"{own} or {other} has no regret to lose")
    kept = [float(after[side].mean()) / size for side, size in zip((0, place), scale, strict=True)]
    parts = [
        ratio + (after[side] - ratio * before[side]) / size
        for side, size, ratio in zip((0, place), scale, kept, strict=True)
    ]
    gap = compared(evidence, parts[0] - parts[1], place)
    label = f"share of its regret that {own} keeps minus that of {other}:"
    return gap.order(label, False, "share of the regret", effect=MARGIN)


def best_areas(evidence: Evidence, methods: Sequence[str], among: Sequence[str]) -> Finding:
    """ORD: over all iterations, each of `methods` has less regret than each other one of `among`, in every panel."""
    runs = evidence.runs
    pairs = [
        (names[own], names[other])
        for names in panels(runs).values()
        for own in methods
        for other in among
        if other not in methods and {own, other} <= set(names)
    ]
    return together([*orders(evidence, pairs, ["area"]), *absent(among, runs)], "comparisons")


def falls_every_decade(evidence: Evidence, methods: Sequence[str]) -> Finding:
    """ORD: in every panel, the mean regret of most of the methods keeps falling from every tenth iteration to the next.

    Best values never rise, so a fall must be larger than a negligible one: HARDLY within SPAN iterations, at an even
    rate. A method without any regret left has converged.
    """
    runs = evidence.runs
    tenths = [int(t) for t in runs.iterations if t % STEP == 0]
    if len(tenths) < 2:
        return untestable(f"the runs end at iteration {runs.last}")
    kept, found = (1 - HARDLY) ** (STEP / SPAN), []
    for panel, names in panels(runs).items():
        parts = []
        for run in [names[m] for m in methods if m in names]:
            if lost := barred(evidence, run):
                parts.append(lost)
                continue
            values = {t: side_values(at_moment(runs, t)[0], [run])[0] for t in tenths}
            steps = []
            for start, end in pairwise(tenths):
                level = float(values[start].mean())
                gap = compared(evidence, kept * values[start] - values[end], len(steps))
                label = f"{name(run)}: {kept:.1%} of the regret at iteration {start} minus that at {end}:"
                if level > 0:
                    effect = MARGIN * level
                    one = gap.order(label, False, unit(evidence), effect=effect)
                    steps.append(one)
                else:
                    steps.append(fact(f"{label} no regret is left", True, 0.0))
            parts.append(together(steps, "steps"))
        if parts:
            ahead = [part.verdict != UNTESTABLE and (part.value or 0.0) >= 0 for part in parts]
            found.append(most(f"{panel}: methods that fall in every step of {STEP}", parts, ahead, "methods"))
    return together([*found, *absent(methods, runs)], "panels")


def negative_transfer(evidence: Evidence, single: str, meta: Sequence[str]) -> Finding:
    """On at least one target, a GP that knows no other task ends lower than the methods that do, in more than half of
    the repetitions.

    Compared is its last regret with their mean, over priors and over the acquisitions that all have; a tie is none.
    Repetitions have initial points of their own. Regrets are skewed, so that the number of repetitions counts, by an
    exact test, and not the mean. Of many targets some are below by chance: an existence claim holds at the level of all
    together (Bonferroni); it is contradicted if the GP is surely not below on any of them.
    """
    ends = _ends(evidence)
    lost = [method for method in (single, *meta) if method not in ends]
    gaps = [gap for m in meta if single in ends and m in ends and (gap := _gap(ends[single], ends[m])) is not None]
    if not gaps:
        return barred(evidence, *evidence.runs.methods) or untestable(f"{name(single)} or the others were not run")
    below = np.mean(gaps, axis=0) < -TIE  # repetitions, targets
    repetitions, targets = below.shape
    found = [
        barred(evidence, *runs_of(evidence.runs, method)) or untestable(f"{name(method)} was not run")
        for method in lost
    ]
    for target, wins in zip(evidence.runs.tasks, below.sum(axis=0), strict=True):
        label = f"{target}: repetitions in which {name(single)} ends below the mean of {len(gaps)} methods"
        one = share(label, int(wins), repetitions, HALF, unit="share of repetitions")
        clear = one.support is not None and one.support * targets <= LEVEL / 2
        found.append(
            replace(
                one,
                verdict=UNDECIDED if one.verdict == HOLDS and not clear else one.verdict,
                decidable=HALF**repetitions * targets <= LEVEL / 2,
            )
        )
    mostly = int((2 * below.sum(axis=0) > repetitions).sum())
    best = any_of(found, "targets")
    return replace(best, said=f"targets on which {name(single)} mostly ends below: {mostly} of {targets}; {best.said}")


def _ends(evidence: Evidence) -> dict[str, dict[str, np.ndarray]]:
    """Return the last regrets (repetitions, targets), mean over priors, of each method by acquisition, without the runs
    that fail a gate."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for run, values in evidence.runs.values.items():
        if run not in evidence.failing:
            found.setdefault(method_of(run), {})[acquisition_of(run)] = values[..., -1].mean(axis=0)
    return found


def _gap(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> np.ndarray | None:
    shared = [acq for acq in one if acq in other and one[acq].shape == other[acq].shape]
    return np.mean([one[acq] - other[acq] for acq in shared], axis=0) if shared else None
