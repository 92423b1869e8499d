"""Two-way clusters against an independent reference, and where they are the one-way ones."""

import numpy as np
import pytest
from scipy.stats import t as student

from metabo import metrics
from metabo.errors import DataError
from metabo.metrics.clusters import clusters


def reference(d: np.ndarray, folds, data_sets, overlap=0.0, level=0.95) -> tuple[float, float]:
    """Half the width of the interval and the units, by sums over pairs of tasks: variance is the sum of the products of
    deviations of the pairs that share a cluster (Cameron, Gelbach and Miller 2011)."""
    folds, data_sets = np.asarray(folds), np.asarray(data_sets)
    deviation = d.mean(axis=0) - d.mean()
    same_fold = folds[:, None] == folds
    same_set = data_sets[:, None] == data_sets
    products = np.outer(deviation, deviation) / len(deviation) ** 2
    counts = [len(set(folds)), len(set(data_sets)), len(set(zip(folds, data_sets, strict=True)))]
    shared = [same_fold, same_set, same_fold & same_set]
    first, second, both = (n / (n - 1) * products[pairs].sum() for n, pairs in zip(counts, shared, strict=True))
    first *= 1 + overlap
    variance = max(first + second - both, first, second)
    units = min(counts[:2])
    return float(student.ppf(0.5 + level / 2, units - 1) * np.sqrt(variance)), units


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
        half, units = reference(d, folds, names, overlap, level)
        found = metrics.paired_difference(
            d, 0 * d, rng, folds=folds, data_sets=names, overlap=overlap, level=level, resamples=10
        )
        assert found.estimate == pytest.approx(d.mean())
        assert (found.high - found.estimate, found.estimate - found.low) == pytest.approx((half, half))
        assert metrics.independent_units(d.shape, "nested", folds, names) == units


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
