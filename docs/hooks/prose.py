"""Markdown of the repository as the site needs it: sections, links, headings, and the spacing that its renderer wants.

The files are written for a reader of the repository; nothing in them is changed for the site but here.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

FENCE = re.compile(r" *(`{3,}|~{3,})")
HEADING = re.compile(r"(#{1,6}) +(.*?) *#*$")
ITEM = re.compile(r"(?:[-*]|\d+\.) +")
LINK = re.compile(r"(?P<code>(?P<tick>`+)[^`]+(?P=tick))|(?P<text>!?\[(?:[^\[\]`]|`[^`]*`)*\])\((?P<target>[^()\s]+)\)")
HTML = re.compile(r"(?P<code>`+[^`]*`+)|(?P<tag><(?:img|a)\b[^>]*?\b(?:src|href)=\")(?P<target>[^\"]+)\"")
"""A picture or a link that is written as HTML, which MkDocs leaves as it is."""
ELSEWHERE = re.compile(r"[a-z]+:|//")
INDENT = 4
"""Spaces by which the renderer knows what belongs to an item of a list."""


def parts(text: str) -> Iterator[tuple[bool, str]]:
    """Cut a text into what stands in fences (True) and what does not (False), in order."""
    fence, own = "", ""
    for line in text.splitlines(keepends=True):
        found = FENCE.match(line)
        if not fence and found:
            yield False, own
            fence, own = found[1], line
        elif fence and line.strip() == fence:
            yield True, own + line
            fence, own = "", ""
        else:
            own += line
    yield bool(fence), own


def headings(text: str) -> list[tuple[int, str]]:
    """Return level and title of each heading, in order."""
    lines = [line for fenced, part in parts(text) if not fenced for line in part.splitlines()]
    return [(len(found[1]), found[2]) for line in lines if (found := HEADING.match(line))]


def slug(title: str, separator: str = "-") -> str:
    """Return the anchor of a heading, by the rule that hosts of repositories have: lower case, without punctuation."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", title)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", separator)


def anchors(text: str) -> set[str]:
    """Return the anchors that the headings of a text give; the second of one name has -1 after it, and so on."""
    found: dict[str, int] = {}
    for _, title in headings(text):
        found[slug(title)] = found.get(slug(title), -1) + 1
    return {f"{name}-{i}" if i else name for name, last in found.items() for i in range(last + 1)}


def section(text: str, *titles: str, level: int = 2) -> str:
    """Return what stands below the heading that begins like the last of `titles`, inside those that begin like the
    others. Its own headings are moved to `level` and below. Raises LookupError for a title that is not there."""
    lines = text.splitlines(keepends=True)
    for title in titles:
        lines = _below(lines, title)
    found = [level for level, _ in headings("".join(lines))]
    shift = level - min(found) if found else 0
    moved = [
        part if fenced else re.sub(r"^(#{1,6})(?= )", lambda found: "#" * (len(found[1]) + shift), part, flags=re.M)
        for fenced, part in parts("".join(lines))
    ]
    return "".join(moved).strip("\n") + "\n"


def _below(lines: list[str], title: str) -> list[str]:
    fenced, start, depth = "", None, 0
    for number, line in enumerate(lines):
        if found := FENCE.match(line):
            fenced = "" if fenced == found[1] else fenced or found[1]
        heading = None if fenced else HEADING.match(line)
        if heading and start is not None and len(heading[1]) <= depth:
            return lines[start:number]
        if heading and start is None and heading[2].startswith(title):
            start, depth = number + 1, len(heading[1])
    if start is None:
        raise LookupError(f"no heading begins with {title!r}")
    return lines[start:]


def tables(text: str, column: str) -> list[str]:
    """Return the tables of a text, not indented, that have a column of this name. Raises LookupError if none has."""
    runs = re.findall(r"(?:^ *\|.*\n?)+", text, re.M)
    found = [re.sub(r"^ +", "", run, flags=re.M) for run in runs if column in cells(run.splitlines()[0])]
    if not found:
        raise LookupError(f"no table has a column {column!r}")
    return found


def cells(row: str) -> list[str]:
    """Return the cells of a row of a table."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def links(text: str) -> list[str]:
    """Return the targets of a text's links, those to other sites left out."""
    shown = [part for fenced, part in parts(text) if not fenced]
    found = [match["target"] for part in shown for kind in (LINK, HTML) for match in kind.finditer(part)]
    return [target for target in found if target and not ELSEWHERE.match(target)]


def target(source: PurePosixPath, link: str) -> tuple[PurePosixPath, str]:
    """Return the file of the repository that a link in `source` leads to, and the anchor there."""
    path, _, anchor = link.partition("#")
    return PurePosixPath(posixpath.normpath(source.parent / path)) if path else source, anchor


def relinked(text: str, change: Callable[[str], str]) -> str:
    """Return the text with each link's target changed, those to other sites left alone."""

    def replaced(match: re.Match[str]) -> str:
        if match["code"] or ELSEWHERE.match(match["target"]):
            return match[0]
        return f"{match['text']}({change(match['target'])})"

    def attribute(match: re.Match[str]) -> str:
        elsewhere = match["code"] or ELSEWHERE.match(match["target"])
        return match[0] if elsewhere else f'{match["tag"]}{change(match["target"])}"'

    return "".join(part if fenced else HTML.sub(attribute, LINK.sub(replaced, part)) for fenced, part in parts(text))


def spaced(text: str) -> str:
    """Return the text with the spacing of the site's renderer: an empty line before a list or a table, and what belongs
    to an item of a list four spaces in."""
    lines: list[str] = []
    fence, hanging, before = "", 0, ""
    for line in text.splitlines():
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        if not fence and bare:
            item = ITEM.match(line)
            starts_table = bare.startswith("|") and before and not before.lstrip().startswith("|")
            if starts_table or (item and before and not hanging):
                lines.append("")
            if item:
                hanging = len(item[0])
            elif not indent and not before:
                hanging = 0
        lines.append(" " * (INDENT - 2) * (indent // 2) + line if hanging and indent >= 2 else line)
        if found := FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        before = bare
    return "\n".join(lines) + "\n"
