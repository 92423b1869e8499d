"""Dry runs: every overlay and target gives a complete plan; unknown names are refused with the valid ones."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = {f"hyperbo_{n}": 1 for n in ("fig07", "fig08", "fig09", "fig10", "tab05", "tab06")}
ON_PD1 = {f"{name}_pd1": 1 for name in NOTEBOOKS}
ON_HPOB = {f"hyperbo_{n}": 1 for n in ("fig15", "fig16", "fig17")}
MAIN = {"load": 1, "pretrain": 7, "evaluate": 4, "run_bo": 7}
HPOB = {"load": 1, "pretrain": 6, "run_bo": 6, "download_hpob": 1}


def plan(output: str) -> dict[str, int]:
    """Read the job counts of a dry run's last table; empty if nothing is to be done."""
    if "Nothing to be done" in output:
        return {}
    table = output.rsplit("Job stats:", 1)[1].split("total", 1)[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+) *$", table, re.M)}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {**MAIN, **NOTEBOOKS, "all": 1}),
        (["--configfile", "config/smoke.yaml"], {**MAIN, **NOTEBOOKS, "all": 1}),
        (["tables"], {**MAIN, **NOTEBOOKS, "tables": 1}),
        (["hyperbo"], {**MAIN, **NOTEBOOKS, "hyperbo": 1}),
        (["pd1"], {**MAIN, **ON_PD1, "download_pd1": 1, "pd1": 1}),
        (["hpob"], {**HPOB, **ON_HPOB, "hpob": 1}),
        (["hyperbo_fig08"], {"load": 1, "pretrain": 7, "run_bo": 7, "hyperbo_fig08": 1}),
        (["hyperbo_tab06"], {"load": 1, "pretrain": 4, "evaluate": 4, "hyperbo_tab06": 1}),
        (["priors"], {"load": 1, "pretrain": 7, "priors": 1}),
        (["trajectories"], {"load": 1, "pretrain": 7, "run_bo": 7, "trajectories": 1}),
        (
            ["--configfile", "config/paper.yaml"],
            {
                **NOTEBOOKS,  # named like the entries: pd1 is the first benchmark of this overlay
                **ON_HPOB,
                **{"load": 2, "pretrain": 13, "evaluate": 4, "run_bo": 13, "all": 1},
                **{"download_pd1": 1, "download_hpob": 1},
            },
        ),
    ],
    ids=lambda value: " ".join(value) or "default" if isinstance(value, list) else "",
)  # fmt: skip
def test_a_plan_is_complete(project, snakemake, arguments, expected):
    status, output = snakemake(project, "-q", "rules", "-n", *arguments)
    assert status == 0, output
    assert plan(output) == expected


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["hyperbo_fig8"], ["unknown target 'hyperbo_fig8'", "Did you mean 'hyperbo_fig08'?", "trajectories"]),
        (["pd2"], ["unknown target 'pd2'", "Did you mean 'pd1'?"]),
        (["--config", "scale=big"], ["config key 'scale'", "smoke, laptop, paper"]),
        (["--config", "run={benchmarks: [tabels]}"], ["unknown benchmark 'tabels'", "Did you mean 'tables'?"]),
        (["--config", "run={papers: [hyprbo]}"], ["unknown paper 'hyprbo'", "Did you mean 'hyperbo'?"]),
        (["--config", "methods={h_nl: {}}"], ["unknown method 'h_nl'", "Did you mean 'h_nll'?"]),
        (["--config", "bo={iterations: 7}"], ["'bo.iterations' is the text '7'", "--configfile"]),
    ],
    ids=lambda value: value[-1] if value[-1].isidentifier() or "=" in value[-1] else "",
)
def test_an_unknown_name_is_refused_with_the_valid_ones(project, snakemake, arguments, parts):
    status, output = snakemake(project, "-n", *arguments)
    assert status != 0
    for part in parts:
        assert part in output


def test_an_unknown_method_in_the_catalogue_is_refused(project, snakemake):
    path = project / "workflow" / "catalogue.yaml"
    path.write_text(path.read_text().replace("h_ekl", "h_elk"))
    status, output = snakemake(project, "-n")
    assert status != 0
    assert "catalogue entry 'hyperbo_fig08': unknown method 'h_elk'. Did you mean 'h_ekl'?" in output


def test_results_that_cannot_be_written_stop_at_the_start(project, snakemake):
    (project / "results").write_text("a file, not a folder")
    status, output = snakemake(project)
    assert status != 0
    assert "results: cannot write here" in output and "Select jobs" not in output


def test_the_device_decides_who_may_use_the_accelerator(project, snakemake):
    def flags(*arguments):
        status, output = snakemake(project, "-n", "-p", *arguments)
        assert status == 0, output
        return {(s, f) for s, f in re.findall(r"metabo\.stages\.(\w+) .*?--gpu (\d)", output)}

    assert flags() == {("pretrain", "0"), ("evaluate", "0"), ("bo", "0")}
    assert flags("--config", "device=gpu") == {("pretrain", "1"), ("evaluate", "1"), ("bo", "1")}


def test_jobs_use_this_checkout_and_this_python(project, snakemake):
    probe = project / "probe.smk"
    probe.write_text(
        (project / "Snakefile").read_text()
        + "\nrule probe:\n    output: 'results/probe'\n"
        + "    shell: \"python -c 'import metabo, sys; print(metabo.__file__, sys.executable)' > {output}\"\n"
    )
    status, output = snakemake(project, "-s", "probe.smk", "results/probe")
    assert status == 0, output
    package, python = (project / "results" / "probe").read_text().split()
    assert package == str(project / "src" / "metabo" / "__init__.py")
    assert python.rsplit("/", 1)[0] == sys.executable.rsplit("/", 1)[0]


def test_make_targets_exist():
    targets = ["reproduce", "smoke", "paper", "test", "test-fast", "lint", "benchmark", "clean", "install", "lock"]
    done = subprocess.run(
        ["make", "-n", "-B", *targets], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    for part in ("snakemake --cores", "config/smoke.yaml", "config/paper.yaml", "pytest", "--require-hashes"):
        assert part in done.stdout
