"""Where the verdict on a claim comes from."""

import ast
import math
import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from metabo.errors import ConfigError
from metabo.plan import registry, syntax
from metabo.plan.artefact import Artefact
from metabo.plan.chain import Chain
from metabo.plan.parts import PACKAGE_ROOT, path_of
from metabo.plan.schema import read_schema, violations
from metabo.plan.yaml_files import read_yaml
from metabo.report.explain import layout
from metabo.report.explain.artefact import about

if TYPE_CHECKING:  # the module imports all checks, and with them pandas
    from metabo.papers.engine.claims.sheet import ClaimEntry, PrimaryEntry, TestEntry
    from metabo.report.scorecard import ClaimRow

SCHEMA = Path("workflow/schemas/claims.yaml")


class SheetClaim(NamedTuple):
    """A claim as the sheet of its paper has it."""

    id: str
    paper: str
    entry: "ClaimEntry"


def load() -> dict[str, SheetClaim]:
    """Read the claims of all papers. Raises ConfigError, which lists the faults of a sheet."""
    found: dict[str, SheetClaim] = {}
    for path in sorted(PACKAGE_ROOT.glob("papers/*/claims.yaml")):
        written = read_yaml(path)
        if faults := violations(written, read_schema(SCHEMA), "claim"):
            raise ConfigError(f"{path}:", *(f"  {fault}" for fault in faults))
        entries = cast("dict[str, ClaimEntry]", written)
        found |= {id: SheetClaim(id, path.parent.name, entry) for id, entry in entries.items()}
    return found


def lines(claim: SheetClaim, planned: Chain, overlays: Iterable[Path], enabled: Sequence[Artefact]) -> list[str]:
    """Return the statement, its place in the paper, the tests and where their checks are, the verdict and the failed
    gates if they are there, and the command."""
    entry = claim.entry
    sheet = f"'{claim.id}' in {os.path.relpath(PACKAGE_ROOT / 'papers' / claim.paper / 'claims.yaml')}"
    tests = [_test(claim.paper, test) for test in entry.get("tests", [])]
    return [
        f"{claim.id}, a claim of {claim.paper}",
        *layout.paragraph(entry["statement"]),
        "",
        *layout.field("paper", f"{about(claim.paper)}; section {entry['section']}"),
        *layout.field("printed", entry["paper"]),
        *layout.field("kind", _kind(entry)),
        *layout.field("registered", f"{sheet} (docs/claims.md)"),
        *(layout.field("primary", _cell(entry["primary"])) if "primary" in entry else []),
        *(layout.listed("tests", tests) if tests else []),
        *(layout.field("untestable", entry["untestable"].strip()) if "untestable" in entry else []),
        *(layout.field("ours", entry["ours"].strip()) if "ours" in entry else []),
        *_verdict(claim, Path(planned.out, "claims")),
        *_recorded(claim),
        *layout.field("make", layout.command(overlays, f"{planned.out}/claims/{claim.paper}.csv")),
        *layout.field("figures", _figures(claim, enabled)),
    ]


def _kind(entry: "ClaimEntry") -> str:
    headline = "in the paper's abstract, introduction or conclusion" if entry.get("headline") else ""
    return ", ".join(filter(None, (entry.get("kind", "not testable here"), headline)))


def _cell(primary: "PrimaryEntry") -> str:
    effect = f", the paper's effect {primary['effect']}" if "effect" in primary else ""
    return (
        f"{', '.join(primary['metrics'])} on {', '.join(primary['benchmarks'])}, reading '{primary['reading']}', scale "
        f"'{primary['rung']}', margin {primary['margin']}{effect}"
    )


def _test(paper: str, test: "TestEntry") -> str:
    given = layout.settings(test.get("arguments", {}))
    on = f" on {', '.join(test['benchmarks'])}" if "benchmarks" in test else ""
    role = f"beside ({test['beside'].strip()})" if "beside" in test else "decides"
    return f"{role}: {test['artefact']}{on}: {test['check']}({given}), {place(paper, test['check'])}"


def place(paper: str, check: str) -> str:
    """Return file and line of the function of a check."""
    path, line = _functions(paper).get(check, (None, 0))
    return f"{os.path.relpath(path)}:{line}" if path else "which is in no module of checks"


@cache
def _functions(paper: str) -> dict[str, tuple[Path, int]]:
    """Return file and line of every function in the modules of a paper's checks, which are not imported."""
    paths = [path_of(module.partition(".")[2]) for module in registry.claim_modules(paper)]
    return {
        node.name: (path, node.lineno)
        for path in paths
        for node in syntax.tree(path).body
        if isinstance(node, ast.FunctionDef)
    }


def _verdict(claim: SheetClaim, folder: Path) -> list[str]:
    """Return the verdict with its numbers, those of the parts and beside it, and the gates that failed."""
    path = folder / f"{claim.paper}.csv"
    if not path.is_file():
        return layout.field("verdict", f"not judged yet ({path} is not there)")
    from metabo.report import gates, scorecard

    judged = [one for one in scorecard.claims(scorecard.read([path])) if one.whole.claim == claim.id]
    if not judged:
        return layout.field("verdict", f"not judged yet ({path} has no row of it)")
    found = layout.field("verdict", _row(judged[0].whole))
    found += layout.listed("its parts", [_row(row) for row in judged[0].parts]) if judged[0].parts else []
    found += layout.listed("beside", [_row(row) for row in judged[0].beside]) if judged[0].beside else []
    controls = folder / f"{claim.paper}-gates.csv"
    failed = [
        f"{gate.gate} ({gate.artefact}, {gate.benchmark}): {gate.said}"
        for gate in (gates.read([controls]) if controls.is_file() else [])
        if gate.verdict == gates.FAILS and claim.id in gate.claims.split()
    ]
    return [*found, *layout.listed("gates", [f"fails: {text}" for text in failed] or ["none failed"])]


def _recorded(claim: SheetClaim) -> list[str]:
    """Return the recorded verdicts, and where they are, if there are any."""
    from metabo.report import recorded

    found = recorded.of_claim(claim.paper, claim.id)
    return layout.listed("recorded", found) if found else []


def _row(row: "ClaimRow") -> str:
    """Return a verdict with our number and what the check said of it."""
    from metabo.report.scorecard import ours

    cause = f" (cause: {row.cause})" if row.cause else ""
    power = "" if math.isnan(row.power) else f", power {row.power:.2g}"
    number = f": {ours(row)}{power}" if ours(row) else ""
    where = ", ".join(filter(None, (row.artefact, row.benchmark, row.reading)))
    return f"{row.verdict}{cause}{number} [{where}] {row.said}".strip()


def _figures(claim: SheetClaim, enabled: Sequence[Artefact]) -> str:
    """Return the artefacts of this configuration that its tests read."""
    ids = {test["artefact"] for test in claim.entry.get("tests", [])}
    return ", ".join(artefact.name for artefact in enabled if artefact.id in ids)
