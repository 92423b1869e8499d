"""What a long job has finished of its loops, kept on the disk: the same job goes on from there after a stop.

The loops of `metabo.compute.mapping` keep the results of their finished entries every EVERY seconds. A job that is
started again with the same identity (settings, inputs, code; `begin`) reads them in place of computing them anew, to
the last bit, and says so in its record. A job that has ended keeps nothing here.

What is kept costs no job: if it is damaged it is computed again, and if it cannot be written the job goes on without.
"""

import hashlib
import io
import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metabo.compute.machine import cpu_model

FOLDER = Path(".cache/unfinished")
"""The folder of what jobs have not finished, next to the results; each job has one in it, named by its identity."""
JOB = "job.json"
"""The file that says which job a folder is of, and what its earlier attempts have cost."""
FORMAT = 1
"""Part of every identity: raise it when what is kept is mended, so that nothing goes on from what was kept before."""
EVERY = 60.0
"""The least number of seconds between two times that results are kept; a shorter job keeps none."""


class Spent(NamedTuple):
    """What the earlier attempts of a job cost, as far as their results were kept: how many there were, their seconds by
    the clock and of a processor, and the processors of their machines."""

    attempts: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    machines: tuple[str, ...] = ()


@dataclass
class _Attempt:
    folder: Path | None = None
    out: str = ""
    earlier: Spent = field(default_factory=Spent)
    loops: int = 0
    used: bool = False
    started: float = 0.0
    kept: float = 0.0
    told: bool = False


_job = _Attempt()


def begin(identity: str, out: str, root: Path = FOLDER) -> None:
    """Begin a job that makes `out`. `identity`: text that differs between jobs whose results may differ. What another
    job has left of the same `out` is deleted."""
    global _job
    folder, now = root / hashlib.sha256(f"{FORMAT}\n{identity}".encode()).hexdigest(), time.monotonic()
    for other in root.glob(f"*/{JOB}"):
        if other.parent != folder and _read_job(other).get("out") == out:
            shutil.rmtree(other.parent, ignore_errors=True)
    before = _spent(_read_job(folder / JOB)) if any(folder.glob("*.npz")) else Spent()
    _job = _Attempt(folder, out, before, started=now, kept=now)


def end() -> None:
    """End a job, whose results are there now."""
    global _job
    if _job.folder:
        shutil.rmtree(_job.folder, ignore_errors=True)
    _job = _Attempt()


def earlier() -> Spent:
    """Return what the attempts have cost from which the present job goes on: nothing if it began anew."""
    return _job.earlier if _job.used else Spent()


class Loop:
    """One loop of the present job. An earlier attempt has finished the `first` entries, whose results are in `leaves`
    (None if there was no such attempt)."""

    def __init__(self, what: str, like: Sequence[np.ndarray]) -> None:
        """`what`: the entries in the plural. `like`: arrays of the shapes and types of the results of all entries."""
        self.what, self.like, self.first, self.leaves = what, like, 0, None
        _job.loops += 1
        self.file = _job.folder / f"{_job.loops:04d}.npz" if _job.folder else None
        if self.file and (found := _read(self.file, what, like)):
            self.first, self.leaves = found
            if not _job.used:
                _job.used = True
                said = f"goes on from an earlier attempt ({self.first} {what} were finished)"
                print(said, file=sys.stderr, flush=True)

    def due(self) -> bool:
        """Return whether it is time to keep the results."""
        return self.file is not None and time.monotonic() - _job.kept >= EVERY

    def keep(self, first: int, leaves: Sequence[np.ndarray]) -> None:
        """Keep the results of the `first` entries. A failure is told once, and stops nothing."""
        assert self.file
        spent = _job.earlier  # also if no loop has read anything yet: a later one may
        job = {
            "out": _job.out,
            "attempts": spent.attempts + 1,
            "wall_s": round(spent.wall_s + time.monotonic() - _job.started, 3),
            "cpu_s": round(spent.cpu_s + cpu_seconds(), 3),
            "machines": [*dict.fromkeys((*spent.machines, cpu_model()))],
        }
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            _replace(self.file.with_name(JOB), json.dumps(job, indent=1).encode())
            _replace(self.file, _packed(self.what, first, leaves))
        except OSError as error:
            if not _job.told:
                _job.told = True
                said = f"cannot keep what is finished in {self.file.parent} ({error.strerror}): after a stop this job "
                print(f"{said}begins anew", file=sys.stderr, flush=True)
        _job.kept = time.monotonic()


def cpu_seconds() -> float:
    """Return the seconds that a processor has worked for this process and for those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _packed(what: str, first: int, leaves: Sequence[np.ndarray]) -> bytes:
    """Return the results of a loop as one archive, behind a checksum of it."""
    arrays = {"what": np.asarray(what), "first": np.asarray(first)}
    arrays |= {f"leaf{i:04d}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)  # most of what is not finished is zeros
    content = packed.getvalue()
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _read(file: Path, what: str, like: Sequence[np.ndarray]) -> tuple[int, list[np.ndarray]] | None:
    """Return what is kept of a loop, or nothing if that is missing, damaged or of another loop."""
    with suppress(OSError, ValueError, KeyError):
        seal, _, content = file.read_bytes().partition(b"\n")
        if seal.decode() != hashlib.sha256(content).hexdigest():
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as kept:
            first, leaves = int(kept["first"]), [kept[f"leaf{i:04d}"] for i in range(len(kept.files) - 2)]
            if str(kept["what"]) == what and _alike(leaves, like) and 0 < first <= len(like[0]):
                return first, leaves
    return None


def _alike(leaves: Sequence[np.ndarray], like: Sequence[np.ndarray]) -> bool:
    return [(a.shape, a.dtype) for a in leaves] == [(a.shape, a.dtype) for a in like]


def _read_job(file: Path) -> dict[str, object]:
    with suppress(OSError, ValueError):
        found = json.loads(file.read_text())
        return found if isinstance(found, dict) else {}
    return {}


def _spent(job: dict[str, object]) -> Spent:
    """Return the cost of the attempts that have kept something; at least one has."""
    attempts, wall, cpu = job.get("attempts"), job.get("wall_s"), job.get("cpu_s")
    machines = job.get("machines")
    if isinstance(attempts, int) and isinstance(wall, int | float) and isinstance(cpu, int | float):
        return Spent(attempts, wall, cpu, tuple(map(str, machines)) if isinstance(machines, list) else ())
    return Spent(attempts=1)


def _replace(file: Path, content: bytes) -> None:
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(file)
