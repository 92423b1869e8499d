"""What checks of BO runs share: which runs, at which iterations, and one paired difference with its interval."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metabo.artefacts.api import available
from metabo.metrics import Difference, Runs, paired, paired_difference
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import Finding, order, untestable
from metabo.plots import look

OTHERS = "others"
"""In place of a list of methods: all that the figure shows besides those on the other side."""
Side = str | Sequence[str]
"""One run, or several whose values are averaged in pairs."""
Moment = int | str | Sequence[int]
"""An iteration, [from, to] for the mean over these, or "area" for the mean over all."""
SEED = 0


def members(side: Side) -> list[str]:
    """Return the runs of one side."""
    return [side] if isinstance(side, str) else list(side)


def name(side: Side) -> str:
    """Return how one side of a comparison is called in a sentence."""
    return ", ".join(look.of(run).label for run in members(side))


def held(sides: Sequence[Side], runs: Runs) -> list[Side]:
    """Keep the sides of which all runs are there: a benchmark may lack methods or splits."""
    return [side for side in sides if set(members(side)) <= set(runs.methods)]


def absent(sides: str | Sequence[Side], runs: Runs) -> list[Finding]:
    """Return a finding, not testable, for every run of these sides that is not there; none for OTHERS."""
    wanted = [] if sides == OTHERS else dict.fromkeys(run for side in sides for run in members(side))
    return [untestable(f"{name(run)} was not run") for run in wanted if run not in runs.methods]


def against(than: str | Sequence[Side], sides: Sequence[Side], runs: Runs) -> list[Side]:
    """Return the runs on the other side: those named, or all others."""
    if than != OTHERS:
        return held(than, runs)
    named = {run for side in sides for run in members(side)}
    return [run for run in runs.methods if run not in named]


def solved(runs: Runs, threshold: float) -> Runs:
    """Return runs whose value is 1 where the regret is below `threshold`, else 0 (hyperbo §7.3)."""
    return replace(runs, values={m: (v < threshold).astype(np.float64) for m, v in runs.values.items()})


def at_moment(runs: Runs, moment: Moment) -> tuple[Runs, str]:
    """Return the runs' value at a moment, as their only iteration, and how the moment is called.

    An iteration beyond the last becomes the last.
    """
    if moment == "area":
        first, last = 1, runs.last
    elif isinstance(moment, int):
        first = last = available([moment], runs.last)[0]
    else:
        first, last = (available([int(end)], runs.last)[0] for end in moment)
    chosen = (runs.iterations >= first) & (runs.iterations <= last)
    values = {m: v[..., chosen].mean(axis=-1, keepdims=True) for m, v in runs.values.items()}
    shown = f"at iteration {last}" if first == last else f"over iterations {first} to {last}"
    return replace(runs, values=values, iterations=np.array([last])), shown


def difference(runs: Runs, first: Side, second: Side, place: int) -> Difference:
    """Return the mean of `first` minus `second` with the interval of an ORD claim.

    Paired by repetition and task; drawn are folds with their tasks and repetitions. `runs` hold one iteration; `place`
    is the number of the comparison, which keys its random numbers.
    """
    both = [members(first), members(second)]
    names = list(dict.fromkeys([*both[0], *both[1]]))
    values = paired(runs.select(names))[..., 0]
    a, b = (np.mean([values[names.index(run)] for run in side], axis=0) for side in both)
    return paired_difference(a, b, np.random.default_rng([SEED, place]), runs.drawn, folds=runs.folds or None)


def unit(evidence: Evidence) -> str:
    """Return the unit of a regret difference."""
    return evidence.regret.replace("_", " ")


def orders(
    evidence: Evidence, pairs: Sequence[tuple[Side, Side]], at: Sequence[Moment], thresholds: Sequence[float] = ()
) -> list[Finding]:
    """Return one ORD finding per pair, moment and threshold: the first has the lower regret.

    With `thresholds` it solves the larger share of tasks instead.
    """
    found = []
    for threshold in thresholds or [None]:
        runs = evidence.runs if threshold is None else solved(evidence.runs, threshold)
        for moment in at:
            here, when = at_moment(runs, moment)
            when += f", C = {threshold:g}" if threshold is not None else ""
            for first, second in pairs:
                label = f"{name(first)} minus {name(second)} {when}:"
                gap = difference(here, first, second, len(found))
                below, measured = threshold is None, "share solved" if threshold is not None else unit(evidence)
                found.append(order(label, gap, below, measured))
    return found
