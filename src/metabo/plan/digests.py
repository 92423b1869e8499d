"""Digests of the code that a job runs, which cover what can change a result and nothing else.

A job depends on the digests of the modules that it runs, not on their files. A comment, a docstring, formatting, the
order of imports, or moving a module changes no digest. A changed constant does, and so does calling a function of the
same name from another module, because a reference to another module includes that module's content. A reference to the
bookkeeping includes no content, because that cannot change a result. A change that is listed as changing no result
(`metabo.plan.equivalent`) changes no digest either.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from metabo.errors import MetaboError
from metabo.plan import codegraph, equivalent, snapshot
from metabo.plan.syntax import REFERENCE
from metabo.records.files import digest as file_digest

FOLDER = Path(".cache/code")
"""The folder with the files that rules list as inputs (`listed`), with INDEX, and with the record of `snapshot`."""
LISTED = "digest"
"""The name of each file of `listed`; its folder is named by the digest."""
INDEX = "modules.txt"
"""The file that says which module each digest belongs to."""
LENGTH = 16
"""The number of hexadecimal characters of a digest. The probability that any two of 300 modules share one is of the
order of 1e-15."""

_REFERENCES = re.compile(REFERENCE.format("([^\\0]*)", "([^\\0]*)"))


def of(path: Path) -> str | None:
    """Return the digest of a file: of its syntax if it is a module of the package, otherwise of its name and bytes
    (code refers to a table by name).

    It is None for a module without code. Raises MetaboError if the module cannot be parsed or imports one that does not
    exist.
    """
    if path.suffix != ".py":
        return hashlib.sha256(f"{path.name}\n{file_digest(path)}".encode()).hexdigest()[:LENGTH]
    if known := codegraph.recorded(path):
        return known.digest
    return _digest(path)


def of_all(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the files by digest, without those that have no code."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        if value := of(path):
            found.setdefault(value, []).append(path)
    return found


def together(paths: Iterable[Path]) -> str:
    """Return one hash over the digests of files, whatever their order and location."""
    return joined(of_all(paths))


def joined(digests: Iterable[str]) -> str:
    """Return one hash over digests, in any order."""
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()


def record(folder: Path = FOLDER) -> None:
    """Write an index of the digests of the package, and a record of what was read (`snapshot`).

    Modules that have no digest because of a fault are left out, because only a job that runs them must stop. Raises
    MetaboError if the folder cannot be written.
    """
    root = codegraph.PACKAGE_ROOT
    before = codegraph.first_state(root)
    known = snapshot.load(before, folder / snapshot.FILE.name)
    lines, modules = [], {}
    for path in codegraph.everything():
        name = path.relative_to(root).as_posix()
        value = None
        with suppress(MetaboError):
            value = of(path)
            if path.suffix == ".py":
                modules[name] = snapshot.Module(value, codegraph.imported(path), codegraph.packages(path))
        if value:
            lines.append(f"{value} {root.name}/{name}\n")
    index = folder / INDEX
    if not index.is_file() or index.read_text() != "".join(lines):
        snapshot.write(index, "".join(lines))
    if modules != known:
        codegraph.record_syntax((root / name for name in modules), folder / snapshot.SYNTAX.name)
        snapshot.save(modules, before, root, folder / snapshot.FILE.name)


def listed(paths: Iterable[Path], folder: Path = FOLDER) -> str:
    """Return the file that stands for some files of the package together, which a rule lists in their place. It is
    written unless it is there.

    `together` is the name of its folder, and its only content, so a deleted file comes back as it was. One file for all
    that a job runs, not one for each module: Snakemake looks at every input of every job several times. It has a folder
    of its own because Snakemake lists a folder once, and takes files for missing that are written there later. It is as
    old as the index, which changes with the code: results that were copied here since then are newer. Raises
    MetaboError if it cannot be written.
    """
    value = together(paths)
    file = folder / value / LISTED
    if not (file.is_file() and file.read_bytes() == f"{value}\n".encode()):
        snapshot.write(file, f"{value}\n")
        with suppress(OSError):
            written = (folder / INDEX).stat().st_mtime_ns
            os.utime(file, ns=(written, written))
    return file.as_posix()


def value_of(listed: str) -> str:
    """Return the digest that a file of `listed` stands for."""
    return Path(listed).parent.name


def require_planned(planned: str, paths: Iterable[Path], folder: Path = FOLDER) -> None:
    """Raise MetaboError, which names the files whose code differs from what a job was planned with.

    `planned` is what `together` returned. If the code was edited during the run, the result would otherwise pass for
    one of the older code. The names come from the index in `folder`, which the plan wrote.
    """
    now = of_all(paths)
    if planned == joined(now):
        return
    index = folder / INDEX
    known = {line.split()[0] for line in index.read_text().splitlines()} if index.is_file() else set()
    edited = sorted(path.as_posix() for value, found in now.items() if value not in known for path in found)
    raise MetaboError(
        "the code of this job has changed since the run was planned"
        + (f" ({', '.join(edited)})" if edited else "")
        + "; run the same command again"
    )


def plain(path: Path) -> tuple[str | None, str | None]:
    """Return the hashes of a module as it is, whatever `metabo.plan.equivalent` lists: of what it contains, and of that
    with all it refers to. Raises MetaboError as `of` does."""
    return _hashed(path, lambda _: ""), _hashed(path, _content)


@cache
def _digest(path: Path) -> str | None:
    return equivalent.before(_hashed(path, _content))


@cache
def _content(path: Path) -> str | None:
    """Hash a module's syntax with the names that it refers to, but without their digests, because imports may form a
    cycle."""
    return equivalent.before(_hashed(path, lambda _: ""))


def _hashed(path: Path, content: Callable[[Path], str | None]) -> str | None:
    codegraph.imported(path)  # raises an error with the line of an import that leads nowhere
    read = codegraph.read(path)
    if not (read.text or read.references):
        return None
    text, *references = (
        _REFERENCES.sub(lambda found: _referred(found, content), part) for part in (read.text, *read.references)
    )
    return hashlib.sha256("\n".join([text, *sorted(set(references))]).encode()).hexdigest()[:LENGTH]


def _referred(found: re.Match[str], content: Callable[[Path], str | None]) -> str:
    path, name = codegraph.resolve(found[1], found[2])
    # Code that cannot change a result must not enter the digests of modules that import it.
    return f"<{'' if codegraph.keeps_books(path) else content(path)} {name}>"
