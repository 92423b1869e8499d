"""Find the modules of embedded benchmarks: those that collect them by training, write them, and evaluate new points.

Only `collector` and `writer` import them.
"""

import importlib
from types import ModuleType
from typing import Literal

from metabo.errors import ConfigError
from metabo.plan import registry
from metabo.plan.parts import path_of

Part = Literal["collector", "writer"]


def collector_module(name: str) -> str:
    """Return the name of the module that collects an embedded benchmark. Raises ConfigError if it has none."""
    return _named("collector", name)


def writer_module(name: str) -> str:
    """Return the name of the module that writes a collected table in the published format. Raises ConfigError if there
    is none."""
    return _named("writer", name)


def _named(part: Part, name: str) -> str:
    if not (module := _part(part, name)):
        able = ", ".join(other for other in registry.benchmarks() if _part(part, other))
        raise ConfigError(f"benchmark '{name}' has no {part}; benchmarks that have one: {able}")
    return f"metabo.{module}"


def _part(part: Part, name: str) -> str | None:
    entry = registry.benchmark(name)
    return {"collector": entry.collector, "writer": entry.writer}[part]


def collector(name: str) -> ModuleType:
    """Import the module that collects an embedded benchmark (`collect`, `agreement`)."""
    return importlib.import_module(collector_module(name))


def writer(name: str) -> ModuleType:
    """Import the module that writes a collected table in the published format (`write_archive`)."""
    return importlib.import_module(writer_module(name))


def units(name: str) -> list[str]:
    """List the units of an embedded benchmark, each of which one collection job makes."""
    return list(registry.literal(collector_module(name).removeprefix("metabo."), "UNITS"))


def evaluator(name: str) -> str:
    """Return the name of the module that evaluates new points of a benchmark, which is its collector if that has the
    literal ONLINE (task -> metric). Raises ConfigError if there is none."""
    if not _evaluates(name):
        able = ", ".join(b for b in registry.benchmarks() if _evaluates(b)) or "none"
        raise ConfigError(f"benchmark '{name}' is a table: it cannot evaluate new points; benchmarks that can: {able}")
    return collector_module(name)


def _evaluates(name: str) -> bool:
    module = registry.benchmark(name).collector
    return bool(module and registry.find_literal(path_of(module), "ONLINE"))
