"""The catalogue of tables and figures: load, check, and expand it into one artefact per (entry, benchmark)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metabo.errors import ConfigError, MetaboError, unknown
from metabo.plan import codegraph, names, registry, splits, templates
from metabo.plan.config import Config
from metabo.plan.entries import CatalogueEntry, Inputs
from metabo.plan.parts import PACKAGE_ROOT
from metabo.plan.runs import RunId, resolved
from metabo.plan.schema import read_schema, violations
from metabo.plan.typed import read_each
from metabo.plan.yaml_files import read_yaml

CATALOGUE = Path("workflow/catalogue.yaml")
SCHEMA = Path("workflow/schemas/catalogue.yaml")
NOTEBOOKS = Path("notebooks")
STANDARD = ("artefact", "title", "caption", "out")
"""Parameters of every template."""
ON_BENCHMARK = ("benchmark", "data")
"""Parameters of every template that reads a benchmark."""


@dataclass(frozen=True)
class Artefact:
    """One table or figure on one benchmark ("": on none). `name` is the rule's name; `entry` the catalogue entry `id`
    names."""

    name: str
    id: str
    benchmark: str
    entry: CatalogueEntry

    @property
    def inputs(self) -> Inputs:
        """The entry's inputs besides the benchmark file; none for an artefact that describes the benchmark."""
        return self.entry.inputs

    @property
    def judges(self) -> bool:
        """Whether verdicts read it: claims are tested on it, or it has the controls of the paper's methods."""
        return bool(self.entry.claims) or (self.benchmark != "" and registry.benchmark(self.benchmark).control)

    @property
    def on_request(self) -> bool:
        """Whether it is made only where it, or its benchmark, is asked for by name."""
        return self.benchmark in self.entry.on_request

    @property
    def splits(self) -> list[str]:
        """Splits that the benchmark has of the tables that the artefact reads; none if it reads no such tables."""
        return [split for split in _listed(self.inputs) if split in splits.of(self.benchmark)]

    @property
    def template(self) -> str:
        """Path of the notebook template."""
        return (NOTEBOOKS / self.entry.notebook).as_posix()

    @property
    def trajectories(self) -> list[RunId]:
        """The runs whose trajectories it reads, on this benchmark, each with its acquisition and split."""
        return [resolved(run) for run in self._runs("trajectories")]

    @property
    def evaluations(self) -> list[RunId]:
        """The methods whose evaluations it reads, on this benchmark, each with its split."""
        return self._runs("evaluations")

    @property
    def online(self) -> list[RunId]:
        """The methods whose online tuning it reads, on this benchmark, each with its split."""
        return self._runs("online")

    @property
    def place(self) -> str:
        """Its folder below results/{scale}."""
        return "/".join(filter(None, (self.entry.paper, self.benchmark, self.id)))

    @property
    def files(self) -> dict[str, list[str]]:
        """Tables that it reads, as paths below results/{scale}, by the parameter of the notebook that names them."""
        paper, on, named = self.entry.paper, self.benchmark, self.inputs.kinds
        paths = {
            "trajectories": [f"bo/{on}/{run.split}/{run.on('')}.parquet" for run in self.trajectories],
            "evaluations": [f"evaluation/{on}/{run.split}/{run.method}.parquet" for run in self.evaluations],
            "online": [f"online/{on}/{run.split}/{run.method}.parquet" for run in self.online],
            "theory": [f"theory/{paper}/{check}.json" for check in named.get("theory", ())],
            "studies": [f"studies/{study}.parquet" for study in named.get("studies", ())],
        }
        return {kind: found for kind, found in paths.items() if kind in named}

    def _runs(self, kind: str) -> list[RunId]:
        """Expand a run without a split over the artefact's splits; drop what the benchmark has not."""
        listed = [RunId.parse(name) for name in self.inputs.kinds.get(kind, ())]
        runs = [run.on(split) for run in listed for split in ([run.split] if run.split else self.splits)]
        have = splits.of(self.benchmark) if self.benchmark else []
        return [run for run in runs if run.split in have and applies(run.method, self.benchmark)]


def applies(method: str, benchmark: str) -> bool:
    """Tell whether a method can run on a benchmark: EKL needs inputs matched across tasks, ground truth tasks that were
    drawn from known priors."""
    needs, has = registry.method(method), registry.benchmark(benchmark)
    return (has.matched or not needs.needs_matched) and (has.truth or not needs.needs_truth)


def load(root: Path = Path()) -> dict[str, CatalogueEntry]:
    """Read and check the catalogue below the project folder `root`. Raises ConfigError that lists every fault, or the
    first of a registration, which every entry that reads it would tell again."""
    names.require_methods()
    for read in (registry.benchmarks, registry.studies, registry.papers_with_checks, splits.names):
        read()
    written = read_yaml(root / CATALOGUE)
    faults = violations(written, read_schema(root / SCHEMA), "catalogue")
    entries = {} if faults else read_each(CatalogueEntry, written, "catalogue")
    faults += [
        f"catalogue entry '{id}': {fault}" for id, entry in entries.items() for fault in _faults(id, entry, root)
    ]
    notebooks = dict.fromkeys(entry.notebook for entry in entries.values())
    faults += [fault for name in notebooks for fault in _code_faults(root / NOTEBOOKS / name)]
    if faults:
        raise ConfigError(f"{CATALOGUE}:\n  " + "\n  ".join(faults))
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
    """Keep the artefacts of the papers and benchmarks that the configuration runs, and those that need no benchmark:
    those that it names, or all but those made on request.

    Raises ConfigError if none is, and for the name of another one."""
    papers, benchmarks = list(config.run.papers), ["", *config.run.benchmarks]
    found = [a for a in all_artefacts if a.entry.paper in papers and a.benchmark in benchmarks]
    if (named := config.run.artefacts) is not None:
        for name in named:
            if name not in (can := [a.name for a in found]):
                raise ConfigError(f"config key 'run.artefacts': {unknown('artefact of this run', name, can)}")
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
    without what is made on request) and a benchmark (whatever can be made for it, or for one that is made of it alone).
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


def _listed(inputs: Inputs) -> Sequence[str]:
    """Return the splits that the tables of an entry are of."""
    return inputs.splits or ([inputs.split] if inputs.split else [])


def _faults(id: str, entry: CatalogueEntry, root: Path) -> list[str]:
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
            found.append(str(error))
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


def _code_faults(template: Path) -> list[str]:
    """Say which code cell of a template is no Python. What is no notebook is told by `templates`."""
    try:
        templates.parameters(template)
        codegraph.notebook_roots(template)
    except ConfigError:
        return []
    except MetaboError as error:
        return [str(error)]
    return []


def _refuse_repeats(runs: list[RunId]) -> None:
    for run in {run for run in runs if runs.count(run) > 1}:
        raise ConfigError(
            f"trajectories name {run.on('')} on split '{run.split}' twice ('{run.method}' means its own acquisition)"
        )


def _require_named(root: Path, entry: CatalogueEntry) -> None:
    """Refuse parameters that name methods which the entry does not read: on all of its benchmarks, or on one."""
    tables = [RunId.parse(name) for kind in KINDS for name in entry.inputs.kinds.get(kind, ())]
    templates.require_methods(root / NOTEBOOKS / entry.notebook, entry.parameters, _given(entry), tables)
    for benchmark in entry.benchmarks:
        _require_shown(root, Artefact(benchmark, benchmark, benchmark, entry))


def _require_shown(root: Path, artefact: Artefact) -> None:
    """Refuse parameters that name methods which the artefact does not read."""
    entry, runs = artefact.entry, [*artefact.trajectories, *artefact.evaluations, *artefact.online]
    runs = [run.on("") for run in runs]
    template = root / NOTEBOOKS / entry.notebook
    templates.require_shown(template, entry.parameters, _given(entry), runs, artefact.benchmark)


def _require_listed(benchmark: str, benchmarks: Sequence[str]) -> None:
    if benchmark not in benchmarks:
        raise ConfigError(f"'on_request': {unknown('benchmark of this entry', benchmark, benchmarks)}")


def _refuse_claims(entry: CatalogueEntry) -> None:
    """Refuse to leave out of the default run what a claim may be judged on."""
    if entry.on_request and entry.claims:
        raise ConfigError(f"'on_request': claims read it ({', '.join(entry.claims)}); remove the key, or the claims")


def _require_benchmark(inputs: Inputs, benchmarks: Sequence[str]) -> None:
    """Refuse tables of a benchmark without a benchmark or without a split, and a split of no tables."""
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
    registry.method(method)
    if method not in (able := registry.methods(part)):
        kind = "trajectories" if part == "policy" else "online"
        raise ConfigError(f"{kind}: '{method}' cannot run so; {', '.join(able)} can")


def _require_prior(method: str) -> None:
    if not registry.method(method).pretrain:
        raise ConfigError(f"evaluations: '{method}' pre-trains nothing that could be evaluated")


def _require_split(benchmark: str, split: str) -> None:
    if split not in splits.of(benchmark):
        raise unknown(f"split of benchmark '{benchmark}'", split, splits.of(benchmark))
