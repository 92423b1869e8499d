"""The smoke workflow through a real Slurm: `make test-slurm`, as root (`python -m tests.slurm.run`).

Starts a Slurm of one node (cluster.py), runs a part of the smoke workflow with profiles/slurm in a copy of the project,
compares Slurm's own records with its log (records.py), and stops what it started. The part has every kind of rule
but collections and downloads: a paper with its report, evaluations, online tuning, and a study that wants the node to
itself. The whole would take an hour on two cores, since two Snakemake processes start for each job.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from metabo.errors import MetaboError
from tests import counts
from tests.slurm import cluster, records

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config.yaml", "config", "workflow", "profiles", "src", "notebooks")
SMOKE = ["--configfile", "config/smoke.yaml", "--config", "run={papers: [hegpucb], benchmarks: [tables]}"]
GIVEN = counts.settings("smoke", run={"papers": ["hegpucb"], "benchmarks": ["tables"]})
MORE = (counts.Made("hyperbo_tab06", "tables"), counts.Made("cmbo_x01", ""))
ONLINE = counts.Run("pd1_mini", "others", "h_ekl_online", "pi")
TARGETS = ["all", *(made.id for made in MORE), f"results/smoke/online/{'/'.join(ONLINE[:3])}.parquet"]
LOCAL = {"all"}
ALONE = "cmbo_timing"
"""The study of `cmbo_x01`, which measures times: its job takes all cores of the node."""
ON_GPU = "results/smoke/priors/tables/held_out/mimo.npz"


def main() -> None:
    """Run all; exit status 1 with one message if something is not as it should be."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("test-slurm: stopped"))  # an exception, so all is cleaned up
    try:
        cluster.install()
        with tempfile.TemporaryDirectory(prefix="metabo-slurm-") as scratch:
            project = copy_project(Path(scratch, "project"))
            with cluster.started(Path(scratch, "slurm")) as environment:
                run_smoke(project, Path(scratch, "slurm"), environment)
                ask_for_a_gpu(project, environment)
    except MetaboError as error:
        sys.exit(f"test-slurm: {error}")


def run_smoke(project: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run the targets through Slurm, compare with its records, and see that a second call has nothing to do."""
    status, log = snakemake(project, environment, *SMOKE, "--", *TARGETS)
    if status != 0:
        raise MetaboError(f"Snakemake ended with status {status} (see above)")
    jobs = records.read(cluster.records(folder))
    count = records.check(log, jobs, LOCAL)
    if count != (wanted := expected()):
        raise MetaboError(f"Slurm ran too few of {dict(wanted - count)} and too many of {dict(count - wanted)}")
    cores = records.cores_of(log, jobs, f"run study {ALONE}")
    if cores != cluster.cores():
        raise MetaboError(f"study {ALONE} had {cores} of the node's {cluster.cores()} cores, not all")
    status, log = snakemake(project, environment, *SMOKE, "--", *TARGETS)
    if status != 0 or "Nothing to be done" not in log:
        raise MetaboError("a second run did not find everything done (see above)")
    print(f"test-slurm: {count.total()} jobs of {len(count)} rules ran in Slurm; a second run had nothing to do")


def expected() -> Counter[str]:
    """Count the jobs of each rule behind the targets, those beside Snakemake left out."""
    shown = counts.artefacts(GIVEN, [*counts.enabled(GIVEN), *MORE])
    return shown + counts.report(GIVEN) + counts.computed(GIVEN, {"online": {ONLINE}})  # on another benchmark each


def ask_for_a_gpu(project: Path, environment: dict[str, str]) -> None:
    """Compare what Slurm was asked for: a GPU by a numeric job under `device: gpu`, none by the others.

    Here the job may fail, since the node's GPU is no device.
    """
    before = cluster.gpus(environment)
    _, log = snakemake(project, environment, *SMOKE, "device=gpu", "--", ON_GPU)
    jobs = records.submitted(log).values()
    asked = cluster.gpus(environment)
    if not jobs or [asked.get(job) for job in jobs] != [1] * len(jobs) or any(before.values()):
        raise MetaboError(f"GPUs that jobs asked for: {asked}; expected one by {', '.join(jobs) or 'a job'}, else none")
    print("test-slurm: a job of device gpu was given a GPU, no other job was")


def snakemake(project: Path, environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run Snakemake with the cluster's profile; show and return its output with the exit status.

    This Slurm keeps no accounts, so jobs are followed with squeue, and often, since they are short.
    """
    command = [sys.executable, "-m", "snakemake", "--workflow-profile", "profiles/slurm"]
    command += ["--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2"]
    environment = environment | {"JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax"), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*command, *arguments], cwd=project, env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    lines = []
    try:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        if process.wait() != 0:
            show_failed_jobs(project)
        return process.returncode, "".join(lines)
    finally:
        if process.poll() is None:  # this test was stopped: as Ctrl-C, so that Snakemake does not wait for its jobs
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def show_failed_jobs(project: Path) -> None:
    """Print what Slurm caught of the jobs that failed; the plugin removes the logs of the others."""
    for path in sorted(project.glob(".snakemake/slurm_logs/**/*.log")):
        print(f"--- {path.relative_to(project)}\n{path.read_text()[-3000:]}")


def copy_project(to: Path) -> Path:
    """Copy what a run needs: neither results nor state of this checkout."""
    to.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, to / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, to / part)
    return to


if __name__ == "__main__":
    os.umask(0o022)
    main()
