"""Jobs end with the run that started them, and only then."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from metabo.compute import orphans

JOB = """
import os, time
from metabo.compute import orphans
orphans.end_with_run()
print(orphans.RUN in os.environ, flush=True)
time.sleep(60)
"""


@pytest.fixture
def started():
    processes = []

    def start(program, run=None):
        known = os.environ if run is None else os.environ | {orphans.RUN: run}
        pipe = subprocess.PIPE
        process = subprocess.Popen([sys.executable, "-c", program], env=known, stdout=pipe, stderr=pipe, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_job_ends_with_its_run_and_says_so(started):
    run = started("import time; time.sleep(60)")
    job = started(JOB, str(run.pid))
    assert job.stdout.readline() == "False\n"  # its own children do not look for the run
    time.sleep(0.5)
    assert job.poll() is None  # it goes on beside its run
    run.kill()  # nobody has asked about it since: it is there as a zombie
    assert job.wait(timeout=20) == -signal.SIGTERM
    assert "the run that started this job has ended" in job.stderr.read()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to")
def test_a_job_that_has_no_room_for_its_log_ends_too(started):
    run = started("pass")
    run.wait()
    full = JOB.replace("import os, time", "import os, sys, time; sys.stderr = open('/dev/full', 'w')")
    assert started(full, str(run.pid)).wait(timeout=20) == -signal.SIGTERM


def test_a_job_that_takes_no_notice_is_killed(started):
    run = started("pass")
    run.wait()
    deaf = JOB.replace(
        "orphans.end", "import signal; signal.signal(15, signal.SIG_IGN); orphans.LAST = 0.2; orphans.end"
    )
    assert started(deaf, str(run.pid)).wait(timeout=20) == -signal.SIGKILL


def test_a_job_whose_run_has_ended_before_it_begins(started):
    run = started("pass")
    run.wait()
    assert started(JOB, str(run.pid)).wait(timeout=20) == -signal.SIGTERM


@pytest.mark.parametrize("run", [None, "", "of another kind"])
def test_a_job_started_by_hand_goes_on(started, run):
    job = started(JOB, run)
    assert job.stdout.readline() == "False\n"
    time.sleep(0.5)
    assert job.poll() is None


@pytest.mark.parametrize("refusal", [AttributeError, PermissionError])
def test_where_the_system_tells_no_end_the_run_is_asked_again_and_again(started, monkeypatch, refusal):
    def refused(process):
        raise refusal

    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    monkeypatch.setattr(orphans, "EVERY", 0.05)
    run = started("import time; time.sleep(60)")
    waiting = Thread(target=orphans.wait, args=(run.pid,), daemon=True)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    run.kill()
    run.wait()
    waiting.join(20)
    assert not waiting.is_alive()
