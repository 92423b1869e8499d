"""The rules of claims on the numbers that the paper prints, counted here by hand from its tables."""

import pytest

from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED
from metabo.papers.hyperbo import printed
from metabo.papers.hyperbo.checks import own
from tests.papers.engine.claims.made import CHECKS, numbers

METHODS = ["ablr", "stboh", "mimo", "fsbo", "h_nll", "h_ekl"]
NOTHING = numbers()
DATA_SETS = 9
"""Of Tables 5 and 6: WMT, Uniref50, LM1B, SVHN, ImageNet, MNIST, Fashion-MNIST, CIFAR-100, CIFAR-10."""


def lowest(name, metric):
    """Return the methods with the lowest mean of each task."""
    rows = printed.table(name)
    wide = rows[rows["metric"] == metric].pivot(index="task", columns="method", values="mean")
    return {task: {m for m in wide if values[m] == values.min()} for task, values in wide.iterrows()}


def test_table_5_has_h_ekl_lowest_on_12_tasks_of_9_data_sets_which_decides_nothing():
    best = lowest("tab05", "error_percent")
    count = sum("h_ekl" in methods for methods in best.values())
    found = own.own_best_in_most(NOTHING, "h_ekl", METHODS)
    assert (found.verdict, found.count, found.of, found.clusters) == (UNDECIDED, count, 23, DATA_SETS)
    assert count == 12
    worse = own.own_best_in_most(NOTHING, "mimo", METHODS)
    assert worse.count == sum("mimo" in methods for methods in best.values()) and worse.value < 0.5


@pytest.mark.parametrize(
    ("metric", "column", "method", "other"),
    [("test_nll", "test_nll_hundreds", "h_ekl", "h_nll"), ("ekl", "ekl", "h_nll", "h_ekl")],
)
def test_table_6_is_counted_on_all_tasks_and_says_where_each_is_lowest(metric, column, method, other):
    rows = printed.table("tab06")
    wide = rows[rows["metric"] == column].pivot(index="task", columns="method", values="mean")
    best = lowest("tab06", column).values()
    found = own.own_lower_more_often(NOTHING, metric, method, other)
    assert found.count == (wide[method] < wide[other]).sum() and found.of == len(wide)
    for one, label in (("h_nll", "H-NLL"), ("h_ekl", "H-EKL")):
        assert f"{label} {sum(one in methods for methods in best)}" in found.said
    assert found.verdict == UNDECIDED and "could not decide even if all agreed" in found.said


def test_table_7_has_12_positive_correlations_of_16_and_one_that_is_clearly_negative():
    found = own.own_mostly_positive(NOTHING)
    assert found.verdict == UNDECIDED and "12 of 16" in found.said and "space 5636: r = -0.78" in found.said


@pytest.mark.parametrize(("positive", "verdict"), [(15, HOLDS), (0, CONTRADICTED)])
def test_another_table_7_would_decide(positive, verdict, monkeypatch):
    rows = printed.table("tab07")
    rows = rows[rows["metric"] == "pearson"].assign(mean=[0.5] * positive + [-0.95] * (16 - positive))
    monkeypatch.setattr(own, "table", lambda name: rows)
    assert own.own_mostly_positive(NOTHING).verdict == verdict


def test_every_rule_has_one_of_the_same_name():
    rules = {name for name in CHECKS if name.startswith("own_")}
    assert rules and {name.removeprefix("own_") for name in rules} <= set(CHECKS)
