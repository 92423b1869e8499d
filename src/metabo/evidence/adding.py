"""What `metabo evidence add` keeps of a run: records and the files that their jobs made, without data that others
own."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from metabo.errors import DataError
from metabo.evidence import earlier, losses, selecting, swapping, unfinished
from metabo.evidence.added import Added, Changes
from metabo.evidence.describing import describe, runs_same_code, stage_of
from metabo.evidence.losses import Losses
from metabo.evidence.manifest import (
    BACK,
    LARGEST,
    LARGEST_STUDY,
    LARGEST_UNUSED,
    LIMIT,
    LOSSES,
    ListedFile,
    Manifest,
    below,
    is_clean,
    read,
    size,
    write,
)
from metabo.evidence.unfinished import Unfinished
from metabo.plan import codegraph, registry
from metabo.plan.entries import CatalogueEntry
from metabo.records import inventory, provenance
from metabo.records.files import digest
from metabo.records.inventory import StoredSidecar
from metabo.records.verify import Verified, verify

KEPT = {"pretrain", "bo", "online", "evaluate", "study", "theory", "claims"}
"""Stages whose results are kept."""
TRAJECTORIES = {"bo", "online"}
"""Stages whose tables are most of the bytes; whoever has the priors makes them again in minutes."""
PRIORS = {"pretrain"}
"""Stages whose files are priors; who has the tables of their tasks trains them again."""
RECORD_ONLY = {"data"}
"""Stages whose record alone is kept, because they made tables of data that others own."""
SHOWN = 3


def add(
    results: Path,
    root: Path,
    artefacts: Sequence[str] = (),
    trajectories: bool = True,
    priors: bool = True,
    catalogue: Mapping[str, CatalogueEntry] | None = None,
) -> Added:
    """Add the results of one run, `results/{scale}`, to `root/{scale}`. Files that are already there are kept or
    replaced, all of them at once: if this is stopped or raises an error, the folder is as it was. What long jobs that
    were stopped have finished is added too, unless artefacts are named.

    `artefacts`: names of the artefacts whose inputs are added, with the verdicts on their papers; () for all results.
    `trajectories`: whether the tables of BO are kept, or of these the records alone, with their checksums; `priors`:
    the same of files of priors. `catalogue`: tells which artefacts read which results; without it, verdicts that must
    stay are taken to rest on all that was read with them.

    Raises DataError if results are damaged, missing, of several runs, made by a checkout with uncommitted changes
    (unless their code is that of this commit), or too large, if a recorded verdict that must stay is not as it was
    added, or was judged on results that they replace, if another process adds to `root`, or if it cannot be written.
    """
    checked = verify(results)
    _refuse_flawed(checked)
    held = inventory.take(results.absolute())
    records = selecting.behind(held.records, artefacts, results) if artefacts else held.records
    kept = [record for record in records if stage_of(record) in KEPT | RECORD_ONLY]
    if not kept:
        raise DataError(f"{results}: has no priors, trajectories, studies, theory or claims to keep; run them first")
    folder = root / _scale(kept, results)
    _refuse_overlap(results, folder)
    with swapping.alone(root):
        swapping.recover(root)
        made = {name for record in held.records for name in record.outputs}
        started = [] if artefacts else unfinished.of_run(results, kept[0].named, made)
        return _added(kept, results, folder, trajectories, priors, catalogue or {}, started)


def _added(
    kept: Sequence[StoredSidecar],
    results: Path,
    folder: Path,
    trajectories: bool,
    priors: bool,
    catalogue: Mapping[str, CatalogueEntry],
    started: Sequence[Unfinished],
) -> Added:
    stages = KEPT - (set() if trajectories else TRAJECTORIES) - (set() if priors else PRIORS)
    files = _files(kept, results.absolute(), stages)
    too_large = [record for record in kept if stage_of(record) in stages and not _worth(record)]
    bare = [record for record in kept if stage_of(record) in KEPT - stages]
    unkept = [*too_large, *bare]
    gone = {below(record, name) for record in unkept for name in (*record.outputs, *record.logs)}
    before = read(folder) if folder.is_dir() and any(folder.iterdir()) else None
    was = dict(before["files"]) if before else {}
    same_code = _with_changes(kept, results, before)
    made = {below(one, name): sha for one in kept for name, sha in one.outputs.items()}
    for one in started:
        files |= one.placed
    gone |= unfinished.ended(folder, started, {name for one in kept for name in one.outputs})
    pieces = earlier.planned(files, made, folder, before, earlier.readers(catalogue))
    gone |= set(pieces.gone)
    copied = {**{new: folder / old for new, old in pieces.moved.items()}, **files}
    share = {name: path.stat().st_size for name, path in files.items()}
    replaced = sum((folder / name).stat().st_size for name in {*copied, *gone} if (folder / name).is_file())
    _refuse_large(size(folder.parent) - replaced + sum(path.stat().st_size for path in copied.values()), share, folder)
    stored = [record for record in kept if record not in unkept]
    with swapping.replacing(folder) as stage:
        known, found, left_out = _losses(stored, results, folder, files, gone, before)
        for name, source in copied.items():
            swapping.put(source, stage / name)
        for name in gone:
            (stage / name).unlink(missing_ok=True)
            if before:
                before["files"].pop(name, None)
        losses.write(stage / LOSSES, losses.merged(known, found, gone))
        listed = {name: _listed(stage / name) for name in (*copied, LOSSES)}
        noted = before.get("same_code", {}) if before else {}
        moved = {new: noted[old] for new, old in pieces.moved.items() if old in noted}
        changes = Changes.between(was, listed, gone)
        write(stage, describe(stage, folder.name, same_code | moved, listed, before))
        _refuse_large(size(folder.parent, (folder, stage)) + size(stage), share, folder)
    return Added(
        folder, len(_all(folder)) - 1, size(folder), changes, left_out, len(too_large), len(same_code),
        sum(stage_of(record) in TRAJECTORIES for record in bare), sum(stage_of(record) in PRIORS for record in bare),
        pieces.claims, len(started),
    )  # fmt: skip


def _scale(records: Iterable[StoredSidecar], results: Path) -> str:
    """Return the name of the run's folder as its jobs saw it, which a link or another name does not change."""
    places = sorted({(record.named, record.base.as_posix()) for record in records if record.outputs})
    if any(base != results.absolute().as_posix() for _, base in places) or len(places) > 1:
        shown = ", ".join(dict.fromkeys(named for named, _ in places))
        raise DataError(f"{results}: is not the folder of one run, its jobs wrote to {shown}; name one of these")
    return Path(places[0][0]).name if places else results.absolute().name


def _refuse_overlap(results: Path, folder: Path) -> None:
    own, there = results.resolve(), folder.resolve()
    if own == there or own.is_relative_to(there) or there.is_relative_to(own):
        raise DataError(f"{folder}: this is where the results are ({results}); name another folder after --to")


def _losses(
    stored: Sequence[StoredSidecar],
    results: Path,
    folder: Path,
    files: Mapping[str, Path],
    gone: Collection[str],
    before: Manifest | None,
) -> tuple[Losses, Losses, int]:
    """Return the losses that are recorded, those of the priors that are added, and the number of files of priors
    without losses. What is recorded but not as it was added is computed again.

    Raises DataError where a table for that is not here.
    """
    path = folder / LOSSES
    if before and path.is_file() and before["files"].get(LOSSES) == _listed(path):
        same = {name for name in files if before["files"].get(name) == _listed(files[name])}
        known = {at: nll for at, nll in losses.read(path).items() if at.priors in same or at.priors not in files}
        return known, *losses.of_results(stored, results, {at.priors for at in known})
    stay = {name: one for name, one in (before["files"] if before else {}).items() if name not in {*files, *gone}}
    rest = [
        one
        for one in inventory.take(folder.absolute()).records
        if stage_of(one) in PRIORS and {below(one, name) for name in one.outputs} & set(stay)
    ]
    for name in (below(one, name) for one in rest for name in one.outputs):
        if not (folder / name).is_file() or _listed(folder / name) != stay[name]:
            raise DataError(f"{folder / name}: not as it was added, nor is {path}, which has its losses; {BACK}")
    again, lost = losses.of_results(rest, results)
    if lost:
        raise DataError(
            f"{path}: missing, damaged or edited since it was added, and the tables of {lost} files of priors are not "
            f"in {results}, so that it cannot be made again; get it back from version control (git checkout), or add a "
            "run that has these tables"
        )
    return again, *losses.of_results(stored, results)


def _refuse_flawed(checked: Verified) -> None:
    if not checked.intact:
        first = "; ".join(map(str, checked.flaws[:SHOWN]))
        raise DataError(f"{checked.folder}: not as its jobs wrote it, so not evidence: {first}")


def _with_changes(records: Iterable[StoredSidecar], results: Path, before: Manifest | None) -> dict[str, str]:
    """Return, of jobs that a checkout with changes ran, the commit that has their code, by the path of the record: the
    one noted when they were added before, or the present one.

    Raises DataError for a job whose code or files are in no known commit, because its result could not be made again.
    """
    base, noted = results.absolute(), before.get("same_code", {}) if before else {}
    found = dict[str, str]()
    here = provenance.git_state(codegraph.PACKAGE_ROOT)
    for record in records:
        if is_clean(record.content.get("git", {})):
            continue
        name = record.path.relative_to(base).as_posix()
        if before and name in noted and before["files"].get(name) == _listed(record.path):
            found[name] = noted[name]
            continue
        if not here["commit"] or not provenance.is_tracked(codegraph.PACKAGE_ROOT):
            why = "the code that runs here is in no checkout (an installed package); call it with that of a clone"
        elif not is_clean(here):
            why = "this checkout has changes too, so that it cannot tell; commit them and add again"
        elif not (runs_same_code(record, stage_of(record), record.content.get("spec", {})) and _same_files(record)):
            why = (
                "its code is not that of the present commit; check out the one that has it, or delete it and run again"
            )
        else:
            found[name] = str(here["commit"])
            continue
        raise DataError(f"{results}: {record.result} was made by a checkout with changes that no commit had, and {why}")
    return found


def _same_files(record: StoredSidecar) -> bool:
    """Tell whether the files of the project that a job read are as they are here."""
    own = {name: sha for name, sha in record.inputs.items() if not name.startswith(f"{record.named}/")}
    return all(Path(name).is_file() and digest(Path(name)) == sha for name, sha in own.items())


def _refuse_large(after: int, share: Mapping[str, int], folder: Path) -> None:
    """Refuse more than LIMIT. `share`: the bytes of what is added, by path."""
    if after > LIMIT:
        parts: Counter[str] = Counter()
        for name, amount in share.items():
            parts["/".join(Path(name).parts[:2])] += amount
        largest = ", ".join(f"{name} {amount / 1e6:.0f} MB" for name, amount in parts.most_common(SHOWN))
        raise DataError(
            f"{folder}: {folder.parent} would have {after / 1e6:.0f} MB, at most {LIMIT / 1e6:.0f} are kept (largest: "
            f"{largest}); name the artefacts whose inputs count (--artefacts hyperbo_fig08 ...), keep of runs of BO "
            "(--without-trajectories) or of priors (--without-priors) the records alone, or add it elsewhere (--to)"
        )


def _files(records: Iterable[StoredSidecar], base: Path, stages: Collection[str]) -> dict[str, Path]:
    """Return the files to keep by their path below the folder: all records, and what jobs of `stages` made."""
    found = {}
    for record in records:
        found[record.path.relative_to(base).as_posix()] = record.path
        if stage_of(record) in stages and _worth(record):
            found |= {below(record, name): record.located(name) for name in (*record.outputs, *record.logs)}
    return found


def _worth(record: StoredSidecar) -> bool:
    """Tell whether the files that a job made are kept: all but those that are too large."""
    of_unused = (
        stage_of(record) == "pretrain" and registry.made_of(str(record.content.get("spec", {}).get("method"))).uses_past
    )
    most = LARGEST_UNUSED if of_unused else LARGEST_STUDY if stage_of(record) == "study" else LARGEST
    return all(record.located(name).stat().st_size <= most for name in record.outputs)


def _listed(path: Path) -> ListedFile:
    return {"bytes": path.stat().st_size, "sha256": digest(path)}


def _all(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
