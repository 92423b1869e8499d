"""What a name means: an artefact, a claim, or a run of a method."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metabo.data import download
from metabo.errors import ConfigError, nearest
from metabo.plan import catalogue, registry
from metabo.plan import config as settings
from metabo.plan.artefact import Artefact
from metabo.plan.chain import Chain
from metabo.plan.runs import method_of
from metabo.report.explain import artefact, claim, run
from metabo.report.explain.claim import SheetClaim

DATASETS = Path("workflow/datasets.csv")


@dataclass(frozen=True)
class Names:
    """What the project has, by name. `overlays`: those of the configuration that is asked about."""

    chain: Chain
    overlays: tuple[Path, ...]
    artefacts: dict[str, Artefact]
    enabled: list[Artefact]
    claims: dict[str, SheetClaim]


def load(overlays: Sequence[Path] = ()) -> Names:
    """Read configuration, catalogue and claims of the project in the present folder. Raises ConfigError."""
    entries = catalogue.load()
    config = settings.check(settings.read(overlays=tuple(overlays)), catalogue.papers(entries))
    made = catalogue.artefacts(config, entries)
    archives = download.archives(DATASETS, Path("workflow/schemas/datasets.yaml"))
    by_name = {f"{one.id}_{one.benchmark}": one for one in made if one.benchmark} | {one.name: one for one in made}
    return Names(Chain(config, archives), tuple(overlays), by_name, catalogue.enabled(config, made), claim.load())


def explain(name: str, overlays: Sequence[Path] = ()) -> list[str]:
    """Say where a figure or table, a claim or a run comes from. Raises ConfigError for a name that is none of these."""
    known = load(overlays)
    if name in known.artefacts:
        return artefact.lines(known.artefacts[name], known.chain, known.overlays, list(known.artefacts.values()))
    if name in known.claims:
        return claim.lines(known.claims[name], known.chain, known.overlays, known.enabled)
    if method_of(name) in registry.methods():
        return run.lines(name, known.chain, known.overlays, known.enabled, list(known.artefacts.values()))
    valid = [*known.artefacts, *known.claims, *registry.methods()]
    raise ConfigError(
        f"'{name}' is no figure or table, no claim and no run of a method.{nearest(name, valid)} `metabo list"
        " artefacts` and `metabo list methods` print names; claims are in src/metabo/papers/*/claims.yaml"
    )
