"""The manifest of recorded results, and whether a folder is still what it lists.

`evidence/{scale}` has the layout of `results/{scale}`, less what can be made again (figures, notebooks, logs) and what
others own (tables and archives). Its manifest lists every file with its checksum, and is sealed by one of itself.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypedDict, cast

from metabo.errors import DataError
from metabo.records import inventory
from metabo.records.checksums import SEAL, is_intact, sealed
from metabo.records.files import digest, write_text
from metabo.records.inventory import StoredSidecar
from metabo.records.verify import BOTH, DAMAGED, MISSING, Flaw

NAME: Final = "manifest.json"
SCHEMA: Final = 1
LOSSES: Final = "losses.csv"
"""Beside the manifest: the loss of every prior that is a GP, at the parameters that are stored."""
LIMIT: Final = 60e6
"""Bytes of all recorded results together: a repository that people clone."""
LARGEST: Final = 5e6
LARGEST_UNUSED: Final = 1e6
"""Bytes of a file of priors, and of one from which no run is made again, beyond which its record alone is kept: a
covariance at hundreds of inputs, random features of which each prior has its own."""
BACK = "get it back from version control (git checkout), or add the results again (metabo evidence add)"


class ListedFile(TypedDict):
    """A file as it was added."""

    bytes: int
    sha256: str


class Manifest(TypedDict):
    """What `evidence/{scale}` holds. `commits`: of the jobs; `machines`: what the jobs ran on, `added_on` the processor
    of the machine that added them; `core_hours` by stage; `sources`: by benchmark, where the outcomes along the
    trajectories come from, and their licence; `files` by their path below the folder."""

    schema: int
    scale: str
    commits: list[str]
    machines: list[str]
    added_on: list[str]
    core_hours: dict[str, float]
    sources: dict[str, str]
    files: dict[str, ListedFile]


def folders(root: Path) -> list[Path]:
    """Return the folders of recorded results: the given one if it has a manifest, else those below it if one of them
    has."""
    if (root / NAME).exists():
        return [root]
    return sorted(path for path in root.glob("*") if path.is_dir()) if any(root.glob(f"*/{NAME}")) else []


def size(root: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with a checksum of itself."""
    write_text(folder / NAME, json.dumps(sealed({**manifest}), indent=1, sort_keys=True) + "\n")


def read(folder: Path) -> Manifest:
    """Read the manifest. Raises DataError if it is missing, unreadable, of another schema, or edited by hand."""
    path = folder / NAME
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: cannot be read ({reason}); {BACK}") from error
    if not isinstance(content, dict) or SEAL not in content:
        raise DataError(f"{path}: not a manifest of recorded results; {BACK}")
    if content.get("schema") != SCHEMA:
        raise DataError(
            f"{path}: schema {content.get('schema')}, this version reads {SCHEMA}; add the results again with it"
        )
    if not is_intact(content):
        raise DataError(f"{path}: damaged or edited by hand (its '{SEAL}' differs); {BACK}")
    fields = Manifest.__annotations__
    if missing := sorted(set(fields) - set(content)):
        raise DataError(f"{path}: the fields {', '.join(missing)} are missing; {BACK}")
    return cast(Manifest, {key: content[key] for key in fields})


def checked(folder: Path) -> Manifest:
    """Read the manifest of a folder that is as it was added. Raises DataError that names the first thing that is wrong,
    and how many more there are."""
    listed = read(folder)
    if found := flaws(folder, listed):
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise DataError(f"{found[0]}{more}")
    return listed


def flaws(folder: Path, manifest: Manifest) -> list[Flaw]:
    """Return what is not as the manifest, and the records that it lists, say."""
    return [*_files(folder, manifest["files"]), *_records(folder, manifest)]


def _files(folder: Path, listed: Mapping[str, ListedFile]) -> Iterator[Flaw]:
    for name, expected in listed.items():
        path = folder / name
        if not path.is_file():
            yield Flaw(MISSING, path.as_posix(), "missing, the manifest lists it", BACK)
        elif (found := digest(path)) != expected["sha256"]:
            what = f"damaged or edited since it was added (sha256 {found[:12]}, listed {expected['sha256'][:12]})"
            yield Flaw(DAMAGED, path.as_posix(), what, BACK)
    here = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted(here - {*listed, NAME}):
        yield Flaw(DAMAGED, (folder / name).as_posix(), "not listed by the manifest", "delete it, or add its results")


def _records(folder: Path, manifest: Manifest) -> Iterator[Flaw]:
    """Compare what records say of files, and of each other, with the manifest."""
    held = inventory.take(folder.absolute())
    for path, why in held.broken.items():
        yield Flaw(DAMAGED, _shown(folder, path), why, BOTH)
    for record in held.records:
        shown = _shown(folder, record.path)
        for name, expected in {**record.inputs, **record.outputs}.items():
            listed = manifest["files"].get(below(record, name))
            if listed is not None and listed["sha256"] != expected:
                yield Flaw(DAMAGED, shown, f"was made with or made another {name} than the one listed", BACK)
        commit = str(record.content.get("git", {}).get("commit"))
        if commit not in manifest["commits"]:
            yield Flaw(DAMAGED, shown, f"is of commit {commit[:12]}, which the manifest does not name", BACK)


def below(record: StoredSidecar, name: str) -> str:
    """Return the path of a file that a record names below the folder of its run; of one elsewhere the name itself."""
    return name.removeprefix(f"{record.named}/")


def _shown(folder: Path, path: Path) -> str:
    return (folder / path.relative_to(folder.absolute())).as_posix()
