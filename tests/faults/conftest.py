"""One undisturbed run that all faults are compared with, copies of it, and the count of the faults survived."""

import fcntl
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults import chain


@dataclass(frozen=True)
class Reference:
    """An undisturbed run: its folder, its seconds, and what every other run must come to."""

    project: Path
    seconds: float
    results: dict[str, Any]


@pytest.fixture(scope="session")
def reference(common):
    """The undisturbed run, made once for all workers."""
    project = common / "faults"
    with (common / "faults.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (project / "seconds.json").exists():
            chain.new(project)
            begun = time.monotonic()
            status, output = chain.run(project)
            assert status == 0, output
            (project / "seconds.json").write_text(json.dumps(time.monotonic() - begun))
    return Reference(project, json.loads((project / "seconds.json").read_text()), chain.lasting(project))


@pytest.fixture
def copy(reference, tmp_path):
    """Return a function that copies the undisturbed run with its times and Snakemake's records, or without anything
    that it made."""

    def make(name: str = "project", bare: bool = False) -> Path:
        made = shutil.ignore_patterns("results", ".snakemake", ".cache") if bare else None
        shutil.copytree(reference.project, tmp_path / name, ignore=made)
        return tmp_path / name

    return make


@pytest.fixture
def fault(request):
    """Return a context in which one fault happens: it counts as survived if nothing is raised."""

    @contextmanager
    def happens(what: str) -> Iterator[None]:
        try:
            yield
        except BaseException:
            request.node.user_properties.append(("fault", [what, False]))
            raise
        request.node.user_properties.append(("fault", [what, True]))

    return happens


@pytest.fixture(autouse=True)
def no_process_left():
    """Kill the workflows that a failed test left."""
    yield
    while chain.STARTED:
        if (process := chain.STARTED.pop()).poll() is None:
            chain.kill(process)


@pytest.fixture
def mount():
    """Return a function that calls `mount` and says whether that is allowed; all is unmounted after the test."""
    mounted = []

    def call(*arguments: str, where: Path) -> bool:
        try:
            done = subprocess.run(["mount", *arguments, str(where)], capture_output=True)
        except OSError:
            return False
        if done.returncode == 0 and where not in mounted:
            mounted.append(where)
        return done.returncode == 0

    yield call
    for where in reversed(mounted):
        subprocess.run(["umount", "--lazy", str(where)], capture_output=True)
