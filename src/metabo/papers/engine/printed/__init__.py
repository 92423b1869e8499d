"""What the papers print: reading their tables, and the papers' names of tasks. Sources: papers/README.md."""

from functools import cache
from pathlib import Path

import pandas as pd

from metabo.errors import unknown

_FOLDER = Path(__file__).parent


def read(folder: Path, name: str) -> pd.DataFrame:
    """Return a printed table, e.g. "tab05", from the folder of a paper. Raises ConfigError, which lists the names."""
    tables = sorted(path.stem for path in folder.glob("*.csv"))
    if name not in tables:
        raise unknown("printed table", name, tables)
    return pd.read_csv(folder / f"{name}.csv", comment="#", dtype={"task": str})  # spaces of HPO-B are numbers


@cache
def pd1_names() -> dict[str, str]:
    """Return the paper's names of PD1's tasks, by their own."""
    names = pd.read_csv(_FOLDER / "pd1_tasks.csv", comment="#")
    return dict(zip(names["task"], names["paper_name"], strict=True))


def short_name(task: str) -> str:
    """Return the paper's name of a PD1 task, or the task's own name."""
    return pd1_names().get(task, task)
