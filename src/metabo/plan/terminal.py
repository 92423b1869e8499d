"""What a run shows on the terminal: one line on its progress, and one for each job that fails. Everything else is in
Snakemake's own log, below `.snakemake/log`.

A logger plugin of Snakemake's must be a top-level package, and sees neither the jobs ahead nor their settings. So a
handler replaces Snakemake's on its logger. While the run is being planned it holds messages back, and if no jobs run
after that (nothing to do, a listing, a cluster), it writes them as Snakemake does.
"""

import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from metabo.compute.progress import TERMINAL_EVERY, duration
from metabo.errors import ConfigError
from metabo.plan.ahead import Ahead

SWITCH = "METABO_PROGRESS"
LINE, FULL = "line", "full"
"""Values of the environment variable `METABO_PROGRESS`: one line (the default), or everything that Snakemake writes."""

TRACEBACK = "Traceback (most recent call last):"
PLACE = re.compile(r'File "[^"]*/(src/metabo/[^"]+)", line (\d+)')
"""A line of this package in a traceback."""
JAX_NOTE = "For simplicity, JAX has removed"
"""The start of what JAX writes below an error."""
DEFAULT = "DefaultStreamHandler"
"""The name of Snakemake's handler that writes to the terminal."""

RENEW = 2.0
"""Seconds between two updates of the line in place."""
CLEAR = "\r\x1b[2K"
TOLD = ("CalledProcessError", "RuleException", "SpawnedJobError")
"""Errors that a failed job raises inside Snakemake. The job's own line has already said what happened."""
SIGNALLED = re.compile(r"returned non-zero exit status (1[2-5]\d)\b|died with <Signals\.\w+: (\d+)>")
"""How Python words the end of a command by a signal: 128 and its number from a shell, or the number itself."""
KILLED = 9
"""The signal of which a process says nothing; a kernel that runs out of memory sends it."""
POINTER = "Exiting because a job execution failed"
PLANNING = "Building DAG of jobs"
NOTABLE = ("Terminating processes", "Will exit after finishing")


def wanted() -> bool:
    """Tell whether a run shows one line. Raises ConfigError if the environment variable has another value."""
    value = os.environ.get(SWITCH, LINE)
    if value not in (LINE, FULL):
        raise ConfigError(f"{SWITCH} in the environment is '{value}'; use '{LINE}' or '{FULL}' or leave it out")
    return value == LINE


def take_over(logger: logging.Logger) -> "RunLine | None":
    """Replace Snakemake's handler by a `RunLine` and return it, or None if there is no such handler, as with a plugin
    of the user's."""
    for handler in logger.handlers:
        if handler.name == DEFAULT and isinstance(handler, logging.StreamHandler):
            logger.removeHandler(handler)
            logger.addHandler(line := RunLine(handler))
            return line
    return None


class RunLine(logging.Handler):
    """Take Snakemake's log records and write the line. `usual` is Snakemake's handler for the terminal."""

    def __init__(self, usual: "logging.StreamHandler[TextIO]", clock: Callable[[], float] = time.monotonic):
        super().__init__(level=usual.level)
        self.usual, self.stream, self.clock = usual, usual.stream, clock
        self.held: list[logging.LogRecord] = []
        self.ahead: Ahead | None = None
        self.logs: Sequence[str] = ()
        self.names: dict[int, str] = {}
        self.errors: list[str] = []
        self.in_place = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.drawn, self.shown, self.passing, self.closed = False, 0.0, False, False
        self.stopped = threading.Event()

    def begin(self, ahead: Ahead, logs: Sequence[str]) -> None:
        """Show the line from here on. `logs` are the files with everything that is not shown."""
        with self.lock or threading.RLock():
            self.held.clear()
            self.ahead, self.logs = ahead, logs
            self._clear()
            self.renew(force=True)
        threading.Thread(target=self._keep, daemon=True).start()

    def hand_back(self) -> None:
        """Write the messages that were held back, and all later ones, as Snakemake does."""
        self.passing = True
        self._clear()
        held, self.held = self.held, []
        for record in held:
            self.usual.handle(record)

    def forget(self) -> None:
        """Drop the messages that were held back, because the run is refused and one line says why."""
        self.held.clear()
        self._clear()

    def emit(self, record: logging.LogRecord) -> None:
        """Show errors and warnings, record what happens to jobs, and hold back or omit the rest."""
        event = str(getattr(record, "event", None) or "")
        if self.ahead is None:
            if record.levelno >= logging.ERROR:
                self.held.clear()  # the plan of the run does not explain it
            if self.passing or record.levelno >= logging.WARNING or hasattr(record, "tell"):
                self._clear()
                self.usual.handle(record)
            else:
                self._hold(record)
        elif event in _NOTES:
            _NOTES[event](self, self.ahead, record)
        elif record.levelno >= logging.WARNING:
            if getattr(record, "exception", None) in TOLD:
                self.errors.append(str(record.msg))
            elif not str(record.msg).startswith(POINTER):
                self._say(self.usual.format(record))
        elif hasattr(record, "tell") or str(record.msg).startswith(NOTABLE):
            self._say(str(record.msg))

    def _hold(self, record: logging.LogRecord) -> None:
        self.held.append(record)
        if self.in_place and str(record.msg).startswith(PLANNING):
            self._write(f"{CLEAR}planning the run")
            self.drawn = True

    def renew(self, force: bool = False) -> None:
        """Write the line again, at most every half minute if it cannot be updated in place."""
        if self.ahead is None or self.closed:
            return
        now = self.clock()
        if self.in_place:
            width = shutil.get_terminal_size().columns - 1
            self._write(CLEAR + line(self.ahead, now)[:width])
            self.drawn = True
        elif force or now - self.shown >= TERMINAL_EVERY:
            self.shown = now
            self._write(line(self.ahead, now) + "\n")

    def close(self) -> None:
        """Write the last line or, if no jobs were run, what is still held back."""
        if not self.closed:
            self.stopped.set()
            if self.ahead is None:
                self.hand_back()
            else:
                self._say(end(self.ahead, self.clock(), self.logs))
            self.closed = True
        super().close()

    def _keep(self) -> None:
        while not self.stopped.wait(RENEW):
            with self.lock or threading.RLock():
                self.renew()

    def _say(self, text: str) -> None:
        """Write separate lines; the next update draws the progress line below them."""
        if text:
            self._clear()
            self._write(text.strip("\n") + "\n")

    def _clear(self) -> None:
        if self.drawn:
            self._write(CLEAR)
        self.drawn = False

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            self.stopped.set()  # the terminal was closed; the run goes on

    def note_name(self, _: Ahead, record: logging.LogRecord) -> None:
        """Remember the name of a job."""
        self.names[int(getattr(record, "jobid", -1))] = str(getattr(record, "rule_msg", None) or "")

    def note_start(self, ahead: Ahead, record: logging.LogRecord) -> None:
        """Record that jobs start."""
        for job in getattr(record, "jobs", ()):
            ahead.start(job, self.clock())

    def note_end(self, ahead: Ahead, record: logging.LogRecord) -> None:
        """Record that a job has succeeded."""
        ahead.finish(int(getattr(record, "job_id", -1)), self.clock())

    def note_failure(self, ahead: Ahead, record: logging.LogRecord) -> None:
        """Record that a job has failed, and say why."""
        job = int(getattr(record, "jobid", -1))
        ahead.fail(job)
        name = self.names.get(job) or str(getattr(record, "rule_name", "a job"))
        logs = [str(path) for path in getattr(record, "log", None) or ()]
        said = next((text for text in self.errors if any(path in text for path in logs)), "")
        self.errors = [text for text in self.errors if text != said]
        self._say(failure(name, logs, said))
        self.renew()


_NOTES: dict[str, Callable[[RunLine, Ahead, logging.LogRecord], None]] = {
    "job_info": RunLine.note_name, "job_started": RunLine.note_start, "job_finished": RunLine.note_end,
    "job_error": RunLine.note_failure,
}  # fmt: skip


def line(ahead: Ahead, now: float) -> str:
    """Return a line with the number of jobs that are done, the share of the work, and the time left."""
    lost, failed = len(ahead.lost()), f", {len(ahead.failed)} failed" if ahead.failed else ""
    share = min(ahead.share(now), 0.99) if len(ahead.taken) + lost < len(ahead.jobs) else 1.0
    return f"{_counts(ahead)}, {100 * share:.0f} % of the work, about {duration(ahead.left(now))} left{failed}"


def end(ahead: Ahead, now: float, logs: Sequence[str]) -> str:
    """Return a line with the outcome of the run, the time that it took, and the place of its log."""
    failed, waiting = len(ahead.failed), len(ahead.lost()) - len(ahead.failed)
    parts = [f"{_counts(ahead)} done in {duration(now - ahead.began)}"]
    parts += [f"{failed} failed"] * bool(failed) + [f"{waiting} not started: they need what failed"] * bool(waiting)
    return ", ".join(parts) + (f"; log: {', '.join(map(os.path.relpath, logs))}" if logs else "")


def failure(name: str, logs: Sequence[str], error: str = "") -> str:
    """Return one line that says that a job has failed, why, and where its log is. The reason is the last line of the
    log and, for an error with a traceback, the line of this package that it came from; of a job that was killed, whose
    log says nothing, it is the signal in Snakemake's `error`."""
    said = _signal(error) or next((last for path in logs if (last := _reason(Path(path)))), "")
    where = f" (log: {', '.join(logs)})" if logs else ""
    return f"FAILED: {name}" + (f": {said}" if said else "") + where


def _signal(error: str) -> str:
    found = SIGNALLED.search(error)
    number = int(found[1]) - 128 if found and found[1] else int(found[2]) if found else 0
    if number <= 0:
        return ""
    often = ", as when memory runs out: free some, or use fewer --cores" * (number == KILLED)
    return f"it was killed (signal {number}{often})"


def _reason(path: Path) -> str:
    try:
        lines = [text.strip() for text in path.read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    last = next((text for text in reversed(lines) if text.strip("-") and not text.startswith(JAX_NOTE)), "")
    places = [found for text in lines if (found := PLACE.match(text))] if TRACEBACK in lines else []
    return f"{last} ({places[-1][1]}:{places[-1][2]})" if places and last else last


def _counts(ahead: Ahead) -> str:
    return f"{len(ahead.taken)} of {len(ahead.jobs)} job{'s' * (len(ahead.jobs) != 1)}"
