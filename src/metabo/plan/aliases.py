"""Names of a user's files that Snakemake accepts: it takes {word} in a path for a pattern, and has no escape for it."""

import hashlib
import os
import re
import tempfile
from pathlib import Path

FOLDER = Path(".cache/names")
"""The folder of links to files with such names."""


def escaped(path: str, folder: Path = FOLDER) -> str:
    """Return a path without braces to the same file: the path itself, or a link in `folder`, which this makes."""
    if not set(path) & {"{", "}"}:
        return path
    target = str(Path(path).resolve())
    link = folder / f"{hashlib.sha256(target.encode()).hexdigest()[:12]}-{re.sub('[{}]', '_', Path(path).name)}"
    if not link.is_symlink() or os.readlink(link) != target:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "link"
            made.symlink_to(target)
            made.replace(link)  # jobs that start at the same time may each make it
    return str(link)
