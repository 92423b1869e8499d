"""Checks of cm-BO's orders of regret, where noise could be mistaken for a result."""

import numpy as np
import pytest

from metabo.papers.cmbo.checks import regret
from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, UNTESTABLE
from tests.papers.engine.claims.cases_clusters import VARIANTS, decaying, harm, overtaking, regrets

METHODS = {"single": "stbo", "meta": ["h_nll", "ablr"]}
OVERTAKES = {"method": "hyperbo", "variants": list(VARIANTS), "before": 25}


@pytest.mark.parametrize(
    ("evidence", "verdict", "said"),
    [
        (harm(0.4), HOLDS, "2 of 2; on 2 beyond the noise of 4 repetitions"),
        (harm(0.4, repetitions=1), UNDECIDED, "2 of 2; with 1 of at least 3 repetitions no gap has an interval"),
        (harm(0.4, repetitions=2), UNDECIDED, "with 2 of at least 3 repetitions"),
        (harm(0.31, noise=0.1), UNDECIDED, "2 of 2; on 0 beyond the noise of 4 repetitions"),
        (harm(0.4, noise=0.0), UNDECIDED, "on 0 beyond the noise"),  # repetitions that agree do not show their noise
        (harm(0.2, repetitions=2), UNDECIDED, "0 of 2"),
        (harm(0.2), CONTRADICTED, "0 of 2"),
    ],
)
def test_noise_alone_is_no_negative_transfer(evidence, verdict, said):
    found = checks.run("cmbo", "negative_transfer", evidence, METHODS)
    assert found.verdict == verdict and said in found.said


def test_bonferroni_counts_methods_and_targets():
    gaps = np.random.default_rng(0).normal(size=(5, 4, 400))
    below = gaps.mean(axis=1) + regret._half_width(gaps) < 0
    assert below.sum() <= 1  # of 2,000, where 50 would be below 0 without the correction
    assert np.isnan(regret._half_width(gaps[:, :2])).all()


def test_methods_are_compared_under_acquisitions_that_both_have():
    found = checks.run("cmbo", "negative_transfer", harm(0.4), {"single": "stbo", "meta": ["rand"]})
    assert found.verdict == UNTESTABLE


def test_most_variants_must_stay_below_hyperbo_from_the_stated_iteration_on():
    good, bad = (checks.run("cmbo", "overtakes_early", overtaking(which), OVERTAKES) for which in (True, False))
    assert good.verdict == HOLDS and "5 of 5, between 5 and 5" in good.said
    assert bad.verdict == CONTRADICTED and "2 of 5, between 2 and 2 by intervals; 3 wanted" in bad.said
    short = checks.run("cmbo", "overtakes_early", regrets(10, hyperbo=0.3), OVERTAKES)
    assert short.verdict == UNTESTABLE


def test_a_fall_that_hardly_is_one_is_no_steady_convergence():
    """A tenth within 30 iterations is 3.5 % in ten."""
    for rate, verdict in ((0.0040, HOLDS), (0.0030, CONTRADICTED)):
        evidence = regrets(50, h_nll=decaying(rate))
        assert checks.run("cmbo", "falls_every_decade", evidence, {"methods": ["h_nll"]}).verdict == verdict
