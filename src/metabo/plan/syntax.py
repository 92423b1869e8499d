"""The syntax of a module, reduced to what can change a result: text without positions, comments and docstrings.

Where the module uses a name that it imports from this package, the text has a reference in place of the name, and the
import statement is left out. So the text contains neither the order of imports nor the path of a module.
"""

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from metabo.errors import ConfigError

REFERENCE = "\0{}\0{}\0"
"""The format of a reference: module and name ("" if the import names a module and nothing in it)."""

Target = tuple[str, str]
"""The module of an import, and the name in it."""


@dataclass(frozen=True)
class Source:
    """A module as read. `text`: its syntax ("" if it has only documentation). `references`: what it imports from this
    package, whether or not the text uses it, because importing runs a module and others may take the name from here;
    with " as x" if it is renamed. `imports`: line, module and name of each entry of an import statement. `exports`: the
    targets of imports from this package, by the name that they have here."""

    text: str
    references: tuple[str, ...]
    imports: tuple[tuple[int, str, str], ...]
    exports: dict[str, Target]


def read(path: Path, content: bytes, package: str, inside: str) -> Source:
    """Read the content of one Python file. `package` is ours ("metabo"), `inside` is the package that relative imports
    start from.

    Raises ConfigError, which names file and line, if it cannot be parsed.
    """
    return _source(_tree(path, content), package, inside)


def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file. Raises ConfigError, which names file and line, if it cannot be parsed."""
    return _tree(path, path.read_bytes())


def _tree(path: Path, content: bytes) -> ast.Module:
    try:
        return ast.parse(content)  # as Python reads it, whatever the locale
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ConfigError(
            f"{path}:{line}: cannot be parsed ({getattr(error, 'msg', error)}); mend this file and run the same command"
        ) from error


def read_text(text: str, package: str) -> Source:
    """Read code that is in no file of the package, such as the cells of a notebook. Raises SyntaxError or ValueError if
    it cannot be parsed."""
    return _source(ast.parse(text), package, "")


def _source(tree: ast.Module, package: str, inside: str) -> Source:
    nodes = list(ast.walk(tree))
    found = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    imports = [(node, *entry) for node in found for entry in _imported(node, inside)]
    own = [entry for entry in imports if entry[1].split(".")[0] == package]
    targets: dict[str, set[Target]] = {}
    for _, base, name, alias in own:
        targets.setdefault(alias, set()).add((base, name))
    # A name that also means something else in this module is kept as written, with its import. So is the name of a
    # builtin, which it may mean outside the scope of the import, and `*`, which may bind any name.
    bound = {
        "*",
        *dir(builtins),
        *_bound(nodes),
        *(alias for _, base, _, alias in imports if base.split(".")[0] != package),
    }
    plain = {alias: min(found) for alias, found in targets.items() if len(found) == 1 and alias not in bound}
    written = {id(node) for node, *_, alias in own if alias not in plain}
    parts: list[str] = []
    _write(tree, parts, plain, dropped={id(node) for node, *_ in own} - written)
    text = "".join(parts)
    return Source(
        text="" if text == _EMPTY else text,
        references=tuple(_reference(*entry) for _, *entry in own),
        imports=tuple((node.lineno, base, name) for node, base, name, _ in imports),
        exports={alias: (base, name) for _, base, name, alias in own},
    )


def _reference(base: str, name: str, alias: str) -> str:
    return REFERENCE.format(base, name) + ("" if alias == (name or base) else f" as {alias}")


def _imported(node: ast.Import | ast.ImportFrom, inside: str) -> Iterator[tuple[str, str, str]]:
    """Yield (module, name in it, name here) for each entry of an import statement."""
    if isinstance(node, ast.Import):
        for entry in node.names:
            yield entry.name, "", entry.asname or entry.name
    else:
        above = inside.split(".")[: inside.count(".") + 2 - node.level] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for entry in node.names:
            yield base, entry.name, entry.asname or entry.name


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield every name that is bound or declared, other than by an import."""
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, _NAMED):
            yield node.name or ""
        elif isinstance(node, ast.MatchMapping):
            yield node.rest or ""
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names


_EMPTY = "Module(body=[])"


def _write(node: object, parts: list[str], plain: dict[str, Target], dropped: set[int]) -> None:
    """Append a tree's text to `parts`: the non-empty fields, without positions and bare strings."""
    if isinstance(node, ast.Name) and node.id in plain:
        parts.append(REFERENCE.format(*plain[node.id]))
    elif isinstance(node, ast.AST):
        parts.append(f"{type(node).__name__}(")
        for field in node._fields:
            value = getattr(node, field, None)
            if (value is not None or isinstance(node, ast.Constant)) and (value != [] or field == "body"):
                parts.append(f"{field}=")
                _write(value, parts, plain, dropped)
        parts.append(")")
    elif isinstance(node, list):
        parts.append("[")
        for item in node:
            if id(item) not in dropped and not _is_text(item):
                _write(item, parts, plain, dropped)
                parts.append(",")
        parts.append("]")
    else:
        parts.append(repr(node))


def _is_text(node: object) -> bool:
    """Tell whether a statement is a bare string, that is, documentation of a module, class, function or constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
