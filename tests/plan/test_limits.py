"""Time limits on a cluster: generous for what was measured, long for the papers' sizes."""

from typing import get_args

import pytest

from metabo.data.initial import fifth
from metabo.plan import limits
from metabo.plan.work import OTHER, Job, Kind, loops, shape_of
from tests import counts


@pytest.fixture(scope="module")
def laptop():
    return counts.settings()


@pytest.fixture(scope="module")
def paper():
    return counts.settings("paper")


def test_every_kind_of_loop_has_a_pace():
    assert limits.PACES.keys() == set(get_args(Kind))


def test_a_limit_is_the_margin_times_the_estimate(laptop):
    job = Job("run_bo", "hpob_mini", "held_out", "stbo", "ucb18")
    seconds = limits.START + limits.PACES["refits"] * (32 * 3 * 100 * laptop.bo.refit_steps)
    assert limits.seconds(job, laptop) == pytest.approx(seconds)
    assert limits.MARGIN * seconds / 60 <= limits.minutes(job, laptop) < limits.MARGIN * seconds / 60 + 1


# Seconds that these took at laptop scale on a small machine with two cores.
@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        (Job("pretrain", "hpob_mini", "held_out", "fsbo"), 141),
        (Job("pretrain", "pd1_mini", "held_out", "h_ekl"), 70),
        (Job("pretrain", "hpob_mini", "held_out", "rfgp"), 73),
        (Job("run_bo", "cmbo_mini", "clustered", "cm_wss_bary", "ucb3"), 101),
        (Job("run_bo", "super_mini", "held_out", "mphd_non_nn", "pi"), 391),
        (Job("evaluate", "pd1_mini", "held_out", "h_ekl"), 24),
    ],
)
def test_jobs_that_took_minutes_are_short_and_have_twice_as_long(laptop, job, seconds):
    limit = limits.minutes(job, laptop)
    assert limits.short(limit) and limit * 60 > 2 * seconds


@pytest.mark.parametrize(
    "job",
    [
        Job("pretrain", "pd1", "held_out", "h_nll"),
        Job("pretrain", "pd1", "others", "maf"),
        Job("run_bo", "hpob", "held_out", "rfgp", "ucb18"),
        Job("evaluate", "hpob", "held_out", "h_nll"),
        Job("run_online", "pd1_mini", "others", "rfgp_online"),
    ],
)
def test_what_takes_hours_at_paper_scale_goes_alone(paper, job):
    limit = limits.minutes(job, paper)
    assert not limits.short(limit) and limit >= limits.LONG


def test_nothing_is_asked_to_hurry(paper):
    assert limits.minutes(Job("pretrain", "control", "held_out", "rand"), paper) == limits.QUICK


def test_a_benchmark_that_is_not_described_counts_as_a_large_table(laptop):
    assert shape_of("lcbench", laptop) == OTHER
    assert loops(Job("run_bo", "own", "others", "h_nll", "pi"), laptop).steps > 0  # on a split that it does not have


@pytest.mark.parametrize("functions", [3, 8, 20])
def test_tested_functions_are_those_of_the_loader(functions):
    sizes = {"domains": 4, "functions": functions, "points": 24}
    shape = shape_of("mphd_l", counts.settings(benchmarks={"mphd_l": sizes}))
    assert shape.test["held_out"] == 4 * fifth(functions)
