"""A clock that was changed: times of results say nothing, their contents do."""

import datetime
import json
import os
import time

import pytest

from metabo.records import provenance
from tests.faults import chain

DAY = 86_400


def dated(project, days):
    """Give results times that many days from now, each by its place in the list."""
    paths = sorted(path for path in (project / chain.OUT).rglob("*") if path.is_file())
    for i, path in enumerate(paths):
        when = time.time() + DAY * days[i % len(days)]
        os.utime(path, (when, when))


@pytest.mark.slow
def test_results_from_the_future_and_the_past(copy, reference, fault):
    project = copy()
    with fault("times in the future and in the past"):
        dated(project, [9_000, -9_000, 0, -1, 1])
        status, output = chain.run(project, dry=True)
        assert status == 0 and "Nothing to be done" in output, output
    with fault("a clock put back by a day"):
        dated(project, [1])
        for path in (chain.SCORES, chain.SCORES.replace(".csv", ".json")):
            (project / path).unlink()
        status, output = chain.run(project)
        assert status == 0 and chain.finished(output) == ["judge_claims"], output
        assert chain.lasting(project) == reference.results
        assert "Nothing to be done" in chain.run(project, dry=True)[1]


def test_a_clock_put_back_within_a_job(tmp_path, fault):
    with fault("a clock put back within a job"):
        now = provenance.start()
        later = now._replace(clock=now.clock + datetime.timedelta(days=1))
        provenance.write_sidecar(
            tmp_path / "a.json", stage="data", spec={}, inputs={}, outputs=[], code="", depends="",
            started=later, granted={}, extra={},
        )  # fmt: skip
        record = json.loads((tmp_path / "a.json").read_text())
        assert 0 <= record["wall_s"] < 60 and record["finished"] >= record["started"]
