"""The terminal of a real run: one line, a failed job in one line, everything else in the log."""

import re

import pytest

from metabo.plan import terminal

pytestmark = pytest.mark.slow

TARGETS = ("results/smoke/theory/hyperbo/lemma13.json", "results/smoke/theory/hyperbo/lemma15.json")
RUN = ("--configfile", "config/smoke.yaml", "--", *TARGETS)
BROKEN = 'raise ValueError("broken for a trial")'


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setenv(terminal.SWITCH, terminal.LINE)


def test_a_run_shows_a_line_its_end_and_its_log(project, snakemake, short):
    status, output = snakemake(project, *RUN)
    own = [text for text in output.splitlines() if " of 2 jobs" in text]
    assert status == 0 and len(own) <= 3, output
    assert re.fullmatch(r"0 of 2 jobs, 0 % of the work, about \d+ s left", own[0])
    done = re.fullmatch(r"2 of 2 jobs done in \d+ \w+; log: (\S+)", own[-1])
    assert done and "Finished jobid" not in output and "Job stats" not in output
    assert (project / done[1]).read_text().count("Finished jobid") == 2
    again = snakemake(project, *RUN)[1]
    assert "Nothing to be done" in again and " jobs" not in again.partition("Nothing")[2]
    assert "Finished jobid" not in again


def test_a_failed_job_is_one_line_and_the_others_run(project, snakemake, short):
    theory = project / "src/metabo/papers/hyperbo/theory/inequalities.py"
    theory.write_text(re.sub(r"(def lemma13\(.*\n)", rf"\1    {BROKEN}\n", theory.read_text()))
    status, output = snakemake(project, *RUN)
    failed = [text for text in output.splitlines() if text.startswith("FAILED")]
    log = "results/smoke/logs/theory/hyperbo/lemma13.log"
    assert status != 0 and len(failed) == 1
    place = r"src/metabo/papers/hyperbo/theory/inequalities\.py:\d+"
    said = rf"FAILED: check lemma13 of hyperbo: ValueError: broken for a trial \({place}\) \(log: {re.escape(log)}\)"
    assert re.fullmatch(said, failed[0]), failed[0]
    assert "Traceback" not in output and "Traceback" in (project / log).read_text()
    assert re.search(r"^1 of 2 jobs done in .*, 1 failed; log: ", output, re.M), output


def test_all_can_be_shown_and_a_dry_run_is_as_it_was(project, snakemake, monkeypatch, short):
    assert "Job stats" in snakemake(project, "-n", *RUN)[1]
    monkeypatch.setenv(terminal.SWITCH, terminal.FULL)
    status, output = snakemake(project, *RUN)
    assert status == 0 and output.count("Finished jobid") == 2 and " of 2 jobs" not in output
    monkeypatch.setenv(terminal.SWITCH, "none")
    status, output = snakemake(project, *RUN)
    assert status != 0 and "METABO_PROGRESS in the environment is 'none'" in output
