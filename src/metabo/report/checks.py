"""The checks that decide the claims, as the page lists them: what each one asks, and where its function is."""

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from metabo.plan import registry, syntax
from metabo.plan.parts import PACKAGE_ROOT, path_of
from metabo.plan.yaml_files import read_yaml


class ShownCheck(NamedTuple):
    """A check of a paper: its name, what its docstring says first, its file and line, the claims that it decides."""

    paper: str
    name: str
    says: str
    place: str
    claims: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """Identifier of the check on the page."""
        return f"check-{self.paper}-{self.name}"


def read(papers: Iterable[str]) -> list[ShownCheck]:
    """List the checks that the claim sheets of papers name, in the order of the claims. A paper may have no sheet."""
    found = []
    for paper in papers:
        sheet = PACKAGE_ROOT / "papers" / paper / "claims.yaml"
        deciding: dict[str, list[str]] = {}
        for claim, entry in (read_yaml(sheet) if sheet.is_file() else {}).items():
            for test in entry.get("tests", []):
                deciding.setdefault(test["check"], []).append(claim)
        functions = _functions(paper) if deciding else {}
        for name, claims in deciding.items():
            says, place = functions.get(name, ("", ""))
            found.append(ShownCheck(paper, name, says, place, tuple(dict.fromkeys(claims))))
    return found


class ListedClaim(NamedTuple):
    """A claim as its sheet has it: paper, id, statement and section, and the checks that decide it."""

    paper: str
    claim: str
    statement: str
    section: str
    checks: list[ShownCheck]

    @property
    def anchor(self) -> str:
        """Identifier of the claim on the page."""
        return f"claim-{self.paper}-{self.claim}"


def sheet(paper: str) -> dict[str, ListedClaim]:
    """Return the claims of a paper by id, in the order of its sheet."""
    deciding = by_claim(read([paper]))
    entries = read_yaml(PACKAGE_ROOT / "papers" / paper / "claims.yaml")
    return {
        id: ListedClaim(paper, id, entry["statement"], str(entry["section"]), deciding.get((paper, id), []))
        for id, entry in entries.items()
    }


def by_claim(checks: Iterable[ShownCheck]) -> dict[tuple[str, str], list[ShownCheck]]:
    """Return the checks of each claim, by paper and claim."""
    found: dict[tuple[str, str], list[ShownCheck]] = {}
    for check in checks:
        for claim in check.claims:
            found.setdefault((check.paper, claim), []).append(check)
    return found


def _functions(paper: str) -> dict[str, tuple[str, str]]:
    """Return what each function of a paper's checks says it does, and its file and line, without importing it."""
    found = {}
    for module in registry.claim_modules(paper):
        path = path_of(module.partition(".")[2])
        for node in syntax.tree(path).body:
            if isinstance(node, ast.FunctionDef):
                said = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                found[node.name] = said, f"{_short(path)}:{node.lineno}"
    return found


def _short(path: Path) -> str:
    return Path("src", path.relative_to(PACKAGE_ROOT.parent)).as_posix()
