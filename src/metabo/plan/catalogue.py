"""The catalogue of tables and figures: load, check, and expand it into one artefact per (entry, benchmark)."""

from collections.abc import Mapping
from pathlib import Path

from metabo.errors import ConfigError, unknown
from metabo.plan import entry_faults, names, registry, splits
from metabo.plan.artefact import Artefact
from metabo.plan.config import Config
from metabo.plan.entries import CatalogueEntry
from metabo.plan.schema import read_schema, violations
from metabo.plan.typed import read_each
from metabo.plan.yaml_files import read_yaml

CATALOGUE = Path("workflow/catalogue.yaml")
SCHEMA = Path("workflow/schemas/catalogue.yaml")


def load(root: Path = Path()) -> dict[str, CatalogueEntry]:
    """Read and check the catalogue below the project folder `root`. Raises ConfigError, which lists every fault, or
    only the first fault of a registration, because every entry that reads it would repeat that one."""
    names.require_methods()
    for read in (registry.benchmarks, registry.studies, registry.papers_with_checks, splits.names):
        read()
    written = read_yaml(root / CATALOGUE)
    faults = violations(written, read_schema(root / SCHEMA), "catalogue")
    entries = {} if faults else read_each(CatalogueEntry, written, "catalogue")
    faults += [
        f"catalogue entry '{id}': {fault}"
        for id, entry in entries.items()
        for fault in entry_faults.faults(id, entry, root)
    ]
    if faults:
        raise ConfigError(f"{CATALOGUE}:", *(f"  {fault}" for fault in faults))
    return entries


def papers(catalogue: Mapping[str, CatalogueEntry]) -> list[str]:
    """List the papers that have an entry."""
    return sorted({entry.paper for entry in catalogue.values()})


def artefacts(config: Config, catalogue: Mapping[str, CatalogueEntry]) -> list[Artefact]:
    """Expand every entry over its benchmarks.

    The first benchmark of config `run.benchmarks` that the entry lists (else the entry's first) is named like the
    entry; the others are named `{id}_{benchmark}`.
    """
    expanded = []
    for id, entry in catalogue.items():
        benchmarks = entry.benchmarks or ("",)
        first = next((b for b in config.run.benchmarks if b in benchmarks), benchmarks[0])
        for benchmark in benchmarks:
            expanded.append(Artefact(id if benchmark == first else f"{id}_{benchmark}", id, benchmark, entry))
    return expanded


def enabled(config: Config, all_artefacts: list[Artefact]) -> list[Artefact]:
    """Keep the artefacts of the papers and benchmarks that the configuration runs, and of these papers also those
    without a benchmark. Of these, keep those that the configuration names, or else all but those made on request.

    Raises ConfigError if none is left, and for a name that is not among them."""
    papers, benchmarks = list(config.run.papers), ["", *config.run.benchmarks]
    found = [a for a in all_artefacts if a.entry.paper in papers and a.benchmark in benchmarks]
    if (named := config.run.artefacts) is not None:
        full = {f"{a.id}_{a.benchmark}": a.name for a in found}
        for name in named:
            if name not in (can := [a.name for a in found]):
                here = f"'{name}' is called '{full.get(name)}' in this run, whose first benchmark it is on; write that"
                said = here if name in full else unknown("artefact of this run", name, can)
                raise ConfigError(f"config key 'run.artefacts': {said}")
        return [a for a in found if a.name in named]
    kept = [a for a in found if not a.on_request]
    if not kept:
        raise ConfigError(
            f"config key 'run': no artefact of {', '.join(papers)} is made on {', '.join(benchmarks)}; the catalogue "
            f"has benchmarks {', '.join(sorted({a.benchmark for a in all_artefacts} - {''}))}"
        )
    return kept


def collections(config: Config, all_artefacts: list[Artefact]) -> dict[str, list[Artefact]]:
    """Group artefacts under the target names that users type: a paper (on the benchmarks that the configuration runs,
    without artefacts on request) and a benchmark (all artefacts for it, or for a benchmark that is made of it alone).
    """
    groups: dict[str, list[Artefact]] = {}
    for artefact in all_artefacts:
        if artefact.benchmark:
            groups.setdefault(artefact.benchmark, []).append(artefact)
            members = registry.benchmark(artefact.benchmark).members
            if len(members) == 1:
                groups.setdefault(members[0], []).append(artefact)
        paper = groups.setdefault(artefact.entry.paper, [])
        if artefact.benchmark in ["", *config.run.benchmarks] and not artefact.on_request:
            paper.append(artefact)
    return groups
