"""Find registered methods and data sources without importing their modules.

Methods are registered in ``methods.yaml``; benchmarks, studies and theory checks by a literal table in the module that
has them (`metabo.plan.collectors` finds what collects a benchmark); checks of claims by their names. Reading all of
this as data keeps the workflow's parse step free of JAX, and shows exactly which modules a name depends on, so changing
one method re-runs only that method.
"""

import ast
import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Generic, Literal, NamedTuple, TypeVar

from metabo.errors import ConfigError, nearest, unknown
from metabo.plan import parts, syntax
from metabo.plan.entries import BenchmarkEntry, MethodEntry, StudyEntry
from metabo.plan.method import Method
from metabo.plan.parts import PACKAGE_ROOT, path_of
from metabo.plan.typed import Values, read
from metabo.plan.yaml_files import read_yaml

METHODS = Path(__file__).with_name("methods.yaml")

SHARED_CHECKS = "metabo.papers.engine.claims.shared"
"""The module with checks that claims of several papers use."""

T = TypeVar("T")
Part = Literal["pretrain", "policy", "online"]


@cache
def _methods() -> dict[str, MethodEntry]:
    entries = read(Values, read_yaml(METHODS), METHODS.name)
    return {name: read(MethodEntry, _merged((name,), entries), METHODS.name, name) for name in entries}


def _merged(names: tuple[str, ...], entries: Values) -> Values:
    """Return a method's own keys, laid over those of the method that it is `like`. Whole keys are merged, not their
    contents, so that each key of a method is defined in one place. `names` are the methods that led here, this one
    last."""
    own = read(Values, entries[names[-1]], METHODS.name, names[-1])
    if "like" not in own:
        return own
    model = own["like"]
    if model not in entries or model in names:
        others = [name for name in entries if name not in names]
        raise ConfigError(
            f"{METHODS.name}: '{names[-1]}' is like '{model}', which is not another method there."
            f"{nearest(str(model), others)} Others: {', '.join(sorted(others)) or 'none'}"
        )
    rest = Values({key: value for key, value in own.items() if key != "like"})
    return _merged((*names, str(model)), entries) | rest


def methods(part: Part | None = None, ordered: bool = False) -> list[str]:
    """List the registered methods, or those that have a `part`: "pretrain", "policy" (BO on a table) or "online".

    They are sorted by name, or in the order of registration if `ordered`."""
    names = [name for name in _methods() if part is None or _part(name, part)]
    return names if ordered else sorted(names)


def method(name: str) -> MethodEntry:
    """Return the registration of a method. Raises ConfigError, which lists the valid names, for an unknown one."""
    if name not in _methods():
        raise unknown("method", name, _methods())
    return _methods()[name]


def made_of(name: str) -> Method:
    """Return the parts of a method: the `Method` that its registration names. Raises ConfigError, which names file,
    field and remedy, if there is none or it has faults."""
    return parts.load(method(name).method, METHODS.name)


def _part(name: str, part: Part) -> str | None:
    """Return the module of a part, or None if the method has no such part or no settings for it."""
    entry, made = method(name), made_of(name)
    settings = {"pretrain": entry.pretrain, "policy": entry.policy, "online": entry.online}[part]
    module = {"pretrain": made.pretrain, "policy": made.policy, "online": made.online}[part]
    if settings is not None and module is None:
        raise ConfigError(
            f"{METHODS.name}: '{name}' has settings '{part}', but {entry.method} has no {part}; give it one, or write "
            f"`{part}: null`"
        )
    return None if settings is None else module


def function(dotted: str) -> Callable:
    """Import a function by its name below `metabo`, such as "methods.source_gps.clusters.report"."""
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(f"metabo.{module}"), name)


def method_module(name: str, part: Part) -> str:
    """Return the name of the module registered as a method's `part`. Raises ConfigError if it has none."""
    module = _part(name, part)
    if not module:
        raise ConfigError(f"method '{name}' has no {part}; methods that have one: {', '.join(methods(part))}")
    return f"metabo.{module}"


def training_module(name: str) -> ModuleType:
    """Import the module that has `start` and `pretrain` of a method."""
    return importlib.import_module(method_module(name, "pretrain"))


def policy_module(name: str) -> ModuleType:
    """Import the module that has `policy` of a method."""
    return importlib.import_module(method_module(name, "policy"))


def online_module(name: str) -> ModuleType:
    """Import the module that has `online` of a method."""
    return importlib.import_module(method_module(name, "online"))


class Registered(NamedTuple, Generic[T]):
    """An entry that a module registers under a name."""

    module: str
    entry: T


@cache
def _benchmarks() -> dict[str, Registered[BenchmarkEntry]]:
    return _registered("BENCHMARKS", sorted((PACKAGE_ROOT / "data").rglob("*.py")), BenchmarkEntry)


def _registered(table: str, paths: Iterable[Path], kind: Callable[..., T]) -> dict[str, Registered[T]]:
    """Return the entries of the literal `table` of each module, by name, with the module. Raises ConfigError for a name
    that occurs twice, and for an entry that does not fit its `kind`."""
    found: dict[str, Registered[T]] = {}
    for path in paths:
        module = _module(path)
        for name, value in (find_literal(path, table) or {}).items():
            if name in found:
                raise ConfigError(f"'{name}' is registered twice: in {found[name].module} and {module}")
            found[name] = Registered(module, read(kind, value, f"{module}: {table}", name))
    return found


def _module(path: Path) -> str:
    return ".".join(("metabo", *path.relative_to(PACKAGE_ROOT).with_suffix("").parts))


def benchmarks() -> list[str]:
    """List the registered benchmarks."""
    return sorted(_benchmarks())


def benchmark(name: str) -> BenchmarkEntry:
    """Return the registration of a benchmark. Raises ConfigError, which lists the valid names, for an unknown one."""
    if name not in _benchmarks():
        raise unknown("benchmark", name, _benchmarks())
    return _benchmarks()[name].entry


def one_data_set(name: str) -> bool:
    """Tell whether the tasks of a benchmark are variants of one data set. This is False for a benchmark that is not
    registered."""
    return name in _benchmarks() and benchmark(name).one_data_set


def loader(name: str) -> str:
    """Return the name of the module whose `load` reads a benchmark."""
    benchmark(name)
    return _benchmarks()[name].module


@cache
def _studies() -> dict[str, Registered[StudyEntry]]:
    return _registered("STUDIES", sorted((PACKAGE_ROOT / "papers").glob("*/studies/*.py")), StudyEntry)


def studies() -> list[str]:
    """List the registered synthetic studies, each an entry of a literal table ``STUDIES = {...}`` in the module that
    runs it."""
    return sorted(_studies())


def study(name: str) -> StudyEntry:
    """Return the registration of a study. Raises ConfigError, which lists the valid names, for an unknown one."""
    if name not in _studies():
        raise unknown("study", name, _studies())
    return _studies()[name].entry


def study_module(name: str) -> str:
    """Return the name of the module whose `run` makes a study. Raises ConfigError, which lists the valid names, for an
    unknown one."""
    study(name)
    return _studies()[name].module


@cache
def _checks(paper: str) -> dict[str, Registered[str]]:
    return _registered("CHECKS", sorted((PACKAGE_ROOT / "papers" / paper / "theory").glob("*.py")), str)


def papers_with_checks() -> list[str]:
    """List the papers whose theory is checked."""
    papers = sorted(folder.parent.name for folder in (PACKAGE_ROOT / "papers").glob("*/theory"))
    return [paper for paper in papers if _checks(paper)]


def checks(paper: str) -> list[str]:
    """List the checks of a paper, each a title in a literal table ``CHECKS = {...}`` of the module that has it.

    Raises ConfigError, which lists the papers with checks, if the paper has none.
    """
    if not _checks(paper):
        raise unknown("paper with theory checks", paper, papers_with_checks())
    return sorted(_checks(paper))


def check(paper: str, name: str) -> str:
    """Return the title of a check. Raises ConfigError, which lists the valid names, for an unknown one."""
    if name not in checks(paper):
        raise unknown(f"theory check of {paper}", name, checks(paper))
    return _checks(paper)[name].entry


def check_module(paper: str, name: str) -> str:
    """Return the name of the module that has a check. Raises ConfigError, which lists the valid names, for an unknown
    one."""
    check(paper, name)
    return _checks(paper)[name].module


def claim_modules(paper: str = "*") -> list[str]:
    """List the modules with the checks that claims use: those that papers share, and those of a paper (or of all)."""
    papers = PACKAGE_ROOT / "papers"
    own = sorted([*papers.glob(f"{paper}/checks.py"), *papers.glob(f"{paper}/checks/*.py")])
    return [SHARED_CHECKS, *(_module(path) for path in own if path.name != "__init__.py")]


def gate_modules(paper: str = "*") -> list[str]:
    """List the modules with gates of a paper (or of all): at most one each."""
    return [_module(path) for path in sorted((PACKAGE_ROOT / "papers").glob(f"{paper}/gates.py"))]


@cache
def literal(module: str, table: str) -> Mapping[str, object]:
    """Return one top-level literal of a module without importing it: a table by name, or a list of names, each of which
    then maps to itself. For example, ``literal("bo.acquisition", "SCORED")``. Raises ConfigError if there is none."""
    value = find_literal(path_of(module), table)
    if value is None:
        raise ConfigError(f"module metabo.{module} has no top-level literal {table}")
    return dict(value) if isinstance(value, dict) else {name: name for name in value}


def find_literal(path: Path, table: str):
    """Return the value of a top-level literal, or None. Raises ConfigError for a module that is not Python, and for a
    table that is not a literal."""
    for node in syntax.tree(path).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", None) == table for t in node.targets):
            try:
                return ast.literal_eval(node.value)
            except ValueError as error:
                raise ConfigError(
                    f"{path}, line {node.lineno}: {table} is read without running the module, so it must be a literal; "
                    "write out names and numbers"
                ) from error
    return None
