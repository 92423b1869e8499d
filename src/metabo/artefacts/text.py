"""Escape text from loaders and users so that Markdown shows it letter for letter, whatever characters it has."""

import re
import string

_SIGNS = re.compile(f"([{re.escape(string.punctuation)}])")


def plain(text: str) -> str:
    """Return Markdown that shows a text as it is, in one line: neither HTML, links nor emphasis (a backslash before
    any punctuation stands for it)."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))
