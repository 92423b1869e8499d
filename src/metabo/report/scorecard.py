"""The claims of the papers with their verdicts: read, checked and grouped for the scorecard."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from metabo.errors import DataError

NUMBERS = (
    "value",
    "low",
    "high",
    "suite_low",
    "suite_high",
    "new_low",
    "new_high",
    "clusters",
    "power",
    "needed",
    "effect",
)
VERDICTS = ("holds", "contradicted", "undecided", "not testable")
ROLES = ("claim", "part", "beside")
SCORECARD = (
    "paper", "claim", "headline", "kind", "benchmark", "rung", "source", "verdict", "cause", "value", "low", "high",
    "clusters", "power", "said",
)  # fmt: skip
"""Columns of scorecard.csv, one row per claim and source: this run, then recorded ones; multiverse.csv has all rows and
columns of this run."""
HERE = "this run"


class ClaimRow(NamedTuple):
    """A row of results/{scale}/claims/{paper}.csv (`metabo.papers.engine.claims.judge`); NaN for an empty number."""

    claim: str
    paper: str
    headline: str
    kind: str
    section: str
    statement: str
    paper_value: str
    role: str
    benchmark: str
    rung: str
    artefact: str
    reading: str
    metrics: str
    verdict: str
    cause: str
    value: float
    low: float
    high: float
    suite_low: float
    suite_high: float
    new_low: float
    new_high: float
    unit: str
    clusters: float
    power: float
    needed: float
    effect: float
    said: str


COLUMNS = ClaimRow._fields


@dataclass(frozen=True)
class JudgedClaim:
    """A claim: its verdict (`whole`), the parts of its primary cell if there are several, and what stands beside;
    `recorded`: the same in recorded results, by their folder."""

    whole: ClaimRow
    parts: list[ClaimRow]
    beside: list[ClaimRow]
    recorded: tuple[tuple[str, "JudgedClaim"], ...] = ()

    @property
    def tests(self) -> list[ClaimRow]:
        """All rows but the verdict's."""
        return [*self.parts, *self.beside]

    @property
    def headline(self) -> bool:
        """Whether the paper's abstract, introduction or conclusion makes it."""
        return self.whole.headline == "1"

    @property
    def anchor(self) -> str:
        """Identifier of the claim on the page."""
        return f"claim-{self.whole.paper}-{self.whole.claim}"


def read(paths: Iterable[str | Path], remedy: str = "delete it and run again") -> pd.DataFrame:
    """Read and join the claims of papers, empty text as "". Raises DataError for a wrong file, column or verdict, with
    the remedy."""
    tables = [_read(path, remedy) for path in paths]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def _read(path: str | Path, remedy: str) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable table of claims ({error}); {remedy}") from error
    if missing := [name for name in COLUMNS if name not in table]:
        raise DataError(f"{path}: no column {', '.join(missing)}; {remedy}")
    for name in NUMBERS:
        numbers = pd.to_numeric(table[name].replace("", None), errors="coerce")
        bad = numbers.isna() & ~table[name].isin(["", "nan"])
        if bad.any():
            row = int(bad.idxmax())
            raise DataError(f"{path}: row {row + 2}, column '{name}': '{table.at[row, name]}' is not a number")
        table[name] = numbers
    for name, known in (("verdict", VERDICTS), ("role", ROLES)):
        wrong = ~table[name].isin(known)
        if wrong.any():
            row = int(wrong.idxmax())
            raise DataError(
                f"{path}: row {row + 2}, claim {table.at[row, 'claim']}: {name} '{table.at[row, name]}' is none of "
                f"{', '.join(known)}"
            )
    return table[list(COLUMNS)]


def claims(table: pd.DataFrame) -> list[JudgedClaim]:
    """Group the rows by claim, in their order. Raises DataError for a claim without a verdict, or with several."""
    grouped = []
    for (paper, name), rows in table.groupby(["paper", "claim"], sort=False):
        every = [ClaimRow(*row) for row in rows[list(COLUMNS)].itertuples(index=False, name=None)]
        of_role = {role: [row for row in every if row.role == role] for role in ROLES}
        if len(of_role["claim"]) != 1:
            raise DataError(
                f"claims of {paper}: {name} has {len(of_role['claim'])} rows of role 'claim' and {len(every)} in all; "
                "one row is the verdict"
            )
        grouped.append(JudgedClaim(of_role["claim"][0], of_role["part"], of_role["beside"]))
    return grouped


def scorecard(chosen: Iterable[JudgedClaim]) -> pd.DataFrame:
    """Return SCORECARD: a row per claim, and one for each recorded verdict on it."""
    rows = [
        {**one.whole._asdict(), "source": source}
        for claim in chosen
        for source, one in ((HERE, claim), *claim.recorded)
    ]
    return pd.DataFrame(rows, columns=list(SCORECARD))


def counts(chosen: Iterable[JudgedClaim]) -> dict[str, int]:
    """Count the claims of each verdict, in the order of VERDICTS."""
    found = Counter(claim.whole.verdict for claim in chosen)
    return {verdict: found[verdict] for verdict in VERDICTS}


def decided(chosen: Iterable[JudgedClaim]) -> tuple[int, int]:
    """Return how many headline claims hold or are contradicted, and how many there are."""
    headline = [claim.whole.verdict for claim in chosen if claim.whole.headline == "1"]
    return sum(verdict in ("holds", "contradicted") for verdict in headline), len(headline)


class Width(NamedTuple):
    """How wide the interval of a headline claim is, compared with the effect that it should detect; `ratio`: of the
    two. None: the verdict has no interval, or no effect in the unit of its number."""

    claim: JudgedClaim
    half: float | None
    effect: float | None
    ratio: float | None


def widths(chosen: Iterable[JudgedClaim]) -> list[Width]:
    """Return all headline claims: the widest in units of the effect first, then those that lack an effect, then those
    that lack an interval too.

    An interval with a ratio above 1 is wider than the effect: a result of the paper's size can stay undecided.
    """
    found = [_width(claim) for claim in chosen if claim.headline]
    return sorted(found, key=lambda width: (width.ratio is None, width.half is None, -(width.ratio or 0.0)))


def _width(claim: JudgedClaim) -> Width:
    half, effect = (claim.whole.high - claim.whole.low) / 2, abs(claim.whole.effect)
    spread = half if math.isfinite(half) else None
    wanted = effect if math.isfinite(effect) and effect > 0 else None
    return Width(claim, spread, wanted, None if spread is None or wanted is None else spread / wanted)


def printed(row: ClaimRow) -> str:
    """Return the paper's number, or that it prints none and where it shows the result."""
    value = row.paper_value.replace(">=", "≥").replace("<=", "≤")
    if value in ("", "-"):
        return "not printed"
    shown = re.fullmatch(r"(Figure|Table|Theorem|Lemma)s? [\w.,() ]+", value)
    return f"not printed ({value})" if shown and shown[1] == "Figure" else value


def ours(row: ClaimRow) -> str:
    """Write our number with its interval and unit, e.g. "0.133 [0.069, 0.193] nats"; "" without one."""
    if math.isnan(row.value):
        return ""
    interval = "" if math.isnan(row.low) or math.isnan(row.high) else f" [{row.low:.3g}, {row.high:.3g}]"
    return f"{row.value:.3g}{interval} {row.unit}".strip()
