"""Texts of users with HTML, Markdown, templates and formulas in them, on pages, in notebooks and in tables.

A page with such a text must have the elements, and the attributes by name, that it has with as many harmless letters,
and show the text as often; a cell of a table must begin no formula, and be read as the text again.
"""

import csv
import io
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
import pandas as pd

from metabo.artefacts.text import plain
from metabo.data.history import description as descriptions
from metabo.data.imports.imported import Imported
from metabo.records import csv_cells
from metabo.records.fields import Fields
from metabo.report import gallery, jobs, notebooks, scorecard
from metabo.report import page as report
from metabo.report.gates import ShownGate
from metabo.report.theory import ShownStatement
from metabo.tuner import commands
from metabo.tuner.asking import Suggestion
from metabo.tuner.page.facts import EffectShare, PredictedTrial, ShownStudy
from metabo.tuner.page.html import page as study_page
from tests.adversary.judge import Attempt

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><svg onload=alert(1)>",
    "</style><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "![x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)",
    "`a` ``b``",
    "```x",
    "{name}",
    "{{ 7*7 }}",
    "{% raw %}",
    "%s%(a)d",
    "&lt;b&gt; &amp;",
    "<!-- x",
    "]]><b>",
    "**a** _b_ # c",
    "<a href='javascript:alert(1)'>x</a>",
    "$x$ \\(y\\)",
    "|a|b|",
)
FORMULAS = (
    "=1+1",
    "+cmd|'/C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    " =1+1",
    "\t=1+1",
    "\r=1+1",
    "\n@x",
    "  -x",
    "\xa0=1",
    "\t\t+x",
    '=HYPERLINK("http://x","y")',
    "-",
    "=",
    '"=1"',
    "a,=1",
)
HARMFUL = {"script", "iframe", "object", "embed", "svg", "style", "form", "base", "link", "meta", "b"}
"""Elements that Markdown does not make of a text; `b`: Markdown writes strong."""


class Found(HTMLParser):
    """The elements of a page with the names of their attributes, their values, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.values: list[str] = []
        self.texts: list[str] = [""]
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))
        self.values += [value or "" for _, value in attrs]
        self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}",))
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data

    def count(self, text: str) -> int:
        return sum(one.count(text) for one in (*self.values, *(" ".join(part.split()) for part in self.texts)))


class Written(NamedTuple):
    """A page with the text, and the same page with harmless letters in its place."""

    hostile: str
    harmless: str


def attempt(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """Make a try: three each of the page of a study, the report, notebooks, and tables."""
    group, way = divmod(number % 12, 3)
    text = str(rng.choice(HOSTILE))
    if group == 0:
        return _compared("page of a study", text, lambda one: _study(one, maximise=way == 1, bare=way == 2))
    if group == 1:
        return _compared("report page", text, _report)
    if group == 2 and way < 2:
        return _compared("notebook", text, lambda one: _notebook(one, place, noted=plain(one)))
    if group == 2:
        return Attempt(f"Markdown: {text!r}", lambda: _notebook(text, place, noted=text), _harmless)
    return (_imported, _framed, _suggested)[way](FORMULAS[int(rng.integers(len(FORMULAS)))])


def _compared(where: str, text: str, make: Callable[[str], str]) -> Attempt:
    letters = "".join(one if one.isspace() else "qzxvwkj"[place % 7] for place, one in enumerate(text))

    def right(written: Written) -> str:
        hostile, harmless = Found(written.hostile), Found(written.harmless)
        if hostile.elements != harmless.elements:
            new = [one for one in hostile.elements if one not in harmless.elements]
            return f"the text made elements or attributes: {new[:3]}"
        if any(value.strip().lower().startswith("javascript:") for value in hostile.values):
            return "an attribute begins with javascript:"
        if hostile.count(text) != harmless.count(letters) or not harmless.count(letters):
            return f"the text is shown {hostile.count(text)} times in place of {harmless.count(letters)}"
        return ""

    return Attempt(f"{where}: {text!r}", lambda: Written(make(text), make(letters)), right, "value")


def _harmless(page: str) -> str:
    """Markdown may make emphasis and links of a text, but no HTML and no script."""
    found = Found(page)
    main = page.partition("<main")[2] or page
    names = {name for _, *names in found.elements for name in names}
    if made := HARMFUL & {tag for tag, *_ in Found(main.partition("<script")[0]).elements}:
        return f"Markdown made {made}"
    if events := [name for name in names if name.startswith("on")]:
        return f"Markdown made {events}"
    scripts = [value for value in found.values if re.sub(r"[\s\0-\x1f]", "", value).lower().startswith("javascript:")]
    return f"an address is {scripts[0]}" if scripts else ""


def _study(text: str, maximise: bool, bare: bool) -> str:
    """Return the page of a study in which everything is called so."""
    space = descriptions.of_mapping({
        "name": "s", "study": "d", "outcome": {"column": f"y{text}", "goal": "maximise" if maximise else "minimise"},
        "parameters": {f"x{text}": {"type": "float", "low": 0.0, "high": 1.0},
                       "kind": {"type": "categorical", "choices": [f"c{text}", "other"]}},
    }, "space.yaml")  # fmt: skip
    values = {f"x{text}": 0.5, "kind": f"c{text}"}
    claim = {"by": text, "at": "2026-01-31T12:00:00+00:00"}
    trials = [
        {"number": 0, "parameters": values, "state": "done", "outcome": 0.5},
        {"number": 1, "parameters": values, "state": "running", "outcome": None, "claim": claim},
    ]
    account = {
        "study": text,
        "read": 1,
        "used": 1,
        "failed": 0,
        "dropped": [{"reason": text, "rows": [1]}],
        "notes": [text],
    }
    past = [{"history": text, "space": text, "studies": 1, "trials": 1, "layout": "", "accounts": [account]}]
    record = {"past": past, "remarks": [text], "spec": {"method": text}}
    shown = ShownStudy([0.5], [EffectShare(text, 0.5)], [PredictedTrial(0, 0.5, 0.5, 0.4, 0.6)], True)
    if bare:
        trials, shown = [], ShownStudy([], [], [], False)
    return study_page(text, record, space, trials, shown)


def _report(text: str) -> str:
    """Return the report page of a run in which titles, captions, benchmarks and what is said are such texts."""
    row = dict.fromkeys(scorecard.COLUMNS, text) | dict.fromkeys(scorecard.NUMBERS, 0.5)
    row |= {
        "claim": "C01",
        "paper": "hyperbo",
        "headline": "1",
        "kind": "conceptual",
        "verdict": "undecided",
        "cause": "power",
        "rung": "smoke",
        "metrics": "area",
        "reading": "once",
    }
    table = pd.DataFrame([row | {"role": role} for role in ("claim", "part", "beside")])[list(scorecard.COLUMNS)]
    record = jobs.JobRecord(
        "notebook",
        Fields({}, "spec"),
        {},
        {},
        {text: text},
        text,
        text,
        text,
        "2026-01-31T12:00:00+00:00",
        "2026-01-31T12:00:00+00:00",
        "0" * 64,
        "0" * 64,
        1.0,
        1.0,
    )
    job = jobs.Job("results/smoke/hyperbo/a/provenance.json", record, 1.0)
    links = {file: f"hyperbo/a/{file}" for file in gallery.FILES}
    shown = gallery.ShownArtefact(
        "a", "hyperbo_fig08", "hyperbo", text, text, text, ["C01"], links, 4, 2, text, text, text, "", 1, 1.0, [text]
    )
    statement = ShownStatement(text, text, text, text, text, "supported", text, text, "mphd", "theory.json")
    gate = ShownGate("hyperbo", text, "hyperbo_fig08", text, text, "fails", "0.9", "0.5", text, "C01")
    return report.index(
        "smoke", ["hyperbo", "mphd"], scorecard.claims(table), [shown], [statement], [gate], {"a": job}, (), [text]
    )


def _notebook(text: str, place: Path, noted: str) -> str:
    """Return the page of a notebook with such a title, caption and output, and `noted` as Markdown."""
    table = pd.DataFrame({f"c{text}": [text]}).to_html()
    outputs = [
        nbformat.v4.new_output("stream", text=f"task {text}\n"),
        nbformat.v4.new_output("display_data", {"text/html": table, "text/plain": text}),
        nbformat.v4.new_output("display_data", {"text/markdown": f"Note of the loader: {noted}"}),
        nbformat.v4.new_output("display_data", {"image/png": "aaaa", "text/plain": "an image"}),
    ]
    code = nbformat.v4.new_code_cell("metabo", outputs=outputs, execution_count=1)
    given = {"title": text, "caption": text, "benchmark": text}
    cells = [nbformat.v4.new_markdown_cell(f"Of {noted}"), code]
    nbformat.write(
        nbformat.v4.new_notebook(cells=cells, metadata={"papermill": {"parameters": given}}), place / "n.ipynb"
    )
    return notebooks.render(place / "n.ipynb", text, "../index.html", notebooks.exporter())


def _runs(cells: list[list[str]]) -> str:
    """Name a cell that a spreadsheet would run, whatever white space is before it."""
    return next((f"the cell {cell!r} is run" for row in cells for cell in row if _begins_formula(cell)), "")


def _begins_formula(cell: str) -> bool:
    return cell.strip()[:1] in {"=", "+", "-", "@"} and not re.fullmatch(r"\s*[-+]?\d[\d.]*\s*", cell)


def _imported(text: str) -> Attempt:
    def right(written: str) -> str:
        cells = list(csv.reader(io.StringIO(written, newline="")))
        back = [[csv_cells.unguarded(cell) for cell in row] for row in cells]
        return _runs(cells) or ("" if back == [["study", text], [text, "-1.5"]] else f"read as {back}")

    return Attempt(
        f"import {text!r}", lambda: Imported(["study", text], [[text, "-1.5"]], None, [], []).csv, right, "value"
    )  # pyright: ignore[reportArgumentType]


def _framed(text: str) -> Attempt:
    def right(written: str) -> str:
        cells = list(csv.reader(io.StringIO(written, newline="")))
        return _runs(cells) or ("" if csv_cells.unguarded(cells[1][0]) == text else f"read as {cells[1][0]!r}")

    table = pd.DataFrame({"task": [text, "b"], "value": [-1.0, 2.0]})
    return Attempt(f"data.csv {text!r}", lambda: csv_cells.guarded_frame(table).to_csv(index=False), right, "value")


def _suggested(text: str) -> Attempt:
    """A choice that is printed by `metabo suggest`, or the name of a parameter."""

    def act() -> tuple[list[str], object]:
        space = descriptions.of_mapping({
            "name": "s", "study": "d", "outcome": {"column": "y", "goal": "minimise"},
            "parameters": {"kind": {"type": "categorical", "choices": [text, "other"]}},
        }, "space.yaml")  # fmt: skip
        return commands._csv(space, [Suggestion({"kind": text}, 0.5, 0.4, 0.6)]), space.fields[0]

    def right(found: tuple) -> str:
        cells = list(csv.reader(io.StringIO("\n".join(found[0]), newline="")))
        return _runs(cells) or (
            "" if found[1].parse(cells[1][0]) == text else f"read as {found[1].parse(cells[1][0])!r}"
        )

    return Attempt(f"choice {text!r}", act, right, "either", ("choices",))
