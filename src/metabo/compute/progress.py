"""Progress of a long job: lines in its log and on the terminal of the run, with the estimated time left."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import TextIO, TypeVar

LOG_EVERY = 10.0
"""Seconds between two lines in a job's log; a shorter job writes none."""

TERMINAL_EVERY = 30.0
"""Seconds between two lines of one job on the terminal, where other jobs write too."""

TERMINAL = "METABO_TERMINAL"
"""Environment variable with the file descriptor of the terminal that the workflow was started from (Snakefile)."""

Item = TypeVar("Item")


@dataclass
class _Level:
    what: str
    total: int
    done: int = 0


@dataclass
class _Job:
    label: str = ""
    terminal: TextIO | None = None
    levels: list[_Level] = field(default_factory=list)
    started: float = 0.0
    begun: tuple[float, float] | None = None
    logged: float = 0.0
    shown: float = 0.0


_job = _Job()


def connect(label: str) -> None:
    """Begin a job: its lines on the terminal start with `label`. Removes the terminal from the environment, so that
    child processes, in which that file descriptor is another file or none, do not write to it."""
    global _job
    descriptor = os.environ.pop(TERMINAL, "")
    terminal = None
    if descriptor:
        try:
            terminal = os.fdopen(int(descriptor), "w", closefd=False)
        except (OSError, ValueError):
            terminal = None  # whoever started the job closed it; the log still gets the lines
    _job = _Job(label, terminal)


def loop(items: Iterable[Item], what: str) -> Iterator[Item]:
    """Yield the items and report how many are done. `what` names them in the plural. Loops may be nested."""
    listed = list(items)
    with counted(what, len(listed)) as advance:
        for number, item in enumerate(listed, 1):
            yield item
            advance(number)


@contextmanager
def counted(what: str, total: int, before: int = 0) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of finished `what` (a plural), out of `total`; `before` of them were
    finished by an earlier attempt."""
    if not _job.levels:
        _job.started = _job.logged = _job.shown = time.monotonic()
    if before or all(outer.total == 1 for outer in _job.levels):
        _job.begun = None  # the pace so far is that of another loop, or of reading what was finished
    level = _Level(what, total)
    _job.levels.append(level)

    def advance(done: int) -> None:
        level.done = done
        _report()

    try:
        yield advance
    finally:
        _job.levels.remove(level)


def _report() -> None:
    now = time.monotonic()
    share = _share(_job.levels)
    if _job.begun is None:
        _job.begun = share, now  # the first item compiles the programs, so the pace is measured on the others
    if now - _job.logged >= LOG_EVERY:
        _job.logged = now
        print(_line(share, now), file=sys.stderr, flush=True)
    if _job.terminal and now - _job.shown >= TERMINAL_EVERY:
        _job.shown = now
        try:
            print(f"{_job.label}: {_line(share, now)}", file=_job.terminal, flush=True)
        except OSError:
            _job.terminal = None  # the terminal was closed; the job goes on


def _share(levels: list[_Level]) -> float:
    """Return the finished share of the outermost level."""
    return sum(level.done / prod(outer.total for outer in levels[: i + 1]) for i, level in enumerate(levels))


def _line(share: float, now: float) -> str:
    """Return a line with the counts of each level, outermost first, the time spent, and the time left at the pace so
    far."""
    shown = [level for level in _job.levels if level.total > 1] or _job.levels
    counts = ", ".join(f"{level.done} of {level.total} {level.what}" for level in shown)
    begun, at = _job.begun or (share, now)
    left = f", about {duration((now - at) * (1 - share) / (share - begun))} left" if share > begun else ""
    return f"{counts} in {duration(now - _job.started)}{left}"


def duration(seconds: float) -> str:
    """Return a time in the unit that reads best."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
