"""Find what is registered, methods and data sources, without importing their modules.

Methods are registered in ``methods.yaml``; benchmarks, studies and theory checks by a literal table in the module that
has them; checks of claims by their names. Reading all of this as data keeps the workflow's parse step free of JAX and
tells exactly which modules a name depends on, so that changing one method re-runs that method only.
"""

import ast
import copy
import importlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from metabo.errors import ConfigError, unknown

PACKAGE_ROOT = Path(__file__).parents[1]
METHODS = Path(__file__).with_name("methods.yaml")

SHARED_CHECKS = "metabo.papers.engine.claims.shared"
"""The module with checks that claims of several papers name."""

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


def methods(part: str | None = None, ordered: bool = False) -> list[str]:
    """List the registered methods, or those that have a `part`: "policy_module" (BO on a table), "online_module".

    By name; `ordered`: as they are registered."""
    names = [name for name, entry in _methods().items() if part is None or entry.get(part)]
    return names if ordered else sorted(names)


def method(name: str) -> Entry:
    """Return the registration of a method (a copy). Raises ConfigError that lists the valid names."""
    if name not in _methods():
        raise unknown("method", name, _methods())
    return copy.deepcopy(_methods()[name])


def method_module(name: str, part: str) -> str:
    """Return the name of the module registered as a method's `part`. Raises ConfigError if it has none."""
    module = method(name).get(part)
    if not module:
        raise ConfigError(f"method '{name}' has no {part}; methods that have one: {', '.join(methods(part))}")
    return f"metabo.{module}"


def training_module(name: str) -> ModuleType:
    """Import the module that has `start` and `pretrain` of a method."""
    return importlib.import_module(method_module(name, "module"))


def policy_module(name: str) -> ModuleType:
    """Import the module that has `policy` of a method."""
    return importlib.import_module(method_module(name, "policy_module"))


def online_module(name: str) -> ModuleType:
    """Import the module that has `online` of a method."""
    return importlib.import_module(method_module(name, "online_module"))


@cache
def _benchmarks() -> dict[str, tuple[str, Entry]]:
    return _registered("BENCHMARKS", sorted((PACKAGE_ROOT / "data").rglob("*.py")))


def _registered(table: str, paths: Iterable[Path]) -> dict[str, tuple[str, Any]]:
    """Return the entries of the literal `table` of each module, by name, with the module. Raises ConfigError for a name
    that stands twice."""
    found: dict[str, tuple[str, Any]] = {}
    for path in paths:
        for name, value in (_literal(path, table) or {}).items():
            if name in found:
                raise ConfigError(f"'{name}' is registered twice: in {found[name][0]} and {_module(path)}")
            found[name] = (_module(path), value)
    return found


def _module(path: Path) -> str:
    return ".".join(("metabo", *path.relative_to(PACKAGE_ROOT).with_suffix("").parts))


def benchmarks() -> list[str]:
    """List the registered benchmarks."""
    return sorted(_benchmarks())


def benchmark(name: str) -> Entry:
    """Return the registration of a benchmark (a copy). Raises ConfigError that lists the valid names."""
    if name not in _benchmarks():
        raise unknown("benchmark", name, _benchmarks())
    return copy.deepcopy(_benchmarks()[name][1])


def collector(name: str) -> ModuleType:
    """Import the module that collects an embedded benchmark (`collect`, `agreement`)."""
    return importlib.import_module(f"metabo.{benchmark(name)['collector']}")


def writer(name: str) -> ModuleType:
    """Import the module that writes a collected table in the published format (`write_archive`)."""
    return importlib.import_module(f"metabo.{benchmark(name)['writer']}")


def units(name: str) -> list[str]:
    """List the units of an embedded benchmark: what one collection job makes."""
    return list(literal(benchmark(name)["collector"], "UNITS"))


def evaluator(name: str) -> str:
    """Return the name of the module that evaluates new points of a benchmark: its collector, if that has the literal
    ONLINE (task -> metric). Raises ConfigError if there is none."""
    if not _evaluates(name):
        able = ", ".join(b for b in benchmarks() if _evaluates(b)) or "none"
        raise ConfigError(f"benchmark '{name}' is a table: it cannot evaluate new points; benchmarks that can: {able}")
    return f"metabo.{benchmark(name)['collector']}"


def _evaluates(name: str) -> bool:
    module = benchmark(name).get("collector")
    return bool(module and _literal(_path(module), "ONLINE"))


def loader(name: str) -> str:
    """Return the name of the module whose `load` reads a benchmark."""
    benchmark(name)
    return _benchmarks()[name][0]


@cache
def _studies() -> dict[str, tuple[str, Entry]]:
    return _registered("STUDIES", sorted((PACKAGE_ROOT / "papers").glob("*/studies/*.py")))


def studies() -> list[str]:
    """List the registered synthetic studies: each a literal table ``STUDIES = {...}`` in the module that runs it."""
    return sorted(_studies())


def study(name: str) -> Entry:
    """Return the registration of a study (a copy). Raises ConfigError that lists the valid names."""
    if name not in _studies():
        raise unknown("study", name, _studies())
    return copy.deepcopy(_studies()[name][1])


def study_module(name: str) -> str:
    """Return the name of the module whose `run` makes a study. Raises ConfigError that lists the valid names."""
    study(name)
    return _studies()[name][0]


@cache
def _checks() -> dict[str, dict[str, tuple[str, str]]]:
    folders = sorted((PACKAGE_ROOT / "papers").glob("*/theory"))
    found = {folder.parent.name: _registered("CHECKS", sorted(folder.glob("*.py"))) for folder in folders}
    return {paper: checks for paper, checks in found.items() if checks}


def papers_with_checks() -> list[str]:
    """List the papers whose theory is checked."""
    return sorted(_checks())


def checks(paper: str) -> list[str]:
    """List the checks of a paper: each a title in a literal table ``CHECKS = {...}`` of the module that has it.

    Raises ConfigError that lists the papers that have some.
    """
    if paper not in _checks():
        raise unknown("paper with theory checks", paper, _checks())
    return sorted(_checks()[paper])


def check(paper: str, name: str) -> str:
    """Return the title of a check. Raises ConfigError that lists the valid names."""
    if name not in checks(paper):
        raise unknown(f"theory check of {paper}", name, checks(paper))
    return _checks()[paper][name][1]


def check_module(paper: str, name: str) -> str:
    """Return the name of the module that has a check. Raises ConfigError that lists the valid names."""
    check(paper, name)
    return _checks()[paper][name][0]


def claim_modules(paper: str = "*") -> list[str]:
    """List the modules with the checks that claims name: those that papers share, and those of a paper (or of all)."""
    papers = PACKAGE_ROOT / "papers"
    own = sorted([*papers.glob(f"{paper}/checks.py"), *papers.glob(f"{paper}/checks/*.py")])
    return [SHARED_CHECKS, *(_module(path) for path in own if path.name != "__init__.py")]


@cache
def literal(module: str, table: str) -> Any:
    """Return one top-level literal of a module, e.g. ``literal("bo.acquisition", "ACQUISITIONS")``, unimported."""
    value = _literal(_path(module), table)
    if value is None:
        raise ConfigError(f"module metabo.{module} has no top-level literal {table}")
    return value


def _path(module: str) -> Path:
    return PACKAGE_ROOT.joinpath(*module.split(".")).with_suffix(".py")


def _literal(path: Path, table: str) -> Any:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", None) == table for t in node.targets):
            return ast.literal_eval(node.value)
    return None
