"""Typical times: every job of the plan has one, of the size of what was measured."""

from typing import get_args

import pytest

from metabo.plan import limits, registry, typical
from metabo.plan.work import Kind, NumericJob, loops
from tests import counts


@pytest.fixture(scope="module")
def laptop():
    return counts.settings()


def test_every_kind_of_loop_and_every_study_has_a_cost():
    kinds = {jobs for jobs, of in typical.table() if not of}
    assert set(get_args(Kind)) <= kinds and {"check_theory", "run_study", "load", typical.NOTEBOOK} <= kinds
    assert {of for jobs, of in typical.table() if jobs == "run_study"} - {""} <= set(registry.studies())


def test_a_cost_has_a_start_or_a_pace_and_none_is_negative():
    assert all(cost.start >= 0 and cost.pace >= 0 and sum(cost) > 0 for cost in typical.table().values())


def test_a_typical_time_is_the_start_and_the_pace_of_the_family(laptop):
    job = NumericJob("pretrain", "pd1_mini", "held_out", "h_nll")
    cost = typical.table()["steps", "pretrained"]
    group, seconds = typical.of_numeric(job, laptop)
    assert seconds == pytest.approx(cost.start + cost.pace * loops(job, laptop).steps)
    assert group == "pretrain steps pretrained"


def test_a_family_without_records_takes_what_its_kind_takes(laptop, monkeypatch):
    job = NumericJob("pretrain", "pd1_mini", "held_out", "h_nll")
    monkeypatch.setattr(typical, "family", lambda method: "new")
    cost = typical.table()["steps", ""]
    assert typical.of_numeric(job, laptop).seconds == pytest.approx(cost.start + cost.pace * loops(job, laptop).steps)


def test_a_typical_time_is_below_the_limit_of_a_cluster(laptop):
    for method in ("h_nll", "h_ekl", "mimo", "stbo", "rand"):
        job = NumericJob("run_bo", "pd1_mini", "held_out", method, "pi")
        assert typical.of_numeric(job, laptop).seconds < 60 * limits.minutes(job, laptop)


def test_other_rules_have_means_and_a_figure_is_a_notebook():
    assert typical.of_rule("check_theory").seconds == typical.table()["check_theory", ""].start
    assert typical.of_rule("run_study", "cmbo_timing").seconds == typical.table()["run_study", "cmbo_timing"].start
    assert typical.of_rule("run_study", "new") == ("run_study", typical.table()["run_study", ""].start)
    assert typical.of_rule("hyperbo_fig08") == (typical.NOTEBOOK, typical.table()[typical.NOTEBOOK, ""].start)
