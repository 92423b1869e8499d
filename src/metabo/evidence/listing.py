"""What `metabo evidence list` prints: what is kept, what it cost, and where its outcomes come from."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from metabo.data.history.account import several
from metabo.evidence import manifest, unfinished
from metabo.evidence.describing import outdated, stage_of
from metabo.plan import equivalent
from metabo.records import inventory
from metabo.records.inventory import StoredSidecar

SHOWN = 6


def lines(root: Path) -> list[str]:
    """Describe the recorded results of every scale. Raises DataError for a manifest that was changed since it was
    written."""
    found = []
    for folder in manifest.folders(root):
        kept, records = manifest.read(folder), inventory.take(folder.absolute()).records
        megabytes = sum(one["bytes"] for one in kept["files"].values()) / 1e6
        hours = ", ".join(f"{stage} {spent:.1f}" for stage, spent in kept["core_hours"].items() if spent >= 0.05)
        found += [
            f"{folder}: {len(kept['files']):,} files, {megabytes:.1f} MB, of {_commits(kept['commits'], records)}",
            f"  core hours: {sum(kept['core_hours'].values()):.1f} ({hours})",
            f"  made on: {'; '.join(kept['machines'])}; added on {'; '.join(kept['added_on'])}",
            *(f"  {benchmark}: {_jobs(records, benchmark)}; {source}" for benchmark, source in kept["sources"].items()),
            *_old(records),
            *_equivalent(),
            *(f"  unfinished: {one.out}" for one in unfinished.listed(folder / unfinished.PLACE)),
        ]
    return found or [f"{root}: nothing is kept yet; `metabo evidence add results/laptop` keeps a run"]


def _commits(commits: Sequence[str], records: Iterable[StoredSidecar]) -> str:
    """Return the commit, or how many there are and which the job has that ended last."""
    if len(commits) == 1:
        return f"commit {commits[0][:8]}"
    ended = {str(one.content.get("finished", "")): one.content.get("git", {}).get("commit") for one in records}
    day = max(ended, default="")
    return f"{len(commits)} commits (the last job's, of {day[:10]}: {str(ended.get(day))[:8]})"


def _jobs(records: Iterable[StoredSidecar], benchmark: str) -> str:
    """Say how many priors and runs of BO there are, and of how many the record alone is kept."""
    of = [one for one in records if one.content.get("spec", {}).get("benchmark") == benchmark]
    found = []
    for stage, what in (("pretrain", "training"), ("bo", "run")):
        own = [one for one in of if stage_of(one) == stage]
        bare = sum(not all(one.located(name).is_file() for name in one.outputs) for one in own)
        found += [several(len(own), what) + (f" ({bare} by record alone)" if bare else "")] * bool(own)
    return ", ".join(found) or "source of outcomes alone"


def _old(records: Sequence[StoredSidecar]) -> list[str]:
    """Return a line that names the results of other code, if there are any: the present code may not reproduce them."""
    old = outdated(records)
    shown = ", ".join(old[:SHOWN]) + (f" and {len(old) - SHOWN} more" if len(old) > SHOWN else "")
    return [f"  made by other code than the present, run these again and add them: {shown}"] if old else []


def _equivalent() -> list[str]:
    """Return a line that names the modules whose changes are listed as changing no result, if there are any."""
    modules = dict.fromkeys(change.module for change in equivalent.CHANGES)
    where = "src/metabo/plan/equivalent.py says why"
    return [f"  counted as the present code though changed since, {where}: {', '.join(modules)}"] if modules else []
