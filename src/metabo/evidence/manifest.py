"""The manifest of recorded results, and checks that a folder is still what the manifest lists.

`evidence/{scale}` has the layout of `results/{scale}`, without what can be made again (figures and notebooks) and what
others own (tables and archives); verdicts of earlier judgings lie beside the newest. Its manifest lists every file with
its checksum, and is sealed by a checksum of itself.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NotRequired, TypedDict, cast

from metabo.errors import DataError
from metabo.evidence import swapping
from metabo.records import inventory
from metabo.records.checksums import SEAL, is_intact, sealed
from metabo.records.files import digest, write_text
from metabo.records.flaws import DAMAGED, MISSING, Flaw
from metabo.records.inventory import StoredSidecar

NAME: Final = "manifest.json"
SCHEMA: Final = 1
LOSSES: Final = "losses.csv"
"""The file next to the manifest with the loss of every prior that is a GP, at its stored parameters."""
EARLIER: Final = "claims/earlier"
"""Where verdicts of earlier judgings are, each in a folder of its own (`metabo.evidence.earlier`)."""
READ: Final = "read"
"""The folder, in that of an earlier judging, of what it read and a newer run replaced."""
LIMIT: Final = 60e6
"""The most bytes of all recorded results together, because people clone the repository."""
LARGEST: Final = 5e6
LARGEST_STUDY: Final = 1.5e6
LARGEST_UNUSED: Final = 1e6
"""The most bytes of a file, of a table of a study, and of priors from which no run is replayed; of a larger file, only
the record is kept. Such files hold a covariance at hundreds of inputs, random features of which each prior has its own,
or every draw of a study that takes a minute."""
BACK = "get it back from version control (git checkout), or add the results again (metabo evidence add)"
WHOLE = "get it back from version control (git checkout), or delete the folder and add all of its results again"
README: Final = "README.md"
"""The only file that may lie beside the folders of recorded results."""


class ListedFile(TypedDict):
    """A file as it was added."""

    bytes: int
    sha256: str


class Manifest(TypedDict):
    """The contents of `evidence/{scale}`. `commits`: those that have the code of the jobs; `machines`: what the jobs
    ran on; `added_on`: the processors of the machines that added them; `core_hours`: by stage; `sources`: by benchmark,
    where the outcomes along the trajectories come from, and their licence; `files`: by their path below the folder.
    `same_code`: of jobs that a checkout with changes ran, by the path of the record, the commit that has their code."""

    schema: int
    scale: str
    commits: list[str]
    machines: list[str]
    added_on: list[str]
    core_hours: dict[str, float]
    sources: dict[str, str]
    files: dict[str, ListedFile]
    same_code: NotRequired[dict[str, str]]


def folders(root: Path) -> list[Path]:
    """Return the folders of recorded results: the given one if it has a manifest or losses, else all folders in it if
    any of them has, those included that an addition was about to replace when it was stopped."""
    if _is_kept(root):
        return [root]
    stopped = {swapping.meant(path) for path in swapping.left_over(root) if path.suffix == swapping.OLD}
    there = {path for path in root.glob("*") if path.is_dir() and not path.name.startswith(".")} | stopped
    return sorted(there) if stopped or any(_is_kept(path) for path in there) else []


def _is_kept(folder: Path) -> bool:
    return any((folder / name).exists() for name in (NAME, LOSSES))


def size(root: Path, without: Collection[Path] = ()) -> int:
    """Return the bytes of all files below a folder, those of linked folders included, but for some folders in it and
    what interrupted additions have left."""
    without = {*without, *swapping.left_over(root)}
    files, _ = inventory.walk(root)
    return sum(path.stat().st_size for path in files if path.is_file() and without.isdisjoint(path.parents))


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with a checksum of itself."""
    write_text(folder / NAME, json.dumps(sealed({**manifest}), indent=1, sort_keys=True) + "\n")


def read(folder: Path) -> Manifest:
    """Read the manifest. Raises DataError if it is missing, unreadable, of another schema, or edited by hand."""
    path = folder / NAME
    new, old = swapping.beside(folder)
    if old.exists() and not folder.exists():
        raise DataError(
            f"{folder}: `metabo evidence add` was interrupted while it replaced this folder; run it again, or rename "
            f"{new if new.exists() else old} to {folder}"
        )
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: cannot be read ({reason}); {WHOLE}") from error
    if not isinstance(content, dict) or SEAL not in content:
        raise DataError(f"{path}: not a manifest of recorded results; {WHOLE}")
    if content.get("schema") != SCHEMA:
        raise DataError(
            f"{path}: schema {content.get('schema')}, this version reads {SCHEMA}; delete the folder and add all of "
            "its results again with this version"
        )
    if not is_intact(content):
        raise DataError(f"{path}: damaged or edited by hand (its '{SEAL}' differs); {WHOLE}")
    if missing := sorted(Manifest.__required_keys__ - set(content)):
        raise DataError(f"{path}: the fields {', '.join(missing)} are missing; {WHOLE}")
    return cast(Manifest, {key: content[key] for key in Manifest.__annotations__ if key in content})


def checked(folder: Path) -> Manifest:
    """Read the manifest of a folder and check that the folder is as it was added. Raises DataError, which names the
    first flaw and how many more there are."""
    listed = read(folder)
    if found := flaws(folder, listed):
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise DataError(f"{found[0]}{more}")
    return listed


def flaws(folder: Path, manifest: Manifest) -> list[Flaw]:
    """Return everything that contradicts the manifest or the records that it lists."""
    return [*_files(folder, manifest["files"]), *_records(folder, manifest)]


def strays(root: Path) -> list[Flaw]:
    """Return what lies beside the folders of recorded results and belongs to none of them."""
    left = [
        Flaw(DAMAGED, path.as_posix(), "left behind by an interrupted `metabo evidence add`", swapping.AGAIN)
        for path in swapping.left_over(root)
    ]
    loose = sorted(path for path in root.glob("[!.]*") if not path.is_dir() and path.name != README)
    return left + [Flaw(DAMAGED, path.as_posix(), "belongs to no recorded results", "delete it") for path in loose]


def _files(folder: Path, listed: Mapping[str, ListedFile]) -> Iterator[Flaw]:
    for name, expected in listed.items():
        path = folder / name
        if not path.is_file():
            yield Flaw(MISSING, path.as_posix(), "missing, the manifest lists it", BACK)
        elif (found := _digest(path)) != expected["sha256"]:
            what = f"damaged or edited since it was added (sha256 {found[:12]}, listed {expected['sha256'][:12]})"
            yield Flaw(DAMAGED, path.as_posix(), what if found else "cannot be read", BACK)
    files, unlisted = inventory.walk(folder)
    for place, why in unlisted.items():
        yield Flaw(DAMAGED, place.as_posix(), f"cannot be listed ({why})", "give yourself the right to read it (chmod)")
    for name in sorted({path.relative_to(folder).as_posix() for path in files} - {*listed, NAME}):
        yield Flaw(DAMAGED, (folder / name).as_posix(), "not listed by the manifest", "delete it, or add its results")


def _digest(path: Path) -> str:
    """Return the checksum of a file, "" if it cannot be read."""
    try:
        return digest(path)
    except OSError:
        return ""


def _records(folder: Path, manifest: Manifest) -> Iterator[Flaw]:
    """Compare what records state about files, and about each other, with the manifest."""
    held = inventory.take(folder.absolute())
    for path, why in held.broken.items():
        yield Flaw(DAMAGED, _shown(folder, path), why, BACK)
    for record in held.records:
        shown = _shown(folder, record.path)
        for name, expected in {**record.inputs, **record.outputs}.items():
            listed = _listed(record, folder, name, manifest["files"])
            if listed is not None and listed["sha256"] != expected:
                yield Flaw(DAMAGED, shown, f"was made with or made another {name} than the one listed", BACK)
        name = record.path.relative_to(folder.absolute()).as_posix()
        commit = commit_of(record, name, manifest.get("same_code", {}))
        if commit not in manifest["commits"]:
            yield Flaw(DAMAGED, shown, f"is of commit {commit[:12]}, which the manifest does not name", BACK)


def _listed(record: StoredSidecar, folder: Path, name: str, files: Mapping[str, ListedFile]) -> ListedFile | None:
    """Return what the manifest lists for a file that a record names, or None for one that is not kept."""
    own = record.path.relative_to(folder.absolute())
    if own.is_relative_to(EARLIER) and (kept := files.get(f"{own.parent.as_posix()}/{READ}/{below(record, name)}")):
        return kept
    return files.get(placed(record, folder, name))


def is_clean(git: Mapping[str, object]) -> bool:
    """Tell whether a job ran at a commit, in a checkout without changes."""
    return git.get("dirty") is False and bool(git.get("commit"))


def commit_of(record: StoredSidecar, name: str, same_code: Mapping[str, str]) -> str:
    """Return the commit that has the code of a job, whose record is the file `name` below the folder."""
    return str(same_code.get(name) or record.content.get("git", {}).get("commit"))


def below(record: StoredSidecar, name: str) -> str:
    """Return the path, below the folder of the run, of a file that a record names; for a file elsewhere, return the
    name itself."""
    return name.removeprefix(f"{record.named}/")


def placed(record: StoredSidecar, folder: Path, name: str) -> str:
    """Return the path, below the folder, of a file that a record names. What an earlier judging made lies beside its
    record."""
    own = record.path.relative_to(folder.absolute())
    made = name in record.outputs or name in record.logs
    beside = made and own.is_relative_to(EARLIER)
    return own.with_name(Path(name).name).as_posix() if beside else below(record, name)


def _shown(folder: Path, path: Path) -> str:
    return (folder / path.relative_to(folder.absolute())).as_posix()
