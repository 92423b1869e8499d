"""``space.yaml`` and the CSV of a history as people damage them by hand: wrong types, keys that stand twice, dates,
whole numbers without end, other encodings, decimal commas, choices that look alike."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.adversary.judge import Attempt
from tests.adversary.past import Row, csv_text, differing, read_both
from tests.tuner.conftest import HEADER, SPACE, rows

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)
HUGE = ("1" + "0" * 400, "9" * 5000, str(2**63), f"-{10**30}", "1.0e+400", "1" + "0" * 320 + ".0")
ODD = ("[1, 2]", "{a: 1}", "~", "'x'", "true", ".nan", ".inf", "010", "1:30", "2024-05-01", "1e5x", "!!binary aGk=")
CONTROL = ("\\n", "\\r\\n", "\\u2028", "\\x85", "\\x1b[31m", "\\t", "\\u202e", "\\0", "\\uFEFF", "\\v")
ODD_CELLS = ("ten", "1,2,3", "0x10", "\u0661\u0662x", "--1", "1e", "True", "1\x1b[31m", "a\nb", "\ud7ff", "$5")


class Edited(NamedTuple):
    """What was edited, the two files, how it must end, words of which a refusal has one, and the trials to come out."""

    what: str
    space: str | bytes
    history: str | bytes
    end: str
    named: tuple[str, ...] = ()
    trials: list[Row] | None = None


class Good(NamedTuple):
    """A history without a fault: the cells of its rows."""

    table: list[list[str]]

    @property
    def trials(self) -> list[Row]:
        return [trial_of(cells) for cells in self.table]

    def text(self, **layout: str) -> str:
        return csv_text(HEADER, self.table, **layout)

    def with_cell(self, row: int, column: str, cell: str) -> "Good":
        table = [list(cells) for cells in self.table]
        table[row][HEADER.index(column)] = cell
        return Good(table)


def trial_of(cells: list[str]) -> Row:
    """Read the cells of a good row as Python does."""
    study, rate, layers, batch, optimiser, momentum, error = cells
    values = [float(rate), int(layers), int(batch), optimiser, float(momentum) if optimiser == "sgd" else None]
    return Row(study, dict(zip(HEADER[1:-1], values, strict=True)), float(error) if error else math.nan)


def swapped(old: str, new: str) -> str:
    assert old in SPACE, old
    return SPACE.replace(old, new, 1)


def _replaced(what: str, old: str, *new: str, named: tuple[str, ...]) -> list[Callable]:
    def make(one: str) -> Callable:
        return lambda rng, good: Edited(f"{what}: {one[:60]!r}", swapped(old, one), good.text(), "refusal", named)

    return [make(one) for one in new]


def _types() -> list[Callable]:
    """Values of another type than the key has."""
    keys = {
        "low: 1.0e-4": "low",
        "high: 6": "high",
        "goal: minimise": "goal",
        "column: error": "column",
        "type: ordinal": "type",
        "scale: log}\nparameters": "scale",
        "choices: [16, 32, 64]": "choices",
        "study: dataset": "study",
    }
    found = []
    for old, key in keys.items():
        for odd in ODD:
            if key in ("study", "column") and odd in ("'x'", "1e5x"):  # a column that is not there
                named = (odd.strip("'"),)
            elif key == "choices" and odd == "[1, 2]":  # no row has them
                named = ("batch",)
            else:
                named = (f"{key}'", f"{key}.", "line ")
            tail = old.partition("}")[1] + old.partition("}")[2]
            found += _replaced(f"{key} of another type", old, f"{key}: {odd}{tail}", named=named)
    return found


def _space_edits() -> list[Callable]:
    rate = "learning_rate: {type: float, low: 1.0e-4, high: 1.0, scale: log}"
    found = [
        *_types(),
        *[one for huge in HUGE for one in _replaced("too large", "high: 6", f"high: {huge}", named=("line ", "high"))],
        *[
            one
            for huge in HUGE[:4]
            for one in _replaced(
                "too large a choice", "[16, 32, 64]", f"[16, 32, {huge}]", named=("line ", "choices", "batch")
            )
        ],
        *_replaced("alias bomb", "study: dataset\n", f"{BOMB}study: dataset\n", named=("space.yaml",)),
        *_replaced("alias within itself", "[16, 32, 64]", "&a [16, *a]", named=("line ",)),
        *_replaced("key twice", "study: dataset\n", "study: dataset\nstudy: other\n", named=("'study'",)),
        *_replaced("key twice", "low: 1, high: 6", "low: 1, high: 6, low: 2", named=("'low'",)),
        *_replaced(
            "parameter twice", "  layers:", "  batch: {type: int, low: 1, high: 2}\n  layers:", named=("'batch'",)
        ),
        *_replaced("key that is not text", "study: dataset\n", "study: dataset\n1: x\n", named=("line ",)),
        *_replaced("key that is a list", "study: dataset\n", "study: dataset\n? [a]\n: x\n", named=("line ",)),
        *_replaced("key yes", "study: dataset\n", "study: dataset\nyes: x\n", named=("line ",)),
        *_replaced(
            "number that is text", "low: 1.0e-4", "low: 1e-4", "low: '1'", "low: 1,5", named=("low", "line ", "5")
        ),
        *_replaced("choice that is text", "[16, 32, 64]", "[16, 32, 1e3]", named=("choices",)),
        *_replaced("bounds exchanged", "low: 1, high: 6", "low: 6, high: 1", "low: 3, high: 3", named=("layers.low",)),
        *_replaced("fraction", "low: 1, high: 6", "low: 1, high: 6.5", named=("layers",)),
        *_replaced(
            "wide int", "low: 1, high: 6", f"low: 1, high: {2**53 + 2}", f"low: {-(2**62)}, high: 6", named=("layers",)
        ),
        *_replaced("no logarithm", "low: 1.0e-4", "low: 0.0", "low: -1.0", named=("learning_rate.low",)),
        *_replaced(
            "extreme bounds",
            "low: 0.0, high: 0.9",
            "low: -1.0e+308, high: 1.0e+308",
            "low: 0.0, high: 1.0e-320",
            "low: 1.0e+307, high: 1.1e+307",
            named=("momentum",),
        ),
        *_replaced("choices alike", "[sgd, adam]", "[sgd, sgd]", "[true, 1, sgd]", "[sgd]", "[]", named=("choices",)),
        *_replaced(
            "unknown key", "goal: minimise", "gaol: minimise", "goal: minimise, extra: 1", named=("gaol", "extra")
        ),
        *_replaced("unknown type", "type: ordinal", "type: ordinall", "type: int32", named=("batch.type",)),
        *_replaced("no type", rate, "learning_rate: {low: 1.0e-4, high: 1.0}", named=("type",)),
        *_replaced("no bounds", rate, "learning_rate: {type: float, low: 1.0e-4}", named=("high",)),
        *_replaced(
            "condition on nothing",
            "{optimiser: sgd}",
            "{optimizer: sgd}",
            "{optimiser: sdg}",
            "{}",
            "{momentum: 1}",
            "{layers: 3}",
            "{optimiser: []}",
            "[optimiser]",
            named=("when",),
        ),
        *_replaced(
            "default outside",
            "low: 1, high: 6",
            "low: 1, high: 6, default: 9",
            "low: 1, high: 6, default: x",
            named=("default",),
        ),
        *_replaced("two roles", "study: dataset", "study: error", "study: layers", named=("two roles",)),
        *_replaced("several outcomes", "column: error", "column: [error, time]", named=("several outcomes",)),
        *_replaced(
            "no parameters",
            SPACE[SPACE.index("parameters") :],
            "parameters: {}\n",
            "",
            "parameters:\n",
            named=("parameters",),
        ),
        *_replaced(
            "formula",
            "study: dataset",
            "study: dataset\nconstraints: {'=1+1': {at_most: 1}}",
            "study: dataset\nconstraints: {'@a': {at_most: 1}}",
            named=("formula",),
        ),
        *_replaced(
            "constraint",
            "study: dataset",
            "study: dataset\nconstraints: {gb: {}}",
            "study: dataset\nconstraints: {gb: {at_most: 1, at_least: 2}}",
            "study: dataset\nconstraints: {gb: {at_most: x}}",
            named=("constraints.gb",),
        ),
        *_replaced(
            "factors",
            "study: dataset",
            "study: dataset\nstudies: {d0: {scale_by: {layers: 0}}}",
            "study: dataset\nstudies: {d0: {scale_by: {optimiser: 2}}}",
            "study: dataset\nstudies: {d9: {}}",
            "study: dataset\nstudies: {d0: {scale_by: {layers: -1}}}",
            named=("studies.d",),
        ),
        *_replaced("tab", "  layers:", "\tlayers:", named=("line ",)),
        *_replaced("unclosed", "[16, 32, 64]", "[16, 32, 64", "'16", named=("line ", "batch")),
        *_replaced("two documents", "parameters:", "---\nparameters:", named=("space.yaml",)),
        *_replaced(
            "own type", "goal: minimise", "goal: !goal minimise", "goal: !!python/object:os.system x", named=("line ",)
        ),
        *_replaced("undefined alias", "[16, 32, 64]", "*choices", "*", named=("line ",)),
    ]
    for sign in CONTROL:
        strange = f'"bad{sign}name"'
        for old, new in (
            ("  layers:", f"  {strange}:"),
            ("study: dataset", f"study: {strange}"),
            ("column: error", f"column: {strange}"),
            ("goal: minimise", f"{strange}: minimise"),
            ("type: ordinal", f"type: {strange}"),
            ("study: dataset\n", f"study: dataset\n{strange}: 1\n{strange}: 2\n"),
            ("when: {optimiser: sgd}", f"when: {{{strange}: sgd}}"),
            ("when: {optimiser: sgd}", f"when: {{optimiser: {strange}}}"),
            ("[16, 32, 64]", f"[16, 16, {strange}]"),
        ):
            found += _replaced("signs that do not print", old, new, named=("space.yaml", "history.csv"))
    return found


def _whole_files() -> list[Callable]:
    """Files that are something else."""
    spaces = {
        "empty": b"",
        "a list": b"- a\n- b\n",
        "a text": b"text",
        "latin-1": SPACE.replace("dataset", "donn\xe9es").encode("latin-1"),
        "UTF-16": SPACE.encode("utf-16"),
        "UTF-32": SPACE.encode("utf-32"),
        "a byte 0": SPACE.replace("sgd", "s\0d").encode(),
        "large": b"#" + b" " * 2**21,
        "deep": b"[" * 3000,
        "bytes": bytes(range(256)),
        "a zip": b"PK\x03\x04" + bytes(100),
        "JSON lines": b'{"a": 1}\n{"b": 2}\n',
    }

    def space(content: bytes, what: str) -> Callable:
        return lambda rng, good: Edited(f"space.yaml is {what}", content, good.text(), "refusal", ("space.yaml",))

    found = [space(content, what) for what, content in spaces.items()]
    histories = {
        "empty": "",
        "blank lines": "\n\n\n",
        "a header": ",".join(HEADER) + "\n",
        "UTF-32": None,
        "a byte 0": "a,b\na\0b,2\n",
        "a zip": b"PK\x03\x04" + bytes(range(256)),
        "HTML": "<!doctype html><p>Sign in, please</p>",
        "a quote": '"' * 3,
        "one long cell": "x" * 300_000 + "\n",
        "the space": SPACE,
        "a JSON": '{"a": 1}',
        "many columns": ",".join(f"c{i}" for i in range(3000)) + "\n",
    }

    def history(content: str | bytes | None, what: str) -> Callable:
        def made(rng, good):
            chosen = good.text().encode("utf-32") if content is None else content
            return Edited(f"history.csv is {what}", SPACE, chosen, "refusal", ("history.csv",))

        return made

    return found + [history(content, what) for what, content in histories.items()]


def _layouts() -> list[Callable]:
    """Histories that say the same in another layout."""

    def same(what: str, write: Callable[[Good], str | bytes], space: str = SPACE) -> Callable:
        return lambda rng, good: Edited(what, space, write(good), "value", trials=good.trials)

    def commas(good: Good) -> str:
        table = [
            [cell.replace(".", ",") if i in (1, 5, 6) else cell for i, cell in enumerate(row)] for row in good.table
        ]
        return csv_text(HEADER, table, ";")

    def cells(change: Callable[[str], str]) -> Callable[[Good], str]:
        return lambda good: csv_text(HEADER, [[change(cell) for cell in row] for row in good.table])

    return [
        same("semicolons", lambda good: good.text(delimiter=";")),
        same("tabs", lambda good: good.text(delimiter="\t")),
        same("bars", lambda good: good.text(delimiter="|")),
        same("CRLF", lambda good: good.text(newline="\r\n")),
        same("CR", lambda good: good.text(newline="\r")),
        same("decimal commas", commas),
        same("sep=", lambda good: "sep=;\r\n" + good.text(delimiter=";", newline="\r\n")),
        same("odd mark that is named", lambda good: "sep=^\n" + good.text(delimiter="^")),
        same("UTF-8 with mark", lambda good: good.text().encode("utf-8-sig")),
        same("UTF-16", lambda good: good.text().encode("utf-16")),
        same("UTF-16 without mark", lambda good: good.text().encode("utf-16-be")),
        same("spaces around cells", cells(lambda cell: f"  {cell} ")),
        same("quotes", cells(lambda cell: cell and f"{cell}")),
        same("blank lines", lambda good: good.text().replace("\n", "\n\n")),
        same("blank rows of commas", lambda good: good.text() + ",,,,,,\n"),
        same("columns exchanged", lambda good: csv_text(HEADER[::-1], [row[::-1] for row in good.table])),
        same(
            "failed in words", lambda good: csv_text(HEADER, [[*row[:-1], row[-1] or "failed"] for row in good.table])
        ),
        same("failed as inf", lambda good: csv_text(HEADER, [[*row[:-1], row[-1] or "inf"] for row in good.table])),
        same("failed as NA", lambda good: csv_text(HEADER, [[*row[:-1], row[-1] or "N/A"] for row in good.table])),
        same(
            "whole numbers with points",
            lambda good: csv_text(HEADER, [[*row[:2], f"{row[2]}.0", f"{row[3]}.0", *row[4:]] for row in good.table]),
        ),
        same("space with a mark", Good.text, "\ufeff" + SPACE),
        same("space with CRLF", Good.text, SPACE.replace("\n", "\r\n")),
        same(
            "space with a merge key",
            Good.text,
            swapped("layers: {type: int, low: 1, high: 6}", "layers: {<<: {type: int, low: 1, high: 9}, high: 6}"),
        ),
        same("space with aliases", Good.text, swapped("[16, 32, 64]", "&c [16, 32, 64]")),
    ]


def _cells() -> list[Callable]:
    """Single cells and rows of a history that are wrong."""
    found = []

    def cell(what: str, column: str, wrong: str) -> Callable:
        def made(rng, good):
            there = [i for i, row in enumerate(good.table) if row[HEADER.index(column)]]
            row = int(rng.choice(there))
            changed = good.with_cell(row, column, wrong)
            return Edited(
                f"{what} {wrong[:40]!r} in {column}", SPACE, changed.text(), "refusal", (column, "history.csv")
            )

        return made

    for column in ("learning_rate", "layers", "batch", "momentum", "error"):
        found += [cell("odd cell", column, odd) for odd in ODD_CELLS]
    found += [cell("empty cell", column, "") for column in ("learning_rate", "layers", "batch", "optimiser")]
    found += [cell("too large", "error", one) for one in ("1e400", "9" * 5000)]
    found += [cell("no logarithm", "error", one) for one in ("0", "-1", "-1e-300")]
    found += [cell("capitals", "optimiser", "SGD"), cell("fraction", "layers", "2.5"), cell("no study", "dataset", "")]

    def outside(column: str, wrong: str) -> Callable:
        def made(rng, good):
            there = [i for i, row in enumerate(good.table) if row[HEADER.index(column)]]
            row = int(rng.choice(there))
            left = [one for i, one in enumerate(good.trials) if i != row]
            what = f"outside {wrong[:40]!r} in {column}"
            return Edited(what, SPACE, good.with_cell(row, column, wrong).text(), "value", trials=left)

        return made

    found += [cell("too large", column, "9" * 400) for column in ("layers", "batch", "learning_rate")]
    pairs = [
        ("learning_rate", "2"),
        ("layers", "-3"),
        ("batch", "128"),
        ("optimiser", "rmsprop"),
        ("momentum", "1e300"),
        ("layers", "9" * 30),
        ("batch", "9" * 30),
        ("optimiser", "a\nb"),
        ("optimiser", "x\x1b[1m"),
    ]
    found += [outside(column, wrong) for column, wrong in pairs]

    def table(what: str, change: Callable[[list[list[str]]], list[list[str]]], named: str) -> Callable:
        def made(rng, good):
            lines = change([HEADER, *good.table])
            return Edited(what, SPACE, csv_text(lines[0], lines[1:]), "refusal", (named,))

        return made

    found += [
        table("column twice", lambda t: [[*row, row[1]] for row in t], "learning_rate"),
        table("column lacks", lambda t: [row[1:] for row in t], "dataset"),
        table("column more", lambda t: [[*row, "x"] for row in t], "'x'"),
        table("column misspelt", lambda t: [["dataset", "learning_rat", *HEADER[2:]], *t[1:]], "learning_rat"),
        table("column with a line break", lambda t: [["dataset", "learning\nrate", *HEADER[2:]], *t[1:]], "learning"),
        table(
            "column with an escape",
            lambda t: [["dataset", "\x1b[2Jlearning_rate", *HEADER[2:]], *t[1:]],
            "learning_rate",
        ),
        table("cell more", lambda t: [*t[:3], [*t[3], "x"], *t[4:]], "row 4"),
        table("cell less", lambda t: [*t[:3], t[3][:-1], *t[4:]], "row 4"),
        table("decimal comma among points", lambda t: [*t[:2], [*t[2][:6], "0,25"], *t[3:]], "error"),
        table("no header", lambda t: t[1:], "history.csv"),
        table("header twice", lambda t: [t[0], *t], "history.csv"),
        table("one outcome", lambda t: [t[0], *([*row[:-1], "0.5"] for row in t[1:])], "error"),
        table("all failed", lambda t: [t[0], *([*row[:-1], ""] for row in t[1:])], "error"),
    ]

    def open_quote(rng, good):
        return Edited("open quote", SPACE, good.text() + '"d1,1', "refusal", ("history.csv",))

    def named_so(study: str) -> Callable:
        def made(rng, good):
            table = [[study if row[0] == "d0" else row[0], *row[1:]] for row in good.table]
            wanted = [row._replace(study=study.strip() if row.study == "d0" else row.study) for row in good.trials]
            return Edited(f"study called {study[:40]!r}", SPACE, csv_text(HEADER, table), "value", trials=wanted)

        return made

    names = (
        "a\nb",
        "a\x1b[31mb",
        "=1+1",
        "x" * 3000,
        "<b>",
        "{0}",
        "%s",
        "日本",
        "-",
        "None",
        "d1 ",
        "\u202eabc",
        "a,b;c",
        "1e5",
    )
    return [*found, open_quote, *map(named_so, names)]


ALIKE = """\
study: dataset
outcome: {column: error, goal: minimise}
parameters:
  rate: {type: float, low: 0.0, high: 1.0}
  kind: {type: categorical, choices: [64, "64", " sgd ", sgd, "None", "true", 0.5, "=x", "+1"]}
"""


def _alike() -> list[Callable]:
    """Choices that look alike in a table."""
    cells: dict[str, object] = {
        "64": 64,
        '"64"': "64",
        "64.0": 64,
        '" sgd "': " sgd ",
        "sgd": "sgd",
        "None": "None",
        "true": "true",
        ".5": 0.5,
        '"=x"': "=x",
        "=x": "=x",
        '"+1"': "+1",
        " 64 ": 64,
        "True": "true",
    }

    def made(cell: str, value: object) -> Callable:
        def one(rng, good):
            table = [["d0", "0.5", cell, "1.5"], ["d0", "0.25", "64", "2.5"]]
            wanted = [Row("d0", {"rate": 0.5, "kind": value}, 1.5), Row("d0", {"rate": 0.25, "kind": 64}, 2.5)]
            text = csv_text(["dataset", "rate", "kind", "error"], table)
            return Edited(f"choice written {cell!r}", ALIKE, text, "value", trials=wanted)

        return one

    return [made(cell, value) for cell, value in cells.items()]


GROUPS = (_space_edits(), _whole_files(), _layouts(), _cells(), _alike())


def attempt(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """Make one edit, of the groups in turn, drawn from its group."""
    group = GROUPS[number % len(GROUPS)]
    good = Good(rows(studies=int(rng.integers(2, 5)), fewest=int(rng.integers(8, 12)), seed=int(rng.integers(10**6))))
    edited: Edited = group[int(rng.integers(len(group)))](rng, good)
    space, history = place / "space.yaml", place / "history.csv"
    for path, content in ((space, edited.space), (history, edited.history)):
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    named = edited.named or ("space.yaml", "history.csv")
    wanted = edited.trials or []
    return Attempt(
        edited.what, lambda: read_both(history, space), lambda found: differing(found, wanted), edited.end, named
    )
