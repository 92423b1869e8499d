"""What `metabo evidence list` prints: what is kept, what it cost, and where its outcomes come from."""

from pathlib import Path

from metabo.evidence import manifest, unfinished
from metabo.evidence.describing import outdated
from metabo.plan import equivalent
from metabo.records import inventory

SHOWN = 6


def lines(root: Path) -> list[str]:
    """Describe the recorded results of every scale. Raises DataError for a manifest that was changed since it was
    written."""
    found = []
    for folder in manifest.folders(root):
        kept = manifest.read(folder)
        megabytes = sum(one["bytes"] for one in kept["files"].values()) / 1e6
        hours = ", ".join(f"{stage} {spent:.1f}" for stage, spent in kept["core_hours"].items() if spent >= 0.05)
        found += [
            f"{folder}: {len(kept['files']):,} files, {megabytes:.1f} MB, of commits {_short(kept['commits'])}",
            f"  core hours: {sum(kept['core_hours'].values()):.1f} ({hours})",
            f"  made on: {'; '.join(kept['machines'])}; added on {'; '.join(kept['added_on'])}",
            *(f"  {benchmark}: {source}" for benchmark, source in kept["sources"].items()),
            *_old(folder),
            *_equivalent(),
            *(f"  unfinished: {one.out}" for one in unfinished.listed(folder / unfinished.PLACE)),
        ]
    return found or [f"{root}: nothing is kept yet; `metabo evidence add results/laptop` keeps a run"]


def _old(folder: Path) -> list[str]:
    """Return a line that names the results of other code, if there are any: the present code may not reproduce them."""
    old = outdated(inventory.take(folder.absolute()).records)
    shown = ", ".join(old[:SHOWN]) + (f" and {len(old) - SHOWN} more" if len(old) > SHOWN else "")
    return [f"  made by other code than the present, run these again and add them: {shown}"] if old else []


def _equivalent() -> list[str]:
    """Return a line that names the modules whose changes are listed as changing no result, if there are any."""
    modules = dict.fromkeys(change.module for change in equivalent.CHANGES)
    where = "src/metabo/plan/equivalent.py says why"
    return [f"  counted as the present code though changed since, {where}: {', '.join(modules)}"] if modules else []


def _short(commits: list[str]) -> str:
    return ", ".join(commit[:8] for commit in commits)
