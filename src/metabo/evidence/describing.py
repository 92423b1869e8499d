"""What the manifest says of recorded results: where, with what and at which commits they were made, and whose outcomes
they have."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from metabo.compute.machine import cpu_model
from metabo.errors import DataError, MetaboError
from metabo.evidence.manifest import SCHEMA, ListedFile, Manifest, commit_of, is_clean
from metabo.plan import codegraph, digests, registry
from metabo.records import inventory
from metabo.records.inventory import StoredSidecar
from metabo.records.spent import core_seconds

DATASETS = Path("workflow/datasets.csv")
OWN = "made by this project"
TYPICAL = ("d99c1d055af41d82", "b2fef03726699a32")
"""Digests of the table of jobs' typical times as it was until 2026-11-29, and in its last hours. Every job depended on
it, though it changes no result (`metabo.plan.codegraph.BOOKKEEPING`), so that the digests of jobs recorded before
contain it."""


def describe(
    folder: Path, scale: str, same_code: Mapping[str, str], listed: dict[str, ListedFile], before: Manifest | None
) -> Manifest:
    """Return the manifest of everything that the folder has now: earlier additions, and the new files that replace or
    extend them. `same_code`: as in the manifest, of what is new."""
    files = ({**before["files"]} if before else {}) | listed
    records = {
        one.path.relative_to(folder.absolute()).as_posix(): one for one in inventory.take(folder.absolute()).records
    }
    noted = {**(before.get("same_code", {}) if before else {}), **same_code}
    noted = {name: commit for name, commit in noted.items() if name in records and not is_clean(_git(records[name]))}
    hours: defaultdict[str, float] = defaultdict(float)
    for record in records.values():
        hours[stage_of(record)] += core_seconds(record.content) / 3600
    benchmarks = sorted(
        {str(name) for one in records.values() if (name := one.content.get("spec", {}).get("benchmark"))}
    )
    made: Manifest = {
        "schema": SCHEMA,
        "scale": scale,
        "commits": sorted({commit_of(record, name, noted) for name, record in records.items()}),
        "machines": sorted({_machine(record) for record in records.values()}),
        "added_on": sorted({cpu_model(), *(before["added_on"] if before else ())}),
        "core_hours": {stage: round(spent, 3) for stage, spent in sorted(hours.items())},
        "sources": {name: _source(name) for name in benchmarks},
        "files": dict(sorted(files.items())),
    }
    if noted:
        made["same_code"] = dict(sorted(noted.items()))
    return made


def stage_of(record: StoredSidecar) -> str:
    """Return the stage that a job was of."""
    return str(record.content.get("stage"))


def runs_same_code(record: StoredSidecar, stage: str, spec: Mapping[str, object]) -> bool:
    """Return whether a job would run here the code that made a record. Raises MetaboError if it is not there."""
    found = digests.of_all(codegraph.inputs(codegraph.stage_roots(stage, spec)))
    planned = [digests.joined(found), *(digests.joined([*found, table]) for table in TYPICAL)]
    return record.content.get("depends_sha256") in planned


def outdated(records: Iterable[StoredSidecar]) -> list[str]:
    """Return the results whose jobs would run other code here, verdicts apart: those are judged again in every run, and
    have their code in the run that judged them. A job that is no more, or whose code is not there, counts."""
    return sorted(
        one.result.removeprefix(f"{one.named}/") for one in records if stage_of(one) != "claims" and _differs(one)
    )


def _differs(record: StoredSidecar) -> bool:
    try:
        return not runs_same_code(record, stage_of(record), record.content.get("spec", {}))
    except MetaboError:
        return True


def _git(record: StoredSidecar) -> Mapping[str, object]:
    return record.content.get("git", {})


def _machine(record: StoredSidecar) -> str:
    content = record.content
    jax = content.get("versions", {}).get("jax", "")
    return f"{content.get('platform', '')}, JAX {jax}, {_device(record)}"


def _device(record: StoredSidecar) -> str:
    device = record.content.get("device")
    return str(device.get("kind")) if isinstance(device, Mapping) else "no device"


def _source(benchmark: str) -> str:
    """Return where the outcomes of a benchmark come from, and their licence."""
    if benchmark not in registry.benchmarks():
        return OWN
    entry = registry.benchmark(benchmark)
    if entry.members:
        return "; ".join(f"{name}: {_source(name)}" for name in entry.members)
    if entry.dataset is None:
        return f"package {entry.package}" if entry.package else OWN
    try:
        with DATASETS.open(newline="") as stream:
            rows = {row["name"]: row for row in csv.DictReader(stream)}
    except OSError as error:
        raise DataError(
            f"{DATASETS}: cannot be read ({error.strerror}); call metabo evidence in the folder with the Snakefile"
        ) from error
    row = rows[entry.dataset]
    return f"{row['name']} {row['version']}, {row['licence']}, {row['urls'].split()[0]}"
