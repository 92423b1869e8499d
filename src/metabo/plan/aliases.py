"""Names of a user's files as Snakemake can have them: it takes {word} in a path for a pattern, and knows no escape."""

import hashlib
import os
import re
import tempfile
from pathlib import Path

FOLDER = Path(".cache/names")
"""Links to files that have such names."""


def escaped(path: str, folder: Path = FOLDER) -> str:
    """Return a path to the same file without braces: itself, or that of a link in `folder`, which is made."""
    if not set(path) & {"{", "}"}:
        return path
    target = str(Path(path).resolve())
    link = folder / f"{hashlib.sha256(target.encode()).hexdigest()[:12]}-{re.sub('[{}]', '_', Path(path).name)}"
    if not link.is_symlink() or os.readlink(link) != target:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "link"
            made.symlink_to(target)
            made.replace(link)  # jobs that begin at once may each make it
    return str(link)
