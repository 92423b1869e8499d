"""Faults of the tables by which modules register benchmarks, from syntax trees. What is not written as one literal is
not found, or stops the plan without a word about where."""

import ast
import re
from collections.abc import Iterable, Iterator
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
    written = [one for node in _statements(tree.body) for one in ast.walk(node) if _written(one)]
    if not written:
        return
    where = f"{path}, line {written[-1].lineno}: {TABLE}"
    first = next((node for node in tree.body if isinstance(node, ast.Assign) and written[0] in node.targets), None)
    if first is None or len(written) > 1:
        yield f"{where} is read without running the module; write it once, as `{TABLE} = {{...}}` at the top level"
    elif not isinstance(first.value, ast.Dict):
        yield f"{where} is no literal dict of benchmarks by name; write `{TABLE} = {{...}}`"
    else:
        names = [key.value for key in first.value.keys if isinstance(key, ast.Constant)]
        yield from (f"{where} has the name {name!r}: {SLUGS}" for name in names if not re.fullmatch(SLUG, str(name)))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module outside functions and classes, without those that hold others."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try():
                caught = [handler.body for handler in getattr(node, "handlers", [])]
                inner = [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
                yield from (one for statements in [*inner, *caught] for one in _statements(statements))
            case _:
                yield node


def _written(node: ast.AST) -> TypeGuard[ast.expr]:
    """Tell whether a node is the table, or an item of it, as the target of an assignment, or an update of it."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
            return name == TABLE
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update" | "setdefault")):
            return name == TABLE
    return False
