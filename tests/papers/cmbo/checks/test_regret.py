"""Checks of cm-BO's orders of regret, where noise could be mistaken for a result."""

import numpy as np
import pandas as pd
import pytest

from metabo.papers.cmbo.checks import regret
from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, UNTESTABLE
from tests.papers.engine.claims.cases_clusters import NORMALISED, VARIANTS, decaying, harm, overtaking, regrets

METHODS = {"single": "stbo", "meta": ["h_nll", "ablr"]}
OVERTAKES = {"method": "hyperbo", "variants": list(VARIANTS), "before": 25}


@pytest.mark.parametrize(
    ("evidence", "verdict", "said"),
    [
        (harm(0.6), HOLDS, "mostly ends below: 1 of 2"),
        (harm(0.6, high=1), UNDECIDED, "1 of 2"),  # 7 of 8 decide one target, not two
        (harm(0.6, repetitions=6), UNDECIDED, "1 of 2"),
        (harm(0.2), CONTRADICTED, "0 of 2"),
        (harm(0.2, repetitions=3), UNDECIDED, "0 of 2"),
        (harm(0.5), CONTRADICTED, "0 of 2"),  # ties with the mean, 0.3, in every repetition
    ],
)
def test_noise_alone_is_no_negative_transfer(evidence, verdict, said):
    found = checks.run("cmbo", "negative_transfer", evidence, METHODS)
    assert found.verdict == verdict and said in found.said
    assert found.decidable == (len(evidence.trajectories) != 5 * 2 * 3 and len(evidence.trajectories) != 5 * 2 * 6)


def test_skewed_regrets_hold_no_more_often_than_stated():
    """A GP that is a little worse in half of its runs and better in the others, by any amount, on five targets."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(400):
        below = rng.random((8, 5)) < 0.5
        parts = [regret.share("", int(k), 8, 0.5) for k in below.sum(axis=0)]
        wrong += any(part.support * 5 <= 0.025 for part in parts)
    assert wrong <= 0.025 * 400 + 3 * np.sqrt(0.025 * 400)


def test_targets_are_counted_by_bonferroni():
    """All eight repetitions on one target have the p value 1/256: enough for six targets, not for seven."""
    for targets, verdict in ((6, HOLDS), (7, UNDECIDED)):
        rows = []
        for method, end in (("stbo", 0.3), ("h_nll", 0.5)):
            for task, seed in ((t, s) for t in range(targets) for s in range(8)):
                row = {"space": "s", "task": f"t{task}", "fold": "f", "method": method, "prior_seed": 0, "seed": seed}
                own = 0.9 if method == "stbo" and task else end
                rows.append({**row, "iteration": 1, "normalised_regret": own, "y": 0.0, "metric": 0.0})
        evidence = Evidence("cmbo_mini", {"trajectories": lambda rows=rows: pd.DataFrame(rows)}, NORMALISED)
        found = checks.run("cmbo", "negative_transfer", evidence, {"single": "stbo", "meta": ["h_nll"]})
        assert (found.verdict, found.decidable) == (verdict, verdict == HOLDS)


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
