"""Re-collection as rules: complete plans, a killed job that goes on where it stopped, shipped or collected tables."""

import json
import re

import pandas as pd
import pytest

from metabo.collect import shipped
from metabo.plan import collectors, registry

SMOKE = ("--configfile", "config/smoke.yaml")
UNIT = "digits-simple_cnn-16"
COLLECTED = [benchmark for benchmark in registry.benchmarks() if registry.benchmark(benchmark).collector]
TABLE = f"results/smoke/collect/pd1_mini/{UNIT}.parquet"
HPOB = shipped.table_path("hpob_mini", shipped.newest("hpob_mini")).name


def counts(output: str) -> dict[str, int]:
    return {name: int(n) for name, n in re.findall(r"^(\w+) +(\d+) *$", output, re.M) if name != "total"}


@pytest.mark.slow
def test_a_re_collection_is_one_job_per_unit_and_one_that_joins_them(project, snakemake):
    """Of the newest version; `collect_pd1_mini_1` is that of the first."""
    first, newest = ({f"collect_{benchmark}{version}": 1 for benchmark in COLLECTED} for version in ("_1", ""))
    units = sum(len(collectors.units(benchmark)) for benchmark in COLLECTED)
    for rules, mark in ((newest, "collect pd1_mini_2: "), (first, "collect pd1_mini: ")):
        status, output = snakemake(project, "-n", *rules)
        assert status == 0, output
        assert counts(output) == {"collect": units, **rules} and mark in output


@pytest.mark.slow
def test_the_shipped_table_needs_no_collection_and_a_collected_one_does(project, snakemake):
    target = "results/smoke/data/pd1_mini.npz"
    _, output = snakemake(project, "-n", target, *SMOKE)
    assert counts(output) == {"archive_pd1_mini": 1, "load": 1}, output
    overlay = project / "own.yaml"
    overlay.write_text("benchmarks: {pd1_mini: {source: collected, version: 1}}\n")
    _, output = snakemake(project, "-n", target, *SMOKE, "own.yaml")
    units = len(collectors.units("pd1_mini"))
    expected = {"collect": units, "collect_pd1_mini_1": 1, "archive_pd1_mini": 1, "load": 1}
    assert counts(output) == expected, output
    overlay.write_text("benchmarks: {pd1_mini: {source: collected, version: 2}}\n")
    _, output = snakemake(project, "-n", target, *SMOKE, "own.yaml")
    assert counts(output) == {"collect": units, "collect_pd1_mini": 1, "archive_pd1_mini": 1, "load": 1}, output


def test_a_damaged_shipped_table_stops_with_a_checksum_error(project, snakemake):
    path = project / "src/metabo/collect/shipped" / HPOB
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    status, output = snakemake(project, "results/smoke/data/hpob_mini.npz", *SMOKE)
    assert status != 0
    assert f"{HPOB}: checksum error" in output and "Traceback" not in output


@pytest.mark.slow
def test_a_missing_shipped_table_is_named_when_it_is_needed(project, snakemake):
    (project / "src/metabo/collect/shipped" / HPOB).unlink()
    status, output = snakemake(project, "-n", "results/smoke/data/hpob_mini.npz", *SMOKE)
    assert status != 0 and f"record {HPOB.replace('parquet', 'json')} is missing; restore both" in output
    assert snakemake(project, "-n", "tables", *SMOKE)[0] == 0


@pytest.mark.slow
class TestKilledCollection:
    """One unit, killed after its first finished trials."""

    @pytest.mark.usefixtures("optimised")
    def test_it_goes_on_where_it_stopped(self, project, snakemake, killed, tmp_path, monkeypatch):
        # A program that is being written when the run is killed stays cut off.
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "jax"))
        overlay = project / "more.yaml"
        overlay.write_text("collect: {pd1_mini: {pilot: 16, matched: 60, unmatched: 60}}\n")
        journal = project / f".cache/collect/smoke/pd1_mini/{UNIT}.jsonl"
        arguments = ("--cores", "1", TABLE, *SMOKE, "more.yaml")
        killed(project, tmp_path / "first.log", lambda: _trials(journal) >= 32, *arguments)
        before = _trials(journal)
        assert 32 <= before < 152 and not (project / TABLE).exists()

        status, output = snakemake(project, TABLE, *SMOKE, "more.yaml")
        assert status == 0, output
        record = json.loads((project / TABLE).with_suffix(".json").read_text())
        assert record["trials"] == 152 and record["resumed_trials"] == before
        assert not journal.exists()

        resumed = pd.read_parquet(project / TABLE)
        (project / TABLE).unlink()
        assert snakemake(project, TABLE, *SMOKE, "more.yaml")[0] == 0
        pd.testing.assert_frame_equal(pd.read_parquet(project / TABLE), resumed)
        assert json.loads((project / TABLE).with_suffix(".json").read_text())["resumed_trials"] == 0


def _trials(journal) -> int:
    return journal.read_text().count("\n") if journal.exists() else 0
