"""What long jobs of a run have finished so far (`metabo.compute.checkpoint`), kept with the code like results: a job of
many hours goes on in another clone, on another day."""

import json
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from metabo.compute.checkpoint import FOLDER, JOB
from metabo.records.files import atomic_path

PLACE = "unfinished"
"""The folder in `evidence/{scale}` with a folder for each job that has not ended."""


class Unfinished(NamedTuple):
    """A job that has not ended: the file that it makes, as it names it, and the files of what it has finished."""

    out: str
    files: list[Path]

    @property
    def placed(self) -> dict[str, Path]:
        """The files by their path in the recorded results."""
        return {f"{PLACE}/{file.parent.name}/{file.name}": file for file in self.files}


def listed(root: Path) -> list[Unfinished]:
    """Return the unfinished jobs in a folder. One whose files do not say what it makes is left out."""
    found = []
    for job in sorted(root.glob(f"*/{JOB}")):
        with suppress(OSError, ValueError, TypeError, KeyError):
            out = json.loads(job.read_text())["out"]
            loops = sorted(job.parent.glob("*.npz"))
            if isinstance(out, str) and loops:
                found.append(Unfinished(out, [*loops, job]))
    return found


def of_run(results: Path, named: str, made: Collection[str]) -> list[Unfinished]:
    """Return the unfinished jobs of a run: `results` is its folder, `named` that folder as its jobs name it, `made`
    what its finished jobs have made."""
    place = results.absolute().parents[named.count("/")] / FOLDER
    return [one for one in listed(place) if one.out.startswith(f"{named}/") and one.out not in made]


def ended(folder: Path, added: Iterable[Unfinished], made: Collection[str]) -> set[str]:
    """Return the recorded files of unfinished jobs in `folder` that have ended since (`made`: what finished jobs have
    made), or of which other files are `added`."""
    new = list(added)
    again, kept = {one.out for one in new} | set(made), {name for one in new for name in one.placed}
    return {name for one in listed(folder / PLACE) if one.out in again for name in one.placed} - kept


def restore(kept: Path, results: Path) -> int:
    """Copy recorded unfinished jobs to where jobs look for them, and return how many. They go on from there if their
    settings, inputs, code and versions are the same. One that has ended here, or has kept something itself, is left
    alone."""
    place, restored = results.absolute().parents[1] / FOLDER, 0
    for one in listed(kept / PLACE):
        own = place / one.files[0].parent.name
        if (place.parents[1] / one.out).exists() or (own / JOB).exists():
            continue
        for file in one.files:  # the last says whose they are
            with atomic_path(own / file.name) as scratch:
                shutil.copyfile(file, scratch)
        restored += 1
    return restored
