"""Checks of places and ranks among methods on trajectories (hyperbo §7.3, §7.4, §7.6)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from metabo.metrics import Runs, paired
from metabo.metrics.aggregate import DECIMALS
from metabo.metrics.clusters import clusters
from metabo.papers.engine.claims.comparing import (
    OTHERS,
    Moment,
    absent,
    against,
    at_moment,
    difference,
    name,
    orders,
)
from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import RankGap, of_ranks
from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    LEVEL,
    UNDECIDED,
    Finding,
    contrary,
    interval,
    order,
    untestable,
)


class _Place(NamedTuple):
    """A place (1 = lowest) with the ends of its interval; the p values that each of the others is ahead, and behind."""

    own: int
    low: int
    high: int
    ahead: Sequence[float]
    behind: Sequence[float]


def _places(
    evidence: Evidence, method: str, runs: Runs, others: Sequence[str], tests: int = 0, number: int = 0
) -> _Place:
    """Return a method's place by mean regret among itself and `others`.

    A place is better than the next if the interval of the difference says so, all intervals at 95 % together
    (Bonferroni over `tests`, by default the others). `runs` hold one iteration, the `number`-th.
    """
    level, first = 1 - LEVEL / max(tests or len(others), 1), number * len(others)
    gaps = [difference(evidence, runs, method, other, first + place, level) for place, other in enumerate(others)]
    behind, ahead = (
        [contrary(*gap.estimate, below, gap.clusters, level, gap.freedom) for gap in gaps] for below in (False, True)
    )
    return _place_of([gap.estimate for gap in gaps], ahead, behind)


def _place_of(
    gaps: Sequence[tuple[float, float, float]], ahead: Sequence[float | None], behind: Sequence[float | None]
) -> _Place:
    """Return a place from the differences (value, low, high) to all others; a missing p value counts as 1."""
    before, surely = (sum(gap[end] > 0 for gap in gaps) for end in (0, 1))
    high = 1 + len(gaps) - sum(gap[2] < 0 for gap in gaps)
    return _Place(1 + before, 1 + surely, high, *([1.0 if p is None else p for p in ps] for ps in (ahead, behind)))


def place(evidence: Evidence, method: str, at: Moment, first: int | None = None, last: int | None = None) -> Finding:
    """By mean regret (1 = lowest) a method has a place not before `first` and not after `last`.

    The interval of a place counts the methods that are ahead, and not behind, by intervals at 95 % together.
    """
    if method not in evidence.runs.methods:
        return untestable(f"{name(method)} was not run")
    here, when = at_moment(evidence.runs, at)
    others = [m for m in here.methods if m != method]
    found = _places(evidence, method, here, others)
    said = f"{name(method)} has place {interval(*found[:3])} of {len(others) + 1} by mean regret {when}"
    return _within(said, found, first or 1, last or len(others) + 1)


def _within(said: str, place: _Place, first: int, last: int) -> Finding:
    """Return the finding of a place that should lie in [first, last].

    Its p values are those of the places' interval: that at least r of n methods are ahead (behind) has n times the r-th
    smallest of theirs (Bonferroni; Benjamini and Heller 2008 show that n - r + 1 times it suffices).
    """
    own, low, high, ahead, behind = place
    others = len(ahead)
    inside, outside = first <= low and high <= last, high < first or low > last
    verdict = HOLDS if inside else CONTRADICTED if outside else UNDECIDED
    return Finding(
        verdict, said, own, low, high, "place",
        against=min(_several(behind, others - first + 2), _several(ahead, last)),
        support=max(_several(ahead, first - 1), _several(behind, others - last + 1)),
    )  # fmt: skip


def _several(ps: Sequence[float], least: int) -> float:
    """Return the p value of the hypothesis that fewer than `least` of the tested statements are true."""
    return 0.0 if least < 1 else 1.0 if least > len(ps) else min(1.0, len(ps) * sorted(ps)[least - 1])


def below_most(evidence: Evidence, method: str, than: str | Sequence[str] = OTHERS, at: Moment = 100) -> Finding:
    """More than half of the others have a lower mean regret than `method`: its place has as many before it."""
    runs = evidence.runs
    others = [run for run in against(than, [method], runs) if isinstance(run, str) and run != method]
    if method not in runs.methods or not others:
        return untestable(f"{name(method)} or the others were not run")
    here, when = at_moment(runs, at)
    found = _places(evidence, method, here, others)
    said = f"{found.own - 1} of {len(others)} have less regret than {name(method)} {when}"
    said += f", {found.low - 1} to {found.high - 1} by intervals"
    found = _within(said, found, len(others) // 2 + 2, len(others) + 1)
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
    found = []
    for number, moment in enumerate(times):
        here, when = at_moment(runs, moment)
        there = _places(evidence, method, here, others, len(others) * len(times), number)
        said = f"{name(method)} has place {interval(*there[:3])} of {len(others) + 1} {when}"
        found.append(_within(said, there, 1, best))
    return any_of(found, "iterations")


class _Ranks(NamedTuple):
    """Ranks of the mean regret, mean over iterations, of `methods`.

    `suite` (methods, Q): over all tasks, of each repetition. `new`: (methods, G) over the tasks of each unit, mean over
    repetitions; for each kind of units (`metabo.metrics.clusters`), which are folds and data sets where these cross.
    """

    methods: Sequence[str]
    suite: np.ndarray
    new: Sequence[np.ndarray]

    def gaps(self, method: str, other: str) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return a method's ranks minus another's, in pairs: per repetition, and per unit of each kind."""
        own, its = self.methods.index(method), self.methods.index(other)
        return self.suite[own] - self.suite[its], [ranks[own] - ranks[its] for ranks in self.new]


def _ranks(runs: Runs, first: int, last: int) -> _Ranks:
    """Return the ranks over the iterations [first, last], ties averaged (hyperbo §7.3).

    Regrets that differ by rounding alone tie (`metabo.metrics.aggregate.DECIMALS`).
    """
    values = paired(runs)[..., (runs.iterations >= first) & (runs.iterations <= last)]

    def ranked(tasks: np.ndarray) -> np.ndarray:
        means = np.round(values[:, :, tasks].mean(axis=2), DECIMALS)
        return rankdata(means, axis=0, method="average").mean(axis=-1)

    def by(labels: np.ndarray) -> np.ndarray:
        return np.stack([ranked(labels == unit).mean(axis=1) for unit in range(int(labels.max()) + 1)], axis=1)

    of = clusters(len(runs.tasks), **runs.clusters)
    new = [by(labels) for labels in (of.unit, of.data_set) if labels is not None]
    return _Ranks(runs.methods, ranked(np.ones(len(runs.tasks), dtype=bool)), new)


def _rank_order(evidence: Evidence, label: str, gaps: tuple[np.ndarray, Sequence[np.ndarray]], methods: int) -> Finding:
    """Return the finding that differences of ranks are below 0; `gaps`: of repetitions and of units, of `methods`.

    Both estimands' intervals are those of `metabo.papers.engine.claims.intervals.of_ranks`; where folds and data sets
    cross, the one that spans what each alone would give, so that both must decide. Power is for one rank.
    """
    runs, most = evidence.runs, methods - 1
    suite = of_ranks(gaps[0], most)
    kinds = [of_ranks(own, most, overlap=0.0 if place else runs.overlap) for place, own in enumerate(gaps[1])]
    fewest = min(range(len(kinds)), key=lambda place: kinds[place].draws)
    new = kinds[fewest]._replace(
        value=kinds[0].value, low=min(k.low for k in kinds), high=max(k.high for k in kinds),
        below=max(k.below for k in kinds), above=max(k.above for k in kinds),
        decidable=all(k.decidable for k in kinds),
    )  # fmt: skip
    fixed = runs.drawn == "fixed"
    gap, units = (suite, gaps[0]) if fixed or evidence.estimand == "suite" else (new, gaps[1][fewest])
    effect = 1.0 if gap.decidable else None
    found = order(label, gap[:3], unit="ranks", effect=effect, clusters=len(units))
    said = found.said if gap.decidable else f"{found.said}; {_too_few(gap, len(units))}"
    beyond = (np.nan, np.nan) if fixed else (new.low, new.high)
    return replace(
        found, said=said, against=gap.above, support=gap.below, suite=(suite.low, suite.high), new=beyond,
        decidable=gap.decidable,
    )  # fmt: skip


def _too_few(gap: RankGap, units: int) -> str:
    worth = "" if gap.draws == units else f", worth {gap.draws:.3g} independent ones,"
    return f"{units} draws{worth} could not decide even if all agreed"


def lowest_rank(evidence: Evidence, method: str, within: Sequence[int]) -> Finding:
    """ORD: over the iterations [from, to], a method's mean rank is below that of every other method, in pairs."""
    runs = evidence.runs
    if method not in runs.methods:
        return untestable(f"{name(method)} was not run")
    last = min(within[1], runs.last)
    if last < within[0]:
        return untestable(f"the runs end at iteration {runs.last}")
    ranks, when = _ranks(runs, within[0], last), f"over iterations {within[0]} to {last}"
    found = [
        _rank_order(
            evidence, f"rank of {name(method)} minus {name(other)} {when}:", ranks.gaps(method, other),
            len(runs.methods),
        )
        for other in runs.methods
        if other != method
    ]  # fmt: skip
    return together(found, "comparisons")


def rank_improves(evidence: Evidence, method: str, early: Sequence[int], late: int) -> Finding:
    """ORD: the rank at iteration `late` is below the mean rank over the iterations [from, to] of `early`."""
    runs = evidence.runs
    if method not in runs.methods:
        return untestable(f"{name(method)} was not run")
    end, place = min(late, runs.last), runs.methods.index(method)
    start, then = _ranks(runs, early[0], early[1]), _ranks(runs, end, end)
    new = [later[place] - sooner[place] for later, sooner in zip(then.new, start.new, strict=True)]
    gaps = then.suite[place] - start.suite[place], new
    label = f"rank of {name(method)} at iteration {end} minus over iterations {early[0]} to {early[1]}:"
    return _rank_order(evidence, label, gaps, len(runs.methods))


def rank_within(evidence: Evidence, method: str, at: int, last: int, spaces: Sequence[str] = ()) -> Finding:
    """In every panel of the figure, the mean rank of a method has a place not after `last`.

    `spaces`: the panels that count, as far as the benchmark has them; all by default. A claim about named spaces is
    about these tasks: repetitions are the units, in pairs. A place lies between 1 + the methods whose rank is lower,
    and that of those whose rank is not higher, by intervals at 95 % for all pairs of a panel together
    (`metabo.papers.engine.claims.intervals.of_ranks`).
    """
    table, found, shown = evidence.trajectories, [], evidence.parameters.get("spaces")
    shown = shown.get(evidence.benchmark, []) if isinstance(shown, dict) else []
    panels = [str(space) for space in shown if not spaces or space in spaces]
    if shown and not panels:
        return untestable(f"benchmark {evidence.benchmark} shows no space {' or '.join(spaces)}")
    for panel in panels or ["all tasks"]:
        rows = table[table["space"] == panel] if panels else table
        runs = Evidence(evidence.benchmark, {"trajectories": lambda rows=rows: rows}, evidence.parameters).runs
        if method not in runs.methods:
            return untestable(f"{name(method)} was not run")
        moment, others = min(at, runs.last), [m for m in runs.methods if m != method]
        ranks, level = _ranks(runs, moment, moment), 1 - LEVEL / max(len(others), 1)
        gaps = [of_ranks(ranks.gaps(method, other)[0], len(others), level) for other in others]
        there = _place_of([g[:3] for g in gaps], [g.above for g in gaps], [g.below for g in gaps])
        said = f"{name(method)} has place {interval(*there[:3])} of {len(others) + 1} by mean rank in {panel}"
        decidable = all(gap.decidable for gap in gaps)
        if not decidable:
            said += f"; {_too_few(gaps[0], ranks.suite.shape[1])}"
        found.append(replace(_within(said, there, 1, last), decidable=decidable))
    return together(found, "panels")
