"""The jobs that the workflow should have, counted from the catalogue and the registrations.

The workflow names files and lets Snakemake follow them. Here the catalogue's entries are expanded into sets of what the
jobs of each rule make, and a count is the size of a set, so the two agree only if both read the catalogue alike.
Nothing here calls the workflow's own functions: `catalogue.Artefact`, `enabled`, `collections`, `trainings.prior_of`.
An entry, method, benchmark, split, study or check that is added is expected without a change here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from metabo.plan import catalogue, config, registry, splits
from metabo.plan.typed import written
from metabo.records.files import canonical

ROOT = Path(__file__).parents[1]
ENTRIES = catalogue.load(ROOT)
RUNS = {"trajectories": "run_bo", "evaluations": "evaluate", "online": "run_online"}
"""Kinds of tables that an entry reads, and the rules that make them."""


class Made(NamedTuple):
    """An entry of the catalogue on one of its benchmarks ("": it has none)."""

    id: str
    benchmark: str


class Run(NamedTuple):
    """A method on a split of a benchmark."""

    benchmark: str
    split: str
    method: str
    acquisition: str


def settings(*overlays: str, **changes: Any) -> config.Config:
    """Return the configuration with overlays (their names in config/) and changes laid over it."""
    read = config.read(ROOT, tuple(ROOT / "config" / f"{name}.yaml" for name in overlays))
    return config.check(config.merge(read, changes))


def everything() -> list[Made]:
    """List every entry on every benchmark."""
    return [Made(id, benchmark) for id, entry in ENTRIES.items() for benchmark in entry.benchmarks or ("",)]


def of_paper(given: config.Config, paper: str) -> list[Made]:
    """List a paper's entries on the benchmarks that the configuration runs, and those on none, but for those made on
    request."""
    run = {"", *given.run.benchmarks}
    listed = [made for made in everything() if ENTRIES[made.id].paper == paper and made.benchmark in run]
    return [made for made in listed if made.benchmark not in ENTRIES[made.id].on_request]


def enabled(given: config.Config) -> list[Made]:
    """List what the configuration makes."""
    return [made for paper in given.run.papers for made in of_paper(given, paper)]


def papers(having: str = "paper") -> set[str]:
    """List the papers with an entry that has a key, such as claims."""
    return {entry.paper for entry in ENTRIES.values() if getattr(entry, having)}


def benchmarks() -> set[str]:
    """List the benchmarks of the catalogue that need no file of the user's."""
    return {made.benchmark for made in everything() if made.benchmark and not own_files(made.benchmark)}


def own_files(benchmark: str) -> bool:
    """Whether a benchmark is read from the user's files."""
    return bool(registry.benchmark(benchmark).files)


def shown(kind: str, paper: str) -> list[str]:
    """List the checks ("theory") or studies that the entries of a paper show."""
    return sorted(name for e in ENTRIES.values() if e.paper == paper for name in e.inputs.kinds.get(kind, ()))


def rule(given: config.Config, made: Made) -> str:
    """Return the name of the rule of an artefact: its id where it is made first, else the benchmark's behind it."""
    on = ENTRIES[made.id].benchmarks or ("",)
    first = [benchmark for benchmark in given.run.benchmarks if benchmark in on] or on
    return made.id if made.benchmark == first[0] else f"{made.id}_{made.benchmark}"


def runs(made: Iterable[Made], *kinds: str) -> set[Run]:
    """Return the distinct runs of some kinds (`RUNS`) that artefacts read."""
    found = set()
    for id, benchmark in made:
        inputs = ENTRIES[id].inputs
        everywhere = inputs.splits or [inputs.split]
        for name, _, split in (text.partition("@") for kind in kinds for text in inputs.kinds.get(kind, ())):
            method, _, acquisition = name.partition("-")
            entry, has = registry.method(method), registry.benchmark(benchmark)
            if (entry.needs_matched and not has.matched) or (entry.needs_truth and not has.truth):
                continue
            places = {split} if split else {*everywhere}
            for place in places & {*splits.of(benchmark)}:
                found.add(Run(benchmark, place, method, acquisition or entry.acquisition))
    return found


def training(given: config.Config, benchmark: str, split: str, method: str) -> str:
    """Return all that decides the priors of a method on a split: neither its name nor the split's does."""
    spec = config.pretrain_spec(given, benchmark, split, method)
    decides = {key: value for key, value in written(spec).items() if key not in ("split", "method")}
    return canonical(decides | {"module": registry.made_of(method).pretrain})


def trainings(given: config.Config, ran: Iterable[Run]) -> set[tuple[str, str, str]]:
    """Return the distinct trainings behind runs, as (benchmark, split, what decides it).

    Equal trainings on a split are one job, and one that any method has on the loader's split is made there.
    """
    found, on_base = set(), {}
    ahead = {(run.benchmark, splits.prior_split(run.split), run.method) for run in ran}
    while ahead:
        benchmark, split, method = ahead.pop()
        base = (benchmark, splits.base(split))
        if base not in on_base:
            on_base[base] = {training(given, *base, name) for name in registry.methods()}
        own = training(given, benchmark, split, method)
        place = base if own in on_base[base] else (benchmark, split)
        found.add((*place, own))
        if learns_from := registry.method(method).fits:
            ahead.add((*place, learns_from))
    return found


def data(names: Iterable[str]) -> Counter[str]:
    """Count the jobs that bring benchmarks: loads, with those of their members, packed archives and downloads."""
    ahead, loaded, sources = set(names), set(), set()
    while ahead:
        loaded.add(name := ahead.pop())
        entry = registry.benchmark(name)
        ahead |= {*entry.members} - loaded
        packed = name if entry.collector else entry.archive_of
        sources |= {f"archive_{packed}"} if packed else set()
        sources |= {f"download_{entry.dataset}"} if entry.dataset else set()
    return Counter({"load": len(loaded), **dict.fromkeys(sources, 1)})


def computed(given: config.Config, tables: Mapping[str, set[Run]]) -> Counter[str]:
    """Count the jobs that train priors and run them, by kind of table (`RUNS`), with those that bring the data."""
    ran = set().union(*tables.values())
    jobs = data(run.benchmark for run in ran) + Counter({"pretrain": len(trainings(given, ran))})
    return jobs + Counter({RUNS[kind]: len(found) for kind, found in tables.items()})


def artefacts(given: config.Config, made: Iterable[Made]) -> Counter[str]:
    """Count the jobs behind artefacts, their own included."""
    made = set(made)
    inputs = [(ENTRIES[id].paper, ENTRIES[id].inputs) for id, _ in made]
    checks = {(paper, name) for paper, read in inputs for name in read.theory or ()}
    studies = {name for _, read in inputs for name in read.studies or ()}
    jobs = computed(given, {kind: runs(made, kind) for kind in RUNS})
    jobs |= data(benchmark for _, benchmark in made if benchmark)  # some artefacts read the benchmark alone
    jobs += Counter({"run_study": len(studies), "check_theory": len(checks)})
    return jobs + Counter(rule(given, one) for one in made)


def report(given: config.Config) -> Counter[str]:
    """Count the jobs of the report on what the configuration makes, the artefacts left out."""
    judged = papers("claims") & {*given.run.papers}
    pages = {f"pages_{ENTRIES[id].paper}" for id, _ in enabled(given)}
    return Counter({"judge_claims": len(judged), "report": 1, **dict.fromkeys(pages, 1)})


def behind(given: config.Config, target: str) -> Counter[str]:
    """Count the jobs behind a target that users type: `all`, `report`, `priors`, `trajectories`, a paper, a benchmark
    or an artefact. The target's own job is among them."""
    made, itself = enabled(given), Counter({target: 1})
    if target == "all":
        return artefacts(given, made) + report(given) + itself
    if target == "report":
        return artefacts(given, made) + report(given)
    if target == "priors":
        ran = runs(made, *RUNS)
        return data(run.benchmark for run in ran) + Counter({"pretrain": len(trainings(given, ran))}) + itself
    if target == "trajectories":
        return computed(given, {kind: runs(made, kind) for kind in (target, "online")}) + itself
    if target in papers():
        return artefacts(given, of_paper(given, target)) + itself
    if target in registry.benchmarks():
        form = [b for b in registry.benchmarks() if b == target or registry.benchmark(b).members == (target,)]
        return artefacts(given, (one for one in everything() if one.benchmark in form)) + itself
    return artefacts(given, (one for one in everything() if rule(given, one) == target))
