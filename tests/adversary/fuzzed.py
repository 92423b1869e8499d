"""Spaces and histories that are drawn at random, at the ends of what numbers can be, and the same with bytes changed.

A third is written without a fault: bounds from 1e-300 to 1e300, whole numbers up to 2^53, outcomes up to 1e300 and, on
a log scale, up to 1e308, names and choices of odd letters. Every value must come back. In the others bytes or values
are changed; what is taken all the same must be what PyYAML and Python's csv read in the changed files.
"""

import codecs
import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import yaml

from metabo.data.csv_rows import ABSENT
from metabo.data.history.rows import FAILED
from tests.adversary.judge import Attempt
from tests.adversary.past import Read, Row, csv_text, differing, read_both, same, unsound

NAMES = (
    "rate",
    "learning rate",
    "α",
    "a.b",
    "x,y",
    "größe",
    "1st",
    "{0}",
    "%s",
    "a'b",
    'a"b',
    "層",
    "<b>",
    "lr;",
    "*",
    "&x",
    "#n",
)
CHOICES = (
    64,
    "64",
    " sgd ",
    "sgd",
    "SGD",
    True,
    "true",
    0.5,
    "0.50",
    "None",
    "",
    "=1+1",
    "a\nb",
    "\t",
    "ü",
    "-",
    1e-300,
    2**53,
    -1,
    "nan",
    "x" * 200,
    '"q"',
    "y",
    "é",
    "\x1b[0m",
    "a;b",
    "a,b",
    "1,5",
    False,
    1e308,
    "null",
)
ENDS = (0.0, 1e-300, 1e-12, 1.0, 3.5, 1e12, 1e30, 1e300)
WHOLE = (-(2**53), -(10**9), -1, 0, 1, 2, 7, 10**6, 2**53 - 1, 2**53)
BYTES = (
    b"\n",
    b"\r",
    b"\0",
    b'"',
    b"'",
    b",",
    b";",
    b"\t",
    b":",
    b"- ",
    b"{",
    b"}",
    b"[",
    b"]",
    b"&a ",
    b"*a",
    b"<<: ",
    b"\xff",
    b"\xc3",
    b"\xe2\x80\xa8",
    b"#",
    b"1e400",
    b"-",
    b".",
    b"9" * 30,
    b"!!",
    b"|",
    b">",
    b"%",
    b"~",
    b"\x1b",
    b"\xef\xbb\xbf",
    b"nan",
    b"=",
)


def attempt(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """Make a pair of files: without a fault, with changed bytes, or with a value replaced, in turn."""
    space, trials = _drawn(rng)
    text = yaml.safe_dump(
        space, sort_keys=False, allow_unicode=bool(rng.random() < 0.5), width=int(rng.choice([40, 10_000]))
    )
    table = _table(space, trials, rng)
    paths = place / "space.yaml", place / "history.csv"
    contents = [text.encode(), table.encode()]
    kind = number % 3
    if kind == 1:
        which = int(rng.integers(2))
        contents[which] = _mutated(contents[which], rng)
    elif kind == 2 and rng.random() < 0.5:
        contents[0] = yaml.safe_dump(_replaced(space, rng), sort_keys=False).encode()
    elif kind == 2:
        contents[1] = _with_cell(space, table, rng).encode("utf-8", "surrogatepass")
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)

    def right(found: Read) -> str:
        return differing(found, trials) if kind == 0 else otherwise_read(found, *contents)

    what = ("without a fault", "bytes changed", "a value replaced")[kind]
    outcomes = {(trial.study, trial.outcome) for trial in trials if math.isfinite(trial.outcome)}
    studies = [study for study, _ in outcomes]
    must = "value" if kind == 0 and len(studies) > len(set(studies)) else "either"
    return Attempt(what, lambda: read_both(paths[1], paths[0]), right, must, ("space.yaml", "history.csv"))


def _drawn(rng: np.random.Generator) -> tuple[dict, list[Row]]:
    """Draw a space and trials in it, with at least two outcomes in one study."""
    names = [str(one) for one in rng.permutation(NAMES)]
    log = bool(rng.random() < 0.3)
    outcome = {
        "column": names.pop(),
        "goal": str(rng.choice(["minimise", "maximise"])),
        "scale": "log" if log else "linear",
    }
    space: dict = {"name": "space", "study": names.pop(), "outcome": outcome, "parameters": {}}
    for name in names[: int(rng.integers(1, 5))]:
        space["parameters"][name] = _parameter(space["parameters"], rng)
    if rng.random() < 0.3:
        space["constraints"] = {names[6]: {"at_most": float(rng.choice(ENDS))}}
    studies = [str(one) for one in rng.permutation(["d0", "=1+1", "ü", "a b", "0", "-1", "{}", "x" * 100, "-a"])[:2]]
    trials = []
    beside = float(rng.choice([1e-300, 1.0, 1e16, 9e299])) if rng.random() < 0.15 and not log else None
    for study in studies:
        for number in range(int(rng.integers(3, 7))):  # beside: their differences are next to nothing beside them
            outcome = _outcome(log, rng) if beside is None else beside * (1 + number * 2.0**-52)
            trials.append(Row(study, _configuration(space, rng), outcome))
    return space, _distinct(trials)


def _parameter(before: dict, rng: np.random.Generator) -> dict:
    kind = str(rng.choice(["float", "int", "ordinal", "categorical"]))
    entry: dict = {"type": kind}
    if kind == "float":
        low, high = sorted(rng.choice(len(ENDS), 2, replace=False))
        entry |= {"low": float(ENDS[low]), "high": float(ENDS[high])}
        if rng.random() < 0.4 and entry["low"] > 0:
            entry["scale"] = "log"
        elif rng.random() < 0.4 and 1e-300 < entry["high"] < 1e300:
            entry["low"] = -entry["high"] / 2
    elif kind == "int":
        low, high = sorted(rng.choice(len(WHOLE), 2, replace=False))
        entry |= {"low": WHOLE[low], "high": WHOLE[high]}
        if rng.random() < 0.4 and WHOLE[low] > 0:
            entry["scale"] = "log"
    else:
        entry["choices"] = _choices(rng)
    parents = [name for name, one in before.items() if "choices" in one and "when" not in one]
    if parents and rng.random() < 0.3:
        parent = str(rng.choice(parents))
        entry["when"] = {parent: before[parent]["choices"][int(rng.integers(len(before[parent]["choices"])))]}
    return entry


def _choices(rng: np.random.Generator) -> list:
    """Draw choices that a space may have together: Python must tell them apart, and a table, too."""
    found: list = []
    for place in rng.choice(len(CHOICES), int(rng.integers(2, 6)), replace=False):
        one = CHOICES[place]
        if not any(one == other for other in found) and not (
            isinstance(one, bool | int) and any(one is not o and one == o for o in (0, 1))
        ):
            found.append(one)
    return found if len(found) > 1 else ["a", "b"]


def _configuration(space: dict, rng: np.random.Generator) -> dict:
    out: dict = {}
    for name, entry in space["parameters"].items():
        parent, needs = next(iter(entry.get("when", {None: None}).items()))
        if parent is not None and not same(out[parent], needs):
            out[name] = None
        elif "choices" in entry:
            out[name] = entry["choices"][int(rng.integers(len(entry["choices"])))]
        elif entry["type"] == "int":
            out[name] = int(
                rng.choice([entry["low"], entry["high"], int(rng.integers(entry["low"], entry["high"], endpoint=True))])
            )
        else:
            u, low, high = float(rng.random()), entry["low"], entry["high"]
            drawn = (
                math.exp(math.log(low) * (1 - u) + math.log(high) * u) if "scale" in entry else low * (1 - u) + high * u
            )
            out[name] = float(rng.choice([low, high, min(max(drawn, low), high)]))
    return out


def _outcome(log: bool, rng: np.random.Generator) -> float:
    if rng.random() < 0.1:
        return math.nan
    size = float(rng.choice([1e-308, 1e-300, 1e-9, 0.1, 1.0, 12.5, 1e9, 1e30, 1e299] + ([1e308] if log else [])))
    return float(size * rng.uniform(0.5, 1.5) * (1 if log or rng.random() < 0.7 else -1))


def _distinct(trials: list[Row]) -> list[Row]:
    """Leave out repeats, which a history drops."""
    seen: set = set()
    return [one for one in trials if not ((key := repr(one)) in seen or seen.add(key))]


def _table(space: dict, trials: list[Row], rng: np.random.Generator) -> str:
    """Write the trials: texts that could be something else in double quotes, as docs/own-data.md says."""
    names, bounds = list(space["parameters"]), list(space.get("constraints", {}))
    header = [space["study"], *names, *bounds, space["outcome"]["column"]]
    lines = []
    for trial in trials:
        cells = [_text(trial.study)]
        for name in names:
            value = trial.configuration[name]
            cells.append("" if value is None else json.dumps(value) if isinstance(value, str) else repr(value))
        cells += ["0.0"] * len(bounds)
        lines.append([*cells, "failed" if math.isnan(trial.outcome) else repr(trial.outcome)])
    return csv_text(header, lines, newline=str(rng.choice(["\n", "\r\n"])))


def _text(study: str) -> str:
    """Return the cell of a study's name."""
    return json.dumps(study, ensure_ascii=False) if study[0] in "=+-@" and study != "-1" else study


def _mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Change some bytes: flip, insert, delete, repeat or cut."""
    for _ in range(int(rng.integers(1, 4))):
        at, to = sorted(int(one) for one in rng.integers(0, len(content) + 1, 2))
        to = min(to, at + 20)
        kind = int(rng.integers(6))
        if kind == 0 and at < len(content):
            content = content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]
        elif kind in (1, 2):
            content = content[:at] + BYTES[int(rng.integers(len(BYTES)))] + content[at:]
        elif kind == 3:
            content = content[:at] + content[to:]
        elif kind == 4:
            content = content[:to] + content[at:to] * int(rng.integers(1, 4)) + content[to:]
        else:
            content = content[: max(at, 1)]
    return content


def _replaced(space: dict, rng: np.random.Generator) -> dict:
    """Put an odd value in the place of one of the space's, or an odd key."""
    odd = [
        None,
        True,
        10**30,
        -1,
        0,
        1e308,
        -1e308,
        1e-320,
        5e-324,
        "",
        "x",
        "a\nb",
        [],
        {},
        [[]],
        {"a": 1},
        "9" * 400,
        "\x1b[2J",
        2**53 + 1,
        "\u2028",
        "=1+1",
        1e30,
        1e300,
    ]
    value = odd[int(rng.integers(len(odd)))]
    places = list(_places(space))
    path = places[int(rng.integers(len(places)))]
    changed = json.loads(json.dumps(space))
    below = changed
    for key in path[:-1]:
        below = below[key]
    if rng.random() < 0.2 and isinstance(below, dict):
        below[str(value)] = below.pop(path[-1])
    else:
        below[path[-1]] = value
    return changed


def _places(value: object, path: tuple = ()):
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(one, (*path, key))


def _with_cell(space: dict, table: str, rng: np.random.Generator) -> str:
    """Put an odd cell into the table, the header included."""
    odd = (
        "",
        "nan",
        "inf",
        "-inf",
        "1e308",
        "-1e308",
        "1e400",
        "9" * 400,
        "5e-324",
        "1,5",
        "1.234,5",
        "1,234",
        "x",
        "=1+1",
        "a\nb",
        "\x1b[1m",
        "True",
        '"',
        '""',
        "None",
        "\u2028",
        " ",
        "0x1f",
        "1e30",
        "1e300",
        "-0.0",
        "\u0661",
        "x" * 5000,
        "\udc80",
        "²",
    )
    lines = list(csv.reader(io.StringIO(table, newline="")))
    row = lines[int(rng.integers(len(lines)))]
    row[int(rng.integers(len(row)))] = odd[int(rng.integers(len(odd)))]
    return csv_text(lines[0], lines[1:])


def otherwise_read(found: Read, space: bytes, history: bytes) -> str:
    """Compare what was taken with what PyYAML and Python's csv read in the files."""
    said = yaml.safe_load(space.decode("utf-8-sig"))
    if (wanted := {"name": "space", **said}) != found.space.source:
        return f"the space is {found.space.source}, PyYAML reads {wanted}"
    return differing_cells(found, history)


def differing_cells(found: Read, history: bytes) -> str:
    """Compare the trials with the cells of their rows, one by one."""
    encoding = "utf-8-sig"
    if history.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        text = history.decode(encoding)
    except UnicodeDecodeError:
        text = history.decode("cp1252")
    layout = found.history.layout
    mark = next(
        (mark for mark, name in {";": "semicolons", "\t": "tabs", "|": "bars"}.items() if f"by {name}" in layout), ","
    )
    lines = [
        [cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    ]
    header = next(row for row in lines if any(row))
    filled = {number: row for number, row in enumerate(lines, start=1) if any(row)}
    read = sum(one["read"] for one in found.history.accounts)
    if read != len(filled) - 1:
        return f"{read} rows are accounted for, the file has {len(filled) - 1}"
    for trial in found.history.trials:
        cells = dict(zip(header, filled[trial.row], strict=True))
        if not _means(cells[found.space.study], trial.study):
            return f"row {trial.row}: {cells[found.space.study]!r} was read as study {trial.study!r}"
        for name, value in [*trial.configuration.items(), (found.space.outcome, trial.outcome)]:
            if value is not None and not _means(cells[name], value):
                return f"row {trial.row}, {name}: {cells[name]!r} was read as {value!r}"
    return unsound(found)


def _means(cell: str, value: object) -> bool:
    """Tell whether a cell may mean a value: by Python's numbers, decimal commas, JSON's quotes, any case of True."""
    if isinstance(value, bool):
        return cell.lower() == str(value).lower()
    if isinstance(value, str):
        try:
            quoted = json.loads(cell) if cell.startswith('"') else None
        except ValueError:
            quoted = None
        return (
            value in (quoted, cell)
            or value.strip() == cell
            or (cell in ("True", "False") and cell.lower() == value.lower())
        )
    if math.isnan(value):
        return cell.lower() in (*ABSENT, *FAILED)
    try:
        number = float(cell.replace(",", ".") if cell.count(",") == 1 else cell)
    except ValueError:
        return False
    return math.isclose(number, value, rel_tol=2e-9, abs_tol=0.0)
