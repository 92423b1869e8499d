"""The record and the table of the benchmark."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import report
import run

ROOT = Path(__file__).parents[2]


def case(label, **fields):
    return {
        "label": label,
        "status": "ok",
        "trace_s": 0.5,
        "compile_s": None,
        "base_mib": 100.0,
        "peak_mib": 150.0,
    } | fields


@pytest.fixture
def record():
    cases = {
        "metabo": case("metabo, PI", ms=[1.0, 4.0, 2.0]),
        "textbook": case("textbook", ms=[10.0, 20.0, 40.0]),
        "botorch": {"label": "BoTorch", "status": "not installed", "missing": "torch"},
    }
    report.summarise(cases, "metabo")
    section = {"title": "BO", "unit": "BO iteration", "goal_ms": 2.5, "reference": "metabo", "cases": cases}
    load = {"load_before": [0.1, 0.1, 0.1], "load_after": [1.0, 0.5, 0.2]}
    return report.environment(None) | {"quick": False, "sizes": {}, "sections": {"bo": section}} | load


def test_ratio_is_the_median_of_the_ratios_in_turns(record):
    cases = record["sections"]["bo"]["cases"]
    assert cases["metabo"]["median_ms"] == 2.0 and cases["metabo"]["per_second"] == 500.0
    assert cases["metabo"]["ratio"] == 1.0
    assert cases["textbook"]["ratio"] == 10.0  # of 10, 5, 20
    assert cases["botorch"]["ratio"] is None and cases["botorch"]["median_ms"] is None


def test_ratio_without_the_reference_is_none():
    cases = {"textbook": case("textbook", ms=[1.0])}
    report.summarise(cases, "metabo")
    assert cases["textbook"]["ratio"] is None


def test_table_renders_from_a_json_file(record):
    text = report.table(json.loads(json.dumps(record)))
    rows = {line.strip().split("  ")[0]: line.split() for line in text.splitlines() if line.startswith("  ")}
    assert rows["metabo, PI"][2:] == ["2", "500", "1.00", "0.5", "-", "150"]
    assert rows["textbook"][1:] == ["20", "50", "10.00", "0.5", "-", "150"]
    assert rows["BoTorch"][1:] == ["not", "installed"]
    assert report.INSTALL in text and "goal: at most 2.5 ms: met (2 ms)" in text


def test_table_says_when_a_goal_is_missed_or_peers_are_there(record):
    record["sections"]["bo"]["goal_ms"] = 1.5
    del record["sections"]["bo"]["cases"]["botorch"]
    text = report.table(record)
    assert "goal: at most 1.5 ms: not met (2 ms)" in text and report.INSTALL not in text


def test_file_is_named_by_date_and_device(record):
    record |= {"created": "2026-01-02T03:04:05+00:00", "device": {"cpu": "Some(R) CPU @ 2", "cores": 2, "gpu": None}}
    assert report.file_name(record) == "2026-01-02-some-r-cpu-2-2-cores.json"
    record["device"]["gpu"] = "NVIDIA X"
    assert report.file_name(record) == "2026-01-02-some-r-cpu-2-2-cores-nvidia-x.json"


def test_cases_are_chosen_by_section_or_name():
    assert run.chosen(["bo/textbook", "lbfgs"], None) == {
        "lbfgs": ["metabo", "metabo_autodiff", "textbook"],
        "bo": ["textbook"],
    }
    assert "metabo_gpu" not in run.chosen([], None)["adam"]
    assert "metabo_gpu" in run.chosen([], "a GPU")["adam"]
    with pytest.raises(SystemExit, match=r"unknown section or case 'bo/textbok'. Valid: .*bo/textbook"):
        run.chosen(["bo/textbok"], None)


def test_every_case_is_implemented():
    import ours
    import ours_mphd
    import ours_tables
    import textbook
    import textbook_mphd
    import textbook_tables
    import worker

    modules = (ours, textbook, ours_mphd, textbook_mphd, ours_tables, textbook_tables)
    implemented = {(s, c) for module in modules for s, cases in module.CASES.items() for c in cases}
    implemented |= {("bo", "botorch"), ("refit", "botorch"), ("refit", "botorch_default")}  # may be not installed
    assert implemented == {(s, c) for s, section in run.SECTIONS.items() for c in section["cases"]}
    assert [worker.module_of("bo", c) for c in ("metabo_ei", "textbook", "botorch_default")] == list(worker.MODULES)
    assert worker.module_of("mphd_map", "metabo_single") == "ours_mphd"
    assert worker.module_of("tables_bo", "textbook") == "textbook_tables"


@pytest.mark.slow
def test_a_quick_run_without_the_peer(tmp_path):
    """The run succeeds where BoTorch is not installed, says so, and leaves a complete file that names no machine."""
    absent = tmp_path / "path" / "torch"
    absent.mkdir(parents=True)
    (absent / "__init__.py").write_text("raise ModuleNotFoundError('no torch', name='torch')\n")
    out = tmp_path / "out"
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--out", str(out), "--only", "bo"]
    environment = os.environ | {"PYTHONPATH": str(absent.parent), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert report.INSTALL in done.stdout
    (path,) = out.glob("*.json")
    text = path.read_text()
    record = json.loads(text)
    assert report.table(record) in done.stdout
    assert socket.gethostname() not in text and str(ROOT) not in text and sys.prefix not in text
    assert_documented(record)
    cases = record["sections"]["bo"]["cases"]
    assert {name: c["status"] for name, c in cases.items()} == {
        "metabo": "ok", "metabo_ei": "ok", "textbook": "ok", "botorch": "not installed",
    }  # fmt: skip
    assert all(t > 0 and len(c["ms"]) == 2 for c in cases.values() if c["status"] == "ok" for t in c["ms"])


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks" / "results").glob("*.json")), ids=lambda p: p.name)
def test_stored_results_are_complete(path):
    record = json.loads(path.read_text())
    assert_documented(record)
    assert not record["quick"] and path.name == report.file_name(record)
    assert set(record["sections"]) <= set(run.SECTIONS)  # a section may have come since
    assert {"adam", "lbfgs", "bo", "refit"} <= set(record["sections"])
    assert "failed" not in {c["status"] for s in record["sections"].values() for c in s["cases"].values()}


def assert_documented(record):
    """Every field that benchmarks/README.md lists is there, and no other."""
    assert set(record) == {
        *("schema", "created", "device", "git", "versions", "quick", "sizes", "load_before", "load_after"),
        *("threads", "exclusive_cores", "sections"),
    }  # fmt: skip
    assert set(record["device"]) == {"cpu", "cores", "gpu", "system"} and record["device"]["cpu"]
    assert set(record["git"]) == {"commit", "dirty"}
    assert len(record["load_before"]) == len(record["load_after"]) == 3
    summary = {"label", "status", "median_ms", "per_second", "ratio"}
    measured = summary | {"ms", "trace_s", "compile_s", "base_mib", "peak_mib", "device_mib"}
    documented = (ROOT / "benchmarks" / "README.md").read_text()
    for section in record["sections"].values():
        assert set(section) == {"title", "unit", "goal_ms", "reference", "cases"}
        for case in section["cases"].values():
            assert set(case) == (measured if case["status"] == "ok" else summary | {"missing"})
    for field in {*record, *measured, "missing"}:
        assert f"`{field}`" in documented, f"benchmarks/README.md does not explain {field}"
