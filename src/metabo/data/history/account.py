"""What became of the rows of each past study: read, used, failed, left out and why, and what was done to them."""

from collections.abc import Iterable, Mapping
from typing import TypedDict

from metabo.errors import printable

SHOWN = 10
"""Rows that a sentence names."""
IN_TABLE = 3
"""Rows that a line of the table names."""
WIDEST = 40
"""Letters of a study's name in the table."""


class Dropped(TypedDict):
    """Rows of a study that were left out for one reason."""

    reason: str
    rows: list[int]


class StudyAccount(TypedDict):
    """The rows of one past study: how many there are, are used and are used as failed trials; those left out; what was
    done to the others, and what they cover of the space."""

    study: str
    read: int
    used: int
    failed: int
    dropped: list[Dropped]
    notes: list[str]


def account(study: str, used: int, failed: int, dropped: Iterable[tuple[str, int]], notes: list[str]) -> StudyAccount:
    """Return the account of a study. `dropped`: the reason and the row of each trial that is left out."""
    reasons: dict[str, list[int]] = {}
    for reason, row in dropped:
        reasons.setdefault(reason, []).append(row)
    return {
        "study": study,
        "read": used + sum(map(len, reasons.values())),
        "used": used,
        "failed": failed,
        "dropped": [{"reason": reason, "rows": rows} for reason, rows in reasons.items()],
        "notes": notes,
    }


def without(accounts: list[StudyAccount], reasons: Mapping[str, tuple[str, list[int]]]) -> list[StudyAccount]:
    """Return the accounts after whole studies were left out. `reasons`: why, and the rows, by study."""
    return [
        {**one, "used": 0, "failed": 0, "dropped": [*one["dropped"], {"reason": why[0], "rows": why[1]}]}
        if (why := reasons.get(one["study"]))
        else one
        for one in accounts
    ]


def lines(accounts: list[StudyAccount], unit: str = "row") -> list[str]:
    """Lay the accounts out as a table, one line for each study and one for all. `unit`: what the numbers count."""
    names = [_short(one["study"]) for one in accounts]
    width = max(len(name) for name in [*names, "study"])
    out = [f"{'study':{width}}   read   used failed  dropped, and what was done"]
    for name, one in zip(names, accounts, strict=True):
        dropped = [f"{len(d['rows'])}: {d['reason']} ({listed(d['rows'], IN_TABLE, unit)})" for d in one["dropped"]]
        said = printable("; ".join([*dropped, *one["notes"]]) or "-")
        out.append(f"{name:{width}} {one['read']:6} {one['used']:6} {one['failed']:6}  {said}")
    if len(accounts) > 1:
        total = [sum(one[key] for one in accounts) for key in ("read", "used", "failed")]
        out.append(f"{'all':{width}} {total[0]:6} {total[1]:6} {total[2]:6}  {total[0] - total[1]} dropped")
    return out


def several(count: int, one: str, more: str = "") -> str:
    """Return a number of things: "1 trial", "2 trials". `more`: their name if it is not that of one with an s."""
    return f"{count} {one if count == 1 else more or f'{one}s'}"


def listed(rows: list[int], shown: int = SHOWN, unit: str = "row") -> str:
    """Name rows in a sentence: "row 7", "rows 7, 9, ... (12 rows)"."""
    if len(rows) == 1:
        return f"{unit} {rows[0]}"
    some = ", ".join(map(str, rows[:shown]))
    return f"{unit}s {some}" + (f", ... ({len(rows)} {unit}s)" if len(rows) > shown else "")


def _short(name: str) -> str:
    line = printable(" ".join(name.split()))
    return line if len(line) <= WIDEST else f"{line[: WIDEST - 3]}..."
