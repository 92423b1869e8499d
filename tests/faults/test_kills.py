"""Killed runs: all processes at random moments, the workflow alone beside its job; a second run beside one."""

import os
import random
import signal

import pytest

from metabo.records.files import is_scratch
from tests.faults import chain

pytestmark = pytest.mark.slow

KILLS = 10
LATEST = 0.25
"""Of the seconds of an undisturbed run."""


def note(project, kept, output):
    """Check that what earlier starts finished is as it was and was not made again; add what this one finished."""
    ended = chain.finished(output)
    assert not set(ended) & set(kept), "made again"
    for rule, before in kept.items():
        assert chain.state(project, chain.MADE[rule]) == before, rule
    kept |= {rule: chain.state(project, chain.MADE[rule]) for rule in ended}


def test_killed_at_random_moments(copy, reference, tmp_path, fault):
    moments = random.Random(8)
    project, kept = copy("first", bare=True), {}
    for number in range(KILLS):
        moment = moments.uniform(0, LATEST) * reference.seconds
        with fault(f"killed after {moment:.1f} s"):
            log = tmp_path / f"{number}.log"
            process = chain.start(project, log)
            if chain.wait(lambda process=process: process.poll() is not None, moment):
                assert process.returncode == 0, log.read_text()
                note(project, kept, log.read_text())
                assert chain.lasting(project) == reference.results
                project, kept = copy(f"after {number}", bare=True), {}
            else:
                chain.kill(process)
                note(project, kept, log.read_text())
    with fault("left-over scratch files"):
        left, other = (project / chain.DATA).with_name(".metabo-tables.npz.ab3_d5fg.npz"), project / "results/.mine.npz"
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_text("half")
        other.write_text("not of a job")
        status, output = chain.run(project)
        assert status == 0, output
        note(project, kept, output)
        assert other.exists()
        other.unlink()
        assert not any(is_scratch(path) for path in (project / "results").rglob(".*"))
        assert chain.lasting(project) == reference.results


def test_a_second_run_and_a_run_killed_alone(copy, reference, tmp_path, fault):
    project = copy()
    (project / chain.LOSSES).unlink()
    with fault("two runs in one folder"):
        first = chain.start(project, tmp_path / "first.log", chain.LOSSES)
        assert chain.wait(lambda: chain.at_work(project))
        os.killpg(first.pid, signal.SIGSTOP)
        status, output = chain.run(project, chain.LOSSES)
        assert status != 0 and "another run is active" in output and chain.clear(output), output
    with fault("the workflow killed alone, its job not able to stop"):
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        status, output = chain.run(project, chain.LOSSES)
        assert status != 0 and "still at work" in output and chain.clear(output), output
        assert "fuser .cache/jobs.lock" in output and not (project / chain.LOSSES).exists()
        os.killpg(first.pid, signal.SIGCONT)
        assert chain.wait(lambda: not chain.at_work(project), 30)
        assert not (project / chain.LOSSES).exists()  # the job has stopped
    with fault("the workflow killed alone"):
        second = chain.start(project, tmp_path / "second.log", chain.LOSSES)
        assert chain.wait(lambda: chain.at_work(project))
        os.kill(second.pid, signal.SIGKILL)
        second.wait()
        status, output = chain.run(project, chain.LOSSES)  # at once: it waits until the job has stopped
        assert status == 0 and chain.lasting(project) == reference.results, output
