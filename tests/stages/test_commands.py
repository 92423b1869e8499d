"""What every stage command does around its work: sidecar, clear errors, guards."""

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from metabo.errors import MetaboError
from metabo.plan import codegraph, digests, preflight
from metabo.records.files import canonical

ROOT = Path(__file__).parents[2]

STAGE = """
import sys
from metabo.errors import DataError
from metabo.plan.typed import Values
from metabo.stages.common import main

def add_arguments(parser):
    parser.add_argument("--in-data", required=True)
    parser.add_argument("--in-tables", nargs="*", default=[])

def work(args, spec):
    if spec.get("fail"):
        raise DataError("row 3 is bad")
    if spec.get("jax"):
        import jax.numpy as jnp, jax
        jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x).T)(jnp.ones((3, 3))).block_until_ready()
    if spec.get("say"):
        print(spec["say"])
    open(args.out, "w").write(str(spec["value"]))
    return {"seeds": [0, 1], **({"wall_s": 1} if spec.get("clash") else {})}

def roots(args, spec):
    return ["metabo.compute.keys" if spec.get("jax") else "metabo.records.files"]

main("trial", add_arguments, work, Values, roots)
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the trial stage with a spec and returns (process, sidecar or None)."""
    (tmp_path / "stage.py").write_text(STAGE)
    for name in ("data", "t1", "t2"):
        (tmp_path / name).write_text(name)

    def call(spec: dict, *more: str):
        out = ["--in-data", "data", "--out", "result.txt"]
        done = subprocess.run(
            [sys.executable, "stage.py", "--spec", canonical(spec), *out, *more],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        sidecar = tmp_path / "result.json"
        return done, json.loads(sidecar.read_text()) if sidecar.exists() else None

    return call


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_sidecar_says_what_made_the_result(run):
    done, sidecar = run({"value": 7}, "--in-tables", "t1", "t2")
    assert done.returncode == 0, done.stderr
    assert sidecar["stage"] == "trial" and sidecar["status"] == "ok"
    assert sidecar["spec"] == {"value": 7} and sidecar["spec_sha256"] == sha('{"value":7}')
    assert sidecar["inputs"] == {name: sha(name) for name in ("data", "t1", "t2")}
    assert sidecar["outputs"] == {"result.txt": sha("7")}
    modules = ("records/files.py", "errors.py", "__init__.py")  # what `files` imports; a room's __init__ has no code
    assert sidecar["code_sha256"] == sha("".join(sorted(digests.of(codegraph.PACKAGE_ROOT / path) for path in modules)))
    assert sidecar["seeds"] == [0, 1] and sidecar["threads"] == 1 and sidecar["gpu"] == 0
    assert sidecar["versions"]["python"] == sys.version.split()[0] and sidecar["versions"]["jax"]
    assert sidecar["started"] <= sidecar["finished"] and 0 <= sidecar["wall_s"] < 60
    assert 0 < sidecar["cpu_s"] < 60
    assert 10_000_000 < sidecar["peak_bytes"] < 2_000_000_000
    assert sidecar["git"] == {"commit": None, "dirty": None}  # the folder is no checkout
    assert sidecar["device"] is None and sidecar["x64"] is None and sidecar["compile_s"] is None


def test_the_sidecar_lists_the_log_that_the_job_writes_into(run, tmp_path):
    log = tmp_path / "results" / "logs" / "trial.log"
    log.parent.mkdir(parents=True)
    out = ["--in-data", "data", "--out", "result.txt", "--spec", canonical({"value": 7, "say": "a word"})]
    with log.open("w") as stream:
        subprocess.run([sys.executable, "stage.py", *out], cwd=tmp_path, stdout=stream, check=True)
    listed = json.loads((tmp_path / "result.json").read_text())["logs"]
    assert listed == {"results/logs/trial.log": {"bytes": 7, "sha256": sha("a word\n")}}
    assert run({"value": 7})[1]["logs"] == {}  # it prints into a pipe


def test_a_stage_that_computes_reports_device_precision_and_compile_time(run):
    done, sidecar = run({"value": 7, "jax": True})
    assert done.returncode == 0, done.stderr
    assert sidecar["device"]["platform"] == "cpu" and sidecar["x64"] is True
    assert 0 < sidecar["compile_s"] < sidecar["wall_s"]


def test_the_commit_and_whether_the_tree_differs_from_it(run, tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / ".gitignore").write_text("result*\n.cache\n")
    git("add", "-A")
    git("commit", "-qm", "all")
    assert run({"value": 1})[1]["git"] == {"commit": git("rev-parse", "HEAD"), "dirty": False}
    (tmp_path / "data").write_text("changed")
    assert run({"value": 1})[1]["git"]["dirty"] is True


def test_a_known_fault_is_one_line_without_traceback_and_leaves_no_sidecar(run):
    done, sidecar = run({"value": 1, "fail": True})
    assert (done.returncode, done.stderr, sidecar) == (1, "trial: row 3 is bad\n", None)


def test_a_missing_input_is_named(run, tmp_path):
    (tmp_path / "data").unlink()
    done, _ = run({"value": 1})
    assert done.returncode == 1 and done.stderr.startswith("trial: data: input file does not exist")


def test_a_stage_may_not_overwrite_the_standard_keys(run):
    done, sidecar = run({"value": 1, "clash": True})
    assert done.returncode == 1 and "reserved keys ['wall_s']" in done.stderr and sidecar is None


def test_a_spec_must_be_a_json_object(tmp_path, run):
    for text, fault in (("{", "not JSON"), ("[1]", "must be a JSON object")):
        done = subprocess.run(
            [sys.executable, "stage.py", "--spec", text, "--in-data", "data", "--out", "o"],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2 and fault in done.stderr


def test_asking_for_an_accelerator_that_is_not_there(run):
    import jax

    if jax.default_backend() != "cpu":
        pytest.skip("this machine has an accelerator")
    done, _ = run({"value": 1}, "--gpu", "1")
    assert done.returncode == 1 and "config key 'device' is gpu" in done.stderr


def test_a_folder_is_claimed_once_and_free_again_after_kill(tmp_path):
    lock = tmp_path / "deep" / "run.lock"
    program = "import sys; from pathlib import Path; from metabo.plan.preflight import claim_folder as claim;"
    program += " claim(Path(sys.argv[1])); print('held', flush=True); input()"
    command = [sys.executable, "-c", program, str(lock)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(MetaboError, match="another run is active"):
        preflight.claim_folder(lock)
    process.kill()
    process.communicate()
    preflight.claim_folder(lock)


@pytest.mark.parametrize(("held", "goes_on"), [(0.4, True), (60.0, False)])
def test_a_run_waits_a_moment_for_the_jobs_of_a_killed_one(tmp_path, monkeypatch, held, goes_on):
    monkeypatch.setattr(preflight, "PATIENCE", 10.0 if goes_on else 0.3)
    jobs = tmp_path / preflight.JOBS.name
    jobs.touch()
    program = "import sys, time; from pathlib import Path; from metabo.plan.preflight import tell_at_work;"
    program += " tell_at_work(Path(sys.argv[1])); print('at work', flush=True); time.sleep(float(sys.argv[2]))"
    command = [sys.executable, "-c", program, str(jobs), str(held)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "at work\n"
        if goes_on:
            assert preflight.claim_folder(tmp_path / "run.lock")
        else:
            with pytest.raises(MetaboError, match="still at work"):
                preflight.claim_folder(tmp_path / "run.lock")
        process.kill()


def refusing(number: int):
    """A stand-in for flock that fails with an error number."""

    def flock(handle, operation):
        raise OSError(number, os.strerror(number))

    return flock


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS])
def test_where_the_file_system_keeps_no_locks_a_run_goes_on_with_a_warning(tmp_path, monkeypatch, number):
    monkeypatch.setattr(preflight.fcntl, "flock", refusing(number))
    with pytest.warns(UserWarning, match="keeps no locks"):
        preflight.claim_folder(tmp_path / "run.lock")


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EWOULDBLOCK, "another run is active"),
        (errno.EAGAIN, "another run is active"),
        (errno.EIO, "cannot be"),
    ],
)
def test_a_held_lock_and_a_broken_disk_stop_a_run(tmp_path, monkeypatch, number, said):
    monkeypatch.setattr(preflight.fcntl, "flock", refusing(number))
    with pytest.raises(MetaboError, match=said):
        preflight.claim_folder(tmp_path / "run.lock")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(MetaboError, match=r"results: cannot write here"):
        preflight.require_writable(tmp_path / "results" / "laptop")
    preflight.require_writable(tmp_path / "not" / "yet" / "there")
    assert not (tmp_path / "not").exists()
