"""What a run shows: one line, the jobs that fail, and Snakemake's own messages where no jobs are run."""

import io
import logging

import pytest

from metabo.errors import ConfigError
from metabo.plan import terminal
from metabo.plan.ahead import Ahead, Expected
from metabo.plan.terminal import CLEAR, DEFAULT, RunLine


class Terminal(io.StringIO):
    def __init__(self, tty):
        super().__init__()
        self.tty = tty

    def isatty(self):
        return self.tty


class Run:
    """A logger with Snakemake's handler, taken over, and a clock."""

    def __init__(self, tty=False):
        self.now, self.out = 0.0, Terminal(tty)
        self.logger = logging.Logger("run")
        usual = logging.StreamHandler(self.out)
        usual.name = DEFAULT
        self.logger.addHandler(usual)
        self.line = terminal.take_over(self.logger)
        self.line.clock = lambda: self.now

    def begin(self, jobs=4, logs=(), after=()):
        planned = {job: Expected("a", 100.0, 1, after if job == jobs - 1 else ()) for job in range(jobs)}
        self.line.begin(Ahead(planned, 1, self.now), logs)
        self.line.stopped.set()  # the clock is the test's, and so is the renewal
        return self

    def say(self, text, level=logging.INFO, **extra):
        self.logger.log(level, text, extra=extra)
        return self

    def after(self, seconds):
        self.now += seconds
        self.line.renew()
        return self

    @property
    def lines(self):
        return self.out.getvalue().splitlines()


@pytest.fixture
def run():
    return Run()


def test_what_is_held_back_is_forgotten_when_a_run_is_refused(run):
    run.say("SNAKEMAKE\n=====").line.forget()
    run.line.close()
    assert run.lines == []


def test_one_line_each_half_minute_where_it_cannot_be_renewed(run):
    run.say("Building DAG of jobs...").begin()
    for _ in range(120):
        run.say("Select jobs to execute...").after(1.0)
    assert len(run.lines) == 5
    assert run.lines[0] == "0 of 4 jobs, 0 % of the work, about 7 min left"


def test_a_terminal_has_one_line_that_is_renewed(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    run = Run(tty=True).begin().say("", event="job_started", jobs=[0]).after(50.0)
    text = run.out.getvalue()
    assert "\n" not in text and text.count(CLEAR) == 2
    assert text.split(CLEAR)[-1] == "0 of 4 jobs, 12 % of the work, about 6 "  # cut at the width


def test_the_line_follows_the_jobs(run):
    run.begin().say("", event="job_started", jobs=[0, 1]).after(100.0)
    run.say("", event="job_finished", job_id=0).after(31.0)
    assert run.lines[-1].startswith("1 of 4 jobs, ") and " % of the work, about " in run.lines[-1]


def test_a_failed_job_has_one_line_with_the_reason_and_the_log(run, tmp_path):
    log = tmp_path / "job.log"
    log.write_text("Traceback\n  File\nValueError: no such file\n\n")
    run.begin(after=(0,))
    run.say("", event="job_info", jobid=0, rule_msg="pre-train h_nll")
    run.say("RuleException: ...", logging.ERROR, event="error", exception="RuleException")
    run.say("Error in rule", logging.ERROR, event="job_error", jobid=0, rule_name="pretrain", log=[str(log)])
    assert run.lines[1:] == [f"FAILED: pre-train h_nll: ValueError: no such file (log: {log})"]
    run.after(31.0)
    assert run.lines[-1].startswith("0 of 4 jobs") and run.lines[-1].endswith("left, 1 failed")
    run.line.close()
    assert run.lines[-1] == "0 of 4 jobs done in 31 s, 1 failed, 1 not started: they need what failed"


def test_a_failed_job_without_a_log_is_told_too(run):
    run.begin().say("", logging.ERROR, event="job_error", jobid=1, rule_name="load", log=["absent.log"])
    assert run.lines[-1] == "FAILED: load (log: absent.log)"


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ("returned non-zero exit status 137.", "it was killed (signal 9, as when memory runs out: free some, or use f"),
        ("died with <Signals.SIGKILL: 9>.", "it was killed (signal 9, as when memory runs out: free some, or use few"),
        ("returned non-zero exit status 143.", "it was killed (signal 15) (log: "),
        ("returned non-zero exit status 1.", "3 of 9 fits in 20 s (log: "),
    ],
)
def test_a_killed_job_is_told_by_its_signal_not_by_its_progress(run, tmp_path, ended, said):
    """The messages of two jobs that end at once may stand one behind the other."""
    log, other = tmp_path / "a.log", tmp_path / "b.log"
    log.write_text("3 of 9 fits in 20 s\n")
    other.write_text("b: no such file\n")
    run.begin()
    for path, how in ((log, ended), (other, "returned non-zero exit status 1.")):
        text = f"CalledProcessError in file \"pretrain.smk\", line 33:\nCommand 'python > {path} 2>&1' {how}"
        run.say(text, logging.ERROR, exception="CalledProcessError")
    for job, path in ((0, log), (1, other)):
        run.say("", logging.ERROR, event="job_error", jobid=job, rule_name="pretrain", log=[str(path)])
    assert run.lines[-2].startswith(f"FAILED: pretrain: {said}") and str(log) in run.lines[-2]
    assert run.lines[-1] == f"FAILED: pretrain: b: no such file (log: {other})"


def test_a_traceback_is_told_by_its_error_and_the_line_of_ours(tmp_path):
    log = tmp_path / "bo.log"
    log.write_text(
        "Traceback (most recent call last):\n"
        '  File "/home/me/clone/src/metabo/stages/bo.py", line 30, in main\n    run()\n'
        '  File "/home/me/clone/src/metabo/bo/acquisition.py", line 57, in grow\n    np.log(2)\n'
        '  File "/usr/lib/python3/site-packages/jax/core.py", line 9, in bind\n'
        "NameError: name 'np' is not defined\n--------------------\n"
        "For simplicity, JAX has removed its internal frames from the traceback of the following exception.\n"
    )
    assert terminal.failure("run BO", [str(log)]) == (
        f"FAILED: run BO: NameError: name 'np' is not defined (src/metabo/bo/acquisition.py:57) (log: {log})"
    )


def test_warnings_errors_and_what_is_for_the_user_are_shown_and_the_rest_is_not(run):
    run.begin()
    for text, level, extra in [
        ("Reason: missing", logging.INFO, {}),
        ("1 of 4 steps", logging.INFO, {"event": "progress"}),
        ("disk is full", logging.ERROR, {}),
        ("careful", logging.WARNING, {}),
        ("hyperbo: 30 hold", logging.INFO, {"tell": True}),
        ("Terminating processes on user request", logging.INFO, {}),
        ("Exiting because a job execution failed. Look above for error messages", logging.ERROR, {}),
    ]:
        run.say(text, level, **extra)
    assert run.lines[1:] == ["disk is full", "careful", "hyperbo: 30 hold", "Terminating processes on user request"]


def test_the_last_line_says_what_came_of_the_run_and_where_its_log_is(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run.begin(2, [str(tmp_path / "all.log")]).say("", event="job_started", jobs=[0, 1])
    run.now = 7200.0
    run.say("", event="job_finished", job_id=0).say("", event="job_finished", job_id=1)
    run.line.close()
    run.line.close()  # Snakemake closes its handlers, Python does so at exit
    assert run.lines[1:] == ["2 of 2 jobs done in 2.0 h; log: all.log"]


def test_where_no_jobs_run_snakemakes_messages_are_written(run):
    run.say("Building DAG of jobs...").say("Nothing to be done (all requested files are present and up to date).")
    assert run.lines == []
    run.line.close()
    assert len(run.lines) == 2 and run.lines[1].startswith("Nothing to be done")


def test_on_a_cluster_all_is_written_in_order(run):
    run.say("Building DAG of jobs...").line.hand_back()
    run.say("Select jobs to execute...")
    run.line.close()
    assert run.lines == ["Building DAG of jobs...", "Select jobs to execute..."]


def test_an_error_before_the_first_job_stands_alone(run):
    run.say("Job stats: ...").say("another run is going on", logging.ERROR)
    run.line.close()
    assert run.lines == ["another run is going on"]


def test_a_closed_terminal_does_not_stop_the_run(run):
    run.begin()
    run.out.close()
    run.say("", event="job_started", jobs=[0]).after(100.0)
    run.say("", event="job_finished", job_id=0)
    run.line.close()
    assert run.line.ahead.taken == {0: 100.0}


def test_a_plugin_of_the_users_is_left_alone():
    logger = logging.Logger("other")
    logger.addHandler(own := logging.StreamHandler())
    assert terminal.take_over(logger) is None and logger.handlers == [own]


@pytest.mark.parametrize(("value", "shown"), [("line", True), ("full", False), (None, True)])
def test_the_environment_chooses(monkeypatch, value, shown):
    monkeypatch.delenv(terminal.SWITCH, raising=False)
    if value:
        monkeypatch.setenv(terminal.SWITCH, value)
    assert terminal.wanted() is shown


def test_another_value_is_refused(monkeypatch):
    monkeypatch.setenv(terminal.SWITCH, "none")
    with pytest.raises(ConfigError, match="METABO_PROGRESS in the environment is 'none'; use 'line' or 'full'"):
        terminal.wanted()


def test_the_handler_of_this_version_of_snakemake_is_found():
    pytest.importorskip("snakemake")
    from snakemake.logging import LoggerManager
    from snakemake.settings.types import OutputSettings
    from snakemake_interface_logger_plugins.common import LogEvent

    logger = logging.Logger("snakemake")
    LoggerManager(logger, OutputSettings())
    assert isinstance(terminal.take_over(logger), RunLine)
    events = {"job_info", "job_started", "job_finished", "job_error"}
    assert events == set(terminal._NOTES) <= {str(event) for event in LogEvent}
