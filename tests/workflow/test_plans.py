"""Dry runs: every overlay and target gives a complete plan; unknown names are refused with the valid ones."""

import os
import re
import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from metabo.cli import main
from metabo.plan import catalogue, chain
from metabo.records.files import canonical
from tests import counts
from tests.slurm import run as slurm

DEFAULT = counts.settings()
TARGETS = ("all", "report", "priors", "trajectories", *sorted(counts.papers()), *sorted(counts.benchmarks()))
"""What can be made under config.yaml alone; each artefact is behind one of these."""


def plan(output: str) -> dict[str, int]:
    """Read the job counts of a dry run's last table; empty if nothing is to be done."""
    if "Nothing to be done" in output:
        return {}
    table = output.rsplit("Job stats:", 1)[1].split("total", 1)[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+) *$", table, re.M)}


@pytest.fixture(scope="module")
def jobs(copy_project, snakemake, tmp_path_factory):
    """Return a function that counts the jobs behind a target, read from one graph of the jobs of all `TARGETS`."""
    status, output = snakemake(
        copy_project(tmp_path_factory.mktemp("graph") / "project"), "--dag", "dot", "--", *TARGETS
    )
    assert status == 0, output
    rules = dict(re.findall(r'^\s*(\d+)\[label = "(\w+)', output, re.M))
    needs = defaultdict(set)
    for before, after in re.findall(r"^\s*(\d+) -> (\d+)$", output, re.M):
        needs[after].add(before)

    def behind(target: str) -> dict[str, int]:
        (begin,) = (job for job, rule in rules.items() if rule == target)
        found, open_ = {begin}, [begin]
        while open_:
            new = needs[open_.pop()] - found
            found |= new
            open_ += new
        return dict(Counter(rules[job] for job in found))

    return behind


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_makes_what_it_needs_and_no_more(jobs, target):
    assert jobs(target) == counts.behind(DEFAULT, target)


@pytest.mark.slow
def test_an_artefact_makes_what_it_needs_and_no_more(jobs):
    names = [counts.rule(DEFAULT, made) for made in counts.everything() if made.benchmark in {"", *counts.benchmarks()}]
    assert {name: jobs(name) for name in names} == {name: counts.behind(DEFAULT, name) for name in names}


def test_the_chain_of_jobs_is_that_of_the_rules(project, snakemake):
    artefacts = catalogue.enabled(DEFAULT, catalogue.artefacts(DEFAULT, counts.ENTRIES))
    kinds = ("evaluations", "online", "studies", "theory")
    shown = {kind: next(one for one in artefacts if kind in one.inputs.kinds) for kind in kinds}
    status, output = snakemake(project, "-n", "-p", "--", *{one.name for one in shown.values()})
    assert status == 0, output
    found = {}
    for line in re.findall(r"python -m metabo\.stages\..*", output):
        words = shlex.split(line)
        options = dict(pairwise(words))
        found[options["--out"]] = options["-m"].rpartition(".")[2], options["--spec"]
    jobs = chain.behind(map(chain.Chain(DEFAULT, {}).artefact, shown.values()))
    assert found == {job.result: (job.stage, canonical(job.spec)) for job in jobs}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        *(
            pytest.param(
                ["--configfile", f"config/{scale}.yaml"], counts.behind(counts.settings(scale), "all"), id=scale,
                marks=pytest.mark.slow,
            )
            for scale in ("smoke", "paper")
        ),
        pytest.param(
            ["--config", "run={papers: [hyperbo], benchmarks: [tables]}"],
            counts.behind(counts.settings(run={"papers": ["hyperbo"], "benchmarks": ["tables"]}), "all"),
            id="run",
        ),
        pytest.param(
            [*slurm.SMOKE, "--", *slurm.TARGETS], slurm.expected() + Counter(slurm.LOCAL), id="slurm",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_a_plan_is_complete(project, snakemake, arguments, expected):
    status, output = snakemake(project, "-q", "rules", "-n", *arguments)
    assert status == 0, output
    assert plan(output) == expected


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["hyperbo_fig8"], ["unknown target 'hyperbo_fig8'; nearest: hyperbo_fig", "`metabo list artefacts` lists"]),
        # Faults of one kind are told together; each by itself: test_config.py.
        (
            ["--config", "scale=big", "bo={iterations: 7}"],
            ["config key 'scale'", "laptop, published, paper", "'bo.iterations' is the text '7'", "--configfile"],
        ),
        (
            ["--config", "run={papers: [hyprbo], benchmarks: [tabels]}", "methods={h_nl: {}}"],
            [
                "unknown benchmark 'tabels'", "Did you mean 'tables'?", "unknown paper 'hyprbo'",
                "Did you mean 'hyperbo'?", "unknown method 'h_nl'", "Did you mean 'h_nll'?",
            ],
        ),
    ],
    ids=["target", "values", "names"],
)  # fmt: skip
def test_an_unknown_name_is_refused_with_the_valid_ones(project, snakemake, arguments, parts):
    status, output = snakemake(project, "-n", *arguments)
    assert status != 0
    for part in parts:
        assert part in output


def test_an_unknown_target_is_one_line_and_no_list_of_all(project, snakemake, monkeypatch):
    monkeypatch.setenv("METABO_PROGRESS", "line")  # as a reader has it
    status, output = snakemake(project, "hyperbo_fig8")
    (line,) = [line for line in output.splitlines() if not line.startswith("Using ")]
    assert status != 0 and line.startswith("metabo: unknown target 'hyperbo_fig8'; nearest: hyperbo_fig")
    assert len(line) < 300


def test_a_slip_in_the_path_of_a_result_is_one_line_with_the_nearest_one(project, snakemake, monkeypatch):
    monkeypatch.setenv("METABO_PROGRESS", "line")  # as a reader has it
    right, wrong = (f"results/laptop/bo/tables/{split}/h_nll-ei.parquet" for split in ("held_out", "held_ou"))
    status, output = snakemake(project, wrong)
    (line,) = [line for line in output.splitlines() if not line.startswith("Using ")]
    assert status != 0 and line == f"metabo: no rule makes '{wrong}'; nearest: {right}"
    for wrong, right_ in {"claims/hyprbo.csv": "claims/hyperbo.csv", "studies/x.parqet": "studies/"}.items():
        status, output = snakemake(project, f"results/laptop/{wrong}")
        assert f"no rule makes 'results/laptop/{wrong}'; nearest: results/laptop/{right_}" in output
    status, output = snakemake(project, "-n", f"./{right}", "--until", "results/laptop/data/tables.npz")
    assert status == 0, output


def test_an_indent_of_the_configuration_that_fits_nothing_is_told_with_its_line(project, snakemake, monkeypatch):
    monkeypatch.setenv("METABO_PROGRESS", "line")  # as a reader has it
    path = project / "config.yaml"
    lines = path.read_text().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if line.startswith("  ") and lines[n - 1].startswith("  "))
    path.write_text("".join([*lines[:number], " ", *lines[number:]]))
    status, output = snakemake(project, "-n")
    (line,) = [line for line in output.splitlines() if not line.startswith("Using ")]
    assert status != 0 and line.startswith(f"metabo: config.yaml: line {number + 1}, column ")


def test_an_unknown_method_in_the_catalogue_is_refused(project, snakemake):
    path = project / "workflow" / "catalogue.yaml"
    path.write_text(path.read_text().replace("h_ekl", "h_elk"))
    status, output = snakemake(project, "-n")
    assert status != 0
    assert "catalogue entry 'hyperbo_fig08': unknown method 'h_elk'. Did you mean 'h_ekl'?" in output


@pytest.mark.parametrize(
    ("module", "old", "new", "said"),
    [
        ("data/tables.py", '"settings"', '"setings"', "BENCHMARKS key 'tables.setings' is unknown. Did you mean"),
        ("bo/acquisition.py", "SCORED = ", "SCORE = ", "module metabo.bo.acquisition has no top-level literal SCORED"),
    ],
)
def test_a_fault_in_a_table_of_a_module_is_told_once(project, snakemake, module, old, new, said):
    """The second table is read while the plan is imported."""
    path = project / "src/metabo" / module
    path.write_text(path.read_text().replace(old, new, 1))
    environment = os.environ | {"PYTHONPATH": str(project / "src")}
    for command in (["list", "benchmarks"], ["check-config"]):
        run = [sys.executable, "-c", "from metabo.cli import main; main()", *command]
        done = subprocess.run(run, cwd=project, env=environment, capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.startswith("metabo: "), done.stderr
        assert done.stderr.count(said) == 1 and "Traceback" not in done.stderr
    status, output = snakemake(project, "-n")
    assert status != 0 and output.count(said) == 1 and "Traceback" not in output, output


def test_types_that_cannot_be_imported_are_one_line(project, snakemake):
    path = project / "src/metabo/plan/sections/benchmarks.py"
    path.write_text(path.read_text().replace("class OwnSection(Section)", "class OwnSection(Sectoin)"))
    said = "NameError: name 'Sectoin' is not defined; mend this file and run the same command"
    environment = os.environ | {"PYTHONPATH": str(project / "src")}
    run = [sys.executable, "-c", "from metabo.cli import main; main()", "check-config"]
    done = subprocess.run(run, cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and said in done.stderr, done.stderr
    status, output = snakemake(project, "-n")
    assert status != 0 and output.count(said) == 1 and "Traceback" not in output and "File " not in output, output


@pytest.mark.parametrize("quiet", [(), ("-q", "all")])
def test_a_file_that_a_setting_names_and_that_is_gone_is_one_line(project, snakemake, quiet):
    (project / "mine.yaml").write_text("benchmarks: {own: {history: [gone.csv]}}\n")
    status, output = snakemake(project, *quiet, "--configfile", "mine.yaml", "--", "results/laptop/data/own.npz")
    said = "metabo: config key 'benchmarks.own.history': gone.csv does not exist"
    assert status == 1 and output.count(said) == 1 and "rule load" not in output, output
    assert not list((project / ".snakemake" / "locks").iterdir())


def test_a_claim_that_no_sheet_has_is_told(project, monkeypatch, capsys):
    path = project / "workflow" / "catalogue.yaml"
    path.write_text(path.read_text().replace("claims: [", "claims: [C999, ", 1))
    monkeypatch.chdir(project)
    with pytest.raises(SystemExit):
        main(["check-config"])
    assert "claim 'C999' is not in hyperbo/claims.yaml" in capsys.readouterr().err


def test_results_that_cannot_be_written_stop_at_the_start(project, snakemake):
    (project / "results").write_text("a file, not a folder")
    status, output = snakemake(project)
    assert status != 0
    assert "results: cannot write here" in output and "Select jobs" not in output


@pytest.mark.slow
def test_the_device_decides_who_may_use_the_accelerator(project, snakemake):
    every_stage = ("hyperbo_tab06", "hyperbo_fig08", "hyperbo_fig14", "hyperbo_fig03", "mphd_x01")

    def flags(*arguments):
        status, output = snakemake(project, "-n", "-p", *arguments, "--", *every_stage)
        assert status == 0, output
        return {(s, f) for s, f in re.findall(r"metabo\.stages\.(\w+) .*?--gpu (\d)", output)}

    numeric = ("pretrain", "evaluate", "bo", "online")
    assert flags() == {(stage, "0") for stage in numeric}
    assert flags("--config", "device=gpu") == {(stage, "1") for stage in numeric}


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
    targets = ["reproduce", "smoke", "paper", "test", "test-fast", "test-faults", "test-workers", "browser", "lint"]
    targets += ["benchmark", "clean", "lock"]
    done = subprocess.run(
        ["make", "-n", "-B", *targets], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    for part in ("snakemake --cores", "config/smoke.yaml", "config/paper.yaml", "pytest", "--require-hashes"):
        assert part in done.stdout
