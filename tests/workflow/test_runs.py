"""Real runs at the smoke scale: killed and resumed, repeated, one figure again, the archives end to end."""

import csv
import functools
import http.server
import json
import re
import shutil
import signal
import threading
import time
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

from metabo.evidence import adding as evidence
from metabo.plan import registry
from tests import counts
from tests.evidence.conftest import make as record_run

SMOKE = ("--configfile", "config/smoke.yaml")
ARTEFACTS = tuple(f"hyperbo_{name}" for name in ("fig07", "fig08", "fig09", "tab06", "x02"))
SYNTHETIC = ("hyperbo_fig02", "hyperbo_fig03")
RUN = (*ARTEFACTS, *SYNTHETIC, *SMOKE)
"""A run of some artefacts of each kind; the whole smoke run takes ten minutes."""
GIVEN = counts.settings("smoke")
JOBS = counts.artefacts(
    GIVEN, [*(counts.Made(id, "tables") for id in ARTEFACTS), *(counts.Made(id, "") for id in SYNTHETIC)]
).total()
FIGURE = Path("results/smoke/hyperbo/tables/hyperbo_fig08")
FILES = {"notebook.ipynb", "figure.pdf", "figure.png", "data.csv", "provenance.json"}

pytestmark = pytest.mark.slow


def started(output: str) -> int:
    """Count the jobs that a run started, targets left out."""
    return len(re.findall(r"^Job \d+: ", output, re.M))


def outputs(project: Path) -> dict[str, int]:
    """The compute results on disk (no logs) and when they were written."""
    found = [p for p in (project / "results" / "smoke").rglob("*") if p.suffix in (".npz", ".parquet", ".pdf")]
    return {str(p.relative_to(project)): p.stat().st_mtime_ns for p in found if not p.name.startswith(".")}


def is_about(claim: dict, artefacts: dict) -> bool:
    """Whether a claim is tested, and on these artefacts alone."""
    return {test.get("artefact") for test in claim.get("tests", [{}])} <= artefacts.keys()


def finished_jobs(log: Path) -> int:
    return len(re.findall(r"^Finished jobid", log.read_text(), re.M)) if log.exists() else 0


@pytest.fixture(scope="module")
def killed_and_resumed(copy_project, snakemake, killed, tmp_path_factory):
    """A smoke run, killed with SIGKILL after four jobs, and the same command again."""
    project = copy_project(tmp_path_factory.mktemp("smoke") / "project")
    log = project / "first.log"
    killed(project, log, lambda: finished_jobs(log) >= 4, "--cores", "2", *RUN)
    before, done = outputs(project), finished_jobs(log)
    status, output = snakemake(project, *RUN)
    return project, before, done, status, output


class TestSmokeRun:
    """Everything that one smoke run shows (a class, so that --dist loadscope keeps it with its fixture)."""

    def test_a_killed_run_resumes_and_repeats_no_finished_job(self, killed_and_resumed):
        project, before, done, status, output = killed_and_resumed
        assert done >= 4
        assert status == 0, output
        after = outputs(project)
        incomplete = len(before) - done  # written, but killed before Snakemake noted the end: at most one per core
        assert incomplete <= 2
        assert sum(after[path] == written for path, written in before.items()) >= done
        assert started(output) == JOBS - done

    def test_every_artefact_is_there(self, killed_and_resumed):
        project = killed_and_resumed[0]
        results = project / "results/smoke/hyperbo"
        for name in (*ARTEFACTS, *SYNTHETIC):
            folder = results / name if name in SYNTHETIC else results / "tables" / name
            assert {p.name for p in folder.iterdir()} == FILES, name
            assert all(p.stat().st_size > 0 for p in folder.iterdir())
            text = (folder / "notebook.ipynb").read_text()
            assert f"`snakemake --cores 2 {name} --configfile config/smoke.yaml`" in text  # by whatever template

    def test_a_second_run_does_nothing_and_takes_no_more_than_planning(self, killed_and_resumed, start):
        """In processes of their own: another hash seed must not make another plan."""
        begun = time.monotonic()
        start(killed_and_resumed[0], "-n", *RUN).communicate(timeout=600)
        plan = time.monotonic() - begun
        begun = time.monotonic()
        process = start(killed_and_resumed[0], *RUN)
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0 and "Nothing to be done" in output and started(output) == 0
        assert time.monotonic() - begun < 3 * plan

    def test_touched_sources_comments_and_edits_of_what_is_not_read_re_run_nothing(self, killed_and_resumed, snakemake):
        project = killed_and_resumed[0]
        modules = {path: path.read_text() for path in project.glob("src/metabo/**/*.py")}
        for path in [*project.glob("notebooks/**/*.ipynb"), project / "Snakefile"]:
            path.touch()
        try:
            for path, text in modules.items():
                path.write_text(f'{text}\n# a comment\n"""And a string."""\n')
            other = project / "src/metabo/data/pd1.py"
            other.write_text(modules[other] + "EDITED = 1\n")
            assert "Nothing to be done" in snakemake(project, "-n", *RUN)[1]
        finally:
            for path, text in modules.items():
                path.write_text(text)

    def test_a_deleted_figure_is_one_job(self, killed_and_resumed, snakemake):
        project = killed_and_resumed[0]
        numbers = (project / FIGURE / "data.csv").read_bytes()
        shutil.rmtree(project / FIGURE)
        status, output = snakemake(project, "hyperbo_fig08", *SMOKE)
        assert status == 0 and started(output) == 1, output
        assert (project / FIGURE / "data.csv").read_bytes() == numbers

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("src/metabo/plots/curves.py", {"hyperbo_fig07", "hyperbo_fig08", "hyperbo_fig09"}),
            ("src/metabo/methods/random/policy.py", {"pretrain", "run_bo"}),
            ("notebooks/shared/regret_curves.ipynb", {"hyperbo_fig08"}),
        ],
    )
    def test_an_edit_re_runs_what_it_affects(self, killed_and_resumed, snakemake, path, expected):
        project = killed_and_resumed[0]
        original = (project / path).read_text()
        try:
            (project / path).write_text(original + ("\n" if path.endswith("ipynb") else "EDITED = 1\n"))
            _, output = snakemake(project, "-n", *RUN)
        finally:
            (project / path).write_text(original)
        planned = set(re.findall(r"^(\w+) +1 *$", output, re.M)) - {"all", "total"}
        figures = {name for name in planned if name.startswith("hyperbo_")}
        if path.startswith("src/metabo/methods"):  # figures wait for the new trajectories
            planned -= figures
        assert expected <= planned if "plots" in path else planned == expected, output
        assert not planned & {"load", "evaluate"} and ("plots" not in path or planned == figures)

    def test_a_changed_size_re_runs_the_jobs_that_read_it(self, killed_and_resumed, snakemake, tmp_path):
        overlay = tmp_path / "more.yaml"
        overlay.write_text("pretrain: {lbfgs_steps: 4}\n")
        _, output = snakemake(killed_and_resumed[0], "-n", *RUN, str(overlay))
        assert re.search(r"^pretrain +1 *$", output, re.M), output  # H-EKL alone
        assert re.search(r"^run_bo +1 *$", output, re.M), output

    def test_sidecars_chain_results_to_their_inputs(self, killed_and_resumed):
        project = killed_and_resumed[0]
        made: dict[str, str] = {}
        records = [json.loads(p.read_text()) for p in project.glob("results/smoke/**/*.json") if "logs" not in p.parts]
        assert len(records) == JOBS, "each job leaves one"
        for record in records:
            assert record["status"] == "ok" and record["threads"] == 1 and len(record["cores"]) == 1
            made |= record["outputs"]
        for record in records:
            for path, checksum in record["inputs"].items():
                if path.startswith("results/"):
                    assert made[path] == checksum, path
            if record["stage"] in ("pretrain", "evaluate", "bo"):
                assert record["x64"] is True and record["device"]["platform"] == "cpu"

    def test_the_same_seed_gives_the_same_tables_elsewhere(self, killed_and_resumed, copy_project, snakemake, tmp_path):
        project, other = killed_and_resumed[0], copy_project(tmp_path / "other")
        tables = [
            f"results/smoke/bo/tables/held_out/{name}.parquet" for name in ("h_nll-pi", "stbo-pi")
        ]  # other methods: test_conformance.py
        status, output = snakemake(other, *tables, *SMOKE)
        assert status == 0, output
        for table in tables:
            pd.testing.assert_frame_equal(pd.read_parquet(other / table), pd.read_parquet(project / table))

    def test_two_runs_in_one_folder_are_refused(self, killed_and_resumed, snakemake, start):
        project = killed_and_resumed[0]
        shutil.rmtree(project / FIGURE)
        first = start(project, "hyperbo_fig08", *SMOKE)
        lines = iter(first.stdout.readline, "")
        assert any(re.match(r"Job \d+:", line) for line in lines)  # "Job stats" comes before the run is claimed
        first.send_signal(signal.SIGSTOP)  # it must not end before the second one has started
        status, output = snakemake(project, "hyperbo_fig08", *SMOKE)
        first.send_signal(signal.SIGCONT)
        first.communicate(timeout=300)
        assert first.returncode == 0
        assert status != 0 and "another run is active" in output

    def test_a_failing_notebook_is_kept_and_shown(self, killed_and_resumed, snakemake):
        project = killed_and_resumed[0]
        template = project / "notebooks/shared/ranks.ipynb"
        original = template.read_text()
        book = json.loads(original)
        book["cells"].append({**next(c for c in book["cells"] if c["cell_type"] == "code")})
        book["cells"][-1] |= {"source": ["raise ValueError('planted')"], "metadata": {}, "id": "planted"}
        template.write_text(json.dumps(book))
        try:
            status, output = snakemake(project, "hyperbo_fig09", *SMOKE)
        finally:
            template.write_text(original)
        assert status != 0 and "ValueError: planted" in output and '"cell_type"' not in output
        kept = project / "results/smoke/logs/hyperbo/tables/hyperbo_fig09.ipynb"
        assert "planted" in kept.read_text() and "Traceback" in kept.read_text()

    def test_the_report_and_snakemakes_own_are_made_of_the_artefacts(self, killed_and_resumed, snakemake, tmp_path):
        project = killed_and_resumed[0]
        path = project / "workflow/catalogue.yaml"
        original = path.read_text()
        entries = {id: entry for id, entry in yaml.safe_load(original).items() if id in (*ARTEFACTS, *SYNTHETIC)}
        sheet = project / "src/metabo/papers/hyperbo/claims.yaml"
        claims = {id: claim for id, claim in yaml.safe_load(sheet.read_text()).items() if is_about(claim, entries)}
        sheet.write_text(yaml.safe_dump(claims))
        for entry in entries.values():
            entry["claims"] = [claim for claim in entry.get("claims", []) if claim in claims]
        assert any(entry["claims"] for entry in entries.values())
        path.write_text(yaml.safe_dump(entries))
        alone = tmp_path / "alone.yaml"
        alone.write_text("run: {papers: [hyperbo]}\n")
        try:
            status, output = snakemake(project, "report", *SMOKE, str(alone))
            again = snakemake(project, "report", *SMOKE, str(alone))[1]
            judged = pd.read_csv(project / "results/smoke/claims/hyperbo.csv", dtype=str, keep_default_na=False)
            recorded = judged.assign(rung="published", verdict="holds").to_csv(index=False)
            kept = record_run(tmp_path / "recorded", scale="published", claims=recorded)
            evidence.add(kept, project / "evidence")
            beside = snakemake(project, "report", *SMOKE, str(alone))
            shown = pd.read_csv(project / "results/smoke/scorecard.csv")
            (project / "evidence/published/losses.csv").unlink()
            (project / "evidence/published/claims/hyperbo.csv").write_text("x")
            spoiled = snakemake(project, "report", *SMOKE, str(alone))
        finally:
            path.write_text(original)
            shutil.rmtree(project / "evidence", ignore_errors=True)
        assert status == 0, output
        assert beside[0] == 0 and re.findall(r"^(\w+) +1 *$", beside[1], re.M) == ["report", "total"], beside[1]
        verdicts = shown.groupby("source")["verdict"].agg(set)
        assert verdicts["evidence/published"] == {"holds"} != verdicts["this run"]
        assert spoiled[0] == 0, spoiled[1]
        assert "not shown: evidence/published/" in (project / "results/smoke/logs/report.log").read_text()
        assert set(pd.read_csv(project / "results/smoke/scorecard.csv")["source"]) == {"this run"}
        assert {"pages_hyperbo", "report"} <= set(re.findall(r"^(\w+) +1 *$", output, re.M))
        assert "Nothing to be done" in again
        page = (project / "results/smoke/index.html").read_text()
        assert all(f'id="{name}"' in page for name in entries)
        assert (project / FIGURE / "notebook.html").is_file() and (project / "results/smoke/scorecard.csv").is_file()
        assert "run_bo" in (project / "results/smoke/logs/report.log").read_text()
        status, output = snakemake(project, "--report", "report.zip", *SMOKE, "--", "hyperbo_fig08")
        assert status == 0, output
        with zipfile.ZipFile(project / "report.zip") as report:
            shown = report.read("report/report.html").decode()
        assert entries["hyperbo_fig08"]["caption"].split(":")[0] in shown and "<strong>Regret curves.</strong>" in shown


class TestOnline:
    """Online tuning from the shipped table: every evaluation trains a network. A class of its own, as below."""

    @pytest.mark.usefixtures("optimised")
    def test_the_shipped_table_runs_to_the_figures(self, project, snakemake):
        targets = ("hyperbo_fig14", "hyperbo_tab03")
        # Of the nine tasks one of each kind of network: each is compiled in every job, which takes most of the time.
        collector = project / "src/metabo/collect/pd1_mini.py"
        tuned = registry.literal("collect.pd1_mini", "ONLINE")
        chosen = ("digits_maxp_relu", "mnist1d_mlp", "descr_trfmr")
        dropped = [task for task in tuned if task.partition(",")[0] not in chosen]
        lines = collector.read_text().splitlines(keepends=True)
        kept = [line for line in lines if not any(line.startswith(f'    "{task}":') for task in dropped)]
        assert len(lines) - len(kept) == len(dropped) == len(tuned) - len(chosen)
        collector.write_text("".join(kept))
        status, output = snakemake(project, *targets, *SMOKE)
        assert status == 0, output
        for name in targets:
            assert {p.name for p in (project / "results/smoke/hyperbo/pd1_mini" / name).iterdir()} == FILES
        tables = [pd.read_parquet(p) for p in sorted(project.glob("results/smoke/online/pd1_mini/others/*.parquet"))]
        assert len(tables) == len(counts.runs([counts.Made("hyperbo_fig14", "pd1_mini")], "online"))
        for table in tables:
            rows = len(chosen) * GIVEN.online.seeds * GIVEN.online.iterations
            assert len(table) == rows and table["task"].nunique() == len(chosen)
            found = table[table["feasible"]]
            assert (
                len(found) > 0 and found["metric"].between(0, 20).all() and table[~table["feasible"]]["y"].isna().all()
            )
        assert "Nothing to be done" in snakemake(project, *targets, *SMOKE)[1]


@pytest.fixture
def server(tmp_path):
    """A loopback web server over a folder: (folder, address)."""
    folder = tmp_path / "published"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


@pytest.fixture
def make(project, snakemake, server, archives):
    """Return a function that publishes a small archive, makes tables and artefacts from it, and returns the files of
    the artefacts."""

    def run(
        benchmark: str, names: tuple[str, ...], tables: tuple[str, ...], write, overlay: dict
    ) -> dict[str, set[str]]:
        folder, address = server
        table = project / "workflow" / "datasets.csv"
        rows = list(csv.DictReader(table.read_text().splitlines()))
        row = next(r for r in rows if r["name"] == benchmark)
        write(folder / row["file"])
        published = folder / row["file"]
        row |= {"urls": f"{address}/{row['file']}", "checksum": archives.checksum(published)}
        row |= {"bytes": str(published.stat().st_size)}
        with table.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(row))
            writer.writeheader()
            writer.writerows(rows)
        (project / "more.yaml").write_text(yaml.safe_dump(overlay))
        files = (f"results/smoke/{path.format(benchmark)}.parquet" for path in tables)
        run = (*(f"hyperbo_{name}_{benchmark}" for name in names), *files, *SMOKE, "more.yaml")
        status, output = snakemake(project, *run)
        assert status == 0, output
        assert "Nothing to be done" in snakemake(project, *run)[1]
        folders = (project / "results/smoke/hyperbo" / benchmark).iterdir()
        return {folder.name: {p.name for p in folder.iterdir()} for folder in folders}

    return run


class TestPd1:
    """A class of its own: --dist loadscope may give it to another worker."""

    def test_the_archive_runs_from_the_download_to_the_figures(self, make, archives):
        """With a method that reads matched inputs and one that reads rows; all methods: smoke run, and the figures of
        this benchmark that compare them: tests/artefacts."""
        tables = ("evaluation/{}/held_out/h_ekl", "bo/{}/held_out/h_ekl-pi", "bo/{}/held_out/h_nll-pi")
        made = make("pd1", ("tab03", "tab04", "x02"), tables, archives.write_pd1, {})
        assert len(made) == 3 and all(files == FILES for files in made.values()), made


class TestHpob:
    """As above."""

    def test_the_archive_runs_from_the_download_to_the_figures(self, make, archives):
        overlay = {"benchmarks": {"hpob": {"spaces": ["4796", "5860"]}}}
        split = "held_out_points_100"
        tables = (f"evaluation/{{}}/{split}/h_nll", f"bo/{{}}/{split}/h_nll-pi", f"bo/{{}}/{split}/mimo-ucb18")
        made = make("hpob", ("x02",), tables, archives.write_hpob, overlay)
        assert len(made) == 1 and all(files == FILES for files in made.values()), made
