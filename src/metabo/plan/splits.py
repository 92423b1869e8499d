"""Named splits: which tasks and points a prior is trained on, and which candidates BO has (`splits.yaml`)."""

from functools import cache
from pathlib import Path
from typing import Any

from metabo.errors import ConfigError, unknown
from metabo.plan import registry
from metabo.plan.schema import read_yaml, violations

SPLITS = Path(__file__).with_name("splits.yaml")
NAME, COUNT, POOL = {"type": "string"}, {"type": "integer", "minimum": 1}, {"enum": ["all", "matched"]}
SCHEMA = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "base": NAME,
            "points": COUNT,
            "tasks": COUNT,
            "rows": POOL,
            "spaces": {"enum": ["all", "others"]},
            "sizes": NAME,
            "prior": NAME,
            "candidates": {"anyOf": [POOL, COUNT]},
            "benchmarks": {"type": "array", "minItems": 1, "uniqueItems": True, "items": NAME},
        },
    },
}
"""What may stand in `splits.yaml`, where each key is described."""


@cache
def _splits() -> dict[str, dict[str, Any]]:
    entries = read_yaml(SPLITS)
    faults = violations(entries, SCHEMA, SPLITS.name)
    for name, own in entries.items() if not faults else ():
        for key in ("base", "prior"):
            if own.get(key, name) not in entries:
                faults.append(f"{SPLITS.name}: '{key}' of split '{name}': {unknown('split', own[key], entries)}")
        for benchmark in own.get("benchmarks", []):
            if benchmark not in registry.benchmarks():
                fault = unknown("benchmark", benchmark, registry.benchmarks())
                faults.append(f"{SPLITS.name}: 'benchmarks' of split '{name}': {fault}")
    if faults:
        raise ConfigError("\n".join(faults))
    return entries


def names() -> list[str]:
    """List the named splits."""
    return sorted(_splits())


def entry(name: str) -> dict[str, Any]:
    """Return the registration of a split (a copy). Raises ConfigError that lists the valid names."""
    if name not in _splits():
        raise unknown("split", name, _splits())
    return dict(_splits()[name])


def prior_split(name: str) -> str:
    """Return the split whose priors a split uses: itself, unless it says otherwise."""
    return entry(name).get("prior", name)


def base(name: str) -> str:
    """Return the loader's split that a split is made of."""
    return entry(prior_split(name)).get("base", prior_split(name))


def of(benchmark: str) -> list[str]:
    """List the splits of a benchmark: those its loader makes, and those made of them."""
    registered = registry.benchmark(benchmark)
    loaded = registered.get("splits", [registered["default_split"]])
    return [n for n in _splits() if base(n) in loaded and benchmark in entry(n).get("benchmarks", [benchmark])]


def past(name: str) -> dict[str, Any]:
    """Return what training reads of a split: the fields of `metabo.tasks.subsets.Past`."""
    own = entry(prior_split(name))
    return {"base": base(name), **{key: own[key] for key in ("points", "tasks", "rows", "spaces") if key in own}}
