"""Intervals of what is no mean: leave one unit out."""

import numpy as np
import pytest
from scipy.stats import t as student

from metabo import metrics
from metabo.papers.engine.claims.comparing import compared, data_set_of_task, difference, jackknife, jackknifed
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import order
from tests.papers.engine.claims.made import bo, runs


def test_the_jackknife_of_a_mean_is_students_interval():
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    value, low, high = jackknife(lambda kept: values[kept].mean(), range(5))
    half = student.ppf(0.975, 4) * values.std(ddof=1) / np.sqrt(5)
    assert (value, low, high) == pytest.approx((4.0, 4.0 - half, 4.0 + half))
    wider = jackknife(lambda kept: values[kept].mean(), range(5), overlap=3.0)
    assert wider[2] - wider[1] == pytest.approx(4 * half)


def test_one_unit_has_no_interval():
    value, low, high = jackknife(lambda kept: float(len(kept)), [7])
    assert value == 1 and np.isnan([low, high]).all()


def test_both_estimands_leave_out_their_own_units():
    evidence = bo(h_nll=0.1)
    own = np.arange(3.0)  # differs by repetition, not by task

    def statistic(repetitions, tasks):
        return own[repetitions].mean() + len(set(tasks)) * 0

    new = jackknifed(evidence, statistic, 3, evidence.runs.tasks)
    assert new.clusters == 6 and new.estimate == pytest.approx((1.0, 1.0, 1.0)) and new.suite[0] < 0 < new.suite[1]
    suite = jackknifed(evidence.about("suite"), statistic, 3, evidence.runs.tasks)
    assert suite.clusters == 3 and (suite.low, suite.high) == new.suite and suite.new == new.new


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
