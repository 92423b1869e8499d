"""The how-to pages work: their code, written into a copy of the project, does what they say it does."""

import re
import runpy
import shutil

import pytest

from metabo.plan import catalogue, entry_faults, templates
from metabo.plan.runs import RunId
from metabo.plan.typed import written
from metabo.records import files, results
from tests.artefacts import conftest as made
from tests.docs import pages


@pytest.fixture
def project(copy_project, tmp_path):
    return copy_project(tmp_path / "project")


def test_a_list_that_has_grown_keeps_its_items():
    hunk = "   x: y\n-  benchmarks: [a, b]\n+  benchmarks: [a, b, forest]\n"
    assert pages.changed("  x: y\n  benchmarks: [a, b]\n", hunk) == "  x: y\n  benchmarks: [a, b, forest]\n"
    assert pages.changed("  x: y\n  benchmarks: [a, b, c]\n", hunk) == "  x: y\n  benchmarks: [a, b, forest, c]\n"
    for other in ("  x: y\n  benchmarks: [a, c, b]\n", "  x: z\n  benchmarks: [a, b]\n"):
        with pytest.raises(AssertionError, match="stand 0 times"):
            pages.changed(other, hunk)


def skip():
    """In place of a command that another test has."""


QUICK = {"snakemake --cores": skip, "cut": skip}


@pytest.fixture
def with_tests(project):
    """The copy with the tests, which the pages have a reader change and run."""
    shutil.copytree(pages.ROOT / "tests", project / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    return project


def test_a_new_method_is_listed_and_planned(with_tests):
    assert sum(path.startswith("tests/") for path in pages.touched("new-method.md")) == 2
    assert len(pages.touched("new-method.md")) == 5
    pages.follow("new-method.md", with_tests, QUICK)
    references = runpy.run_path(str(with_tests / "tests" / "references.py"))
    assert references["score"]("q90", 1.0, 0.5, 1.0, 3) == pytest.approx(1.6407758)


@pytest.mark.slow
def test_a_new_method_runs(with_tests):
    project = with_tests
    pages.follow("new-method.md", project, {"snakemake -n": skip})
    table = results.read([project / "results/smoke/bo/tables/held_out/h_nll_q90-q90.parquet"])
    assert set(table["method"]) == {"h_nll_q90"} and table["ok"].all()


def executed(project):
    """Execute the page's template on made-up tables, which lie where its defaults look for them."""
    smoke = project / "results" / "smoke"
    made.data_file(smoke / "data" / "tables.npz", "tables")
    digest = files.digest(smoke / "data" / "tables.npz")[:12]
    for name in ("rand", "h_nll"):
        made.trajectories(project, "tables", made.names("tables"), RunId(name, ACQUISITION[name], "held_out"), digest)
    (smoke / "bo").mkdir()
    (project / "bo").rename(smoke / "bo" / "tables")
    run = (
        "from pathlib import Path as P; from metabo.artefacts.run import run; run(P('{}'), P('x.ipynb'), P('{}'), {{}})"
    )
    template, out = "notebooks/hyperbo/duel.ipynb", "results/smoke/hyperbo/tables/hyperbo_x91/notebook.ipynb"
    status, printed = pages.typed(f'python -W ignore -c "{run.format(template, out)}"', project)
    assert status == 0, printed


ACQUISITION = {"rand": "uniform", "h_nll": "pi"}


@pytest.mark.slow
def test_a_new_figure_is_drawn_and_its_tests_pass(with_tests):
    project = with_tests
    assert len(pages.touched("new-figure.md")) == 5
    pages.follow("new-figure.md", project, {"snakemake --cores": lambda: executed(project)})
    status, printed = pages.typed("nbstripout --verify --keep-id notebooks/hyperbo/duel.ipynb", project)
    assert status == 0, printed
    assert (project / "results/smoke/hyperbo/tables/hyperbo_x91/figure.png").stat().st_size > 10_000


def test_the_shared_templates_are_listed_with_their_inputs():
    page = (pages.ROOT / "docs" / "new-figure.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\| (.*?) ?\| \w", page, re.M)
    listed = {f"shared/{name}.ipynb": set(filter(None, inputs.split(", "))) for name, inputs, _ in rows}
    entries = [entry for entry in catalogue.load(pages.ROOT).values() if entry.notebook.startswith("shared/")]
    assert listed == {entry.notebook: set(written(entry.inputs)) for entry in entries}
    for name, _, naming in rows:
        given = [*entry_faults.STANDARD, *entry_faults.ON_BENCHMARK, "trajectories", "evaluations", "online"]
        found = templates.naming_methods(pages.ROOT / "notebooks" / "shared" / f"{name}.ipynb", {}, given)
        assert set(re.findall(r"`(\w+)`", naming)) == found.keys(), name
        assert all(f"`{key}`: {value}" in naming for key, value in found.items() if isinstance(value, str)), name


@pytest.mark.slow
def test_a_new_figure_is_made_by_the_workflow(with_tests):
    pages.follow("new-figure.md", with_tests, {"pytest": skip})


@pytest.mark.slow
def test_a_new_data_set_is_loaded_and_its_test_passes(with_tests):
    project = with_tests
    assert set(pages.touched("new-data.md", until="## The registration")) - {"data/forest.csv"} == {
        "src/metabo/data/forest.py", "workflow/catalogue.yaml", "config.yaml", "tests/data/test_forest.py"
    }  # fmt: skip

    def planned():
        figure = "--configfile config/smoke.yaml -- hyperbo_fig09_forest"
        status, printed = pages.typed(f"snakemake -n --cores 2 {figure}", project)
        assert status == 0 and "bo/forest/held_out/h_nll-pi.parquet" in printed, printed

    pages.follow("new-data.md", project, {"make reference": skip, "snakemake --cores 2": planned})


@pytest.mark.slow
def test_methods_run_on_a_new_data_set(with_tests):
    project = with_tests

    def reference():
        status, printed = pages.typed("python -m metabo.plan.reference", project)
        assert status == 0, printed

    def run():
        status, printed = pages.typed(
            "snakemake --cores 2 --configfile config/smoke.yaml -- results/smoke/bo/forest/held_out/h_nll-pi.parquet",
            project,
        )
        assert status == 0, printed

    instead = {
        "make reference": reference,
        "snakemake --cores 1": skip,
        "cat": skip,
        "snakemake --cores 2": run,
        "pytest": skip,
    }
    pages.follow("new-data.md", project, instead)
    readme = (project / "config" / "README.md").read_text()
    assert "| `forest.worst` | `0.9` |" in readme and "cmbo_control, forest]" in readme
    table = results.read([project / "results/smoke/bo/forest/held_out/h_nll-pi.parquet"])
    assert set(table["task"]) == {"iris", "wine", "digits"} and table["ok"].all()
