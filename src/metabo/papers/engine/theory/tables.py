"""The results of theory checks as tables: one row per statement, one row per cell, for figures and notebooks."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict

import pandas as pd

from metabo.errors import DataError
from metabo.papers.engine.theory.records import (
    OK,
    Cell,
    NegativeControl,
    Statement,
    StatementPart,
    seen_by,
    vague_cells,
)
from metabo.papers.engine.theory.verdicts import INFORMATIVE, REFUTED, combine
from metabo.records.fields import Fields
from metabo.records.files import Json

ANY = 1.05
"""A factor below it is no more than rounding: the check sees any change of the bound."""


class CheckResult(TypedDict):
    """What one theory check found, with the `share` of its replicates that were run."""

    check: str
    share: float
    statements: list[Statement]


def read(paths: list[str]) -> list[CheckResult]:
    """Read the results of checks, in the given order. Raises DataError if one is missing or not of a theory check."""
    if not paths:
        raise DataError("no theory check given; name some in the parameter 'theory'")
    checks = []
    for path in paths:
        if not Path(path).is_file():
            raise DataError(f"{path}: no such check; make it (`snakemake --cores 2 -- {path}`) or change the path")
        try:
            record = json.loads(Path(path).read_text())
        except ValueError as error:
            raise DataError(f"{path}: not readable as JSON ({error}); delete it and run again") from error
        if not isinstance(record, dict) or not {"check", "share", "statements"} <= record.keys():
            raise DataError(f"{path}: not the result of a theory check; delete it and run again")
        fields = Fields(record, path)
        statements = [_statement(one) for one in fields.objects("statements")]
        checks.append(CheckResult(check=fields.text("check"), share=fields.number("share"), statements=statements))
    return checks


def _statement(fields: Fields) -> Statement:
    return Statement(
        id=fields.text("id"), title=fields.text("title"), where=fields.text("where"), version=fields.text("version"),
        verdict=fields.text("verdict"), status=fields.text("status"), sees=fields.values.get("sees"),
        counterexample=dict(fields.object("counterexample").values) if fields.maybe("counterexample") else None,
        parts=[_part(one) for one in fields.objects("parts")],
    )  # fmt: skip


def _part(fields: Fields) -> StatementPart:
    return StatementPart(
        part=fields.text("part"), claim=fields.text("claim"), kind=fields.text("kind"), verdict=fields.text("verdict"),
        cells=_cells(fields), control=_control(fields.object("control")) if fields.maybe("control") else None,
    )  # fmt: skip


def _control(fields: Fields) -> NegativeControl:
    return NegativeControl(claim=fields.text("claim"), verdict=fields.text("verdict"), cells=_cells(fields))


def _cells(fields: Fields) -> list[Cell]:
    return [
        Cell(
            setting=dict(c.object("setting").values),
            verdict=c.text("verdict"),
            numbers=dict(c.object("numbers").values),
        )
        for c in fields.objects("cells")
    ]


def verdicts(checks: list[CheckResult]) -> pd.DataFrame:
    """Return one row per statement: check, statement, version, title, where, verdict, status, controls, sees, decided.

    The verdict of a statement that the check cannot decide is its status: "no power" or "not informative". `controls`:
    how many are refuted, of how many parts; `sees`: how much smaller its bounds would have to be for the check to
    refute one of each part, or how much larger a refuted one might be ("": no bound); `decided`: the numbers that the
    verdict rests on.
    """
    rows = []
    for check in checks:
        for s in check["statements"]:
            names = {"check": check["check"], "statement": s["id"], "version": s["version"], "title": s["title"]}
            shown = s["verdict"] if s["status"] == OK else s["status"]
            refuted = sum(p["control"]["verdict"] == REFUTED for p in s["parts"] if p["control"])
            names |= {"where": s["where"], "verdict": shown, "status": s["status"]}
            sees = "" if s["sees"] is None else _factor(_real({"sees": s["sees"]}, "sees"))
            rows.append(names | {"controls": f"{refuted} of {len(s['parts'])}", "sees": sees, "decided": decided(s)})
    return pd.DataFrame(rows)


def _factor(sees: float) -> str:
    if not math.isfinite(sees):
        return "never"
    if sees <= 0:
        return "at any size"
    times, size = (sees, "smaller") if sees >= 1 else (1 / sees, "larger")
    even = "if" if sees >= 1 else "even if"  # a bound that fails still would
    if times < ANY:
        return f"{even} any {size}"
    return f"{even} {float(f'{times:.2g}'):,.12g}× {size}"


def parts(checks: list[CheckResult]) -> pd.DataFrame:
    """Return one row per part: names, kind, claim, verdict and the numbers of its worst cell; the same of its control.

    `sees`: that of this part's cells, and how many of these see no factor below INFORMATIVE; `control`: what it claims,
    `refuted`: its verdict, `by`: the numbers of the cell that comes closest to its claim.
    """
    rows = []
    for check in checks:
        for s in check["statements"]:
            for p in s["parts"]:
                names = {"check": check["check"], "statement": s["id"], "version": s["version"], "part": p["part"]}
                names |= {"kind": p["kind"], "claim": p["claim"], "verdict": p["verdict"]}
                names |= {"decided": _decided(p["kind"], p["cells"], max), "sees": _seen(p["cells"])}
                against = p["control"] or NegativeControl(claim="none", verdict="", cells=[])
                names |= {"control": against["claim"], "refuted": against["verdict"]}
                rows.append(names | {"by": _decided(p["kind"], against["cells"], min)})
    return pd.DataFrame(rows)


def _seen(among: list[Cell]) -> str:
    seen, (vague, bounds) = seen_by(among), vague_cells(among)
    if seen is None:
        return ""
    return _factor(seen) + (f", {vague} of {bounds} cells above {INFORMATIVE:.0f}" if vague else "")


def cells(checks: list[CheckResult]) -> pd.DataFrame:
    """Return one row per cell of all parts and controls: names, `is_control`, `verdict`, its setting and numbers.

    Settings and numbers become columns, missing where a cell has none of that name; a number never hides a setting (a
    coordinate of the worst point comes in the column `worst_...`).
    """
    rows = []
    for check in checks:
        for s in check["statements"]:
            for p in s["parts"]:
                names = {"check": check["check"], "statement": s["id"], "version": s["version"], "part": p["part"]}
                names |= {"kind": p["kind"], "claim": p["claim"]}
                rows += [names | {"is_control": False} | _row(c) for c in p["cells"]]
                if p["control"]:
                    names |= {"claim": p["control"]["claim"]}
                    rows += [names | {"is_control": True} | _row(c) for c in p["control"]["cells"]]
    return pd.DataFrame(rows)


def _row(c: Cell) -> dict[str, Json]:
    numbers = {f"worst_{k}" if k in c["setting"] else k: v for k, v in c["numbers"].items()}
    return {"verdict": c["verdict"], **c["setting"], **numbers}


def decided(s: Statement) -> str:
    """Return the numbers that a statement's verdict rests on: of the parts that have this verdict, and of their cells
    that do, the one that is the worst for the claim.

    Numbers of two kinds, such as a share and an error, cannot be compared: parts of the first one's kind count.
    """
    verdict = combine([p["verdict"] for p in s["parts"]])  # that of the statement, whatever its status
    parts = [p for p in s["parts"] if p["verdict"] == verdict]
    found = [(p["kind"], c) for p in parts for c in p["cells"] if c["verdict"] == verdict]
    measures = [(kind, "least" in c["numbers"]) for kind, c in found]
    alike = [c for (_, c), measure in zip(found, measures, strict=True) if measure == measures[0]]
    return _decided(found[0][0], alike, max) if found else ""


def _decided(kind: str, cells: list[Cell], choose: Callable[..., Cell]) -> str:
    """Return numbers and setting of the cell with the largest (`choose` is max) or least distance from the claim."""
    if not cells:
        return ""
    chosen = choose(cells, key=lambda c: _severity(kind, c["numbers"]))
    return _text(kind, chosen["numbers"]) + _setting(chosen["setting"])


def _real(n: Mapping[str, Json], name: str) -> float:
    """Return a number of a cell, also one that is not finite: a text in the file."""
    value = n.get(name)
    if not isinstance(value, int | float | str):
        raise DataError(f"theory check: a cell has no number '{name}', only {', '.join(n)}; run the check again")
    return float(value)


def _severity(kind: str, n: Mapping[str, Json]) -> float:
    if kind == "probability":
        return _real(n, "share") - _real(n, "limit")
    if kind == "distribution":
        return -_real(n, "p")
    if "least" in n:  # an estimated number, and the range it should lie in
        outside = _real(n, "least") - _real(n, "low"), _real(n, "high") - _real(n, "most")
        return max(outside) / _real(n, "error")
    return abs(_real(n, {"expectation": "z", "identity": "error"}.get(kind, "violations")))


def _text(kind: str, n: Mapping[str, Json]) -> str:
    if kind == "probability":
        interval = f" [{_real(n, 'low'):.3g}, {_real(n, 'high'):.3g}]" if "low" in n else ""
        used = f", largest regret {_real(n, 'largest_share'):.2g} of the bound" if "largest_share" in n else ""
        return f"P = {_real(n, 'share'):.3g}{interval}, limit {_real(n, 'limit'):.3g}{used}"
    if kind == "expectation":
        if "least" in n:
            interval = f"[{_real(n, 'low'):.3g}, {_real(n, 'high'):.3g}]"
            return f"{_real(n, 'mean'):.3g} {interval}, allowed {_range(_real(n, 'least'), _real(n, 'most'))}"
        if "correlation" in n:
            return f"r = {_real(n, 'correlation'):.2g}, z = {_real(n, 'z'):.1f}"
        return f"mean {_real(n, 'mean'):.3f}, expected {_real(n, 'expected'):.3f}, z = {_real(n, 'z'):.1f}"
    if kind == "distribution":
        return f"p = {_real(n, 'p'):.2g}"
    if kind == "identity":
        return f"error {_real(n, 'error'):.2g} in {n['cases']} cases"
    if n["cases"] == 1 and {"smaller", "larger"} <= n.keys():  # of one comparison its two sides say more
        return f"{_real(n, 'smaller'):.3g} {'>' if n['violations'] else '<='} {_real(n, 'larger'):.3g}"
    left_out = f", {n['left_out']} left out" if n.get("left_out") else ""
    return f"violated {n['violations']} of {n['cases']} times{left_out}"


def _range(least: float, most: float) -> str:
    """Name the range that an estimated number may lie in; an end may be infinite."""
    if not math.isfinite(least):
        return f"<= {most:.3g}"
    return f">= {least:.3g}" if not math.isfinite(most) else f"[{least:.3g}, {most:.3g}]"


_SYMBOLS = {
    "functions": "N", "iterations": "T", "iteration": "t", "length": "T", "delta": "δ", "noise": "σ*²", "sigma": "σ*",
    "arms": "M", "points": "M", "noise_share": "σ̂²/λ_min", "lengthscale": "ℓ", "dim": "d",
}  # fmt: skip


def _setting(setting: Mapping[str, Json]) -> str:
    parts = [str(v) if isinstance(v, str) else f"{_SYMBOLS.get(k, k)} {_brief(v)}" for k, v in setting.items()]
    return f" ({', '.join(parts)})" if parts else ""


def _brief(value: Json) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_brief, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) or (isinstance(value, int) and value >= 10**6) else str(value)


def numbers(checks: list[CheckResult]) -> dict[str, pd.DataFrame]:
    """Return what an artefact saves: the verdict of every statement, and every number of every cell.

    Keys: `statement` (with its version and, of a verdict, its title), `verdict`; of a cell `part` (or "control of
    ..."), `kind`, `setting`, `place` (in the part) and `number` (its name).
    """
    table = verdicts(checks)
    titles = table["statement"] + ", " + table["version"] + ": " + table["title"]
    undecidable = table["status"] != OK
    counts = pd.DataFrame({"statement": titles, "verdict": table["verdict"], "no_power": undecidable.astype(float)})
    statements = [s for check in checks for s in check["statements"]]
    rows = []
    for named, s in zip(table["statement"] + ", " + table["version"], statements, strict=True):
        for p in s["parts"]:
            groups = [(p["part"], p["cells"])]
            groups += [(f"control of {p['part']}", p["control"]["cells"])] if p["control"] else []
            for name, group in groups:
                for place, c in enumerate(group, 1):
                    keys = {"statement": named, "part": name, "kind": p["kind"], "verdict": c["verdict"]}
                    keys |= {"setting": _setting(c["setting"]).strip(" ()"), "place": place}
                    found = {k: v for k, v in c["numbers"].items() if isinstance(v, (int, float))}
                    rows += [keys | {"number": k, "value": float(v)} for k, v in found.items()]
    return {"verdict": counts, "cell": pd.DataFrame(rows)}
