"""How the lines of an explanation are laid out: a word and what it stands for, wrapped to the width of a page."""

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from metabo.records.files import Json

WIDTH = 110
LEFT = 12
"""Columns of the words."""
NONE = "-"


def field(word: str, text: str) -> list[str]:
    """Return a word and its text, wrapped beside it; "-" for no text."""
    return _wrapped(text or NONE, f"{word:<{LEFT}}", " " * LEFT)


def paragraph(text: str, indent: int = 2) -> list[str]:
    """Return a text as an indented paragraph."""
    return _wrapped(text, " " * indent, " " * indent)


def listed(word: str, texts: Sequence[str]) -> list[str]:
    """Return a word and one text a line beside it, each wrapped."""
    lines = [line for text in texts or [NONE] for line in _wrapped(text, " " * LEFT, " " * (LEFT + 2))]
    return [f"{word:<{LEFT}}{lines[0][LEFT:]}", *lines[1:]]


def settings(values: Mapping[str, Json]) -> str:
    """Return settings as one line of JSON without the outer braces."""
    return ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())


def command(overlays: Iterable[Path], *targets: str) -> str:
    """Return the command that makes targets with the configuration that was asked about."""
    chosen = " ".join(map(str, overlays))
    return f"snakemake --cores 2 {f'--configfile {chosen} ' if chosen else ''}-- {' '.join(targets)}"


def _wrapped(text: str, first: str, later: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
