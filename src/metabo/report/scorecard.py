"""The claims of the papers with their verdicts: read, checked and grouped for the scorecard."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from metabo.errors import DataError

NUMBERS = ("value", "low", "high")
VERDICTS = ("replicated", "weak", "not replicated", "not testable")
WHOLE = "all"
"""Benchmark of the row that sums up a claim of several tests."""


class ClaimRow(NamedTuple):
    """A row of results/{scale}/claims/{paper}.csv; `value`, `low` and `high` are NaN where the file has nothing."""

    claim: str
    paper: str
    section: str
    statement: str
    paper_value: str
    benchmark: str
    artefact: str
    verdict: str
    value: float
    low: float
    high: float
    unit: str
    said: str


COLUMNS = ClaimRow._fields


@dataclass(frozen=True)
class JudgedClaim:
    """A claim: its own row of the table (`whole`) and, if there are several, those of its tests."""

    whole: ClaimRow
    tests: list[ClaimRow]

    @property
    def anchor(self) -> str:
        """Identifier of the claim on the page."""
        return f"claim-{self.whole.paper}-{self.whole.claim}"


def read(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read and join the claims of papers, empty text as "". Raises DataError for a wrong file, column or verdict."""
    tables = [_read(path) for path in paths]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def _read(path: str | Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable table of claims ({error}); delete it and run again") from error
    if missing := [name for name in COLUMNS if name not in table]:
        raise DataError(f"{path}: no column {', '.join(missing)}; delete it and run again")
    for name in NUMBERS:
        numbers = pd.to_numeric(table[name].replace("", None), errors="coerce")
        bad = numbers.isna() & ~table[name].isin(["", "nan"])
        if bad.any():
            row = int(bad.idxmax())
            raise DataError(f"{path}: row {row + 2}, column '{name}': '{table.at[row, name]}' is not a number")
        table[name] = numbers
    wrong = ~table["verdict"].isin(VERDICTS)
    if wrong.any():
        row = int(wrong.idxmax())
        raise DataError(
            f"{path}: row {row + 2}, claim {table.at[row, 'claim']}: verdict '{table.at[row, 'verdict']}' is none of "
            f"{', '.join(VERDICTS)}"
        )
    return table[list(COLUMNS)]


def claims(table: pd.DataFrame) -> list[JudgedClaim]:
    """Group the rows by claim, in their order. Raises DataError for a claim of several tests that nothing sums up."""
    grouped = []
    for (paper, name), rows in table.groupby(["paper", "claim"], sort=False):
        every = [ClaimRow(*row) for row in rows[list(COLUMNS)].itertuples(index=False, name=None)]
        whole = [row for row in every if row.benchmark == WHOLE]
        if len(whole) > 1 or (not whole and len(every) > 1):
            raise DataError(
                f"claims of {paper}: {name} has {len(whole)} rows with benchmark '{WHOLE}' and {len(every)} in all; "
                "a claim of several tests has one such row"
            )
        tests = [row for row in every if row.benchmark != WHOLE]
        grouped.append(JudgedClaim(whole[0] if whole else every[0], tests))
    return grouped


def counts(chosen: Iterable[JudgedClaim]) -> dict[str, int]:
    """Count the claims of each verdict, in the order of VERDICTS."""
    found = Counter(claim.whole.verdict for claim in chosen)
    return {verdict: found[verdict] for verdict in VERDICTS}


def ours(row: ClaimRow) -> str:
    """Write our number with its interval and unit, e.g. "0.133 [0.069, 0.193] nats"; "" without one."""
    if math.isnan(row.value):
        return ""
    interval = "" if math.isnan(row.low) or math.isnan(row.high) else f" [{row.low:.3g}, {row.high:.3g}]"
    return f"{row.value:.3g}{interval} {row.unit}".strip()
