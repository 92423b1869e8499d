"""A job that was killed goes on from what it had finished, and makes the same file; its record counts all attempts."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from metabo.compute import checkpoint
from metabo.compute.machine import cpu_model
from metabo.records.files import canonical
from tests import tiny
from tests.stages.test_pretrain import benchmark

DRIVER = """
import os, runpy, signal, sys
from metabo.compute import checkpoint
checkpoint.EVERY = 0.0
if sys.argv[1] == "killed":
    keep = checkpoint.Loop.keep
    def once(loop, first, leaves):
        keep(loop, first, leaves)
        os.kill(os.getpid(), signal.SIGKILL)
    checkpoint.Loop.keep = once
sys.argv = ["pretrain", *sys.argv[2:]]
runpy.run_module("metabo.stages.pretrain", run_name="__main__")
"""


def train(folder: Path, how: str = "whole") -> subprocess.CompletedProcess:
    """Train the priors of a method on the benchmark in a folder."""
    spec = tiny.spec("h_nll", seeds=4, pretrain={"steps": 3})
    fields = ("benchmark", "split", "past", "method", "seed", "seeds", "model", "pretrain")
    given = canonical({key: spec[key] for key in fields if key in spec})
    command = [sys.executable, "-c", DRIVER, how, "--spec", given, "--out", "priors.npz", "--in-data", "data.npz"]
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder.parent / "jax")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    benchmark().save(tmp_path / "run/data.npz")
    return tmp_path / "run"


@pytest.mark.slow
def test_a_killed_job_goes_on_and_its_record_says_so(folder):
    assert train(folder).returncode == 0
    whole, record = (folder / "priors.npz").read_bytes(), json.loads((folder / "priors.json").read_text())
    assert "resumed" not in record and not list((folder / checkpoint.FOLDER).iterdir())
    for name in ("priors.npz", "priors.json"):
        (folder / name).unlink()

    assert train(folder, "killed").returncode == -9 and not (folder / "priors.npz").exists()
    (job,) = (folder / checkpoint.FOLDER).glob(f"*/{checkpoint.JOB}")
    kept = json.loads(job.read_text())
    assert kept["out"] == "priors.npz" and kept["attempts"] == 1
    job.write_text(json.dumps(kept | {"cpu_s": 5000.0, "wall_s": 6000.0}))

    done = train(folder)
    assert done.returncode == 0 and "goes on from an earlier attempt (1 fits were finished)" in done.stderr
    assert (folder / "priors.npz").read_bytes() == whole
    again = json.loads((folder / "priors.json").read_text())
    assert again["resumed"] == {"attempts": 1, "wall_s": 6000.0, "cpu_s": 5000.0, "machines": [cpu_model()]}
    assert again["cpu_s"] > 5000 and again["wall_s"] > 6000
    assert again["outputs"] == record["outputs"] and not list((folder / checkpoint.FOLDER).iterdir())


@pytest.mark.slow
def test_a_job_whose_input_has_changed_begins_anew(folder):
    assert train(folder, "killed").returncode == -9
    other = benchmark()
    first, *rest = other.tasks
    worse = replace(other.tasks[first], y=other.tasks[first].y - 1.0)
    replace(other, tasks={first: worse, **{name: other.tasks[name] for name in rest}}).save(folder / "data.npz")
    done = train(folder)
    assert done.returncode == 0 and "goes on" not in done.stderr
    assert "resumed" not in json.loads((folder / "priors.json").read_text())
    assert not list((folder / checkpoint.FOLDER).iterdir())
