"""Progress of a run: the share of the work and the time left, on made jobs and on a real run played again."""

import csv
from pathlib import Path

import pytest

from metabo.plan import typical
from metabo.plan.ahead import Ahead, Expected
from metabo.plan.work import RULES, NumericJob
from tests import counts


def ran(jobs, cores=1, *, done=(), running=(), took=100.0, now=0.0):
    """A run in which some jobs are done and some have begun `now`."""
    ahead = Ahead(jobs, cores, 0.0)
    for job in done:
        ahead.start(job, now - took)
        ahead.finish(job, now)
    for job in running:
        ahead.start(job, now)
    return ahead


def same(number, seconds=100.0, **more):
    return {job: Expected("a", seconds, **more) for job in range(number)}


def test_before_the_first_job_the_typical_times_count():
    ahead = Ahead(same(10), 2, 0.0)
    assert (ahead.share(0.0), ahead.left(0.0)) == (0.0, 500.0)


def test_a_run_without_jobs_is_done():
    ahead = Ahead({}, 2, 0.0)
    assert (ahead.share(5.0), ahead.left(5.0)) == (1.0, 0.0)


def test_jobs_that_took_twice_as_long_double_what_is_left():
    ahead = ran(same(1000), done=range(500), took=200.0)
    assert ahead.left(0.0) == pytest.approx(2 * 500 * 100.0, rel=0.05)
    assert ahead.share(0.0) == pytest.approx(0.5, rel=0.05)


def test_a_small_run_on_a_slow_machine_learns_it_from_its_first_jobs():
    """Twenty jobs of four seconds, which take forty here: after four of them, 640 s are left."""
    ahead = ran(same(20, 4.0), done=range(4), took=40.0)
    assert 400 < ahead.left(0.0) < 640
    assert ran(same(20, 4.0), done=range(4), took=4.0).left(0.0) == pytest.approx(64.0)


def test_a_group_that_deviates_leaves_the_others_at_the_speed_of_the_machine():
    jobs = {job: Expected("a" if job < 400 else "b" if job < 800 else "c", 100.0) for job in range(1200)}
    ahead = ran(jobs, done=range(200), took=300.0)
    for job in range(400, 600):
        ahead.start(job, -100.0)
        ahead.finish(job, 0.0)
    speeds = ahead.speeds()
    assert speeds["a"] == pytest.approx(3.0, rel=0.05) and speeds["b"] == pytest.approx(1.0, rel=0.05)
    assert speeds["c"] == pytest.approx(2.0, rel=0.05)  # nothing is known of it: as all the others


def test_a_running_job_counts_with_what_it_has_run():
    ahead = ran(same(1), running=[0])
    assert ahead.left(60.0) == pytest.approx(40.0) and ahead.share(60.0) == pytest.approx(0.6)


def test_an_overdue_job_is_never_about_to_end_at_once():
    ahead = ran(same(1), running=[0])
    assert ahead.left(1000.0) == pytest.approx(250.0) and ahead.share(1000.0) < 1


def test_cores_share_the_work_but_not_a_chain():
    assert Ahead(same(8), 4, 0.0).left(0.0) == 200.0
    chain = {job: Expected("a", 100.0, 1, (job - 1,) if job else ()) for job in range(8)}
    assert Ahead(chain, 4, 0.0).left(0.0) == 800.0
    assert Ahead(same(2, cores=4), 4, 0.0).left(0.0) == 200.0  # each has the machine to itself


def test_what_waits_for_a_failed_job_is_not_ahead_until_it_runs_again():
    jobs = same(3) | {3: Expected("a", 100.0, 1, (0,)), 4: Expected("a", 100.0, 1, (3,))}
    ahead = Ahead(jobs, 1, 0.0)
    ahead.fail(0)
    assert ahead.lost() == {0, 3, 4} and ahead.left(0.0) == 200.0
    ahead.start(0, 0.0)
    assert ahead.lost() == set() and ahead.left(0.0) == 500.0


def test_a_run_with_idle_cores_takes_longer():
    busy, idle = ran(same(100), 4, done=range(50), now=1250.0), ran(same(100), 4, done=range(50), now=5000.0)
    assert idle.left(5000.0) > 2 * busy.left(1250.0)


def test_jobs_that_are_not_in_the_plan_change_nothing():
    ahead = Ahead(same(2), 1, 0.0)
    ahead.start(7, 0.0)
    ahead.finish(7, 50.0)
    assert ahead.left(50.0) == Ahead(same(2), 1, 0.0).left(0.0) * (600 + 50) / 600  # the core was idle, for all we know


@pytest.fixture(scope="module")
def real():
    """All of HyperBO at laptop scale on two cores, 473 jobs: the expected times, and when each ran. The costs
    are fitted to another run, except those of the seven online jobs and two studies, which it did not have."""
    again = {"mimo": {"retrain_steps": 10}, "rfgp": {"retrain_steps": 5}}
    trained = {"structures": {"adam_steps": 1000}, "online": {"adam_steps": 2000}, **again}  # as long as in that run
    settings, jobs, events = counts.settings(**trained), {}, []
    with Path(__file__).with_name("hyperbo_run.csv").open(newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream)):
            numeric = NumericJob(row["rule"], *(row[key] for key in ("benchmark", "split", "method", "acquisition")))
            known = row["rule"] in RULES
            took = typical.of_numeric(numeric, settings) if known else typical.of_rule(row["rule"], row["study"])
            jobs[number] = Expected(*took)
            events += [(float(row["started"]), 1, number), (float(row["ended"]), 0, number)]
    return jobs, sorted(events)


def replayed(real, until):
    """The state of the real run after some seconds."""
    jobs, events = real
    ahead = Ahead(jobs, 2, 0.0)
    for at, starts, job in events:
        if at <= until:
            ahead.start(job, at) if starts else ahead.finish(job, at)
    return ahead


@pytest.mark.parametrize("minutes", [10, 20, 30, 40, 50, 60, 70, 80])
def test_the_end_of_a_real_run_is_right_within_a_quarter_after_ten_minutes(real, minutes):
    now, total = 60.0 * minutes, real[1][-1][0]
    ended = now + replayed(real, now).left(now)
    assert abs(ended / total - 1) < 0.25


def test_the_share_of_a_real_run_grows_with_its_time(real):
    total = real[1][-1][0]
    for minutes in range(10, 85, 5):
        assert abs(replayed(real, 60.0 * minutes).share(60.0 * minutes) - 60.0 * minutes / total) < 0.12
