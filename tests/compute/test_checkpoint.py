"""A job that was stopped goes on from what its loops had finished, to the last bit, and from nothing else."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.compute import checkpoint, mapping
from metabo.compute.machine import cpu_model
from metabo.compute.mapping import one_by_one

ENTRIES = jnp.linspace(0.1, 2.0, 11)


class Stopped(Exception):
    """A job is stopped here."""


def results(entry):
    return {"sine": jnp.sin(entry * jnp.arange(7.0)), "count": jnp.asarray(entry > 1, jnp.int32), "bad": entry / 0.0}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Keep after every entry."""
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(mapping, "SECONDS", 0.0)
    yield tmp_path / "unfinished"
    checkpoint._job = checkpoint._Attempt()


@pytest.fixture
def computed(monkeypatch):
    """Return the list of entries that were computed, in this order."""
    seen = []
    stretch = mapping._stretch

    def noted(run, entries, shared, done, first, last):
        seen.extend(range(int(first), int(last)))
        return stretch(run, entries, shared, done, first, last)

    monkeypatch.setattr(mapping, "_stretch", noted)
    return seen


def begin(root, identity="a", out="results/laptop/priors/a.npz"):
    checkpoint.begin(identity, out, root)


def stop_after(monkeypatch, number):
    """Let a job stop once `number` results are kept."""
    kept, keep = [], checkpoint.Loop.keep

    def counted(loop, first, leaves):
        keep(loop, first, leaves)
        kept.append(first)
        if len(kept) == number:
            raise Stopped

    monkeypatch.setattr(checkpoint.Loop, "keep", counted)
    return lambda: monkeypatch.setattr(checkpoint.Loop, "keep", keep)


def same(found, whole):
    assert jax.tree.structure(found) == jax.tree.structure(whole)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(whole), strict=True):
        assert a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def stopped(root, monkeypatch, number, **of_job):
    go_on = stop_after(monkeypatch, number)
    begin(root, **of_job)
    with pytest.raises(Stopped):
        one_by_one(results, ENTRIES, (), "fits")
    go_on()


@pytest.mark.parametrize("number", [1, 4, 10])
def test_a_stopped_loop_goes_on_to_the_last_bit(root, monkeypatch, computed, capsys, number):
    whole = one_by_one(results, ENTRIES, (), "fits")
    stopped(root, monkeypatch, number)
    computed.clear()
    begin(root)
    same(one_by_one(results, ENTRIES, (), "fits"), whole)
    assert computed == list(range(number, 11))
    assert f"goes on from an earlier attempt ({number} fits were finished)" in capsys.readouterr().err
    assert checkpoint.earlier().attempts == 1
    checkpoint.end()
    assert list(root.iterdir()) == [] and checkpoint.earlier().attempts == 0


def test_nothing_is_kept_outside_a_job_and_of_a_short_one(root, monkeypatch, computed):
    one_by_one(results, ENTRIES, (), "fits")
    monkeypatch.setattr(checkpoint, "EVERY", 60.0)
    begin(root)
    one_by_one(results, ENTRIES, (), "fits")
    assert not root.exists() and len(computed) == 22


def test_each_loop_of_a_job_goes_on_from_its_own(root, monkeypatch, computed):
    other = -ENTRIES[:3]
    whole = one_by_one(results, other, (), "fits"), one_by_one(results, ENTRIES, (), "fits")
    go_on = stop_after(monkeypatch, 3 + 5)
    begin(root)
    one_by_one(results, other, (), "fits")
    with pytest.raises(Stopped):
        one_by_one(results, ENTRIES, (), "fits")
    go_on()
    computed.clear()
    begin(root)
    same((one_by_one(results, other, (), "fits"), one_by_one(results, ENTRIES, (), "fits")), whole)
    assert computed == list(range(5, 11))


@pytest.mark.parametrize("other", [{"identity": "b"}, {"identity": "b", "out": "results/laptop/priors/b.npz"}])
def test_another_job_begins_anew(root, monkeypatch, computed, other):
    stopped(root, monkeypatch, 4)
    computed.clear()
    begin(root, **other)
    one_by_one(results, ENTRIES, (), "fits")
    assert computed == list(range(11)) and checkpoint.earlier().attempts == 0
    checkpoint.end()
    assert len(list(root.iterdir())) == ("out" in other), "what the same result left under another identity is deleted"


def test_a_loop_of_other_shapes_or_of_other_things_begins_anew(root, monkeypatch, computed):
    stopped(root, monkeypatch, 4)
    for entries, what in ((ENTRIES[:9], "fits"), (ENTRIES, "runs")):
        computed.clear()
        begin(root)
        one_by_one(results, entries, (), what)
        assert computed == list(range(len(entries))) and checkpoint.earlier().attempts == 0


def damaged(content):
    """Yield files of which something is wrong."""
    yield b""
    yield content[: len(content) // 2]
    yield content[:-1]
    yield content[:40] + bytes([content[40] ^ 1]) + content[41:]
    middle = len(content) // 2
    yield content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    yield b"\xff\xfe" + content


def test_what_is_damaged_is_computed_again(root, monkeypatch, computed):
    whole = one_by_one(results, ENTRIES, (), "fits")
    stopped(root, monkeypatch, 4)
    (file,) = root.glob("*/*.npz")
    content = file.read_bytes()
    for wrong in damaged(content):
        file.write_bytes(wrong)
        monkeypatch.setattr(checkpoint, "EVERY", np.inf)
        computed.clear()
        begin(root)
        same(one_by_one(results, ENTRIES, (), "fits"), whole)
        assert computed == list(range(11))
    file.write_bytes(content)
    file.with_name(checkpoint.JOB).write_text("[")  # the results count, and their cost is not known
    computed.clear()
    begin(root)
    one_by_one(results, ENTRIES, (), "fits")
    assert computed == list(range(4, 11)) and checkpoint.earlier() == checkpoint.Spent(attempts=1)


def test_a_job_goes_on_where_nothing_can_be_kept(root, capsys):
    root.write_text("a file where the folder would be")
    begin(root)
    whole = one_by_one(results, ENTRIES, (), "fits")
    told = capsys.readouterr().err
    assert told.count("cannot keep what is finished") == 1 and "after a stop this job begins anew" in told
    checkpoint.end()
    same(one_by_one(results, ENTRIES, (), "fits"), whole)


def test_the_cost_of_all_attempts_adds_up(root, monkeypatch):
    stopped(root, monkeypatch, 2)
    (job,) = root.glob(f"*/{checkpoint.JOB}")
    first = json.loads(job.read_text())
    assert first["attempts"] == 1 and first["wall_s"] >= 0 and first["cpu_s"] > 0
    job.write_text(json.dumps(first | {"wall_s": 1000.0, "cpu_s": 900.0}))
    stopped(root, monkeypatch, 2)
    second = json.loads(job.read_text())
    assert second["attempts"] == 2 and second["wall_s"] >= 1000 and second["cpu_s"] > 900
    begin(root)
    assert checkpoint.earlier().attempts == 0, "nothing was read yet"
    one_by_one(results, ENTRIES, (), "fits")
    assert checkpoint.earlier() == checkpoint.Spent(2, second["wall_s"], second["cpu_s"], (cpu_model(),))


def test_the_cost_of_an_attempt_counts_though_another_loop_kept_its_results(root, monkeypatch):
    """The first loop of the second attempt finds nothing and keeps its own before the second loop goes on."""
    go_on = stop_after(monkeypatch, 3 + 5)
    begin(root)
    one_by_one(results, -ENTRIES[:3], (), "fits")
    with pytest.raises(Stopped):
        one_by_one(results, ENTRIES, (), "fits")
    go_on()
    (folder,) = root.iterdir()
    (folder / "0001.npz").unlink()
    job = folder / checkpoint.JOB
    job.write_text(json.dumps(json.loads(job.read_text()) | {"wall_s": 1000.0, "machines": ["another"]}))
    go_on = stop_after(monkeypatch, 2)
    begin(root)
    with pytest.raises(Stopped):
        one_by_one(results, -ENTRIES[:3], (), "fits")
    go_on()
    again = json.loads(job.read_text())
    assert again["attempts"] == 2 and again["wall_s"] >= 1000 and again["machines"] == ["another", cpu_model()]


def test_what_was_kept_in_another_format_is_not_read(root, monkeypatch, computed):
    stopped(root, monkeypatch, 4)
    monkeypatch.setattr(checkpoint, "FORMAT", checkpoint.FORMAT + 1)
    computed.clear()
    begin(root)
    one_by_one(results, ENTRIES, (), "fits")
    assert computed == list(range(11))


SCRIPT = """
import sys, time
from pathlib import Path
from metabo.compute import checkpoint, cores, mapping
cores.own_process()
import jax, jax.numpy as jnp, numpy as np
checkpoint.EVERY = mapping.SECONDS = 0.0
checkpoint.begin("a", "out.npz", Path("unfinished"))
def run(entry):
    jax.debug.callback(lambda: time.sleep(0.05))
    return jnp.sin(entry * jnp.arange(1000.0))
found = mapping.one_by_one(run, jnp.linspace(0.1, 2.0, 40), (), "fits")
np.save("out.npy", found)
checkpoint.end()
"""


def test_a_killed_process_loses_one_stretch(tmp_path):
    """SIGKILL at any moment, writing included; the second attempt ends with what one attempt makes."""

    def started(folder):
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-c", SCRIPT]
        return subprocess.Popen(command, cwd=folder, env={**os.environ, "JAX_PLATFORMS": "cpu"}, stderr=subprocess.PIPE)

    whole = started(tmp_path / "whole")
    killed = started(tmp_path / "killed")
    while not list(Path(tmp_path, "killed").glob("unfinished/*/*.npz")):
        time.sleep(0.01)
        assert killed.poll() is None
    time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stderr.close()
    again = started(tmp_path / "killed")
    assert b"goes on from an earlier attempt" in again.communicate()[1] and again.returncode == 0
    assert b"goes on" not in whole.communicate()[1] and whole.returncode == 0
    assert Path(tmp_path, "killed/out.npy").read_bytes() == Path(tmp_path, "whole/out.npy").read_bytes()
    assert not list(Path(tmp_path, "killed/unfinished").iterdir())
