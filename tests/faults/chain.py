"""The smallest chain with each kind of job (data, prior, runs, losses, notebook, claims), and ways to run, kill and
compare it."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from metabo.plan import preflight
from metabo.records.checksums import SEAL

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config.yaml", "config", "workflow", "profiles", "src", "notebooks", "pyproject.toml")
ARTEFACT, CLAIM = "hyperbo_tab06", "C42"
OUT = "results/smoke"
DATA, PRIOR = f"{OUT}/data/tables.npz", f"{OUT}/priors/tables/held_out/h_nll.npz"
RUNS, LOSSES = f"{OUT}/bo/tables/held_out/h_nll-pi.parquet", f"{OUT}/evaluation/tables/held_out/h_nll.parquet"
FIGURE = f"{OUT}/hyperbo/tables/{ARTEFACT}"
SCORES = f"{OUT}/claims/hyperbo.csv"
TARGETS = (ARTEFACT, "claims")
MADE = {
    "load": (DATA,),
    "pretrain": (PRIOR,),
    "run_bo": (RUNS,),
    "evaluate": (LOSSES,),
    ARTEFACT: tuple(f"{FIGURE}/{name}" for name in ("data.csv", "figure.pdf", "figure.png", "notebook.ipynb")),
    "judge_claims": (SCORES,),
}
"""The rules, and the results of each."""
CLOCK = {"started", "finished", "wall_s", "cpu_s", "compile_s", "peak_bytes", "cores", "exclusive", "logs", SEAL}
"""Keys of a sidecar that differ from run to run."""

STARTED: list[subprocess.Popen] = []


def new(project: Path) -> Path:
    """Copy the project, its catalogue and claims cut down to the one artefact."""
    for part in PARTS:
        source, to = ROOT / part, project / part
        to.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, to)
    catalogue = project / "workflow/catalogue.yaml"
    entry = yaml.safe_load(catalogue.read_text())[ARTEFACT]
    inputs = {"split": "held_out", "evaluations": ["h_nll"], "trajectories": ["h_nll"]}
    entry |= {"inputs": inputs, "benchmarks": ["tables"], "claims": [CLAIM]}
    catalogue.write_text(yaml.safe_dump({ARTEFACT: entry}))
    for sheet in (project / "src/metabo/papers").glob("*/claims.yaml"):
        claims = {claim: says for claim, says in yaml.safe_load(sheet.read_text()).items() if claim == CLAIM}
        for claim in claims.values():
            claim["primary"]["benchmarks"] = ["tables"]
            claim["tests"] = [test for test in claim["tests"] if "beside" not in test]
            for test in claim["tests"]:  # which method it names matters to no fault, and one prior is soonest trained
                test["arguments"] |= {"method": "h_nll", "other": "h_nll"}
        sheet.write_text(yaml.safe_dump(claims))
    (project / "few.yaml").write_text("run: {papers: [hyperbo], benchmarks: [tables]}\n")
    return project


def start(project: Path, log: Path, *targets: str, dry: bool = False) -> subprocess.Popen:
    """Start the workflow in a process group of its own, its output in `log`."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax")}
    environment.pop("PYTHONPATH", None)
    options = ["--cores", "2", *["-n"] * dry, "--configfile", "config/smoke.yaml", "few.yaml"]
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *options, "--", *(targets or TARGETS)],
            cwd=project, env=environment, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    STARTED.append(process)
    return process


def run(project: Path, *targets: str, dry: bool = False) -> tuple[int, str]:
    """Run the workflow to its end; return (exit status, output)."""
    log = project.with_suffix(".log")  # beside it: the disk of the project may be full
    status = start(project, log, *targets, dry=dry).wait(timeout=1800)
    return status, log.read_text()


def wait(until: Callable[[], object], seconds: float = 900) -> bool:
    """Wait for something; return whether it came."""
    end = time.monotonic() + seconds
    while not (came := until()) and time.monotonic() < end:
        time.sleep(0.02)
    return bool(came)


def kill(process: subprocess.Popen) -> None:
    """Kill a workflow with all its jobs, without notice."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def jobs(process: subprocess.Popen) -> list[int]:
    """List the processes that a workflow has started in its group (Linux)."""
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if pid != process.pid and os.getpgid(pid) == process.pid]


def finished(output: str) -> list[str]:
    """List the rules of the jobs that ended well, targets left out."""
    rules = re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)", output, re.M)
    return [rule for rule in rules if rule != "claims"]


def clear(output: str) -> bool:
    """Whether an output ends in a message for a person."""
    return "Traceback" not in output


def at_work(project: Path) -> bool:
    """Whether a job runs in the folder."""
    lock = project / preflight.JOBS
    if not lock.exists():
        return False
    with lock.open("r+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def began(output: str) -> int:
    """Count the jobs that were started, targets left out."""
    return len(re.findall(r"^Job \d+: ", output, re.M))


def state(project: Path, paths: tuple[str, ...]) -> dict[str, tuple[int, bytes]]:
    """Return time of change and content of some files."""
    return {path: ((project / path).stat().st_mtime_ns, (project / path).read_bytes()) for path in paths}


def lasting(project: Path) -> dict[str, object]:
    """Return every result with what does not change from run to run: tables and figures whole, of sidecars and
    notebooks all but times and what depends on these."""
    kept: dict[str, object] = {}
    for path in sorted((project / OUT).rglob("*")):
        name = path.relative_to(project).as_posix()
        if not path.is_file() or name.startswith((f"{OUT}/logs", f"{OUT}/benchmarks")) or path.suffix == ".html":
            continue
        if path.suffix == ".json":
            record = {key: value for key, value in json.loads(path.read_text()).items() if key not in CLOCK}
            kept[name] = record | {key: _timeless(record[key]) for key in ("inputs", "outputs")}
        elif path.suffix == ".ipynb":
            cells = [[cell["source"], cell.get("outputs")] for cell in json.loads(path.read_text())["cells"]]
            kept[name] = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00)?", "then", json.dumps(cells))
        else:
            kept[name] = path.read_bytes()
    return kept


def _timeless(checksums: dict[str, str]) -> dict[str, str]:
    clocked = (".json", ".ipynb", ".html")
    return {path: "" if path.endswith(clocked) else checksum for path, checksum in checksums.items()}
