"""Named splits: the tasks and points that a prior is trained on, and the candidates of BO (`splits.yaml`)."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from metabo.errors import ConfigError, unknown
from metabo.plan import registry
from metabo.plan.entries import Split
from metabo.plan.past import Past
from metabo.plan.typed import read_each
from metabo.plan.yaml_files import read_yaml

SPLITS = Path(__file__).with_name("splits.yaml")


@cache
def _splits() -> dict[str, Split]:
    entries, faults = read_each(Split, read_yaml(SPLITS), SPLITS.name), []
    for name, own in entries.items():
        for key, other in (("base", own.base), ("prior", own.prior)):
            if other is not None and other not in entries:
                faults.append(f"{SPLITS.name}: '{key}' of split '{name}': {unknown('split', other, entries)}")
        priors = entries.get(own.prior or name, own)
        if own.candidates == "rest" and priors.rows != "half":
            faults.append(f"{SPLITS.name}: 'candidates: rest' of split '{name}' needs priors trained on 'rows: half'")
        for benchmark in own.benchmarks or ():
            if benchmark not in registry.benchmarks():
                fault = unknown("benchmark", benchmark, registry.benchmarks())
                faults.append(f"{SPLITS.name}: 'benchmarks' of split '{name}': {fault}")
    faults += _registered(entries)
    if faults:
        raise ConfigError(*faults)
    return entries


def _registered(entries: Mapping[str, Split]) -> Iterator[str]:
    """Yield a line for each split that a benchmark's registration names but that does not exist."""
    for benchmark in registry.benchmarks():
        made = registry.benchmark(benchmark)
        where = f"{registry.loader(benchmark)}: BENCHMARKS key '{benchmark}"
        for split in made.splits:
            if split not in entries:
                yield f"{where}.splits': {unknown('split', split, entries)}"
        if made.default_split not in (known := made.splits or entries):
            yield f"{where}.default_split': {unknown('split', made.default_split, known)}"


def names() -> list[str]:
    """List the named splits."""
    return sorted(_splits())


def entry(name: str) -> Split:
    """Return the registration of a split. Raises ConfigError, which lists the valid names, for an unknown one."""
    if name not in _splits():
        raise unknown("split", name, _splits())
    return _splits()[name]


def prior_split(name: str) -> str:
    """Return the split whose priors a split uses, which is itself unless it says otherwise."""
    return entry(name).prior or name


def base(name: str) -> str:
    """Return the loader's split that a split is made from."""
    return entry(prior_split(name)).base or prior_split(name)


def of(benchmark: str) -> list[str]:
    """List the splits of a benchmark: those that its loader makes, and those made from them."""
    loaded = registry.benchmark(benchmark).loaded
    return [
        name
        for name, own in _splits().items()
        if _bases()[name] in loaded and benchmark in (own.benchmarks or [benchmark])
    ]


@cache
def _bases() -> dict[str, str]:
    """Return `base` of every split. This is cached because a plan asks for the splits of a benchmark thousands of
    times."""
    entries = _splits()
    return {name: entries[own.prior or name].base or own.prior or name for name, own in entries.items()}


def queries(benchmark: str, name: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether a candidate is queried once on a split, and the spaces in which it is the other way round."""
    made, how = registry.benchmark(benchmark), entry(name).queries
    if how in ("repeats", "once"):
        return how == "once", ()
    return made.once == (how == "protocol"), made.exceptions


def past(name: str) -> Past:
    """Return the part of a benchmark that training on a split uses."""
    own = entry(prior_split(name))
    return Past(base(name), own.points, own.tasks, own.rows, own.spaces)
