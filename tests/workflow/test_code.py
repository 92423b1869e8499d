"""Code as an input of jobs: what an edit re-runs in the whole plan, and faults of the files that stand for the code."""

import re
import shutil
import time
from pathlib import Path

import grimp
import pytest

from metabo.plan import catalogue, codegraph, registry

ROOT = Path(__file__).parents[2]
ENTRIES = catalogue.load(ROOT)
KERNELS = "metabo.gp.kernels"
SCALE = ("--configfile", "config/smoke.yaml")
CHECKS = ("lemma10", "lemma15")
SMALL = ("--cores", "1", *SCALE, "--", *(f"results/smoke/theory/hyperbo/{name}.json" for name in CHECKS))
JOB = re.compile(r"^Job \d+: (.*)\nReason: (.*)$", re.M)


@pytest.fixture(scope="module")
def finished(copy_project, tmp_path_factory, snakemake):
    """A project in which every job counts as done: its files are empty, but Snakemake knows them."""
    project = copy_project(tmp_path_factory.mktemp("finished") / "project")
    (project / "few.yaml").write_text("run: {papers: [hyperbo, hegpucb], benchmarks: [tables]}\n")
    status, summary = snakemake(project, "--summary", *SCALE, "few.yaml")
    assert status == 0, summary
    files = [line.split("\t")[0] for line in summary.splitlines() if line.startswith("results/")]
    assert len(files) > 500
    for name in files:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    status, output = snakemake(
        project, "--touch", "--forceall", "--max-jobs-per-timespan", "1000/1s", *SCALE, "few.yaml"
    )
    assert status == 0, output
    return project


@pytest.fixture(scope="module")
def graph():
    """The import graph as another library reads it."""
    return grimp.build_graph("metabo")


def reaches(graph, message: str) -> bool:
    """Whether the imports of the job with this message lead to gp/kernels.py."""
    words = message.replace(",", "").split()
    match words:
        case ["pre-train", method, *_]:
            roots = codegraph.stage_roots("pretrain", {"method": method})
        case ["run", "BO", "with", method, *_]:
            roots = codegraph.stage_roots("bo", {"method": method})
        case ["evaluate", "the", "priors", "of", method, *_]:
            roots = codegraph.stage_roots("evaluate", {"method": method})
        case ["check", check, "of", paper]:
            roots = codegraph.stage_roots("theory", {"paper": paper, "check": check})
        case ["run", "study", study]:
            roots = codegraph.stage_roots("study", {"study": study})
        case ["load", benchmark]:
            roots = codegraph.stage_roots("data", {"benchmark": benchmark})
        case ["judge", *_, paper]:
            roots = codegraph.stage_roots("claims", {"paper": paper})
        case ["write", archive, "from", *_] if ".html" not in archive:
            (name,) = [b for b in registry.benchmarks() if registry.benchmark(b).archive == archive]
            roots = codegraph.stage_roots("archive", {"benchmark": name})
        case ["make", name, place]:
            entry = ENTRIES[Path(place).name]
            roots = ["metabo.stages.notebook", *codegraph.notebook_roots(ROOT / "notebooks" / entry.notebook)]
        case ["notebooks", *_] | ["write", *_]:
            roots = [f"metabo.stages.{'pages' if words[0] == 'notebooks' else 'report'}"]
        case _:
            raise AssertionError(f"no roots are known for the job '{message}'")
    return any(KERNELS in {root, *graph.find_upstream_modules(root)} for root in roots)


@pytest.mark.slow
class TestWholePlan:
    def plan(self, snakemake, project, *options) -> str:
        status, output = snakemake(project, "-n", *options, *SCALE, "few.yaml")
        assert status == 0, output
        return output

    def test_comments_in_all_modules_re_run_nothing(self, finished, snakemake):
        assert "Nothing to be done" in self.plan(snakemake, finished)
        modules = {path: path.read_text() for path in finished.glob("src/metabo/**/*.py")}
        try:
            for path, text in modules.items():
                path.write_text(text + "\n# appended\n")
            assert "Nothing to be done" in self.plan(snakemake, finished)
        finally:
            for path, text in modules.items():
                path.write_text(text)

    def test_a_changed_constant_re_runs_exactly_the_jobs_whose_imports_lead_to_it(self, finished, snakemake, graph):
        path = finished / "src/metabo/gp/kernels.py"
        original = path.read_text()
        assert original.count("COINCIDENT = 1e-14") == 1
        path.write_text(original.replace("COINCIDENT = 1e-14", "COINCIDENT = 2e-14"))
        try:
            changed = self.plan(snakemake, finished)
        finally:
            path.write_text(original)
        every = {message for message, _ in JOB.findall(self.plan(snakemake, finished, "--forceall"))}
        planned = dict(JOB.findall(changed))
        direct = {message for message in every if reaches(graph, message)}
        named = {message for message, reason in planned.items() if ".cache/code/" in reason}
        waiting = {message for message, reason in planned.items() if "updated by another job" in reason}
        assert named <= direct <= set(planned) and set(planned) <= direct | waiting
        assert {message.split()[0] for message in named} >= {"pre-train", "check"}
        assert len(direct) > 100 and len(every) - len(planned) > 20


class TestFaults:
    """Of the files that stand for the code, and of the code."""

    @pytest.mark.slow
    def test_files_that_are_deleted_during_a_run_come_back_with_the_next(self, project, snakemake, start):
        process = start(project, *SMALL)
        self.wait(project)
        shutil.rmtree(project / ".cache/code")
        process.communicate(timeout=600)
        status, output = snakemake(project, *SMALL)
        assert status == 0, output
        assert "Nothing to be done" in snakemake(project, *SMALL)[1]

    @pytest.mark.slow
    def test_code_that_changes_during_a_run_stops_the_jobs_that_would_run_it(self, project, snakemake, start):
        process = start(project, *SMALL)
        self.wait(project)
        keys = project / "src/metabo/compute/keys.py"
        keys.write_text(keys.read_text() + "EDITED = 1\n")
        output, _ = process.communicate(timeout=600)
        assert process.returncode != 0
        assert "the code of this job has changed since the run was planned (" in output and "compute/keys.py" in output
        assert "run the same command again" in output and "Traceback" not in output
        status, output = snakemake(project, *SMALL)
        assert status == 0, output

    def wait(self, project):
        """Wait until the first of the two checks is at work: the other one has not started."""
        deadline = time.monotonic() + 120
        while not any((project / f"results/smoke/logs/theory/hyperbo/{name}.log").exists() for name in CHECKS):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("x = = 1", "cannot be parsed (invalid syntax); mend this file and run the same command"),
            ("from metabo.nowhere import x", "imports metabo.nowhere, which is not in"),
        ],
    )
    def test_faulty_code_is_one_clear_line(self, project, snakemake, text, message):
        path = project / "src/metabo/gp/kernels.py"
        path.write_text(f"{path.read_text()}{text}\n")
        status, output = snakemake(project, "-n", *SCALE, "--", "hyperbo_fig08")
        line = len(path.read_text().splitlines())
        assert status != 0 and f"gp/kernels.py:{line}: {message}" in output
        assert "Traceback (most recent call last)" not in output

    @pytest.mark.slow
    def test_faulty_code_that_a_target_does_not_run_is_not_in_its_way(self, project, snakemake):
        (project / "src/metabo/papers/mphd/figures.py").write_text("x = = 1\n")
        status, output = snakemake(project, "-n", *SMALL)
        assert status == 0, output
