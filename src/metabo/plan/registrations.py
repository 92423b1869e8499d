"""Faults of the tables by which modules register benchmarks, from syntax trees. What is not written as one literal is
not found, or stops the plan without a word about where."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

from metabo.errors import MetaboError
from metabo.plan import registry, syntax
from metabo.plan.promises import SLUG, SLUGS

TABLE = "BENCHMARKS"
"""The table by which a module registers benchmarks."""


def faults() -> list[str]:
    """Return a line for each table of benchmarks that is not one top-level literal, which alone is found, and for each
    name in one that no file can have."""
    return [line for path in sorted((registry.PACKAGE_ROOT / "data").rglob("*.py")) for line in _table(path)]


def _table(path: Path) -> Iterator[str]:
    try:
        tree = syntax.tree(path)
    except MetaboError:
        return
    written = [node for node in ast.walk(tree) if _written(node)]
    if not written:
        return
    where = f"{path}, line {written[-1].lineno}: {TABLE}"
    first = next((node for node in tree.body if isinstance(node, ast.Assign) and written[0] in node.targets), None)
    if first is None or len(written) > 1:
        yield f"{where} is read without running the module; write it once, as `{TABLE} = {{...}}` at the top level"
    elif not isinstance(first.value, ast.Dict):
        yield f"{where} is no literal dict of benchmarks by name; write `{TABLE} = {{...}}`"
    else:
        names = [ast.unparse(key) if key else "**" for key in first.value.keys]
        yield from (
            f"{where} has the name {name}: {SLUGS}" for name in names if not re.fullmatch(SLUG, name.strip("'"))
        )


def _written(node: ast.AST) -> TypeGuard[ast.expr]:
    """Whether a node is the table, or an item of it, as the target of an assignment."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
            return name == TABLE
    return False
