"""The record and the table of the benchmark."""

import importlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
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
        "facts": {},
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
    section |= {"within": None, "sizes": None}
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
    assert rows["metabo, PI"][2:] == ["2", "500", "1.00", "0.5", "-", "150", "1.00"]
    assert rows["textbook"][1:] == ["20", "50", "10.00", "0.5", "-", "150", "1.00"]
    assert rows["BoTorch"][1:] == ["not", "installed"]
    assert report.INSTALL in text and "goal: at most 2.5 ms: met (2 ms)" in text


def test_table_says_when_a_goal_is_missed_or_peers_are_there(record):
    record["sections"]["bo"]["goal_ms"] = 1.5
    del record["sections"]["bo"]["cases"]["botorch"]
    text = report.table(record)
    assert "goal: at most 1.5 ms: not met (2 ms)" in text and report.INSTALL not in text


def test_memory_is_compared_too(record):
    cases = record["sections"]["bo"]["cases"]
    cases["textbook"]["peak_mib"] = 450.0
    report.summarise(cases, "metabo")
    assert {name: case["memory_ratio"] for name, case in cases.items()} == {
        "metabo": 1.0, "textbook": 3.0, "botorch": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "ratio", "said"), [([1.0, 2.0, 4.0], 1.0, "met"), ([0.5, 1.0, 1.0], 2.0, "not met")]
)
def test_time_is_judged_against_a_limit(record, limits, ratio, said):
    """The ratio is metabo / limit, the median over the turns."""
    section = record["sections"]["bo"]
    section["cases"]["limit"] = case("limit", ms=limits, facts={"flop": 21749884.0, "inverse_us": 22.4})
    report.summarise(section["cases"], "metabo")
    section["within"] = report.within(section["cases"], "metabo", {"case": "limit", "at_most": 1.6})
    assert section["within"] == {"case": "limit", "at_most": 1.6, "ratio": ratio}
    text = report.table(record)
    assert f"metabo / limit: {ratio:.2f} (goal: at most 1.6: {said})" in text
    assert "21,749,884 FLOP, potrf + potri 22.4 us" in text
    quick = report.table(record | {"quick": True})
    assert f"metabo / limit: {ratio:.2f}\n" in quick + "\n" and "goal" not in quick


def test_a_limit_without_measurements_is_none(record):
    cases = record["sections"]["bo"]["cases"]
    goal = {"case": "limit", "at_most": 1.6}
    assert report.within(cases, "metabo", goal) == goal | {"ratio": None}
    assert report.within(cases, "metabo", None) is None


def test_growth_has_exponents(record):
    sizes = [1, 2, 4, 8]
    cases = {
        "metabo": case("metabo", ms=[[s * 1.0 for s in sizes], [s * 3.0 for s in sizes]]),
        "textbook": case("textbook", ms=[[s**2 * 1.0 for s in sizes], [s**2 * 3.0 for s in sizes]]),
        "botorch": {"label": "BoTorch", "status": "not installed", "missing": "torch"},
    }
    report.summarise(cases, "metabo", sizes)
    assert cases["metabo"]["exponent"] == pytest.approx({"value": 1, "low": 1, "high": 1, "last": 1})
    assert cases["textbook"]["exponent"]["value"] == pytest.approx(2) and cases["botorch"]["exponent"] is None
    assert cases["textbook"]["ratio"] == 8.0 and cases["textbook"]["median_ms"] == [2.0, 8.0, 32.0, 128.0]
    record["sections"]["bo"] |= {"cases": cases, "sizes": sizes, "goal_ms": None}
    text = report.table(json.loads(json.dumps(record)))
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith("  ")}
    assert rows["textbook"] == ["2.00", "2.00", "to", "2.00", "2.00", "8.00", "150", "1.00"]
    assert rows["BoTorch"] == ["not", "installed"]


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
    import worker

    named = {(s, c): worker.module_of(s, c) for s, section in run.SECTIONS.items() for c in section["cases"]}
    implemented = {(s, c) for name in set(named.values()) if name not in MAYBE_ABSENT for s, c in listed(name)}
    implemented |= {pair for pairs in MAYBE_ABSENT.values() for pair in pairs}
    assert implemented == set(named)
    assert {pair for pair, module in named.items() if module in MAYBE_ABSENT} == {
        pair for pairs in MAYBE_ABSENT.values() for pair in pairs
    }
    assert worker.module_of("bo", "metabo_ei") == "ours" and worker.module_of("adam", "limit") == "limit"
    assert worker.module_of("refit", "botorch_default") == "peer_botorch"
    assert worker.module_of("mphd_map", "metabo_single") == "ours_mphd"
    assert worker.module_of("tables_bo", "textbook") == "textbook_tables"
    assert worker.module_of("ask_few", "optuna_gp") == "peer_optuna_ask"


def listed(module):
    return [(section, case) for section, cases in importlib.import_module(module).CASES.items() for case in cases]


MAYBE_ABSENT = {
    "peer_botorch": {("bo", "botorch"), ("refit", "botorch"), ("refit", "botorch_default")},
    "peer_botorch_gp": {(s, "botorch") for s in ("gp_fit", "gp_fit_large", "gp_posterior", "gp_log_ei")},
}
"""Modules of cases whose packages the development environment lacks."""
NEW = ["adam/metabo", "adam/limit", *(name for name in run.SECTIONS if name.startswith(("gp_", "ask_", "growth_")))]
PEERS = {"botorch": "torch", "sklearn": "sklearn", "optuna": "optuna"}
"""Packages that the modules of the peers import first."""


def without_peers(folder):
    """Return an environment in which no peer can be imported."""
    for package in PEERS.values():
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text(f"raise ModuleNotFoundError('no {package}', name='{package}')\n")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}


@pytest.mark.slow
@pytest.mark.parametrize("only", [["bo"], NEW], ids=["bo", "new"])
def test_a_quick_run_without_the_peers(tmp_path, only):
    """The run succeeds where peers are not installed, says so, and leaves a complete file that names no machine."""
    out = tmp_path / "out"
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--out", str(out), "--only", *only]
    environment = without_peers(tmp_path / "path")
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert report.INSTALL in done.stdout and "these times mean nothing" in done.stdout
    (path,) = out.glob("*.json")
    text = path.read_text()
    record = json.loads(text)
    assert report.table(record) in done.stdout
    assert socket.gethostname() not in text and str(ROOT) not in text and sys.prefix not in text
    assert_documented(record)
    for section, cases in run.chosen(only, None).items():
        measured = record["sections"][section]["cases"]
        status = {c: "not installed" if c.split("_")[0] in PEERS else "ok" for c in cases}
        assert {name: c["status"] for name, c in measured.items()} == status
        assert all(len(c["ms"]) == 2 and np.all(np.array(c["ms"]) > 0) for c in measured.values() if "ms" in c)
    if "adam/limit" in only:
        assert "metabo / limit: " in done.stdout and record["sections"]["adam"]["within"]["ratio"] > 0


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks" / "results").glob("*.json")), ids=lambda p: p.name)
def test_stored_results_are_complete(path):
    record = json.loads(path.read_text())
    assert_documented(record)
    own = Path(report.file_name(record)).stem  # several runs of a day have a commit or a number after it
    assert not record["quick"] and path.name.startswith(own)
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
    parts = {"title", "unit", "goal_ms", "reference", "cases"}
    summary = {"label", "status", "median_ms", "per_second", "ratio"}
    measured = summary | {"ms", "trace_s", "compile_s", "base_mib", "peak_mib", "device_mib"}
    if record["schema"] > 1:
        parts, summary = parts | {"within", "sizes"}, summary | {"memory_ratio", "exponent"}
        measured |= summary | {"facts"}
    documented = (ROOT / "benchmarks" / "README.md").read_text()
    for section in record["sections"].values():
        assert set(section) == parts
        for case in section["cases"].values():
            assert set(case) == (measured if case["status"] == "ok" else summary | {"missing"})
            assert set(case.get("facts", {})) <= set(report.FACTS)
    for field in {*record, *parts, *measured, *report.FACTS, "missing"}:
        assert f"`{field}`" in documented, f"benchmarks/README.md does not explain {field}"
