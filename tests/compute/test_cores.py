"""Each job owns its cores: pinned, exclusive while it lives, freed when it dies."""

import json
import os
import subprocess
import sys

import pytest

from metabo.compute import cores
from metabo.errors import MetaboError

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this platform cannot pin cores")

PROGRAM = """
import json, os, sys
from pathlib import Path
from metabo.compute import cores
os.sched_setaffinity(0, range(os.cpu_count()))  # undo the pinning of the test process
available = len(os.sched_getaffinity(0))
seen = cores.own_cores(int(sys.argv[1]), 0, Path(sys.argv[2]))
seen |= {"affinity": sorted(os.sched_getaffinity(0)), "platform": os.environ["JAX_PLATFORMS"], "available": available}
print(json.dumps(seen), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def job(tmp_path):
    """Return a function that starts a process which takes cores, says which, and waits."""
    processes = []

    def begin(threads: int = 1) -> tuple[dict, subprocess.Popen]:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(threads), str(tmp_path / "locks")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return json.loads(process.stdout.readline()), process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


LINEAR = """
import json, os
os.sched_setaffinity(0, range(os.cpu_count()))  # undo the pinning of the test process
import numpy
from metabo.compute import cores
cores.own_cores(1, 0)
import scipy.linalg
from threadpoolctl import threadpool_info
print(json.dumps([one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]))
"""


@pytest.mark.parametrize("given", [{}, {cores.LINEAR_ALGEBRA: "2"}], ids=["default", "given"])
def test_linear_algebra_has_the_threads_of_the_job_although_it_was_loaded_before(given):
    kept = {name: value for name, value in os.environ.items() if name != cores.LINEAR_ALGEBRA} | given
    done = subprocess.run([sys.executable, "-c", LINEAR], env=kept, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) == 2 and max(found) == (min(2, os.cpu_count() or 1) if given else 1), found


def test_jobs_get_different_cores_until_none_is_left(job):
    granted = [job()[0]]
    cores = granted[0]["available"]
    granted += [job()[0] for _ in range(cores - 1)]
    assert all(g["affinity"] == g["cores"] and len(g["cores"]) == 1 and g["exclusive"] == 1 for g in granted)
    assert len({g["cores"][0] for g in granted}) == cores
    late, _ = job()
    assert len(late["cores"]) == 1 and late["exclusive"] == 0


def test_a_killed_job_frees_its_core(job):
    first, process = job()
    process.kill()
    process.wait()
    again, _ = job()
    assert again["cores"] == first["cores"] and again["exclusive"] == 1


def test_a_job_gets_as_many_cores_as_threads_and_no_more_than_there_are(job):
    first, process = job()
    process.kill()
    process.wait()
    cores = first["available"]
    granted, process = job(cores)
    assert granted["affinity"] == granted["cores"] and len(granted["cores"]) == granted["exclusive"] == cores
    process.kill()
    process.wait()
    assert len(job(cores + 3)[0]["cores"]) == cores


def test_cpu_jobs_hide_the_accelerator(job):
    assert job()[0]["platform"] == "cpu"


def test_an_unusable_lock_folder_still_pins(tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "1", str(tmp_path / "file" / "locks")], capture_output=True, text=True, input=""
    )
    granted = json.loads(done.stdout)
    assert len(granted["affinity"]) == 1 and granted["exclusive"] == 0


def test_own_cores_after_jax_is_refused():
    import jax  # noqa: F401

    with pytest.raises(MetaboError, match="JAX is already imported"):
        cores.own_cores(1, 0)
