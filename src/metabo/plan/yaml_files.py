"""Read all YAML files in the same strict way: UTF-8, unique text keys, and nothing that YAML silently reads as
something other than it looks like.

YAML 1.1 reads 010 as eight, 1:30 as ninety, 2024-05-01 as a date and `yes` as True. The first three are refused, naming
their line, and a key must be text. Files that are large, deep, or inflated by aliases are refused too: a few lines of
aliases can stand for more nodes than any memory holds. Every fault is a ConfigError of one line.
"""

import math
import re
from pathlib import Path

import yaml

from metabo.errors import ConfigError
from metabo.records.files import Json

LARGEST = 2**21
"""The most bytes of a file."""
DEEPEST = 50
"""The deepest nesting of mappings and lists."""
MOST = 200_000
"""The most values of a file, with its aliases written out."""
WIDEST = 2**63
"""Whole numbers must be smaller than this in size."""
KEPT = 32
"""The number of files whose nodes are kept in memory. A process reads the same few files repeatedly, and composing the
nodes takes nearly all of the time."""

REMEDIES = {
    "scanning an alias": "; write text that begins with * in quotes",
    "scanning an anchor": "; write text that begins with & in quotes",
    "mapping values are not allowed": "; write text that contains ': ' in quotes",
    "cannot start any token": "; write text that begins so in quotes",
}
"""Remedies for the reader's complaints about text without quotes."""

_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)")
_MISPLACED = re.compile(r"expected (?:<block end>|'<document start>'), but found '(\?|<block [a-z]+ start>)'")
_TAG = "tag:yaml.org,2002:"
_known: dict[bytes, yaml.Node] = {}  # by the bytes of the file, the most recently read last


class _Loader(yaml.SafeLoader):
    """A loader that composes and constructs by the rules of this module."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _fault(self.peek_event().start_mark, f"values stand more than {DEEPEST} levels deep; flatten them")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_mapping_node(self, anchor: dict[str, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise _fault(key.start_mark, "a key must be text, not a list or a mapping")
            if key.tag not in (f"{_TAG}str", f"{_TAG}merge"):
                raise _fault(key.start_mark, f"YAML does not read the key {key.value} as text; write '{key.value}'")
            if (first := lines.get(key.value)) is not None:
                where = f"lines {first} and {line}" if first != line else f"line {line}"
                raise ConfigError(f"key '{key.value}' stands twice, in {where}; delete or rename one")
            lines[key.value] = line
        return node

    def whole_number(self, node: yaml.ScalarNode) -> int:
        """Read an int that is written as people write one."""
        text = node.value
        if _LEADING_ZERO.fullmatch(text) and text.strip("+-0_"):
            raise _fault(node.start_mark, f"YAML reads {text} as an octal number; drop the 0, or write '{text}'")
        if _BASE_60.fullmatch(text):
            raise _fault(node.start_mark, f"YAML reads {text} as a number to the base 60; write '{text}'")
        if len(text) > 80 or not -WIDEST <= (number := self.construct_yaml_int(node)) < WIDEST:
            raise _fault(node.start_mark, f"{_shortened(text)} is too large for a whole number of 64 bits")
        return number

    def real_number(self, node: yaml.ScalarNode) -> float:
        """Read a float, which is infinite only if the text says so."""
        text = node.value
        if _BASE_60.fullmatch(text):
            raise _fault(node.start_mark, f"YAML reads {text} as a number to the base 60; write '{text}'")
        number = self.construct_yaml_float(node)
        if math.isinf(number) and not _INFINITE.fullmatch(text):
            raise _fault(node.start_mark, f"{_shortened(text)} is too large for a number")
        if math.isnan(number):
            raise _fault(node.start_mark, f"{text} is not a number; write one, or leave the key out")
        return number

    def refused(self, node: yaml.Node) -> None:
        """Refuse dates, binary data and other types that no file of ours has."""
        kind = node.tag.removeprefix(_TAG)
        if kind == "timestamp":
            raise _fault(node.start_mark, f"YAML reads {node.value} as a date; write '{node.value}'")
        raise _fault(node.start_mark, f"a value of type '{kind}'; write text, numbers, lists and mappings only")


_Loader.add_constructor(f"{_TAG}int", _Loader.whole_number)
_Loader.add_constructor(f"{_TAG}float", _Loader.real_number)
for _kind in ("timestamp", "binary", "set", "omap", "pairs"):
    _Loader.add_constructor(f"{_TAG}{_kind}", _Loader.refused)
_Loader.add_multi_constructor("", lambda loader, _, node: loader.refused(node))  # every other tag


def _fault(mark: yaml.Mark, text: str) -> ConfigError:
    return ConfigError(f"line {mark.line + 1}: {text}")


def _shortened(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:12]}... ({len(text)} characters)"


def read_yaml(path: Path) -> Json:
    """Read one YAML file. Returns None if it is empty.

    Raises ConfigError of one line, with the file and, if there is one, the line number, for a file that is missing, not
    UTF-8, not YAML, too large, too deep or too long with its aliases, and for anything else that this module refuses.
    """
    return _read(path)[0]


def compose(path: Path) -> yaml.Node | None:
    """Return the nodes of a YAML file, which show how a value was written. Raises ConfigError as `read_yaml` does."""
    return _read(path)[1]


def _read(path: Path) -> tuple[Json, yaml.Node | None]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ConfigError(f"it has more than {LARGEST:,} bytes; is it the right file?")
        node = _known.pop(content, None) or _composed(content)
        if node is None:
            return None, None
        value = _Loader("").construct_document(node)  # anew at each call, because a caller may change it
        _known[content] = node  # only now: constructing `<<: 3` raises an error only once, because it changes the node
        if len(_known) > KEPT:
            _known.pop(next(iter(_known)))
        return value, node
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot read it ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {_in_a_line(error)}") from error


def _composed(content: bytes) -> yaml.Node | None:
    loader = _Loader(content.decode("utf-8-sig"))
    try:
        if (node := loader.get_single_node()) is not None:
            _require_finite(node)
        return node
    finally:
        loader.dispose()


def _in_a_line(error: Exception) -> str:
    """Return one line with the complaint of the YAML reader; tabs and indents are explained in plain words."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    context = getattr(error, "context", None)
    words = ", ".join(filter(None, (context, problem))) or str(error) or type(error).__name__
    if mark is None:
        return f"not valid YAML: {' '.join(words.split())}"
    where, before, at = f"line {mark.line + 1}, column {mark.column + 1}", *_around(mark)
    if at == "\t" and not before.strip():
        return f"{where}: a tab stands here, and YAML indents by spaces alone; put spaces in its place"
    shifted = "mapping values are not allowed" in words and not re.search(r":\s", before)
    indent = len(before) - len(before.lstrip(" "))
    if (shifted or _MISPLACED.search(words)) and indent not in _indents_above(mark):
        quotes = ", or put text with ': ' in quotes" if shifted else ""
        spaces = f"{indent} space{'s' * (indent != 1)}"
        return f"{where}: an indent of {spaces}, which no line above has; indent it as its neighbours are{quotes}"
    remedy = next((remedy for sign, remedy in REMEDIES.items() if sign in words), "")
    remedy = "; the line above may lack the ': ' after its key" if shifted else remedy
    return f"{where}: not valid YAML: {' '.join(words.split())}{remedy}"


def _around(mark: yaml.Mark) -> tuple[str, str]:
    """Return the text before a mark in its line, and the character at the mark."""
    text, at = str(mark.buffer), mark.pointer
    return text[at - mark.column : at], text[at : at + 1]


def _indents_above(mark: yaml.Mark) -> set[int]:
    """Return the indents of the lines above a mark."""
    lines = str(mark.buffer)[: mark.pointer - mark.column].splitlines()
    return {len(line) - len(line.lstrip(" ")) for line in lines if line.strip() and not line.lstrip().startswith("#")}


def _require_finite(root: yaml.Node) -> None:
    """Refuse a tree that its aliases make infinite, or longer than `MOST` values. Each node is visited once."""
    sizes: dict[int, int] = {}
    above: set[int] = set()

    def size(node: yaml.Node) -> int:
        if id(node) in sizes:
            return sizes[id(node)]
        if id(node) in above:
            raise _fault(node.start_mark, "an alias stands within what it names; write it out")
        above.add(id(node))
        total = 1
        if isinstance(node, yaml.CollectionNode):
            inside = node.value
            if isinstance(node, yaml.MappingNode):
                inside = [part for pair in inside for part in pair]
            total += sum(map(size, inside))
        above.remove(id(node))
        if total > MOST:
            raise _fault(node.start_mark, f"its aliases stand for more than {MOST:,} values; write fewer")
        sizes[id(node)] = total
        return total

    size(root)
