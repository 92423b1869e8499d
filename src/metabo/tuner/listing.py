"""Trials of a study as lines of text: number, state, outcome or who has been running it since when, and
configuration."""

import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from metabo.data.history.description import Configuration, Description
from metabo.errors import ConfigError, printable
from metabo.tuner import store
from metabo.tuner.ledger import Ledger, age_of
from metabo.tuner.trials import StudyTrial, broken, claim_id, counts

AGE = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h|d)")
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
"""Seconds of each unit of an age."""


def listed(ledger: Ledger, state: str | None = None) -> list[str]:
    """Return a line with the counts of a study's trials, and a line for each trial, or for each trial in a `state`: one
    of `STATES`, or "infeasible" (done, but breaks a constraint)."""
    trials, space, now = ledger.trials, ledger.description, datetime.now(UTC)
    shown = _in_state(trials, space, state)
    others = [name for name in store.told_studies(ledger.folder) if name != ledger.name]
    return [
        f"study '{ledger.name}' in {ledger.folder}: {counts(trials)}{infeasible(trials, space)}",
        *lines(shown, space, now),
        *([f"other studies here (--study NAME): {', '.join(others)}"] if others else []),
    ]


def to_tell(ledger: Ledger, state: str | None = None) -> list[str]:
    """Return the lines of a CSV that `metabo tell` reads, with a row for each finished trial, or each trial in a
    `state` (see `listed`). Running ones have no outcome yet, as `metabo suggest` prints them."""
    space = ledger.description
    shown = _in_state(ledger.trials, space, state)
    if state is None:
        shown = [one for one in shown if one["state"] != "running"]
    return table(space, [(one["parameters"], _measured(one, space)) for one in shown])


def table(space: Description, rows: Sequence[tuple[Configuration, Sequence[str]]]) -> list[str]:
    """Return the lines of a CSV with the columns that `metabo tell` reads. Each row is a configuration with the cells
    of its constraints and outcome, none if these are to be filled in."""
    stream, names = io.StringIO(), [*(one.name for one in space.constraints), space.outcome]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*(field.name for field in space.fields), *names])
    for configuration, measured in rows:
        cells = [field.written(configuration[field.name]) for field in space.fields]
        writer.writerow([*cells, *(measured or [""] * len(names))])
    return stream.getvalue().splitlines()


def _measured(trial: StudyTrial, space: Description) -> list[str]:
    """Return the cells of a trial's constraints and outcome, to the last digit."""
    values = trial.get("constraints", {})
    came_out = {"running": "", "failed": "failed"}.get(trial["state"], repr(trial["outcome"]))
    return [*(repr(values[one.name]) if one.name in values else "" for one in space.constraints), came_out]


def _in_state(trials: Sequence[StudyTrial], space: Description, state: str | None) -> list[StudyTrial]:
    if state == "infeasible":
        return [one for one in trials if broken(one, space)]
    return [one for one in trials if state in (None, one["state"])]


def infeasible(trials: Sequence[StudyTrial], space: Description) -> str:
    """Return how many done trials break a constraint, and how many break each, or "" if none does."""
    broke = [broken(one, space) for one in trials]
    each = Counter(name for names in broke for name in names)
    shown = [f"{each[one.name]} {one.name} ({one.said})" for one in space.constraints if each[one.name]]
    return f"; {sum(map(bool, broke))} infeasible: {', '.join(shown)}" if shown else ""


def unended(told: Sequence[StudyTrial], trials: Sequence[StudyTrial], ledger: Ledger) -> list[str]:
    """Return a line for each running trial of which one that was told, and ended no claim, has fewer digits: a
    spreadsheet may have cut them."""
    space, out = ledger.description, []
    named = "" if ledger.name == "study" else f" --study {shlex.quote(ledger.name)}"
    for one in trials if told else []:
        if one["state"] != "running":
            continue
        near = next((other for other in told if space.cut(one["parameters"], other["parameters"])), None)
        if near is not None:
            out.append(
                f"trial {near['number']} has fewer digits than claim {claim_id(one)}, which is still running "
                f" ({_values(one['parameters'], space)}). If a spreadsheet cut them, give the claim up: "
                f"metabo release {shlex.quote(str(ledger.folder))}{named} --claim {claim_id(one)}"
            )
    return out


def lines(trials: Sequence[StudyTrial], space: Description, now: datetime) -> list[str]:
    """Return one line for each trial, in columns."""
    rows = [(str(one["number"]), one["state"], _news(one, space, now)) for one in trials]
    widths = [max(map(len, column), default=0) for column in zip(*rows, strict=True)]
    columns = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [f"{row}  {_values(one['parameters'], space)}" for row, one in zip(columns, trials, strict=True)]


def _news(trial: StudyTrial, space: Description, now: datetime) -> str:
    """Return a trial's outcome and the constraints that it breaks, or who claimed it and how long ago."""
    if trial["state"] != "running":
        values = trial.get("constraints", {})
        breaks = [f", breaks {name} ({values[name]!r})" for name in broken(trial, space)]
        return "-" if trial["outcome"] is None else "".join([repr(trial["outcome"]), *breaks])
    age, name = age_of(trial, now), claim_id(trial)
    if "claim" not in trial or age is None:
        return f"claim {name} of an older version, which did not note when"
    return f"claim {name}, {in_words(age)} ago by {trial['claim']['by']}"


def _values(configuration: Configuration, space: Description) -> str:
    used = [field for field in space.fields if configuration[field.name] is not None]
    return ", ".join(f"{field.name} {field.written(configuration[field.name])}" for field in used)


def in_words(age: timedelta) -> str:
    """Return an age in its two largest units: "2 d 4 h", "3 h 5 min", "45 s"."""
    seconds = max(int(age.total_seconds()), 0)  # another machine's clock may be ahead
    parts = []
    for unit in ("d", "h", "min", "s"):
        count, seconds = divmod(seconds, UNITS[unit])
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count) or "0 s"


def age_in(text: str) -> timedelta:
    """Read an age such as "90min". Raises ConfigError for text that is not an age."""
    found = AGE.fullmatch(text.strip())
    if not found:
        raise ConfigError(
            f"age '{printable(text, 80)}': write a number and its unit (s, min, h or d), e.g. 90min, 2h or 3d"
        )
    try:
        return timedelta(seconds=float(found[1]) * UNITS[found[2]])
    except OverflowError:
        return timedelta.max  # older than anything
