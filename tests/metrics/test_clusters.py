"""Clusters, one-way and two-way, against an independent reference, and where they are the same."""

import numpy as np
import pytest
from scipy.linalg import inv, sqrtm
from scipy.stats import t as student

from metabo import metrics
from metabo.errors import DataError
from metabo.metrics.clusters import WITHIN, clusters, variance_of_mean


def cr2(labels: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """The variance of the mean of `values` and its degrees of freedom as Bell and McCaffrey (2002) write them for least
    squares: with the hat matrix, the inverse symmetric root of each cluster's block, and the working covariance."""
    k = len(values)
    design = np.ones((k, 1))
    bread = np.linalg.inv(design.T @ design)
    residual_maker = np.eye(k) - design @ bread @ design.T
    same = labels[:, None] == labels
    working = (1 - WITHIN) * np.eye(k) + WITHIN * same
    variance, columns = 0.0, []
    for label in np.unique(labels):
        inside = labels == label
        block = residual_maker[np.ix_(inside, inside)]
        adjusted = np.real(inv(sqrtm(block))) @ design[inside] @ bread
        columns.append(residual_maker[inside].T @ adjusted)
        variance += float(((residual_maker @ values)[inside] @ adjusted).item() ** 2)
    spread = np.hstack(columns).T @ working @ np.hstack(columns)
    return variance, float(np.trace(spread) ** 2 / np.trace(spread @ spread))


def reference(d: np.ndarray, folds, data_sets, overlap=0.0, level=0.95) -> float:
    """Half the width of the interval: variances over folds and over data sets less that over cells (Cameron, Gelbach
    and Miller 2011)."""
    folds, data_sets = np.asarray(folds), np.asarray(data_sets)
    cells = np.array([f"{fold}-{name}" for fold, name in zip(folds, data_sets, strict=True)])
    (first, one), (second, other), (both, _) = (cr2(labels, d.mean(axis=0)) for labels in (folds, data_sets, cells))
    first *= 1 + overlap
    variance = max(first + second - both, first, second)
    return float(student.ppf(0.5 + level / 2, min(one, other)) * np.sqrt(variance))


LAYOUTS = {
    "full": (np.repeat(range(6), 6), np.tile(list("abcdef"), 6)),
    "cells left out": (np.array([0, 0, 1, 1, 1, 2, 2, 2]), np.array(list("abababca"))),
    "a data set twice in a fold": (np.array([0, 0, 0, 1, 1, 2]), np.array(list("aabacc"))),
    "two folds, many data sets": (np.repeat([7, 3], 5), np.array(list("abcdeabcfg"))),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("overlap", "level"), [(0.0, 0.95), (1.5, 0.99)])
def test_crossed_clusters_agree_with_a_sum_over_pairs(layout, overlap, level):
    folds, names = LAYOUTS[layout]
    rng = np.random.default_rng(1)
    fold, name = (np.unique(labels, return_inverse=True)[1] for labels in (folds, names))
    for sd in ((1.0, 1.0, 1.0), (0.0, 2.0, 0.1), (2.0, 0.0, 0.1), (0.0, 0.0, 1.0)):
        d = (
            sd[0] * rng.normal(size=9)[fold]
            + sd[1] * rng.normal(size=9)[name]
            + sd[2] * rng.normal(size=(4, len(fold)))
        )
        half = reference(d, folds, names, overlap, level)
        found = metrics.paired_difference(
            d, 0 * d, rng, folds=folds, data_sets=names, overlap=overlap, level=level, resamples=10
        )
        assert found.estimate == pytest.approx(d.mean())
        assert (found.high - found.estimate, found.estimate - found.low) == pytest.approx((half, half))
        assert metrics.independent_units(d.shape, "nested", folds, names) == min(len(set(folds)), len(set(names)))


SUITE = (2, 6, 2, 4, 6, 2, 2)
"""Test tasks of the folds of pd1_mini."""


@pytest.mark.parametrize("sizes", [SUITE, (7, 7, 7, 7, 6), (1, 1, 1), (4, 4), (1, 2, 40), (2,) * 20])
@pytest.mark.parametrize(("overlap", "level"), [(0.0, 0.95), (1.2, 0.99)])
def test_folds_agree_with_least_squares(sizes, overlap, level):
    rng, fold = np.random.default_rng(2), np.repeat(np.arange(len(sizes)), sizes)
    d = rng.normal(size=(3, len(fold)))
    variance, freedom = cr2(fold, d.mean(axis=0))
    found = metrics.paired_difference(d, 0 * d, rng, folds=fold, overlap=overlap, level=level)
    half = student.ppf(0.5 + level / 2, freedom) * np.sqrt((1 + overlap) * variance)
    assert (found.low, found.estimate, found.high) == pytest.approx((d.mean() - half, d.mean(), d.mean() + half))
    assert clusters(len(fold), fold).freedom == pytest.approx(freedom)


def test_folds_of_one_size_have_students_interval_of_their_means():
    d, fold = np.random.default_rng(3).normal(size=(2, 12)), np.repeat(np.arange(4), 3)
    means = d.mean(axis=0).reshape(4, 3).mean(axis=1)
    found = metrics.paired_difference(d, 0 * d, np.random.default_rng(0), folds=fold)
    assert found[1:] == pytest.approx(student.interval(0.95, 3, means.mean(), means.std(ddof=1) / 2))
    assert clusters(12, fold).freedom == pytest.approx(3)


def test_degrees_of_freedom_of_pd1_mini():
    """As a number: WITHIN is a choice, which the error rates in test_characteristics.py ask for."""
    assert clusters(24, np.repeat(range(7), SUITE)).freedom == pytest.approx(4.064, abs=0.001)


def test_folds_unlike_in_size_have_fewer_degrees_of_freedom():
    """As many as units less one at most, and the fewer, the more of the tasks one fold has."""
    freedom = [clusters(sum(sizes), np.repeat(range(3), sizes)).freedom for sizes in ((4, 4, 4), (2, 4, 6), (1, 1, 10))]
    assert freedom[0] == pytest.approx(2) and freedom[0] > freedom[1] > freedom[2] > 1


def test_the_weight_of_each_task_is_that_of_so_many_tasks():
    """Weights of clusters decide: a task of weight 2/5 in a cluster of its own counts as two tasks of 1/5 do."""
    values, labels = np.array([1.0, 3.0, -2.0, 0.5]), np.array([0, 1, 1, 2])
    weights = np.array([0.4, 0.2, 0.2, 0.2])
    twice, of = np.array([1.0, 1.0, 3.0, -2.0, 0.5]), np.array([0, 0, 1, 1, 2])
    assert variance_of_mean(values, labels, weights) == pytest.approx(cr2(of, twice)[0])
    assert variance_of_mean(np.stack([values, 2 * values]), labels, weights) == pytest.approx(
        cr2(of, twice)[0] * np.array([1, 4])
    )


@pytest.mark.parametrize("folds", [(0, 0, 1, 1, 2, 2, 2), (3, 3, 3, 3, 3, 3, 3), None])
def test_data_sets_of_one_fold_each_change_no_bit(folds):
    """Also where two tasks of a fold are about one data set, and for one fold."""
    d = np.random.default_rng(2).normal(size=(3, 7))
    names = list("aabbcde") if folds else list("abcdefg")
    plain = metrics.paired_difference(d, 0 * d, np.random.default_rng(0), folds=folds, overlap=0.5)
    assert metrics.paired_difference(d, 0 * d, np.random.default_rng(0), folds=folds, overlap=0.5, data_sets=names) == (
        plain
    )
    units = metrics.independent_units(d.shape, "nested", folds)
    assert metrics.independent_units(d.shape, "nested", folds, names) == units


def test_folds_of_one_data_set_each_are_drawn_together():
    """One task is left out at a time: two tasks about one data set are no two draws."""
    d = np.random.default_rng(3).normal(size=(3, 7))
    names = list("aabbbcd")
    found = metrics.paired_difference(d, 0 * d, np.random.default_rng(0), data_sets=names)
    assert found == metrics.paired_difference(d, 0 * d, np.random.default_rng(0), folds=[0, 0, 1, 1, 1, 2, 3])
    assert metrics.independent_units(d.shape, "nested", None, names) == 4
    one = metrics.paired_difference(d, 0 * d, np.random.default_rng(0), data_sets=["a"] * 7)
    assert np.isnan(one.low) and np.isnan(one.high)  # one data set says nothing of another


def test_other_treatments_know_no_data_sets():
    d, (folds, names) = np.random.default_rng(4).normal(size=(5, 36)), LAYOUTS["full"]
    for tasks in ("fixed", "crossed"):
        plain = metrics.paired_difference(d, 0 * d, np.random.default_rng(0), tasks, 100, folds=folds)
        assert plain == metrics.paired_difference(
            d, 0 * d, np.random.default_rng(0), tasks, 100, folds=folds, data_sets=names
        )


def test_one_label_per_task():
    with pytest.raises(DataError, match="3 data set numbers for 4 tasks"):
        clusters(4, None, ["a", "b", "c"])
