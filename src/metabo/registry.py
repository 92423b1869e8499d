"""Find what is registered (methods, data sources) without importing it.

A module registers names by a top-level literal dictionary, e.g. ``VARIANTS = {"h_nll": {...}}``. Reading it from the
syntax tree keeps the workflow's parse step free of JAX and tells exactly which module a name depends on, so that
changing one method re-runs that method only.
"""

import ast
import importlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from metabo.errors import ConfigError, unknown

PACKAGE_ROOT = Path(__file__).parent


@cache
def _tables(folder: str, table: str) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for path in sorted((PACKAGE_ROOT / folder).glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if not (isinstance(node, ast.Assign) and any(getattr(t, "id", None) == table for t in node.targets)):
                continue
            for name, value in ast.literal_eval(node.value).items():
                if name in found:
                    raise ConfigError(
                        f"'{name}' is registered twice: in {found[name][0]} and metabo.{folder}.{path.stem}"
                    )
                found[name] = (f"metabo.{folder}.{path.stem}", value)
    return found


def literal(module: str, name: str) -> Any:
    """Return a top-level literal of a module of this package (path below it, no suffix), without importing it."""
    for node in ast.parse((PACKAGE_ROOT / f"{module}.py").read_text()).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", None) == name for t in node.targets):
            return ast.literal_eval(node.value)
    raise KeyError(f"{module}.py has no top-level literal '{name}'")


def names(folder: str, table: str) -> list[str]:
    """List the registered names of one table, e.g. ``names("methods", "VARIANTS")``."""
    return sorted(_tables(folder, table))


def entry(folder: str, table: str, name: str) -> tuple[str, Any]:
    """Return (module name, registered literal) of `name`. Raises ConfigError that lists the valid names."""
    found = _tables(folder, table)
    if name not in found:
        raise unknown({"methods": "method", "data": "benchmark"}.get(folder, folder), name, found)
    return found[name]


def load(folder: str, table: str, name: str) -> ModuleType:
    """Import and return the module that registers `name`."""
    return importlib.import_module(entry(folder, table, name)[0])
