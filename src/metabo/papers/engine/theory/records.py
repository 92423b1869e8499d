"""Records of the theory checks: cells, parts with their negative controls, statements; JSON-ready dictionaries.

A statement is a claim of a paper (or a repaired version of one). Its parts test what it says, each in one or several
cells (settings). A part's negative control is a deliberately false variant of what that part says, decided by the same
rule: unless it is refuted in all of its cells, the check could not have refuted the part either. A statement of which
one part lacks such a control has the status "no power". A control shows that the check can refute something; its number
`sees` says how large an error in a bound it would detect. A supported statement has the status "not informative" if the
bound of one of its parts could be 100 times smaller without being refuted.
"""

import math
from collections.abc import Iterable, Mapping
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from metabo.papers.engine.theory.verdicts import INCONCLUSIVE, INFORMATIVE, REFUTED, SUPPORTED, Ruling, combine
from metabo.records.files import Json


class Cell(TypedDict):
    """One setting of a part, the verdict there, and the numbers that it rests on (texts if not finite)."""

    setting: dict[str, Json]
    verdict: str
    numbers: dict[str, Json]


class NegativeControl(TypedDict):
    """A deliberately false variant of a part."""

    claim: str
    verdict: str
    cells: list[Cell]


class StatementPart(TypedDict):
    """One thing that a statement says."""

    part: str
    claim: str
    kind: str
    verdict: str
    cells: list[Cell]
    control: NegativeControl | None


class Statement(TypedDict):
    """A claim of a paper with its verdict; `counterexample`: setting and numbers of the first cell that refutes it;
    `sees`: the least factor by which its bounds could be divided such that some cell of each part refutes it; of a
    refuted statement, such that some cell refutes one (a text if infinite, None without a bound)."""

    id: str
    title: str
    where: str
    version: str
    verdict: str
    status: str
    sees: Json
    counterexample: dict[str, Json] | None
    parts: list[StatementPart]


VERSIONS = ("printed", "repaired", "proof step", "reading", "ours")
"""Of a statement: as printed, repaired by us, a step of the printed proof, a reading of it (of O(·)), or our own."""
OK, NO_POWER, UNINFORMATIVE = "ok", "no power", "not informative"
_DECIDED_BY = {
    "probability": "share", "expectation": "z", "distribution": "p", "identity": "error", "inequality": "violations",
}  # fmt: skip
"""The number that the rule of each kind leaves in a cell."""
KINDS = tuple(_DECIDED_BY)


def cell(found: Ruling, **setting: ArrayLike | None) -> Cell:
    """Return one setting of a part with its verdict and numbers."""
    return {"setting": _plain(setting), "verdict": found.verdict, "numbers": _plain(found.numbers)}


def control(claim: str, cells: Iterable[Cell]) -> NegativeControl:
    """Return a deliberately false variant of a part. Refuted only if every cell refutes it."""
    cells = list(cells)
    verdicts = {c["verdict"] for c in cells}
    whole = REFUTED if verdicts == {REFUTED} else SUPPORTED if verdicts == {SUPPORTED} else INCONCLUSIVE
    return {"claim": claim, "verdict": whole, "cells": cells}


def part(
    name: str, claim: str, kind: str, cells: Iterable[Cell], against: NegativeControl | None = None
) -> StatementPart:
    """Return one part of a statement. `claim`: what is expected, in words; `against`: its negative control.

    `kind`: one of KINDS. Raises ValueError for another, and for cells, also of the control, that another rule decided.
    """
    if kind not in KINDS:
        raise ValueError(f"part '{name}': kind '{kind}' is none of {', '.join(KINDS)}")
    cells = list(cells)
    for c in [*cells, *(against["cells"] if against else [])]:
        if _DECIDED_BY[kind] not in c["numbers"]:
            raise ValueError(f"part '{name}' of kind '{kind}': a cell of it or of its control has another kind")
    verdict = combine([c["verdict"] for c in cells])
    return {"part": name, "claim": claim, "kind": kind, "verdict": verdict, "cells": cells, "control": against}


def seen_by(cells: Iterable[Cell]) -> float | None:
    """Return the least factor by which the bound of a part could be divided such that some of its cells refutes it;
    None if no cell is about a bound."""
    return min((float(str(c["numbers"]["sees"])) for c in cells if "sees" in c["numbers"]), default=None)


def vague_cells(cells: Iterable[Cell]) -> tuple[int, int]:
    """Return how many cells would also pass a bound INFORMATIVE times smaller, and how many are about a bound."""
    seen = [float(str(c["numbers"]["sees"])) for c in cells if "sees" in c["numbers"]]
    return sum(factor > INFORMATIVE for factor in seen), len(seen)


def statement(id: str, title: str, where: str, parts: Iterable[StatementPart], version: str = "printed") -> Statement:
    """Return a statement with its verdict, the status of its controls, and the first cell that refutes it.

    `where`: section of the paper; `version`: one of VERSIONS. A statement with a part whose control is not refuted,
    or that has none, has the status "no power" and is not decided. One whose parts are supported, but one of them would
    be with a bound INFORMATIVE times smaller too, has the status "not informative" and is not decided either.
    """
    if version not in VERSIONS:
        raise ValueError(f"statement '{id}': version '{version}' is none of {', '.join(VERSIONS)}")
    parts = list(parts)
    controls = [p["control"]["verdict"] if p["control"] else None for p in parts]
    verdict = combine([p["verdict"] for p in parts])
    seen = [factor for p in parts if (factor := seen_by(p["cells"])) is not None]
    status = OK if set(controls) == {REFUTED} else NO_POWER
    if status == OK and verdict == SUPPORTED and max(seen, default=0.0) > INFORMATIVE:
        status = UNINFORMATIVE
    refuting = [(p, c) for p in parts for c in p["cells"] if c["verdict"] == REFUTED]
    example = None
    if refuting:
        first, found = refuting[0]
        example = {"part": first["part"], "claim": first["claim"], **found["setting"], **found["numbers"]}
    return {
        "id": id,
        "title": title,
        "where": where,
        "version": version,
        "verdict": verdict if status == OK else INCONCLUSIVE,
        "status": status,
        "sees": _number(min(seen) if verdict == REFUTED else max(seen)) if seen else None,
        "counterexample": example,
        "parts": parts,
    }


def describe(record: Statement) -> str:
    """Return a statement as lines of text: verdict, parts, the numbers of the first cell that decides each."""
    lines = [f"{record['id']} ({record['version']}), {record['where']}: {record['verdict']}, {record['status']}"]
    if record["sees"] is not None:
        lines.append(f"  would refute the bound divided by {float(str(record['sees'])):.3g}")
    for p in record["parts"]:
        vague, bounds = vague_cells(p["cells"])
        told = f", {vague} of {bounds} pass the bound/{INFORMATIVE:.0f} too" if vague else ""
        lines.append(f"  {p['part']}: {p['verdict']} in {len(p['cells'])} cells{told}. {p['claim']}")
        lines.append(
            f"    control: {p['control']['verdict']}. {p['control']['claim']}" if p["control"] else "    no control"
        )
    if record["counterexample"]:
        shown = {k: v for k, v in record["counterexample"].items() if k not in ("part", "claim")}
        lines.append(f"  counterexample ({record['counterexample']['part']}): {shown}")
    return "\n".join(lines)


def _plain(values: Mapping[str, ArrayLike | None]) -> dict[str, Json]:
    """Turn NumPy numbers into Python's, and numbers that JSON lacks into texts."""
    return {name: _number(value) for name, value in values.items()}


def _number(value: ArrayLike | None) -> Json:
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value):
        return [_number(entry) for entry in value]
    if isinstance(value, (bool, str, int)) or value is None:
        return value
    if isinstance(value, np.integer):
        return int(value)
    number = float(np.asarray(value))
    return number if math.isfinite(number) else str(number)
