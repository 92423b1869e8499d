"""Named splits: which tasks and points a prior is trained on, and which candidates BO has (`splits.yaml`)."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from metabo import registry
from metabo.errors import ConfigError, unknown

SPLITS = Path(__file__).with_name("splits.yaml")
KEYS = {"base", "points", "tasks", "rows", "sizes", "prior", "candidates", "benchmarks"}


@cache
def _splits() -> dict[str, dict[str, Any]]:
    entries = yaml.safe_load(SPLITS.read_text())
    for name, own in entries.items():
        if surplus := set(own) - KEYS:
            raise ConfigError(
                f"{SPLITS.name}: split '{name}' has unknown keys {sorted(surplus)}; known: {sorted(KEYS)}"
            )
        for key in ("base", "prior"):
            if own.get(key, name) not in entries:
                raise ConfigError(f"{SPLITS.name}: '{key}' of split '{name}' is '{own[key]}', which is no split there")
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
    """Return what training reads of a split: the fields of `metabo.reduction.Past`."""
    own = entry(prior_split(name))
    return {"base": base(name), **{key: own[key] for key in ("points", "tasks", "rows") if key in own}}
