"""The smoke workflow through a real Slurm: `make test-slurm`, as root (`python -m tests.slurm.run`).

Starts a Slurm of two nodes (cluster.py), runs a part of the smoke workflow with profiles/slurm in a copy of the
project, and kills one submission on the way. It compares Slurm's own records with Snakemake's log (records.py), and the
results with those of a run without Slurm, byte for byte; then it stops what it started. The part has every kind of rule
but collections and downloads: a paper with its report, evaluations, online tuning, and a study that wants a node to
itself.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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
CLUSTER = ["--workflow-profile", "profiles/slurm"]
# This Slurm keeps no accounts, so jobs are followed with squeue, and often, since they are short.
CLUSTER += ["--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2"]
ALONE = "cmbo_timing"
"""The study of `cmbo_x01`, which measures times: its job takes all cores of a node, and no two runs of it agree."""
TIMED = {f"studies/{ALONE}.parquet", "cmbo/cmbo_x01/data.csv"}
COMPARED = ("*.npz", "*.parquet", "*.csv", "theory/*/*.json")
"""Files of results, which have no clock in them; figures, notebooks and records do."""
ON_GPU = "results/smoke/priors/tables/held_out/mimo.npz"


def main() -> None:
    """Run all; exit status 1 with one message if something is not as it should be."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("test-slurm: stopped"))  # an exception, so all is cleaned up
    try:
        cluster.install()
        with tempfile.TemporaryDirectory(prefix="metabo-slurm-") as scratch:
            project, alone = copy_project(Path(scratch, "project")), copy_project(Path(scratch, "alone"))
            with cluster.started(Path(scratch, "slurm")) as environment:
                run_smoke(project, Path(scratch, "slurm"), environment)
                ask_for_a_gpu(project, environment)
            compare(project, alone)
    except MetaboError as error:
        sys.exit(f"test-slurm: {error}")


def run_smoke(project: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run the targets through Slurm, compare with its records, and see that a second call has nothing to do."""
    with one_cancelled(project, environment) as cancelled:
        status, log = snakemake(project, environment, *CLUSTER, "--slurm-keep-successful-logs", *SMOKE, "--", *TARGETS)
    if status != 0:
        raise MetaboError(f"Snakemake ended with status {status} (see above)")
    jobs, texts = records.read(cluster.records(folder)), records.outputs(project / ".snakemake" / "slurm_logs")
    count = records.check(log, texts, jobs, LOCAL, cancelled)
    if count != (wanted := expected()):
        raise MetaboError(f"Slurm ran too few of {dict(wanted - count)} and too many of {dict(count - wanted)}")
    had_a_node(log, texts, jobs)
    sent = [job for job in records.submitted(log) if job not in cancelled]
    nodes = travelled(count.total(), sent, jobs)
    if not cancelled or log.count("Trying to restart job") != len(cancelled):
        raise MetaboError(f"of the jobs that were killed ({', '.join(cancelled) or 'none'}) not each was tried again")
    status, log = snakemake(project, environment, *CLUSTER, *SMOKE, "--", *TARGETS)
    if status != 0 or "Nothing to be done" not in log:
        raise MetaboError("a second run did not find everything done (see above)")
    print(f"test-slurm: {count.total()} jobs of {len(count)} rules ran in {len(sent)} submissions, {dict(nodes)}")
    print(f"test-slurm: Slurm job {cancelled[0]} was killed and tried again; a second run had nothing to do")


def had_a_node(log: str, texts: dict[str, str], jobs: dict[str, records.Record]) -> None:
    """Check that the study that measures times had a node to itself."""
    cores = records.cores_of(log, texts, jobs, f"run study {ALONE}")
    if cores != cluster.cores():
        raise MetaboError(f"study {ALONE} had {cores} of the node's {cluster.cores()} cores, not all")


def travelled(count: int, sent: list[str], jobs: dict[str, records.Record]) -> Counter[str]:
    """Check that `count` jobs took at most half as many submissions, on all nodes; return how many each ran."""
    if 2 * len(sent) > count:
        raise MetaboError(f"{count} jobs took {len(sent)} submissions; short ones should travel together")
    nodes = Counter(jobs[job]["NodeList"] for job in sent)
    if nodes.keys() != set(cluster.NODES):
        raise MetaboError(f"submissions ran on {dict(nodes)}, not on all of {', '.join(cluster.NODES)}")
    return nodes


@contextmanager
def one_cancelled(project: Path, environment: dict[str, str]) -> Iterator[list[str]]:
    """Kill the submission that checks theory once one of its jobs is done; the list has its number then."""
    cancelled: list[str] = []
    over = threading.Event()

    def watch() -> None:
        while not cancelled and not over.wait(1):
            if not any(project.glob("results/smoke/theory/*/*.json")):
                continue
            groups = [job for job, comment in cluster.running(environment).items() if "rule_check_theory-" in comment]
            for job in groups[:1]:
                cluster.cancel(environment, job)
                cancelled.append(job)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield cancelled
    finally:
        over.set()
        watcher.join()


def compare(project: Path, alone: Path) -> None:
    """Run the same targets without Slurm, and compare what they made byte for byte."""
    status, _ = snakemake(alone, os.environ.copy(), "--cores", str(os.cpu_count() or 1), *SMOKE, "--", *TARGETS)
    if status != 0:
        raise MetaboError(f"Snakemake without Slurm ended with status {status} (see above)")
    here, there = (results(folder) for folder in (alone, project))
    differing = sorted(path for path in here.keys() | there.keys() if here.get(path) != there.get(path))
    if differing or not here:
        raise MetaboError(f"results differ from those without Slurm: {', '.join(differing) or 'there are none'}")
    print(f"test-slurm: {len(here)} files of results are the same, byte for byte, without Slurm")


def results(project: Path) -> dict[str, bytes]:
    """Return the contents of the files of results, by their path; those that measure time are left out."""
    folder = project / "results" / "smoke"
    paths = [path for pattern in COMPARED for path in folder.rglob(pattern) if not path.name.endswith(".meta.json")]
    named = {str(path.relative_to(folder)): path for path in paths}
    return {name: path.read_bytes() for name, path in named.items() if name not in TIMED}


def expected() -> Counter[str]:
    """Count the jobs of each rule behind the targets, those beside Snakemake left out."""
    shown = counts.artefacts(GIVEN, [*counts.enabled(GIVEN), *MORE])
    return shown + counts.report(GIVEN) + counts.computed(GIVEN, {"online": {ONLINE}})  # on another benchmark each


def ask_for_a_gpu(project: Path, environment: dict[str, str]) -> None:
    """Compare what Slurm was asked for: a GPU by a numeric job under `device: gpu`, none by the others.

    Here the job may fail, since the node's GPU is no device.
    """
    before = cluster.gpus(environment)
    _, log = snakemake(project, environment, *CLUSTER, *SMOKE, "device=gpu", "--", ON_GPU)
    jobs = records.submitted(log)
    asked = cluster.gpus(environment)
    if not jobs or [asked.get(job) for job in jobs] != [1] * len(jobs) or any(before.values()):
        raise MetaboError(f"GPUs that jobs asked for: {asked}; expected one by {', '.join(jobs) or 'a job'}, else none")
    print("test-slurm: a job of device gpu was given a GPU, no other job was")


def snakemake(project: Path, environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run Snakemake; show and return its output with the exit status."""
    command = [sys.executable, "-m", "snakemake"]
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
