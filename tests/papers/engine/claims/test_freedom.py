"""P values have the degrees of freedom of the interval that they are made from, in every check.

A check is judged twice, the second time with intervals of FREEDOM degrees of freedom. The statistic (the distance from
the bound in standard errors) must be the same in both.
"""

import numpy as np
import pytest
from scipy.stats import t as student

from metabo.metrics.clusters import TaskClusters
from metabo.papers.engine.claims.power import clusters_needed, power_of
from metabo.papers.engine.claims.verdicts import about_equal, order, similar
from tests.papers.engine.claims import cases_across
from tests.papers.engine.claims.made import run
from tests.papers.engine.claims.test_checks import CASES

FREEDOM = 1.5
OF_TABLES = (
    *("ahead_then_behind", "beaten_by", "beats", "best_acquisition", "falls_less", "fewer_queries", "matches"),
    "wins",
)
"""Checks of MPHD's tables of differences, which have the degrees of freedom as a column."""
OTHERWISE = {"correlation", "lowest_rank", "rank_improves"}
"""Checks whose p values are made in another way: of Fisher's z (test_checks.py), and of ranks (test_intervals.py)."""
ROUNDING = 1e-9
PARTS = 20
"""Holm's correction multiplies a p value by up to the number of parts."""


def leaves(name: str, good: bool) -> list:
    """The comparisons of a case about a new data set that have an interval and p values."""
    evidence, arguments = CASES[name](good)[:2]
    found = run(name, evidence.about("new"), arguments)
    return [leaf for leaf in found.parts or (found,) if leaf.low is not None and leaf.support is not None]


def half(leaf) -> float:
    return (leaf.high - leaf.low) / 2


def statistics(p: float, freedom: float, corrections: range) -> np.ndarray:
    """The statistics in standard errors that a p value may stand for."""
    return np.array([student.isf(p / parts, freedom) for parts in corrections])


def same_statistic(first, second, freedom: float, scale: float = 1.0) -> list[bool]:
    """Whether the second finding has the statistic of the first, times `scale`, with FREEDOM degrees of freedom: by
    each p value that leaves room for a correction."""
    found = []
    for one, other in ((first.support, second.support), (first.against, second.against)):
        if 1e-200 < one < 0.4:
            before, after = (statistics(p, f, range(1, PARTS)) for p, f in ((one, freedom), (other, FREEDOM)))
            found.append(bool(np.isclose(before * scale, after, rtol=1e-5).any()))
    return found


def judged_twice(name: str, change) -> list[tuple]:
    """Pairs of comparisons, before and after `change`."""
    before = [leaf for good in (True, False) for leaf in leaves(name, good)]
    change()
    after = [leaf for good in (True, False) for leaf in leaves(name, good)]
    assert len(before) == len(after)
    return list(zip(before, after, strict=True))


def test_p_values_of_runs_have_the_degrees_of_freedom_of_their_intervals(monkeypatch):
    compared = set()
    for name in sorted(set(CASES) - set(OF_TABLES) - OTHERWISE):
        with monkeypatch.context() as patched:
            pairs = judged_twice(
                name, lambda p=patched: p.setattr(TaskClusters, "freedom", property(lambda _: FREEDOM))
            )
        for first, second in pairs:
            # else of seeds or draws, a place, or an interval of rounding alone
            if half(first) > ROUNDING and half(second) > 1.001 * half(first):
                found = same_statistic(first, second, first.clusters - 1)
                assert all(found), (name, first.said)
                compared |= {name} if found else set()
    assert len(compared) >= 25, compared


@pytest.mark.parametrize("name", OF_TABLES)
def test_p_values_of_mphds_tables_have_the_degrees_of_freedom_that_these_name(name, monkeypatch):
    suited = cases_across.suited

    def fewer():
        monkeypatch.setattr(cases_across, "suited", lambda row: {**suited(row), "freedom": FREEDOM})

    compared = 0
    for first, second in judged_twice(name, fewer):
        if not half(first) > 0:
            continue
        assert half(second) == half(first)  # the table's own
        scale = student.ppf(0.975, FREEDOM) / student.ppf(0.975, first.clusters - 1)
        found = same_statistic(first, second, first.clusters - 1, scale)
        assert all(found), first.said
        compared += len(found)
    assert compared


def test_power_and_margins_have_them_too():
    interval = (-1.0, -3.0, 1.0)
    error = 2.0 / student.ppf(0.975, FREEDOM)
    found = order("a", interval, effect=1.5, clusters=7, freedom=FREEDOM)
    assert found.support == pytest.approx(student.sf(1.0 / error, FREEDOM))
    draws = 1.5 / error + np.random.default_rng(0).normal(size=200_000)
    spread = np.sqrt(np.random.default_rng(1).chisquare(FREEDOM, 200_000) / FREEDOM)
    assert found.power == pytest.approx(np.mean(draws / spread > student.ppf(0.975, FREEDOM)), abs=0.005)
    assert found.power == power_of(2.0, 1.5, 7, freedom=FREEDOM) != power_of(2.0, 1.5, 7)
    assert found.needed == clusters_needed(2.0, 1.5, 7, freedom=FREEDOM)
    alike = about_equal("a", interval, 2.0, clusters=7, freedom=FREEDOM)
    assert alike.support == pytest.approx(student.sf(1.0 / error, FREEDOM))
    assert similar("a", interval, 2.0, clusters=7, freedom=FREEDOM).support == pytest.approx(
        student.sf(3.0 / error, FREEDOM)
    )
