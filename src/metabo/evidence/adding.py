"""What `metabo evidence add` keeps of a run: records and the files that their jobs made, without data that others
own."""

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from metabo.errors import DataError
from metabo.evidence import earlier, losses
from metabo.evidence.describing import describe, runs_same_code, stage_of
from metabo.evidence.manifest import (
    LARGEST,
    LARGEST_STUDY,
    LARGEST_UNUSED,
    LIMIT,
    LOSSES,
    NAME,
    ListedFile,
    Manifest,
    below,
    is_clean,
    read,
    size,
    write,
)
from metabo.plan import registry
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


class Added(NamedTuple):
    """What was added: the folder, the number of files and bytes that it has now, of jobs whose prior losses could not
    be computed, of jobs whose files are too large to be kept, of jobs that a checkout with changes ran with the code of
    a commit, and of runs of BO whose tables, and of jobs whose priors were left out."""

    folder: Path
    files: int
    bytes: int
    without_loss: int
    not_kept: int
    with_changes: int = 0
    without_table: int = 0
    without_prior: int = 0
    earlier: Sequence[str] = ()

    @property
    def line(self) -> str:
        """One line for the user."""
        lost = f"; {self.without_loss} files of priors without losses (their table is not here)"
        left = f"; of {self.not_kept} jobs the records alone, since what they made is too large"
        also = f"; {self.with_changes} results of a checkout with changes, whose code a commit has"
        bare = f"; of {self.without_table} runs of BO the records alone"
        rest = lost * (self.without_loss > 0) + left * (self.not_kept > 0) + also * (self.with_changes > 0)
        rest += bare * (self.without_table > 0)
        rest += f"; of {self.without_prior} files of priors the records alone" * (self.without_prior > 0)
        first = ", ".join(self.earlier[:SHOWN])
        first += f" and {len(self.earlier) - SHOWN} more" if len(self.earlier) > SHOWN else ""
        rest += f"; not judged in this run, so as judged before: {first}" if self.earlier else ""
        return f"{self.folder}: {self.files:,} files, {self.bytes / 1e6:.1f} MB{rest}"


def add(
    results: Path,
    root: Path,
    artefacts: Sequence[str] = (),
    trajectories: bool = True,
    priors: bool = True,
    catalogue: Mapping[str, CatalogueEntry] | None = None,
) -> Added:
    """Add the results of one run, `results/{scale}`, to `root/{scale}`. Files that are already there are kept or
    replaced.

    `artefacts`: names of the artefacts whose inputs are added; () for all results. `trajectories`: whether the
    tables of BO are kept, or of these the records alone, with their checksums; `priors`: the same of files of priors.
    `catalogue`: tells which artefacts read which results; without it, verdicts that must stay are taken to rest on all
    that was read with them.

    Raises DataError if results are damaged, missing, made by a checkout with uncommitted changes (unless their code is
    that of this commit), or too large, or if a recorded verdict that must stay is not as it was added, or was judged on
    results that they replace.
    """
    checked = verify(results)
    _refuse_flawed(checked)
    held = inventory.take(results.absolute())
    records = _behind(held.records, artefacts, results) if artefacts else held.records
    kept = [record for record in records if stage_of(record) in KEPT | RECORD_ONLY]
    if not kept:
        raise DataError(f"{results}: has no priors, trajectories, studies, theory or claims to keep; run them first")
    folder = root / results.resolve().name
    stages = KEPT - (set() if trajectories else TRAJECTORIES) - (set() if priors else PRIORS)
    files = _files(kept, results.absolute(), stages)
    too_large = [record for record in kept if stage_of(record) in stages and not _worth(record)]
    bare = [record for record in kept if stage_of(record) in KEPT - stages]
    unkept = [*too_large, *bare]
    gone = {below(record, name) for record in unkept for name in (*record.outputs, *record.logs)}
    before = read(folder) if (folder / NAME).exists() else None
    same_code = _with_changes(kept, results, before)
    made = {below(one, name): sha for one in kept for name, sha in one.outputs.items()}
    pieces = earlier.planned(files, made, folder, before, earlier.readers(catalogue or {}))
    gone |= set(pieces.gone)
    copied = {**{new: folder / old for new, old in pieces.moved.items()}, **files}  # what moves before what replaces it
    _refuse_large(copied, gone, root, folder)
    known = _with_losses(folder, files, before) if before else set()
    stored = [record for record in kept if record not in unkept]
    found, left_out = losses.of_results(stored, results, known)  # takes minutes, so before anything is written
    for name, source in copied.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    losses.merge(folder / LOSSES, found, gone)
    listed = {name: _listed(folder / name) for name in (*copied, LOSSES)}
    noted = before.get("same_code", {}) if before else {}
    moved = {new: noted[old] for new, old in pieces.moved.items() if old in noted}
    _forget(folder, before, gone)
    write(folder, describe(folder, results.resolve().name, same_code | moved, listed, before))
    return Added(
        folder, len(_all(folder)), size(folder), left_out, len(too_large), len(same_code),
        sum(stage_of(record) in TRAJECTORIES for record in bare), sum(stage_of(record) in PRIORS for record in bare),
        pieces.claims,
    )  # fmt: skip


def _forget(folder: Path, before: Manifest | None, names: Iterable[str]) -> None:
    """Delete files that were kept when they, or the limit, were others."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
        if before:
            before["files"].pop(name, None)


def _with_losses(folder: Path, files: Mapping[str, Path], before: Manifest) -> set[str]:
    """Return the files that are already there, unchanged, with the losses of their priors."""
    stored = {place.priors for place in losses.read(folder / LOSSES)}
    return {
        name for name in stored & set(files) & set(before["files"]) if _listed(files[name]) == before["files"][name]
    }


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
    here = provenance.git_state()
    for record in records:
        if is_clean(record.content.get("git", {})):
            continue
        name = record.path.relative_to(base).as_posix()
        if before and name in noted and before["files"].get(name) == _listed(record.path):
            found[name] = noted[name]
            continue
        if not is_clean(here):
            why = "this checkout has changes too, so that it cannot tell; commit them and add again"
        elif not (_same_code(record) and _same_files(record)):
            why = (
                "its code is not that of the present commit; check out the one that has it, or delete it and run again"
            )
        else:
            found[name] = str(here["commit"])
            continue
        raise DataError(f"{results}: {record.result} was made by a checkout with changes that no commit had, and {why}")
    return found


def _same_code(record: StoredSidecar) -> bool:
    return runs_same_code(record, stage_of(record), record.content.get("spec", {}))


def _same_files(record: StoredSidecar) -> bool:
    """Tell whether the files of the project that a job read are as they are here."""
    own = {name: sha for name, sha in record.inputs.items() if not name.startswith(f"{record.named}/")}
    return all(Path(name).is_file() and digest(Path(name)) == sha for name, sha in own.items())


def _refuse_large(files: Mapping[str, Path], gone: set[str], root: Path, folder: Path) -> None:
    replaced = sum((folder / name).stat().st_size for name in {*files, *gone} if (folder / name).is_file())
    after = (size(root) if root.exists() else 0) - replaced + sum(path.stat().st_size for path in files.values())
    if after > LIMIT:
        share: Counter[str] = Counter()
        for name, path in files.items():
            share["/".join(Path(name).parts[:2])] += path.stat().st_size
        largest = ", ".join(f"{name} {amount / 1e6:.0f} MB" for name, amount in share.most_common(SHOWN))
        raise DataError(
            f"{folder}: {root} would have {after / 1e6:.0f} MB, at most {LIMIT / 1e6:.0f} are kept (largest: "
            f"{largest}); name the artefacts whose inputs count: --artefacts hyperbo_fig08 ..."
        )


def _behind(records: Sequence[StoredSidecar], artefacts: Sequence[str], results: Path) -> list[StoredSidecar]:
    """Return the records that the given artefacts were made from, with all verdicts."""
    made = {below(record, name): record for record in records for name in record.outputs}
    queue = []
    for name in artefacts:
        own = [one for one in records if one.path.name == "provenance.json" and name in _names(one)]
        if not own:
            raise DataError(f"{results}: has no artefact '{name}'; make it first, or name one of {_examples(records)}")
        queue += own
    queue += [one for one in records if stage_of(one) == "claims"]
    found: dict[Path, StoredSidecar] = {}
    while queue:
        record = queue.pop()
        if record.path in found:
            continue
        found[record.path] = record
        if stage_of(record) != "claims":  # verdicts read every artefact of the paper
            queue += [made[below(record, name)] for name in record.inputs if below(record, name) in made]
    return list(found.values())


def _names(record: StoredSidecar) -> list[str]:
    """Return an artefact's names: the name of its entry, which stands for all benchmarks, and that for its
    benchmark."""
    spec = record.content.get("spec", {})
    name, benchmark = str(spec.get("artefact")), spec.get("benchmark")
    return [name, f"{name}_{benchmark}"] if benchmark else [name]


def _examples(records: Iterable[StoredSidecar]) -> str:
    names = sorted({_names(one)[-1] for one in records if one.path.name == "provenance.json"})
    return ", ".join(names[:SHOWN]) or "none"


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
