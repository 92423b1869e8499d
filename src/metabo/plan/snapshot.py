"""A record of what was read in the modules of the package, for processes that find the same files.

Parsing all modules takes longer than the rest of most plans, and every job would repeat it. The record belongs to one
state of the files, identified by a hash of their contents, so an edit makes it useless but never wrong.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from metabo.errors import MetaboError
from metabo.records.files import canonical, unwritable

FILE = Path(".cache/code/read.json")


class Module(NamedTuple):
    """The `digest` of a module (None: it has no code), the package modules that it imports, and the other packages that
    it imports."""

    digest: str | None
    imports: list[str]
    packages: list[str]


def state(root: Path) -> str:
    """Return a hash of the paths and contents of all modules below a folder."""
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        whole.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()


def load(now: str, file: Path = FILE) -> dict[str, Module]:
    """Return what is recorded about the modules in the state `now`, by path, or nothing if the record belongs to
    another state or is damaged."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        record = json.loads(file.read_text())
        if record["seal"] == _seal(record["modules"], record["state"]) and record["state"] == now:
            return {path: Module(*entry) for path, entry in record["modules"].items()}
    return {}


def save(modules: dict[str, Module], before: str, root: Path, file: Path = FILE) -> None:
    """Record what was read since the state was `before`, unless a file has changed in the meantime."""
    if state(root) == before:
        write(file, json.dumps({"state": before, "seal": _seal(modules, before), "modules": modules}) + "\n")


def write(file: Path, text: str) -> None:
    """Write a file that the next plan would write again. This writes in place, because a half-written file is noticed
    when it is read.

    Raises MetaboError if the folder cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        raise unwritable(file, error) or MetaboError(
            f"{file}: cannot be written ({error.strerror}); check its permissions and free space"
        ) from error


def _seal(modules: Mapping[str, object], of: str) -> str:
    return hashlib.sha256(f"{of}\n{canonical(modules)}".encode()).hexdigest()
