"""Jobs that stop once the run that started them has ended.

A run that is killed alone leaves its jobs behind. Snakemake has not seen them end, so it deletes what they make and
makes it again; until then they would take the cores, and hold up the next run of the same command. The run and its jobs
see one table of processes: a job in a container with a table of its own would stop at once.
"""

import errno
import os
import select
import signal
import sys
import time
from contextlib import suppress
from threading import Thread
from typing import Final

RUN: Final = "METABO_RUN"
"""Environment variable with the process id of the run that starts the jobs (workflow/rules/progress.smk)."""
EVERY: Final = 2.0
"""Seconds between two looks at the run, where the system cannot tell that a process has ended."""
LAST: Final = 10.0
"""Seconds until a job is killed that takes no notice of being asked to stop."""


def end_with_run() -> None:
    """Stop this process, with a line in its log, once the run that started it has ended; it does nothing for a job that
    was started by hand. What the job had finished is kept (`metabo.compute.checkpoint`).

    It removes the run from the environment, so that child processes do not look for it.
    """
    run = os.environ.pop(RUN, "")
    if run.isdecimal():
        Thread(target=_end_after, args=(int(run),), name="end with the run", daemon=True).start()


def _end_after(run: int) -> None:
    wait(run)
    with suppress(Exception):  # a full disk, say, has no room for the log
        print("the run that started this job has ended, so the job stops; the same command goes on", file=sys.stderr)
        sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LAST)
    os.kill(os.getpid(), signal.SIGKILL)


def wait(process: int) -> None:
    """Wait until a process has ended; it need not be a child of this one.

    Linux reports the end at once, even while the process is a zombie. Other systems do not, so we check every EVERY
    seconds.
    """
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # another system, or a container that forbids the call
        while _is_there(process):
            time.sleep(EVERY)
        return
    try:
        select.select([handle], [], [])
    finally:
        os.close(handle)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:  # EPERM: it is there, and another user's
        return error.errno != errno.ESRCH
    return True
