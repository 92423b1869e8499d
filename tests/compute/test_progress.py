"""Progress lines: what they say, how often, where they go, and that nothing can be hurt by them."""

import io
import os
import subprocess
import sys

import pytest

from metabo.compute import progress


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(progress, "time", clock := Clock())
    monkeypatch.setattr(progress, "_job", progress._Job())
    return clock


def test_nested_counts_give_the_time_left_of_the_whole(clock, capsys):
    for _ in progress.loop(iter("abcd"), "spaces"):
        with progress.counted("runs", 10) as advance:
            for done in range(1, 11):
                clock.now += 3.0
                advance(done)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0 of 4 spaces, 4 of 10 runs in 12 s, about 2 min left"  # a tenth of 120 s
    assert lines[4] == "1 of 4 spaces, 10 of 10 runs in 60 s, about 60 s left"
    assert 8 <= len(lines) <= 12


def test_the_pace_leaves_out_the_first_item_which_compiles(clock, capsys):
    for number in progress.loop(range(5), "runs"):
        clock.now += 2.0 if number else 100.0
    assert capsys.readouterr().err == "1 of 5 runs in 2 min\n"
    for number in progress.loop(range(5), "runs"):
        clock.now += 20.0 if number else 100.0
    assert capsys.readouterr().err.splitlines()[1] == "2 of 5 runs in 2 min, about 60 s left"


def test_two_loops_of_a_job_each_have_their_own_pace(clock, capsys):
    for _ in progress.loop(range(1), "spaces"):
        for _ in progress.loop(range(3), "fits"):
            clock.now += 0.1
        with progress.counted("fits", 35) as advance:
            for done in range(5, 36):  # four were finished by an earlier attempt
                clock.now += 100.0
                advance(done)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["5 of 35 fits in 2 min", "6 of 35 fits in 3 min, about 48 min left"]  # 29 times 100 s


def test_what_an_earlier_attempt_finished_is_not_taken_for_the_pace(clock, capsys):
    for space in progress.loop(range(3), "spaces"):
        with progress.counted("fits", 30, 30 if space < 2 else 20) as advance:
            clock.now += 0.5
            for done in range(21, 31) if space == 2 else ():
                clock.now += 60.0
                advance(done)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "2 of 3 spaces, 21 of 30 fits in 62 s"
    assert lines[1] == "2 of 3 spaces, 22 of 30 fits in 2 min, about 8 min left"


def test_a_level_of_one_is_not_shown(clock, capsys):
    for _ in progress.loop(range(1), "spaces"):
        for _ in progress.loop(range(2), "runs"):
            clock.now += 11.0
    for _ in progress.loop(range(1), "fits"):
        clock.now += 11.0
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["1 of 2 runs in 11 s", "2 of 2 runs in 22 s, about 0 s left", "1 of 1 fits in 11 s"]


def test_short_work_says_nothing(clock, capsys):
    for _ in progress.loop(range(100), "runs"):
        clock.now += 0.01
    assert capsys.readouterr() == ("", "")


def test_a_loop_that_is_left_early_or_fails_is_forgotten(clock):
    with pytest.raises(ZeroDivisionError):
        for _ in progress.loop(range(3), "runs"):
            with progress.counted("steps", 2):
                1 / 0  # noqa: B018
    for _ in progress.loop(range(3), "runs"):
        break
    assert progress._job.levels == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (99.4, "99 s"), (100, "2 min"), (5999, "100 min"), (7200, "2.0 h")]
)
def test_durations(seconds, text):
    assert progress.duration(seconds) == text


def test_the_terminal_gets_fewer_lines_with_the_name_of_the_job(clock, capsys):
    progress._job = progress._Job("bo/x.parquet", io.StringIO())
    for _ in progress.loop(range(10), "runs"):
        clock.now += 11.0
    shown = progress._job.terminal.getvalue().splitlines()
    assert len(shown) == 3 and len(capsys.readouterr().err.splitlines()) == 10
    assert shown[0] == "bo/x.parquet: 3 of 10 runs in 33 s, about 77 s left"


def test_a_closed_terminal_does_not_stop_the_job(clock):
    class Closed(io.StringIO):
        def flush(self):
            raise BrokenPipeError

    progress._job = progress._Job("x", Closed())
    for _ in progress.loop(range(10), "runs"):
        clock.now += 100.0
    assert progress._job.terminal is None


JOB = """
from metabo.compute import progress
import os
progress.LOG_EVERY = progress.TERMINAL_EVERY = 0.0
progress.connect("the/job")
assert progress.TERMINAL not in os.environ
for _ in progress.loop(range(2), "steps"): pass
"""


@pytest.mark.parametrize("descriptor", ["open", "closed", "none", "nonsense"])
def test_a_job_writes_to_the_descriptor_it_is_given_if_that_is_open(descriptor):
    read, write = os.pipe()
    value = {"open": str(write), "closed": "777", "nonsense": "terminal"}.get(descriptor)
    environment = os.environ | ({progress.TERMINAL: value} if value else {})
    job = subprocess.run(
        [sys.executable, "-c", JOB], env=environment, pass_fds=[write], capture_output=True, text=True, check=True
    )
    os.close(write)
    with os.fdopen(read) as terminal:
        shown = terminal.read().splitlines()
    assert job.stderr.splitlines()[0].startswith("1 of 2 steps in 0 s")
    assert shown[:1] == (["the/job: 1 of 2 steps in 0 s"] if descriptor == "open" else [])
