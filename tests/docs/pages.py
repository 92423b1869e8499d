"""Follow a how-to page as a reader would: write its files, make its changes, type its commands, compare their output.

A block belongs to the file that the line before it names. ```diff changes it (the old lines of a hunk stand there
once), a block for a cell replaces that cell of a notebook, ```console is a session at a prompt (`...`: lines that are
not shown), and any other block is a new file.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^([^\n]*)\n\n?```(\w+)\n(.*?)^```$", re.M | re.S)
PROFILE = "Using workflow specific profile profiles/default for setting default command line arguments.\n"
"""What Snakemake says first, whatever it is asked."""
MORE = r"(?P<more>(?:, \w+)*)\]"
"""The end of a list, with items that a page does not know."""
PLACE = re.compile(r"`([\w./]+)`(?:, cell `(\w+)`)?:$")


class Block(NamedTuple):
    """A fenced block: its language, its text, and the file, perhaps the cell, that it belongs to ("": none)."""

    kind: str
    text: str
    path: str
    cell: str


def blocks(page: str, until: str = "") -> list[Block]:
    """Return the blocks of docs/`page`, or of what stands before the heading `until`, that a reader acts on, in
    order."""
    found, whole = [], (ROOT / "docs" / page).read_text()
    for before, kind, text in BLOCK.findall(whole[: whole.index(f"\n{until}\n")] if until else whole):
        place = PLACE.match(before)
        if place or kind == "console":
            found.append(Block(kind, text, *(place.groups("") if place else ("", ""))))
    return found


def touched(page: str, until: str = "") -> list[str]:
    """Return the files that the page, or what stands before the heading `until`, has a reader write or change."""
    return list(dict.fromkeys(block.path for block in blocks(page, until) if block.path))


def follow(page: str, project: Path, instead: Mapping[str, Callable[[], None]]) -> None:
    """Do what docs/`page` says in a copy of the project; where a command begins with a key of `instead`, do that."""
    for block in blocks(page):
        path = project / block.path
        if block.kind == "console":
            talk(block.text, project, instead)
        elif block.cell:
            path.write_text(with_cell(path.read_text(), block.cell, block.text))
        elif block.kind == "diff":
            for hunk in re.split(r"^@@\n", block.text, flags=re.M):
                path.write_text(changed(path.read_text(), hunk, f"docs/{page}, {block.path}"))
        else:
            assert not path.exists(), f"{block.path} is not new"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)


def changed(text: str, hunk: str, where: str = "") -> str:
    """Return a file's text after the change of one hunk; `where` names page and file.

    A list that the hunk lengthens may have grown since the page was written: a reader who followed the page once has a
    benchmark of their own there, and their items stay.
    """
    lines = [(line[:1] or " ", line[1:]) for line in hunk.splitlines(keepends=True)]
    old = "".join("\n" if sign == "\n" else line for sign, line in lines if sign != "+")
    new = "".join("\n" if sign == "\n" else line for sign, line in lines if sign != "-")
    removed = {line for sign, line in lines if sign == "-"}
    pattern = "".join(
        re.escape(line).replace(r"\]", MORE, 1) if line in removed else re.escape(line)
        for line in old.splitlines(keepends=True)
    )
    found = list(re.finditer(pattern, text))
    assert len(found) == 1, f"{where}: these lines stand {len(found)} times; update the page:\n{old}"
    more = found[0].groupdict().get("more") or ""
    added = "".join(line for sign, line in lines if sign == "+")
    new = new.replace(added, added.replace("]", f"{more}]", 1)) if more else new
    return text[: found[0].start()] + new + text[found[0].end() :]


def with_cell(notebook: str, name: str, text: str) -> str:
    """Return a notebook, as its file has it, with the text of one cell replaced."""
    book = json.loads(notebook)
    (cell,) = [cell for cell in book["cells"] if cell["id"] == name]
    cell["source"] = text.rstrip("\n").splitlines(keepends=True)
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def talk(session: str, project: Path, instead: Mapping[str, Callable[[], None]]) -> None:
    """Type the commands of a session and compare what they print with what stands below each; where nothing does, a
    command only has to succeed."""
    for part in re.split(r"^\$ ", session, flags=re.M)[1:]:
        command, _, said = part.partition("\n")
        replaced = [act for start, act in instead.items() if command.startswith(start)]
        if replaced:
            replaced[0]()
            continue
        status, printed = typed(command, project)
        if not said:
            assert status == 0, f"$ {command}\n{printed}"
            continue
        pattern = ".*".join(re.escape(text) for text in re.split(r"^\.\.\.\n", said, flags=re.M))
        assert re.fullmatch(pattern, printed, re.S), f"$ {command}\n{printed}\n-- the page says --\n{said}"


def typed(command: str, project: Path) -> tuple[int, str]:
    """Return the exit status of a command in a shell of the project's folder and what it prints, without spaces at the
    ends of lines."""
    environment = os.environ | {
        "PYTHONPATH": str(project / "src"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax"),
        "METABO_PROGRESS": "line",  # as a reader has it
    }
    done = subprocess.run(
        command, shell=True, cwd=project, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.returncode, "".join(f"{line.rstrip()}\n" for line in done.stdout.replace(PROFILE, "").splitlines())
