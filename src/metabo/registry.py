"""Find what is registered, methods and data sources, without importing their modules.

Methods are registered in ``methods/methods.yaml``, benchmarks by a literal table ``BENCHMARKS = {...}`` in the module
that loads them. Reading both as data keeps the workflow's parse step free of JAX and tells exactly which modules a
name depends on, so that changing one method re-runs that method only.
"""

import ast
import copy
import importlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from metabo.errors import ConfigError, unknown

PACKAGE_ROOT = Path(__file__).parent
METHODS = PACKAGE_ROOT / "methods" / "methods.yaml"

Entry = dict[str, Any]


@cache
def _methods() -> dict[str, Entry]:
    entries = yaml.safe_load(METHODS.read_text())
    # `like` merges whole keys, not their insides: what a method is shows in one place.
    return {name: _merged(name, entries) for name in entries}


def _merged(name: str, entries: dict[str, Entry]) -> Entry:
    own = dict(entries[name])
    model = own.pop("like", None)
    if model is None:
        return own
    if model not in entries or model == name:
        raise ConfigError(f"{METHODS.name}: '{name}' is like '{model}', which is not another method there")
    return _merged(model, entries) | own


def methods() -> list[str]:
    """List the registered methods."""
    return sorted(_methods())


def method(name: str) -> Entry:
    """Return the registration of a method (a copy). Raises ConfigError that lists the valid names."""
    if name not in _methods():
        raise unknown("method", name, _methods())
    return copy.deepcopy(_methods()[name])


def training_module(name: str) -> ModuleType:
    """Import the module that has `start` and `pretrain` of a method."""
    return importlib.import_module(f"metabo.{method(name)['module']}")


def policy_module(name: str) -> ModuleType:
    """Import the module that has `policy` of a method."""
    return importlib.import_module(f"metabo.{method(name)['policy_module']}")


@cache
def _benchmarks() -> dict[str, tuple[str, Entry]]:
    found: dict[str, tuple[str, Entry]] = {}
    for path in sorted((PACKAGE_ROOT / "data").glob("*.py")):
        for name, value in (_literal(path, "BENCHMARKS") or {}).items():
            if name in found:
                raise ConfigError(f"'{name}' is registered twice: in {found[name][0]} and metabo.data.{path.stem}")
            found[name] = (f"metabo.data.{path.stem}", value)
    return found


def benchmarks() -> list[str]:
    """List the registered benchmarks."""
    return sorted(_benchmarks())


def benchmark(name: str) -> Entry:
    """Return the registration of a benchmark (a copy). Raises ConfigError that lists the valid names."""
    if name not in _benchmarks():
        raise unknown("benchmark", name, _benchmarks())
    return copy.deepcopy(_benchmarks()[name][1])


def loader(name: str) -> str:
    """Return the name of the module whose `load` reads a benchmark."""
    benchmark(name)
    return _benchmarks()[name][0]


@cache
def literal(module: str, table: str) -> Any:
    """Return one top-level literal of a module, e.g. ``literal("acquisition", "ACQUISITIONS")``, unimported."""
    value = _literal(PACKAGE_ROOT.joinpath(*module.split(".")).with_suffix(".py"), table)
    if value is None:
        raise ConfigError(f"module metabo.{module} has no top-level literal {table}")
    return value


def _literal(path: Path, table: str) -> Any:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", None) == table for t in node.targets):
            return ast.literal_eval(node.value)
    return None
