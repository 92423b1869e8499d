"""Checks of cm-BO's study of times, where a tie or another kernel could be mistaken for a result."""

import pytest

from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.verdicts import CONTRADICTED, UNDECIDED, UNTESTABLE
from tests.papers.engine.claims.cases_clusters import lost, times


def test_lost_distances_that_nearly_tie_are_no_advantage():
    arguments = {"kernels": ["plain", "product"]}
    assert checks.run("cmbo", "more_stable", lost(True, w2=16), arguments).verdict == UNDECIDED
    found = checks.run("cmbo", "more_stable", lost(True), arguments)
    assert "W2 0 of 80 (largest change 0.5), Jeffreys 64 of 80" in found.said and "20 draws" in found.said
    assert checks.run("cmbo", "more_stable", lost(True), {"kernels": ["plain", "other"]}).verdict == UNTESTABLE
    assert checks.run("cmbo", "more_stable", lost(True, ratio=0.2), arguments).verdict == CONTRADICTED


def test_growth_is_that_of_a_straight_line_with_its_interval():
    limits = {"kind": "query_distance", "most": {"wasserstein": 1.25}}
    found = checks.run("cmbo", "weak_growth", times(False), limits)
    assert found.value == pytest.approx(2.0) and found.verdict == CONTRADICTED
    assert found.said == "wasserstein: time with 6 clusters over that with 2, 3 sizes: 2 [2, 2], accepted at most 1.25"
    noisy = checks.run("cmbo", "weak_growth", times(False, middle=1.5), limits)
    assert noisy.verdict == UNDECIDED and noisy.low < 1.25 < noisy.high
    missing = checks.run("cmbo", "weak_growth", times(True), {"kind": "query", "most": {"jeffreys": 2.5}})
    assert missing.verdict == UNTESTABLE
