"""The cluster's profile, what each rule asks for, and the check of Slurm's records: all that needs no Slurm."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from metabo.errors import MetaboError
from tests.slurm import run

ROOT = Path(__file__).parents[2]
PROFILES = {name: yaml.safe_load((ROOT / f"profiles/{name}/config.yaml").read_text()) for name in ("default", "slurm")}
RULES = sorted((ROOT / "workflow" / "rules").glob("*.smk"))
ON_GPU = {"pretrain", "evaluate", "run_bo", "run_online"}


def part(name: str):
    """A module of tests/slurm."""
    spec = importlib.util.spec_from_file_location(f"slurm_{name}", ROOT / "tests" / "slurm" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


records = part("records")

RUN = "273d4b20-13b1-4bff-a592-f9021493be03"
LOG = f"""SLURM run ID: {RUN}
[Sun Nov 22 06:50:07 2026] Group job check_theory-cmbo (jobs in lexicogr. order):

    [Sun Nov 22 06:50:07 2026]
    Job 2: check a of cmbo
    Reason: Missing output files: results/smoke/theory/cmbo/a.json
    [Sun Nov 22 06:50:07 2026]
    Job 3: check b of cmbo
Job c2d0ada8-60ce-5656-86db-3c018f761605 has been submitted with SLURM jobid 6 (log: .snakemake/slurm_logs/g/6.log).
Job c2d0ada8-60ce-5656-86db-3c018f761605 has been submitted with SLURM jobid 7 (log: .snakemake/slurm_logs/g/7.log).
[Sun Nov 22 06:51:58 2026]
Finished jobid: 2 (Rule: check_theory)
Finished jobid: 3 (Rule: check_theory)
2 of 4 steps (50%) done
Job 1: run study cmbo_timing
Job 1 has been submitted with SLURM jobid 8 (log: .snakemake/slurm_logs/rule_run_study/cmbo_timing/8.log).
Finished jobid: 1 (Rule: run_study)
Finished jobid: 0 (Rule: all)
"""
TEXTS = {
    "6": "Job 0: check b of cmbo\n", "7": "Job 0: check b of cmbo\nJob 1: check a of cmbo\n",
    "8": "Job 0: run study cmbo_timing\n",
}  # fmt: skip
LINE = (
    "JobId={} UserId=root(0) Name={} JobState={} Partition=test ProcCnt={} WorkDir=/w ReservationName= ExitCode={} \n"
)
JOBS = "".join(
    LINE.format(number, RUN, *rest)
    for number, *rest in (
        (6, "CANCELLED", 1, "0:15"),
        (7, "COMPLETED", 1, "0:0"),
        (8, "COMPLETED", 16, "0:0"),
    )
)


@pytest.fixture
def compare(tmp_path):
    """Return a function that checks a log against a file of records."""

    def check(log: str = LOG, jobs: str = JOBS, texts: dict[str, str] = TEXTS):
        (tmp_path / "jobs.txt").write_text(jobs)
        return records.check(log, texts, records.read(tmp_path / "jobs.txt"), {"all", "download_pd1"}, ["6"])

    return check


def test_jobs_that_slurm_completed_are_counted_by_rule(compare):
    assert compare() == {"check_theory": 2, "run_study": 1}


def test_jobs_of_others_are_no_fault(compare):
    assert compare(jobs=JOBS + LINE.format(9, "another", "FAILED", 1, "1:0")).total() == 3


@pytest.mark.parametrize(
    ("log", "jobs", "texts", "said"),
    [
        (LOG, JOBS.replace("COMPLETED", "FAILED", 1), TEXTS, "Slurm 7: JobState is FAILED, not COMPLETED"),
        (LOG, JOBS.replace("CANCELLED", "COMPLETED"), TEXTS, "Slurm 6: JobState is COMPLETED, not CANCELLED"),
        (LOG, JOBS.replace("0:0", "0:9"), TEXTS, "ExitCode is 0:9, not 0:0"),
        (LOG, JOBS.replace(RUN, "another"), TEXTS, "Name is another"),
        (LOG, "".join(JOBS.splitlines(keepends=True)[:2]), TEXTS, "Slurm 8: Slurm has no record of it"),
        (LOG, JOBS + LINE.format(9, RUN, "COMPLETED", 1, "0:0"), TEXTS, "a job 9 that Snakemake does not name"),
        (LOG, JOBS, TEXTS | {"7": TEXTS["6"]}, r"job 2 \(check_theory\) finished without Slurm"),
        (LOG, JOBS, TEXTS | {"7": "Job 0: check a of cmbo"}, r"job 3 .* was in Slurm 6, which was killed, and in no"),
        (LOG.replace("Finished jobid: 2", "Failed 2"), JOBS, TEXTS, "job 2, in Slurm 7, did not finish"),
        (LOG.replace("2 (Rule: check_theory)", "2 (Rule: all)"), JOBS, TEXTS, r"job 2 \(all\) ran in Slurm as 7"),
        (re.sub("Job .* has been.*\n", "", LOG), "", TEXTS, "no job was handed to Slurm"),
        (LOG, "JobId=7 JobState=COMPLETED\n", TEXTS, "not a line of jobcomp/filetxt"),
    ],
)
def test_what_does_not_agree_is_told(compare, log, jobs, texts, said):
    with pytest.raises(MetaboError, match=said):
        compare(log, jobs, texts)


def test_the_cores_of_a_job_are_found_by_its_message(tmp_path):
    (tmp_path / "jobs.txt").write_text(JOBS)
    jobs = records.read(tmp_path / "jobs.txt")
    assert records.cores_of(LOG, TEXTS, jobs, "run study cmbo_timing") == 16
    with pytest.raises(MetaboError, match="no job 'run study landscapes' was handed to Slurm"):
        records.cores_of(LOG, TEXTS, jobs, "run study landscapes")


def test_without_root_the_reason_is_given(monkeypatch):
    cluster = part("cluster")
    monkeypatch.setattr(cluster.os, "geteuid", lambda: 1000)
    with pytest.raises(MetaboError, match="needs root; say sudo make test-slurm"):
        cluster.install()


def test_without_apt_the_missing_commands_are_named(monkeypatch):
    cluster = part("cluster")
    monkeypatch.setattr(cluster.os, "geteuid", lambda: 0)
    monkeypatch.setattr(cluster.shutil, "which", lambda name, path=None: None)
    with pytest.raises(MetaboError, match=r"munged, slurmctld, .* not found, and no apt-get"):
        cluster.install()


def test_a_daemon_that_ends_is_told_with_the_end_of_its_log(tmp_path, monkeypatch):
    cluster = part("cluster")
    (tmp_path / "bin").mkdir()
    munged = tmp_path / "bin" / "munged"
    munged.write_text("#!/bin/sh\necho the key is bad\nexit 1\n")
    munged.chmod(0o755)
    monkeypatch.setattr(cluster, "SEARCHED", f"{munged.parent}:{cluster.SEARCHED}")
    monkeypatch.setenv("PATH", cluster.SEARCHED)
    with pytest.raises(MetaboError, match=r"munged ended.*(?s:.)*the key is bad"), cluster.started(tmp_path / "slurm"):
        pass


def test_the_profiles_agree_on_what_holds_everywhere():
    ours = {key: value for key, value in PROFILES["default"].items() if key != "resources"}
    assert ours == {key: PROFILES["slurm"][key] for key in ours}
    assert "resources" not in PROFILES["slurm"]  # a cluster has more than one GPU


def test_the_profile_names_no_account_partition_or_gpu():
    assert PROFILES["slurm"]["default-resources"].keys() == {"mem_mb", "runtime"}
    assert "set-resources" not in PROFILES["slurm"]


@pytest.fixture
def asked(project, tmp_path):
    """Return what sbatch is asked for, by rule: stand-ins for Slurm's commands, of which sbatch refuses every job.

    It writes its arguments down: Snakemake shows no call of a submission of several jobs.
    """
    calls = tmp_path / "calls.txt"
    commands = {
        "sbatch": f'echo "$*" >> {calls}; exit 1',
        "sinfo": "echo 'test*'",
        "squeue": "",
        "sacct": "",
        "scontrol": "",
        "scancel": "",
    }
    for name, text in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (project / "results/laptop/data").mkdir(parents=True, exist_ok=True)
    for name, text in (("tables.npz", ""), ("tables.json", '{"schema": 1}')):  # a job on a GPU comes after this one
        (project / "results/laptop/data" / name).write_text(text)
    command = [sys.executable, "-m", "snakemake", "--workflow-profile", "profiles/slurm", "--config", "device=gpu"]
    targets = ("studies/cmbo_timing.parquet", "studies/landscapes.parquet", "theory/hyperbo/lemma10.json")
    done = subprocess.run(
        [*command, "--retries", "0", "--slurm-init-seconds-before-status-checks", "1",
         "--set-resources", "pretrain:gpu_model=a100", "--",
         *(f"results/laptop/{target}" for target in (*targets, "priors/tables/held_out/rand.npz"))],
        cwd=project, env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert calls.is_file(), done.stdout + done.stderr
    return {name: call for call, name in re.findall(r"^(.*--comment rule_(\S+) .*?) --wrap=", calls.read_text(), re.M)}


def test_sbatch_is_asked_for_what_the_rules_declare(asked):
    # The study that wants the machine to itself asks Slurm for the node; its job has one core for Snakemake.
    timing, landscapes = asked["run_study_wildcards_cmbo_timing"], asked["run_study_wildcards_landscapes"]
    check, prior = asked["check_theory-hyperbo_check_theory"], asked["pretrain-tables_pretrain"]
    assert all("-p test -t " in call and "--cpus-per-task=1" in call for call in asked.values()), asked
    assert " -t 720 " in timing and " -t 720 " in landscapes and " -t 10 " in check and " -t 10 " in prior
    assert "--exclusive" in timing and "--exclusive" not in landscapes + check + prior
    assert "--mem 5000" in timing and "--mem 5000" in landscapes and "--mem 3000" in check and "--mem 3000" in prior
    assert "--gpus=a100:1" in prior and "--gpus" not in timing + landscapes + check


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_every_job_declares_threads_memory_gpu_and_time(path):
    for rule in re.split(r"^ *rule\b", path.read_text(), flags=re.M)[1:]:
        if "shell:" in rule:
            parts = ("threads:", "resources:", "gpu=", "mem_mb=", "runtime=")
            assert [part for part in parts if part not in rule] == [], rule[:60]


def test_the_rules_that_use_a_gpu_are_those_that_the_profile_names():
    text = "\n".join(path.read_text() for path in RULES)
    assert {
        name for name, body in re.findall(r"^rule (\w+):\n((?: .*\n|\n)+)", text, re.M) if "gpu=GPU" in body
    } == ON_GPU
    commented = (ROOT / "profiles/slurm/config.yaml").read_text().split("set-resources:")[1].split("\n\n")[0]
    assert set(re.findall(r"^#   (\w+):", commented, re.M)) == ON_GPU


def test_the_part_that_runs_through_slurm_has_every_kind_of_rule():
    text = "\n".join(path.read_text() for path in RULES)
    kinds = {name for name, body in re.findall(r"^rule (\w+):\n((?: .*\n|\n)+)", text, re.M) if "shell:" in body}
    assert kinds - run.expected().keys() == {"collect"}


def test_downloads_run_where_the_network_is():
    download = (ROOT / "workflow/rules/data.smk").read_text().split("rule load:")[0]
    assert download.count("shell:") == download.count("localrule: True") == 1
