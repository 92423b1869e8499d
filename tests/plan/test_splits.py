"""Splits: who may query a candidate again."""

import pytest

from metabo.artefacts import api as artefacts
from metabo.plan import splits


@pytest.mark.parametrize(
    ("benchmark", "split", "expected"),
    [
        ("pd1_mini", "held_out", (False, ())),
        ("pd1_mini", "held_out_other", (True, ())),
        ("pd1_mini", "new_rows_other", (True, ())),
        ("hpob_mini", "held_out", (True, ())),
        ("hpob_mini", "held_out_other", (False, ())),
        ("hpob", "held_out", (True, ())),
        ("super_mini", "held_out", (True, ("pd1",))),
        ("super_mini", "held_out_other", (False, ("pd1",))),
        ("mphd_l", "held_out", (False, ())),
        ("cmbo_mini", "clustered", (True, ())),
    ],
)
def test_queries_are_those_of_the_benchmarks_authors(benchmark, split, expected):
    assert splits.queries(benchmark, split) == expected


def test_the_other_protocol_has_the_same_priors():
    assert splits.prior_split("held_out_other") == "held_out" and splits.base("new_rows_other") == "held_out"
    assert splits.prior_split("new_rows_other") == "new_rows" and splits.entry("new_rows_other").candidates == "rest"


def test_a_protocol_has_a_title():
    assert artefacts.queries("pd1_mini", "held_out") == "queries may repeat"
    assert artefacts.queries("super_mini", "held_out") == "each candidate once (queries may repeat in pd1)"
