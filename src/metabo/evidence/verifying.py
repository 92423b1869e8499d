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
    for folder in manifest.folders(root):
        try:
            listed = manifest.read(folder)
        except DataError as error:
            said, status = [*said, str(error)], 1
            continue
        flaws = manifest.flaws(folder, listed)
        made = sample(folder, tables, runs, seed) if not flaws and runs else None
        found = [*flaws, *(made.flaws if made else ())]
        count, megabytes = len(listed["files"]), sum(one["bytes"] for one in listed["files"].values()) / 1e6
        said += [str(flaw) for flaw in found] + (made.lines if made else [])
        said.append(f"{folder}: {count:,} files, {megabytes:.1f} MB: {len(found)} not as recorded")
        status = max(status, int(bool(found)))
    return said, status
