"""Differences and shares of tasks, where folds and data sets are units."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from metabo import metrics
from metabo.metrics import Runs
from metabo.papers.engine.claims.comparing import (
    compared,
    data_set_of_task,
    difference,
    independent_folds,
    share_of_tasks,
)
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.jackknifed import jackknifed
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, order
from tests.papers.engine.claims.made import runs


def spaces_on_the_same_data_sets(benchmark="hpob_mini") -> Evidence:
    """Four spaces that test on three data sets each, the same ones; H-NLL and Random differ by space and data set."""
    table = runs(last=1, tasks=12, priors=2, h_nll=1.0, rand=2.0)
    number = table["task"].str.removeprefix("t").astype(int)
    space, name = (number // 3).map("s{}".format), (number % 3).map("d{}".format)
    own = (table["method"] == "h_nll") * (0.3 * (number % 3) ** 2 + 0.1 * (number // 3) + 0.01 * number)
    table = table.assign(space=space, fold=space, task=space + "/" + name, benchmark=benchmark)
    table["simple_regret"] += own
    return Evidence(benchmark, {"trajectories": lambda: table})


def test_spaces_that_test_on_the_same_data_sets_are_crossed_units():
    evidence = spaces_on_the_same_data_sets()
    assert set(data_set_of_task(evidence).values()) == {"d0", "d1", "d2"}
    made = evidence.runs
    gap = difference(evidence, made, "h_nll", "rand", 0)
    d = np.subtract(*metrics.paired(made.select(["h_nll", "rand"]))[..., 0])
    wanted = metrics.paired_difference(
        d, 0 * d, np.random.default_rng(0), folds=made.folds, data_sets=list(data_set_of_task(evidence).values())
    )
    assert gap.new == (wanted.low, wanted.high) and gap.clusters == 3
    told = gap.told(order("H-NLL minus Rand:", (0.1, -1.0, 1.2), True, effect=0.1, clusters=3))
    assert "(units: the fewer of 4 folds and 3 data sets, of which both must grow)" in told.said
    suite = compared(evidence.about("suite"), d, 0)
    assert suite.clusters == 2 and suite.counted == ""
    # the same runs of a benchmark whose tasks all have a data set of their own
    apart = spaces_on_the_same_data_sets("control")
    alone = difference(apart, apart.runs, "h_nll", "rand", 0)
    assert alone.clusters == 4 and alone.counted == "" and alone.new[1] - alone.new[0] < gap.new[1] - gap.new[0]


def test_a_share_of_tasks_on_few_data_sets_is_worth_no_more_draws_than_those():
    """Four spaces on the same three data sets: a share of their twelve tasks is worth three draws."""
    crossed, apart = spaces_on_the_same_data_sets(), spaces_on_the_same_data_sets("control")
    assert independent_folds(crossed, crossed.runs.tasks) == 3.0 and independent_folds(apart, apart.runs.tasks) == 4.0
    holds = pd.Series(True, index=list(crossed.runs.tasks))
    found = share_of_tasks(crossed, "won", holds, 0.5)
    assert found.clusters == 3 and found.low == pytest.approx(binomtest(3, 3).proportion_ci(0.95).low)


def test_the_jackknife_of_a_mean_over_crossed_units_is_its_interval():
    evidence = spaces_on_the_same_data_sets()
    made = evidence.runs
    d = np.subtract(*metrics.paired(made.select(["h_nll", "rand"]))[..., 0])
    place = {task: number for number, task in enumerate(made.tasks)}

    def mean(repetitions, tasks):
        return float(d[repetitions][:, [place[task] for task in tasks]].mean())

    found, wanted = jackknifed(evidence, mean, 2, made.tasks), compared(evidence, d, 0)
    assert found.clusters == wanted.clusters == 3
    assert found.new == pytest.approx(wanted.new, rel=0.02)  # cells are deleted one at a time: the same to first order


def shared(*counts, sizes=None, overlap=0.0, bound=0.5):
    """Return the finding of a share: so many of the tasks of each fold, of `sizes` (six each)."""
    sizes = sizes or [6] * len(counts)
    tasks = [f"{fold}_{task}" for fold, size in enumerate(sizes) for task in range(size)]
    folds = tuple(fold for fold, size in enumerate(sizes) for _ in range(size))
    holds = pd.Series([task < count for count, size in zip(counts, sizes, strict=True) for task in range(size)], tasks)
    evidence = SimpleNamespace(runs=Runs({}, {}, tuple(tasks), np.arange(1), frozenset(), folds, overlap=overlap))
    return share_of_tasks(evidence, "a", holds, bound)


def test_a_share_of_tasks_has_an_exact_interval_of_its_folds():
    found = shared(0, 0, 0, 0, 0, 0)
    assert (found.count, found.of, found.clusters) == (0, 36, 6)
    assert (found.low, found.high) == pytest.approx((0, 1 - 0.025 ** (1 / 6))) and found.against == 0.5**6
    assert shared(6, 6, 6, 6, 6, 6).support == pytest.approx(0.5**6)


def test_folds_with_equal_shares_are_not_certain():
    """Student's t has no width there: [0.167, 0.167], p = 0."""
    found = shared(1, 1, 1, 1, 1, 1)
    assert found.low < 0.01 and found.high > 0.6 and found.verdict == UNDECIDED and found.against > 0.05


@pytest.mark.parametrize("overlap", [0.0, 1.2])
def test_more_successes_never_lower_the_interval(overlap):
    """1 of 36 gave [0, 0.099], 0 of 36 [0, 0.459]."""
    steps = [shared(*(min(6, max(0, n - 6 * fold)) for fold in range(6)), overlap=overlap) for n in range(37)]
    for ends in (
        [s.low for s in steps],
        [s.high for s in steps],
        [-s.support for s in steps],
        [s.against for s in steps],
    ):
        assert (np.diff(ends) >= 0).all() and np.ptp(ends) > 0.3
    assert min(s.high - s.low for s in steps) >= 0.459


def test_the_p_values_of_a_share_are_those_of_its_interval():
    for count in range(13):
        found = shared(*[int(fold < count) for fold in range(12)], sizes=[1] * 12, bound=0.3)
        assert found.support == pytest.approx(binomtest(count, 12, 0.3, "greater").pvalue)
        assert found.against == pytest.approx(binomtest(count, 12, 0.3, "less").pvalue)
        assert (found.support <= 0.025) == (found.verdict == HOLDS)
        assert (found.against <= 0.025) == (found.verdict == CONTRADICTED)


def test_holms_correction_counts_the_exact_p_value():
    """Of two parts one with 0 of 6 folds, p = 1/64: clear alone, not beside another one."""
    none = shared(0, 0, 0, 0, 0, 0)
    assert none.verdict == CONTRADICTED
    found = together([none, shared(3, 3, 3, 3, 3, 3)])
    assert found.verdict == UNDECIDED and found.against == pytest.approx(2 / 64)


def test_folds_that_differ_in_size_or_share_training_are_worth_fewer_draws():
    assert shared(6, 6, 6, 6, 6, 6, overlap=1.2).low == pytest.approx(0.025 ** (1 / (6 / (1 + 5 / 6))))
    uneven = shared(1, 1, 1, 9, sizes=[1, 1, 1, 9])
    assert uneven.low == pytest.approx(0.025 ** (84 / 144)) and "1.71 independent draws could not decide" in uneven.said
    assert shared(6).low is None and shared(6).verdict == UNDECIDED
