"""The report of the tuner's benchmark: from runs that are known, and from those that are recorded."""

import csv
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "tuner"
sys.path.append(str(FOLDER))  # behind benchmarks/, which has a run.py and a report.py of its own

import runs  # noqa: E402

PROBLEMS = [(s, t) for s, entry in runs.PLAN["held_out"]["spaces"].items() for t in entry["targets"]]
BUDGET = runs.PLAN["budget"]


@pytest.fixture(scope="module")
def report():
    spec = importlib.util.spec_from_file_location("tuner_report", FOLDER / "report.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def played(values):
    return runs.Played([float(v) for v in values] + [float(values[-1])] * (BUDGET - len(values)), 0.01)


def linear():
    return dict.fromkeys(PROBLEMS, runs.References("linear", 0.0, 1.0))


class TestRegret:
    def of(self, report, values, reference):
        run = runs.Run("svc", "sonar", "random", "", 0)
        found = report.curves({run: played(values)}, {("svc", "sonar"): reference})
        return found["random", ""]["svc", "sonar"][0]

    def test_the_best_so_far_between_the_least_and_the_median(self, report):
        got = self.of(report, [0.5, 0.7, 0.3], runs.References("linear", 0.2, 0.4))
        np.testing.assert_allclose(got[:4], [1.5, 1.5, 0.5, 0.5])

    def test_on_the_scale_of_the_outcome(self, report):
        got = self.of(report, [100.0, 10.0], runs.References("log", 0.0, np.log(100.0)))
        np.testing.assert_allclose(got[:2], [1.0, 0.5])

    def test_a_run_that_found_less_than_all_before_lowers_the_least(self, report):
        got = self.of(report, [1.0, -1.0], runs.References("linear", 0.0, 1.0))
        np.testing.assert_allclose(got[:2], [1.0, 0.0])

    def test_a_failed_evaluation_improves_nothing(self, report):
        got = self.of(report, [np.nan, 0.4, np.nan], runs.References("linear", 0.0, 1.0))
        np.testing.assert_allclose(got[:3], [report.WORST, 0.4, 0.4])


class TestBars:
    def verdicts(self, report, gaps):
        """The bars against random search where it is worse by a gap in each problem."""
        made = {}
        for (space, task), gap in zip(PROBLEMS, gaps, strict=True):
            for seed in range(2):
                made[runs.Run(space, task, "default", "small", seed)] = played([0.5])
                made[runs.Run(space, task, "random", "", seed)] = played([0.5 + gap])
        bars = [bar.split(",") for bar in report.bars(report.curves(made, linear()))]
        return [bar[3] for bar in bars if bar[:2] == ["small", "random"]]

    def test_a_default_that_is_better_in_every_problem_meets_them(self, report):
        assert self.verdicts(report, np.linspace(0.1, 0.3, len(PROBLEMS))) == ["met"] * 3

    def test_one_that_is_worse_misses_them(self, report):
        assert self.verdicts(report, np.linspace(-0.3, -0.1, len(PROBLEMS))) == ["missed"] * 3

    def test_one_that_cannot_be_told_apart_is_only_not_worse(self, report):
        assert self.verdicts(report, np.resize([-0.2, 0.2], len(PROBLEMS))) == ["missed", "missed", "met"]


class TestRecord:
    def test_runs_are_read_as_they_were_written(self, tmp_path, getkey):
        values = np.random.default_rng(0).lognormal(0, 9, BUDGET).tolist()
        values[3] = float("nan")
        made = {runs.Run("svc", "sonar", "rgpe", "small", 7): runs.Played(values, 0.0123)}
        runs.record(made, tmp_path / "runs.csv")
        (run, got), *more = runs.recorded(tmp_path / "runs.csv").items()
        assert not more and run in made and got.cpu_s == pytest.approx(0.0123, abs=5e-5)
        np.testing.assert_allclose(got.outcomes, values, rtol=1e-8)

    def test_references_are_read_and_not_computed(self, tmp_path, monkeypatch):
        monkeypatch.setattr(runs, "_computed", lambda *problem: pytest.fail(f"{problem} was computed"))
        runs.record_references(linear(), tmp_path / "references.csv")
        assert runs.references("held_out", tmp_path / "references.csv") == linear()

    def test_runs_of_development_never_replace_the_held_out_ones(self, report, monkeypatch, capsys):
        monkeypatch.setattr(sys, "argv", ["report.py", "development", "--record"])
        with pytest.raises(SystemExit):
            report.main()
        assert "held-out runs alone" in capsys.readouterr().err

    def test_recorded_runs_are_not_made_again(self, tmp_path):
        """A run that is recorded costs nothing; one that is not is made, here on a table of the package's own."""
        made = {run: played([1.0]) for run in runs.planned("held_out", ["random"], [], [0])}
        del made[left := runs.Run("hpolib", "protein_structure", "random", "", 0)]
        runs.record(made, tmp_path / "runs.csv")
        program = f"import pathlib, runs, run; runs.RUNS = pathlib.Path({str(tmp_path / 'runs.csv')!r}); run.main()"
        environment = os.environ | {"PYTHONPATH": str(FOLDER), "METABO_TUNER_CACHE": str(tmp_path)}
        found = subprocess.run(
            [sys.executable, "-c", program, "held_out", "--methods", "random", "--histories", "small", "--seeds", "0"],
            env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert found.stdout.startswith("1 runs to do"), found.stderr
        assert [path.name for path in (tmp_path / "runs").iterdir()] == [left.path.name]


def test_the_recorded_means_follow_from_the_recorded_runs(report):
    """held_out.csv, which the docs are made from, is what anyone gets from the outcomes of the runs."""
    made = runs.recorded()
    curves, spent = report.curves(made, runs.references("held_out")), report.costs(made)
    with (FOLDER / "results" / "held_out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == sum(map(len, curves.values()))
    for row in rows:
        of = list(curves[row["method"], row["history"]][row["space"], row["task"]].values())
        assert len(of) == int(row["seeds"])
        assert row["cpu_ms"] == f"{1e3 * spent[row['method']]:.1f}"
        for k in runs.PLAN["report"]:
            assert float(row[f"regret_{k}"]) == pytest.approx(np.mean([one[k - 1] for one in of]), abs=6e-5)


def test_the_page_has_the_tables_that_follow_from_the_recorded_runs(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "report", report)  # benchmarks/ has one of its own
    import tables

    page = (FOLDER.parents[1] / "docs" / "own-data.md").read_text()
    found = list(tables.every())
    assert len(found) == 7 and all(len(one.splitlines()) > 3 for one in found[:-1])
    assert [one.splitlines()[0] for one in found if one not in page] == []
