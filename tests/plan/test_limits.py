"""Time limits on a cluster: generous for what was measured, long for the papers' sizes."""

from typing import get_args

import pytest

from metabo.data.initial import fifth
from metabo.plan import limits
from metabo.plan.work import OTHER, Kind, NumericJob, loops, shape_of
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
    job = NumericJob("run_bo", "mphd_l", "held_out", "mphd", "pi")  # 20 test tasks, 100 queries
    seconds = limits.START + limits.PACES["refits"] * (20 * laptop.mphd.bo_seeds * 100 * laptop.mphd.map_steps)
    assert limits.seconds(job, laptop) == pytest.approx(seconds)
    assert limits.MARGIN * seconds / 60 <= limits.minutes(job, laptop) < limits.MARGIN * seconds / 60 + 1


# Seconds that these took at laptop scale on a small machine with two cores.
@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        (NumericJob("pretrain", "hpob_mini", "held_out", "fsbo"), 141),
        (NumericJob("pretrain", "pd1_mini", "held_out", "h_ekl"), 70),
        (NumericJob("pretrain", "hpob_mini", "held_out", "rfgp"), 73),
        (NumericJob("run_bo", "cmbo_mini", "clustered", "cm_wss_bary", "ucb3"), 101),
        (NumericJob("run_bo", "mphd_l", "held_out", "hgp_hand_log", "pi"), 109),
        (NumericJob("evaluate", "pd1_mini", "held_out", "h_ekl"), 24),
    ],
)
def test_jobs_that_took_minutes_are_short_and_have_twice_as_long(laptop, job, seconds):
    limit = limits.minutes(job, laptop)
    assert limits.short(limit) and limit * 60 > 2 * seconds


def test_a_job_that_may_take_ten_minutes_is_long(laptop):
    """Five seeds on nine spaces, each with fits at every query: 333 s on two busy cores."""
    job = NumericJob("run_bo", "super_mini", "held_out", "mphd_non_nn_log", "pi")
    assert limits.seconds(job, laptop) > 2 * 333 and limits.minutes(job, laptop) == limits.LONG


@pytest.mark.parametrize(
    "job",
    [
        NumericJob("pretrain", "pd1", "held_out", "h_nll"),
        NumericJob("pretrain", "pd1", "others", "maf"),
        NumericJob("run_bo", "hpob", "held_out", "rfgp", "ucb18"),
        NumericJob("evaluate", "hpob", "held_out", "h_nll"),
        NumericJob("run_online", "pd1_mini", "others", "rfgp_online"),
    ],
)
def test_what_takes_hours_at_paper_scale_goes_alone(paper, job):
    limit = limits.minutes(job, paper)
    assert not limits.short(limit) and limit >= limits.LONG


def test_nothing_is_asked_to_hurry(paper):
    assert limits.minutes(NumericJob("pretrain", "control", "held_out", "rand"), paper) == limits.QUICK


def test_a_benchmark_that_is_not_described_counts_as_a_large_table(laptop):
    assert shape_of("own", laptop) == OTHER
    assert (
        loops(NumericJob("run_bo", "own", "others", "h_nll", "pi"), laptop).steps > 0
    )  # on a split that it does not have


@pytest.mark.parametrize("functions", [3, 8, 20])
def test_tested_functions_are_those_of_the_loader(functions):
    sizes = {"domains": 4, "functions": functions, "points": 24}
    shape = shape_of("mphd_l", counts.settings(benchmarks={"mphd_l": sizes}))
    assert shape.test["held_out"] == 4 * fifth(functions)
