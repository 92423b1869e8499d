"""Intervals of what is no mean: leave one unit out."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student

from metabo.metrics.clusters import clusters
from metabo.papers.engine.claims.jackknifed import jackknife, jackknifed
from tests.papers.engine.claims.made import bo


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


def test_folds_unlike_in_size_have_fewer_degrees_of_freedom():
    runs = bo(h_nll=0.1).runs
    folds = ("a", "a", "a", "a", "b", "c")
    runs = dataclasses.replace(runs, folds=folds, overlap=0.0)
    values = dict(zip(runs.tasks, np.random.default_rng(0).normal(size=6), strict=True))

    def statistic(_, tasks):
        return float(np.mean([values[task] for task in tasks]))

    new = jackknifed(SimpleNamespace(runs=runs, estimand="new"), statistic, 3, runs.tasks)
    all_of = np.array([values[task] for task in runs.tasks])
    without = np.array([all_of[np.array(folds) != fold].mean() for fold in "abc"])
    error = np.sqrt(2 / 3 * np.sum((without - without.mean()) ** 2))
    freedom = clusters(6, folds).freedom
    assert new.clusters == 3 and new.freedom == pytest.approx(freedom) and freedom < 1.5
    assert new.new[1] == pytest.approx(all_of.mean() + student.ppf(0.975, freedom) * error)
