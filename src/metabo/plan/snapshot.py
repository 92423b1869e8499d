"""Records of what was read in the modules of the package, for processes that find the same files.

Parsing all modules takes longer than the rest of most plans, and every job would repeat it. One record has the digests
and belongs to one state of the files, identified by a hash of their contents, so an edit makes it useless but never
wrong. The other has the syntax of each module by a hash of its content, so that only what was edited is parsed again.
"""

import hashlib
import json
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from metabo.errors import MetaboError
from metabo.plan import syntax
from metabo.records.files import canonical, unwritable

FILE = Path(".cache/code/read.json")
SYNTAX = Path(".cache/code/syntax.zlib")


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
    _write(file, text.encode())


def parsed(content: bytes, inside: str) -> str:
    """Return the key of a module's syntax: a hash of its content, of the package that relative imports start from, and
    of what reads it, `metabo.plan.syntax` and this version of Python."""
    return hashlib.sha256(f"{_reader()}\n{inside}\n".encode() + content).hexdigest()


@cache
def _reader() -> str:
    code = hashlib.sha256(Path(syntax.__file__).read_bytes()).hexdigest()
    return f"{code} {sys.version_info[:3]}"


def load_syntax(file: Path = SYNTAX) -> dict[str, syntax.Source]:
    """Return the syntax that is recorded, by key, or nothing if the record is missing or damaged."""
    with suppress(OSError, ValueError, TypeError, AttributeError, zlib.error):
        seal, _, packed = file.read_bytes().partition(b"\n")
        if seal.decode() != hashlib.sha256(packed).hexdigest():
            return {}
        record = json.loads(zlib.decompress(packed))
        return {
            key: syntax.Source(
                text,
                tuple(references),
                tuple((line, base, name) for line, base, name in imports),
                {alias: (base, name) for alias, (base, name) in exports.items()},
            )
            for key, (text, references, imports, exports) in record.items()
        }
    return {}


def save_syntax(sources: Mapping[str, syntax.Source], file: Path = SYNTAX) -> None:
    """Record the syntax of modules. Raises MetaboError if the folder cannot be written."""
    record = {key: (one.text, one.references, one.imports, one.exports) for key, one in sources.items()}
    packed = zlib.compress(json.dumps(record).encode(), level=1)  # 10 MB become 2
    _write(file, hashlib.sha256(packed).hexdigest().encode() + b"\n" + packed)


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise unwritable(file, error) or MetaboError(
            f"{file}: cannot be written ({error.strerror}); check its permissions and free space"
        ) from error


def _seal(modules: Mapping[str, object], of: str) -> str:
    return hashlib.sha256(f"{of}\n{canonical(modules)}".encode()).hexdigest()
