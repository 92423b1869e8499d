"""Which results of a run some of its artefacts were made from."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from metabo.errors import DataError
from metabo.evidence.describing import stage_of
from metabo.evidence.manifest import below
from metabo.records.inventory import StoredSidecar

SHOWN = 3


def behind(records: Sequence[StoredSidecar], artefacts: Sequence[str], results: Path) -> list[StoredSidecar]:
    """Return the records that the given artefacts were made from, with the verdicts on their papers.

    Raises DataError for an artefact that the run does not have.
    """
    made = {below(record, name): record for record in records for name in record.outputs}
    queue = []
    for name in artefacts:
        own = [one for one in records if one.path.name == "provenance.json" and name in _names(one)]
        if not own:
            raise DataError(f"{results}: has no artefact '{name}'; make it first, or name one of {_examples(records)}")
        queue += own
    papers = {one.path.relative_to(results.absolute()).parts[0] for one in queue}
    queue += [one for one in records if stage_of(one) == "claims" and one.path.stem in papers]
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
