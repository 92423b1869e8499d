"""What `metabo verify evidence` prints: whether recorded results are as they were added, and the replay of a sample of
them."""

from pathlib import Path

from metabo.errors import DataError
from metabo.evidence import manifest
from metabo.evidence.replaying import sample
from metabo.evidence.stored import Tables


def lines(root: Path, runs: int, seed: int, results: Path = Path("results")) -> tuple[list[str], int]:
    """Return the lines of standard output and the exit status, which is 1 if something is damaged, missing, or replays
    differently.

    For each scale, `runs` runs (0: none), drawn with `seed`, are replayed on the tables found in `results/*/data`. A
    scale whose files are not as they were added is not replayed.
    """
    tables, said, status = Tables(sorted(results.glob("*/data"))), list[str](), 0
    folders = manifest.folders(root)
    if folders != [root]:
        said = [str(flaw) for flaw in manifest.strays(root)]
        status = int(bool(said))
    for folder in folders:
        try:
            found, lines = _of_scale(folder, tables, runs, seed)
        except (DataError, OSError) as error:
            found, lines = True, [_told(error, folder)]
        said += lines
        status = max(status, int(found))
    return said, status


def _of_scale(folder: Path, tables: Tables, runs: int, seed: int) -> tuple[bool, list[str]]:
    """Return whether anything of one scale is not as recorded, and what is said of it."""
    listed = manifest.read(folder)
    flaws = manifest.flaws(folder, listed)
    made = sample(folder, tables, runs, seed) if not flaws and runs else None
    found = [*flaws, *(made.flaws if made else ())]
    count, megabytes = len(listed["files"]), sum(one["bytes"] for one in listed["files"].values()) / 1e6
    said = [str(flaw) for flaw in found] + (made.lines if made else [])
    return bool(found), [*said, f"{folder}: {count:,} files, {megabytes:.1f} MB: {len(found)} not as recorded"]


def _told(error: DataError | OSError, folder: Path) -> str:
    if isinstance(error, DataError):
        return str(error)
    return f"{error.filename or folder}: cannot be read ({error.strerror}); {manifest.BACK}"
