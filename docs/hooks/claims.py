"""The claims of a paper as a table: what it says, where, which artefacts decide it, and a run's verdict."""

import csv
from collections.abc import Container, Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

import yaml

from docs.hooks import gallery


class DecidingTest(TypedDict):
    """A test of a claim, what the table reads of it."""

    artefact: str
    beside: NotRequired[str]


class ClaimEntry(TypedDict):
    """A claim as its sheet has it, what the table reads of it."""

    statement: str
    section: str
    headline: NotRequired[bool]
    untestable: NotRequired[str]
    tests: NotRequired[list[DecidingTest]]


def sheet(root: Path, paper: str) -> dict[str, ClaimEntry]:
    """Return the claims of a paper, in the order of its sheet."""
    path = root / "src" / "metabo" / "papers" / paper / "claims.yaml"
    return yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


def verdicts(root: Path, paper: str) -> tuple[str, dict[str, str]]:
    """Return the largest scale whose claims were judged, and the verdict on each; "" if none was."""
    for scale in gallery.SCALES:
        path = root / "results" / scale / "claims" / f"{paper}.csv"
        if path.is_file():
            with path.open(newline="") as stream:
                return scale, {row["claim"]: row["verdict"] for row in csv.DictReader(stream) if row["role"] == "claim"}
    return "", {}


def shown(claims: Mapping[str, ClaimEntry], scale: str, judged: Mapping[str, str], made: Container[str]) -> str:
    """Return the table of claims, an anchor in each row. `made`: the artefacts that the gallery has, which it links."""
    said = (
        f"Verdicts are those of the run in `results/{scale}`."
        if scale
        else "This site was built without a run's verdicts; `snakemake --cores 2 claims` makes them."
    )
    lines = [
        f"{said} Claims in bold are headline claims.",
        "",
        "| | claim | section | decided by | verdict |",
        "|---|---|---|---|---|",
    ]
    for name, claim in claims.items():
        tests = [test["artefact"] for test in claim.get("tests", []) if "beside" not in test]
        places = [f"[`{one}`](../{gallery.PAGE}#{one})" if one in made else f"`{one}`" for one in dict.fromkeys(tests)]
        label = f"**{name}**" if claim.get("headline") else name
        verdict = judged.get(name, "not testable" if "untestable" in claim else "–")
        cells = [
            f'<a id="{name.lower()}"></a>{label}',
            _cell(claim["statement"]),
            str(claim["section"]),
            ", ".join(places) or "–",
        ]
        lines.append(f"| {' | '.join([*cells, verdict])} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
