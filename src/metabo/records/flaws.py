"""What is wrong with a finished result, in one line, and how to have it again."""

import os
import shlex
from pathlib import Path
from typing import NamedTuple

DAMAGED, MISSING, STALE, BARE = "damaged", "missing", "stale", "without record"
SERIOUS = DAMAGED, MISSING


def again(path: Path) -> str:
    """Return how to have a result again. The command of the run alone does not make what only finished results need."""
    target = shlex.quote(os.path.relpath(path) if path.is_relative_to(Path.cwd()) else path.as_posix())
    return f"make it again by `snakemake --cores 2 -- {target}` with the options of its run"


def anew(path: Path) -> str:
    """Return how to have a result again that is there."""
    return f"delete it and {again(path)}"


class Flaw(NamedTuple):
    """Something that is not as it should be, which is one line of the output. `files` is the number of files
    concerned."""

    kind: str
    path: str
    what: str
    remedy: str
    files: int = 1

    def __str__(self) -> str:
        return f"{self.path}: {self.what}: {self.remedy}"
