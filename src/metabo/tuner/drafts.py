"""Draft a ``space.yaml`` for past trials, and write files without replacing a person's edits."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

import pandas as pd

from metabo.data.csv_layout import read_sheet
from metabo.data.history.frames import PastTrials, required, sheets, together
from metabo.data.history.goals import GOALS, goal_of
from metabo.data.imports import draft
from metabo.data.imports.draft import Goal
from metabo.data.imports.imported import draft_of
from metabo.errors import ConfigError
from metabo.records.files import write_text


def draft_space(
    history: PastTrials | Sequence[pd.DataFrame],
    to: str | Path,
    *,
    study: str,
    outcome: str,
    goal: Literal["minimise", "maximise", "minimize", "maximize"],
    ignore: Sequence[str] = (),
) -> Path:
    """Draft the ``space.yaml`` of a history, guessed from its values, into the file `to`, and return the path.

        import metabo
        import pandas as pd

        past = pd.read_csv("history.csv")
        drafted = metabo.draft_space(past, "drafted.yaml", study="study", outcome="error", goal="minimise")
        print(drafted.read_text())  # correct it where it says "check"
        study = metabo.pretrain(past, drafted, "from_frame", steps=200)

    `history`: as `pretrain` takes it. `study` and `outcome` name its columns (for a dict of DataFrames, `study` is the
    name to give the column of their keys); `ignore` names columns that were not tuned. docs/own-data.md has the rules.
    Raises DataError for a history that cannot be read, and ConfigError for another `goal`, for several histories at
    once, and if the file exists with other content.
    """
    called = goal_of(str(goal))
    if called not in GOALS:
        raise ConfigError(f"goal is '{goal}'; say 'minimise' or 'maximise'")
    given = required(history)
    frames = [one for one in given if isinstance(one, pd.DataFrame)]
    if len(frames) != len(given) > 1:
        raise ConfigError(f"{len(given)} histories; a space.yaml describes one: draft one for each of them")
    alone = given[0]
    one = together(alone, study) if isinstance(alone, tuple) else together(frames, study) if len(given) > 1 else alone
    read = [read_sheet(one, text=ignore)] if isinstance(one, str | Path) else sheets(one, study)
    path = Path(to)
    reasons = dict.fromkeys(ignore, "as asked for")
    write_new({path: draft.text(draft_of(read, study, outcome, cast(Goal, called), reasons, path.stem))})
    return path


def write_new(files: Mapping[Path, str], otherwise: str = "choose another name") -> None:
    """Write text files, all or none. Raises ConfigError for a file that exists with other content, because a person may
    have edited it; its message says to delete it, or `otherwise`."""
    for path, content in files.items():
        if path.exists() and path.read_bytes() != content.encode():
            raise ConfigError(f"{path}: is there already, with another content; delete it, or {otherwise}")
    for path, content in files.items():
        write_text(path, content)
