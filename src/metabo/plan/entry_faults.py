"""Faults of a catalogue entry that no schema can find: names, and inputs that do not fit together."""

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path

from metabo.errors import ConfigError, unknown
from metabo.plan import registry, splits, templates
from metabo.plan.artefact import NOTEBOOKS, Artefact
from metabo.plan.entries import CatalogueEntry, Inputs
from metabo.plan.parts import PACKAGE_ROOT
from metabo.plan.runs import RunId, resolved

STANDARD = ("artefact", "title", "caption", "out")
"""Parameters of every template."""
ON_BENCHMARK = ("benchmark", "data")
"""Parameters of every template that reads a benchmark."""
NEAREST = 3
"""The number of methods that are proposed in place of one that has no such runs."""


def faults(id: str, entry: CatalogueEntry, root: Path) -> list[str]:
    """Return a line for each fault of the entry `id`. `root` is the folder of the project."""
    inputs, benchmarks = entry.inputs, entry.benchmarks

    def named(kind: str) -> list[RunId]:
        return [RunId.parse(name) for name in inputs.kinds.get(kind, ())]

    checks: tuple[Callable[[], object], ...] = (
        lambda: _require_paper(id, entry.paper),
        lambda: templates.require(root / NOTEBOOKS / entry.notebook, _given(entry), entry.parameters),
        lambda: [registry.benchmark(b) for b in benchmarks],
        lambda: [_require_listed(b, benchmarks) for b in entry.on_request],
        lambda: _refuse_claims(entry),
        lambda: _require_benchmark(inputs, benchmarks),
        lambda: [_require_module(resolved(run).method, "policy") for run in named("trajectories")],
        lambda: [_require_prior(str(run.on(""))) for run in named("evaluations")],
        lambda: [_require_module(str(run.on("")), "online") for run in named("online")],
        lambda: [_require_split(b, inputs.split) for b in benchmarks if inputs.split],
        lambda: [_require_some_split(split, benchmarks) for split in inputs.splits or ()],
        lambda: [_require_some_split(run.split, benchmarks) for kind in KINDS for run in named(kind) if run.split],
        lambda: [registry.study(name) for name in inputs.studies or ()],
        lambda: [registry.check(entry.paper, name) for name in inputs.theory or ()],
        lambda: [_refuse_repeats(Artefact(b, b, b, entry).trajectories) for b in benchmarks],
        lambda: _require_named(root, entry),
    )
    found = []
    for check in checks:
        try:
            check()
        except ConfigError as error:
            found += str(error).splitlines()
    return list(dict.fromkeys(found))


KINDS = ("trajectories", "evaluations", "online")
"""Inputs that are made per benchmark, split and method."""


def _require_paper(id: str, paper: str) -> None:
    """Refuse a paper without a folder, and an id of another paper."""
    known = [path.parent.name for path in PACKAGE_ROOT.glob("papers/*/__init__.py") if path.parent.name != "engine"]
    if paper not in known:
        raise unknown("paper", paper, known)
    if id.partition("_")[0] != paper:
        raise ConfigError(f"its id must begin with its paper, '{paper}_'; rename it, or correct 'paper'")


def _given(entry: CatalogueEntry) -> list[str]:
    """Return the parameters that the workflow gives a template besides the entry's own `parameters`."""
    splits = [key for key, given in (("split", entry.inputs.split), ("splits", entry.inputs.splits)) if given]
    return [*STANDARD, *(ON_BENCHMARK if entry.benchmarks else ()), *splits, *entry.inputs.kinds]


def _refuse_repeats(runs: list[RunId]) -> None:
    for run in {run for run in runs if runs.count(run) > 1}:
        raise ConfigError(
            f"trajectories name {run.on('')} on split '{run.split}' twice ('{run.method}' means its own acquisition)"
        )


def _require_named(root: Path, entry: CatalogueEntry) -> None:
    """Refuse parameters that name methods that the entry does not read, on all of its benchmarks or on one."""
    tables = [RunId.parse(name) for kind in KINDS for name in entry.inputs.kinds.get(kind, ())]
    templates.require_methods(root / NOTEBOOKS / entry.notebook, entry.parameters, _given(entry), tables)
    for benchmark in entry.benchmarks:
        _require_shown(root, Artefact(benchmark, benchmark, benchmark, entry))


def _require_shown(root: Path, artefact: Artefact) -> None:
    """Refuse parameters that name methods that the artefact does not read."""
    entry, runs = artefact.entry, [*artefact.trajectories, *artefact.evaluations, *artefact.online]
    runs = [run.on("") for run in runs]
    template = root / NOTEBOOKS / entry.notebook
    templates.require_shown(template, entry.parameters, _given(entry), runs, artefact.benchmark)


def _require_listed(benchmark: str, benchmarks: Sequence[str]) -> None:
    if benchmark not in benchmarks:
        raise ConfigError(f"'on_request': {unknown('benchmark of this entry', benchmark, benchmarks)}")


def _refuse_claims(entry: CatalogueEntry) -> None:
    """Refuse to leave an artefact out of the default run if a claim may be judged on it."""
    if entry.on_request and entry.claims:
        raise ConfigError(f"'on_request': claims read it ({', '.join(entry.claims)}); remove the key, or the claims")


def _require_benchmark(inputs: Inputs, benchmarks: Sequence[str]) -> None:
    """Refuse benchmark tables without a benchmark or a split, both kinds of splits at once, and a split without
    tables."""
    chosen = [key for key, given in (("split", inputs.split), ("splits", inputs.splits)) if given]
    tables = [name for kind in KINDS for name in inputs.kinds.get(kind, ())]
    if not benchmarks and (chosen or tables):
        raise ConfigError("it reads tables of a benchmark but lists no 'benchmarks'; name those it is made for")
    if len(chosen) > 1:
        raise ConfigError("inputs: give 'split' or 'splits', not both")
    if not chosen and not all(RunId.parse(name).split for name in tables):
        raise ConfigError("inputs: 'split' is missing (or 'splits', or '@split' after each method)")
    if chosen and not tables:
        raise ConfigError(f"inputs: '{chosen[0]}' is given, but no tables of it: {', '.join(KINDS)}")


def _require_some_split(split: str, benchmarks: Sequence[str]) -> None:
    """Refuse a split that none of the entry's benchmarks has."""
    splits.entry(split)
    if not any(split in splits.of(b) for b in benchmarks):
        raise ConfigError(f"split '{split}' is on none of the benchmarks {', '.join(benchmarks)}")


def _require_module(method: str, part: registry.Part) -> None:
    """Refuse a method that has no such runs: `policy` (offline, trajectories) or `online`."""
    entry, offline = registry.method(method), part == "policy"
    if (entry.policy if offline else entry.online) is not None:  # then there is code for it (`names.require_methods`)
        return
    kind, made = "trajectories" if offline else "online", registry.made_of(method)
    why, remedy = f"its code has no {part}", ""
    if made.policy if offline else made.online:
        why = f"'{part}' of its entry in {registry.METHODS.name} is null or left out"
        remedy = f"write `{part}: {{}}` there if it takes no settings, or "
    near = ", ".join(difflib.get_close_matches(method, registry.methods(part), n=NEAREST, cutoff=0.0))
    raise ConfigError(f"{kind}: '{method}' cannot run so, {why}; {remedy}name one that can, such as {near}")


def _require_prior(method: str) -> None:
    if not registry.method(method).pretrain:
        raise ConfigError(f"evaluations: '{method}' pre-trains nothing that could be evaluated")


def _require_split(benchmark: str, split: str) -> None:
    if split not in splits.of(benchmark):
        raise unknown(f"split of benchmark '{benchmark}'", split, splits.of(benchmark))
