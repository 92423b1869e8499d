"""The names that a module has, from its syntax tree."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from metabo.plan import syntax


@cache
def names(path: Path) -> frozenset[str] | None:
    """Return the names that a module defines or imports, or None if they are known only when it runs."""
    found = frozenset(_names(syntax.tree(path).body))
    return None if found & {"*", "__getattr__"} else found


def _names(body: Iterable[ast.AST]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                yield from (one.asname or one.name.split(".")[0] for one in imported)
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case _:
                yield from _names(ast.iter_child_nodes(node))
