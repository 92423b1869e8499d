"""The gates of the papers: controls that claims rest on, read for the page."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from metabo.errors import DataError

PASSES, FAILS = "passes", "fails"


class ShownGate(NamedTuple):
    """A row of results/{scale}/claims/{paper}-gates.csv (`metabo.papers.engine.claims.gates`)."""

    paper: str
    gate: str
    artefact: str
    benchmark: str
    subjects: str
    verdict: str
    value: str
    bound: str
    said: str
    claims: str


def read(paths: Iterable[str | Path]) -> list[ShownGate]:
    """Read the gates of papers, the failed ones first. Raises DataError for a wrong file, column or verdict."""
    found = [gate for path in paths for gate in _read(path)]
    return sorted(found, key=lambda gate: gate.verdict != FAILS)


def _read(path: str | Path) -> list[ShownGate]:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable table of gates ({error}); delete it and run again") from error
    if missing := [name for name in ShownGate._fields if name not in table]:
        raise DataError(f"{path}: no column {', '.join(missing)}; delete it and run again")
    rows = [ShownGate(*row) for row in table[list(ShownGate._fields)].itertuples(index=False, name=None)]
    for number, row in enumerate(rows):
        if row.verdict not in (PASSES, FAILS):
            raise DataError(f"{path}: row {number + 2}: verdict '{row.verdict}' is none of {PASSES}, {FAILS}")
    return rows


def counts(gates: Iterable[ShownGate]) -> pd.DataFrame:
    """Return paper, gate, passes, fails: how many gates of each kind there are, in the order of the papers."""
    table = pd.DataFrame([(g.paper, g.gate, g.verdict) for g in gates], columns=["paper", "gate", "verdict"])
    counted = table.groupby(["paper", "gate"])["verdict"].value_counts().unstack(fill_value=0)
    return counted.reindex(columns=[PASSES, FAILS], fill_value=0).reset_index()
