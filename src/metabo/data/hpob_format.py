"""Archives in HPO-B's format (v3): three JSON files of tasks and one of initial points."""

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np

from metabo.data.archives import Stream, read_members
from metabo.errors import DataError

SPLITS = ("train", "validation", "test")
FILES = {split: f"meta-{split}-dataset.json" for split in SPLITS}
INITIAL = "bo-initializations.json"


class TaskContent(TypedDict):
    """A task as the archive has it: inputs, and outputs in lists of one; null where a fit failed."""

    X: list[list[float]]
    y: list[list[float | None]]


class Table(NamedTuple):
    """One task as stored: `x` (n, d), `y` (n,) with NaN where absent, and where it stands in the archive."""

    x: np.ndarray
    y: np.ndarray
    where: str


Meta = dict[str, dict[str, Table]]
"""Space -> task -> table."""
Starts = dict[str, dict[str, dict[str, list[int]]]]
"""Space -> task -> name of the set -> rows of its initial points."""


class Member(NamedTuple):
    """One file of the archive, read: its tasks or the initial points, how many bytes it has, and their SHA-256."""

    tables: Meta
    starts: Starts
    size: int
    digest: str


def read_archive(archive: Path, names: tuple[str, ...]) -> dict[str, Member]:
    """Read the members `names` of an archive. Raises DataError (also `metabo.data.archives.read_members`)."""
    return read_members(archive, names, partial(_member, archive))


def _member(archive: Path, member: str, stream: Stream) -> Member:
    """Parse one member into arrays at once, so that only one member's Python lists are alive at a time.

    Raises DataError for a member that is not in HPO-B's format."""
    content = stream.read()
    size, digest = len(content), hashlib.sha256(content).hexdigest()
    try:
        data = json.loads(content)
        del content
        if member.endswith(INITIAL):
            return Member({}, data, size, digest)
        tables = {s: {t: _table(archive, member, s, t, v) for t, v in tasks.items()} for s, tasks in data.items()}
        return Member(tables, {}, size, digest)
    except (ValueError, AttributeError) as error:
        raise DataError(f"{archive}: {member} is not {{space: {{task: ...}}}} in JSON ({error})") from error


def _table(archive: Path, member: str, space: str, task: str, content: TaskContent) -> Table:
    where = f"{archive}: {member}, task {space}/{task}"
    missing = [key for key in ("X", "y") if key not in content]
    if missing:
        raise DataError(f"{where}: no field '{missing[0]}'; found {sorted(content)}")
    try:
        x = np.array(content["X"], dtype=np.float64)
        y = np.array(content["y"], dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(f"{where}: X or y is not a rectangular array of numbers ({error})") from error
    if x.ndim != 2 or y.shape not in ((len(x),), (len(x), 1)):
        raise DataError(f"{where}: X {x.shape} and y {y.shape} do not fit; need (n, d) and (n,) or (n, 1)")
    return Table(x, y.reshape(-1), where)
