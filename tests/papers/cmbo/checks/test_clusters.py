"""Checks of cm-BO where noise, a tie or another kernel could be mistaken for a result."""

import numpy as np
import pytest

from metabo.papers.cmbo.checks import clusters
from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.verdicts import FAILED, REPLICATED, UNTESTABLE, WEAK
from tests.papers.engine.claims.cases_clusters import harm, lost, times

METHODS = {"single": "stbo", "meta": ["h_nll", "ablr"]}


@pytest.mark.parametrize(
    ("evidence", "verdict", "said"),
    [
        (harm(0.4), REPLICATED, "2 of 2; on 2 beyond the noise of 4 repetitions"),
        (harm(0.4, repetitions=1), WEAK, "2 of 2; with 1 of at least 3 repetitions no gap has an interval"),
        (harm(0.4, repetitions=2), WEAK, "with 2 of at least 3 repetitions"),
        (harm(0.31, noise=0.1), WEAK, "2 of 2; on 0 beyond the noise of 4 repetitions"),
        (harm(0.4, noise=0.0), WEAK, "on 0 beyond the noise"),  # repetitions that agree do not show their noise
        (harm(0.2), FAILED, "0 of 2"),
    ],
)
def test_noise_alone_is_no_negative_transfer(evidence, verdict, said):
    found = checks.run("cmbo", "negative_transfer", evidence, METHODS)
    assert found.verdict == verdict and said in found.said


def test_bonferroni_counts_methods_and_targets():
    gaps = np.random.default_rng(0).normal(size=(5, 4, 400))
    assert clusters._clear(gaps).sum() <= 1  # of 2,000, where 50 would be below 0 without the correction
    assert not clusters._clear(gaps[:, :2]).any()


def test_methods_are_compared_under_acquisitions_that_both_have():
    found = checks.run("cmbo", "negative_transfer", harm(0.4), {"single": "stbo", "meta": ["rand"]})
    assert found.verdict == UNTESTABLE


def test_a_tie_of_lost_distances_is_no_advantage():
    arguments = {"kernels": ["plain", "product"]}
    assert checks.run("cmbo", "more_stable", lost(True, w2=5), arguments).verdict == FAILED
    found = checks.run("cmbo", "more_stable", lost(True), arguments)
    assert "Jeffreys 10 of 40 (largest change 0.5), W2 0 of 40" in found.said
    assert checks.run("cmbo", "more_stable", lost(True), {"kernels": ["plain", "other"]}).verdict == UNTESTABLE


def test_growth_is_from_the_fewest_to_the_most_clusters():
    found = checks.run("cmbo", "weak_growth", times(False), {"kind": "query_distance", "most": {"wasserstein": 1.25}})
    assert found.value == pytest.approx(2.0)
    assert found.said == "wasserstein: time with 6 clusters over that with 2 2.00, at most 1.25"
    missing = checks.run("cmbo", "weak_growth", times(True), {"kind": "query", "most": {"jeffreys": 2.5}})
    assert missing.verdict == UNTESTABLE
