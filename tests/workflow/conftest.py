"""A copy of the project per test, and a way to run Snakemake in it."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from metabo.plan import digests
from tests.workflow.forks import Forks

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config.yaml", "config", "workflow", "profiles", "src", "notebooks", "pyproject.toml")
TABLES = "data"
"""Committed tables of benchmarks, if there are any."""


@pytest.fixture(scope="session")
def copy_project(tmp_path_factory):
    """Return a function that copies what a run needs (no results, no state) into a folder."""
    code = tmp_path_factory.mktemp("code")
    digests.record(code)  # read once here, not in the first run of every copy

    def copy(to: Path) -> Path:
        shutil.copytree(code, to / digests.FOLDER)
        for part in (*PARTS, *([TABLES] if (ROOT / TABLES).is_dir() else [])):
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, to / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                to.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, to / part)
        return to

    return copy


@pytest.fixture
def project(copy_project, tmp_path):
    return copy_project(tmp_path / "project")


def environment() -> dict[str, str]:
    """Return the environment of Snakemake: the checkout's compilation cache saves time, unless a test has its own."""
    given = {"JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax")} | os.environ
    given.pop("PYTHONPATH", None)
    return given


@pytest.fixture
def optimised(monkeypatch):
    """Let the jobs of a test optimise their programs, unlike all others (tests/conftest.py): those that train networks
    run for longer than it takes to compile them."""
    monkeypatch.setenv("XLA_FLAGS", os.environ["XLA_FLAGS"].replace("optimization_level=0", "optimization_level=1"))


@pytest.fixture(scope="session")
def start():
    """Return a function that starts Snakemake in a folder."""

    def begin(where: Path, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
        return subprocess.Popen(
            command, cwd=where, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    return begin


@pytest.fixture(scope="session")
def snakemake(tmp_path_factory):
    """Return a function that runs Snakemake in a folder to its end and returns (exit status, output)."""
    forks, output = Forks(), tmp_path_factory.mktemp("snakemake") / "output"

    def run(where: Path, *arguments: str) -> tuple[int, str]:
        status = forks.run(where, ["--cores", "2", *arguments], environment(), output)
        return status, output.read_text()

    yield run
    forks.end()


@pytest.fixture(scope="session")
def killed():
    """Return a function that starts Snakemake and kills it with all its jobs (SIGKILL) once `ready` says so."""

    def run(where: Path, log: Path, ready: Callable[[], bool], *arguments: str) -> None:
        command = [sys.executable, "-m", "snakemake", *arguments]
        with log.open("w") as stream:
            process = subprocess.Popen(
                command, cwd=where, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
                env=environment(),
            )  # fmt: skip
            deadline = time.monotonic() + 900
            while not ready() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    return run


@pytest.fixture(scope="session")
def archives():
    """The module that writes small archives in the published formats."""
    path = ROOT / "tests" / "data" / "archives_fixture.py"
    spec = importlib.util.spec_from_file_location("archives_fixture", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
