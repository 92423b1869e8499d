"""The folder of a study that is tuned: a full disk, locks, links, hostile names, JSON that was edited, odd arguments.

However a try ends, the trials that were acknowledged before it are there afterwards: in the folder, or, where the try
edits the file itself, once the file is put back.
"""

import json
import math
import os
import shutil
import warnings
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

from metabo.errors import MetaboError
from metabo.records.checksums import sealed
from metabo.tuner import listing, store
from metabo.tuner.ledger import Ledger
from metabo.tuner.options import outcome
from tests.adversary.judge import Attempt
from tests.tuner import crashes
from tests.tuner.crashes import configuration

CONTROL = ("a\nb", "a\r", "\x1b[2J", "a\0b", "\u2028", "\u202eabc", "\udc80")
NAMES = (
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "/etc/passwd",
    ".hidden",
    "a b",
    "x" * 101,
    "x" * 5000,
    "é",
    "a\\b",
    "-x",
    "con:",
    "*",
    "~",
    "${HOME}",
    *CONTROL,
)
FINE_NAMES = ("a", "0", "A.b_c-d", "x" * 100, "study.json", "a..b")
ODD = (
    None,
    True,
    False,
    "",
    "x",
    "64",
    64,
    0,
    -1,
    10**400,
    -(10**400),
    10**5000,
    2**63,
    1e308,
    -1e308,
    math.nan,
    math.inf,
    -math.inf,
    5e-324,
    [],
    [1],
    {},
    (),
    {"a": 1},
    b"x",
    1j,
    object,
    Decimal("1e5"),
    Fraction(1, 3),
    np.float32(0.1),
    np.int64(3),
    np.bool_(True),
    np.array(1.5),
    np.array([1.0, 2.0]),
    np.str_("64"),
    np.datetime64("2024-05-01"),
    "9" * 5000,
    "x" * 10**6,
    *CONTROL,
    [[]] * 1000,
    Ellipsis,
)


def attempt(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """Make one try, of the kinds in turn."""
    folder = place / "study"
    crashes.prepare(folder, "used")
    kinds = (_disk, _locks, _links, _names, _edited, _arguments, _edited, _arguments)
    return kinds[number % len(kinds)](folder, rng)


def told(folder: Path) -> dict[str, list]:
    return {name: store.read_trials(folder, name, Ledger(folder).description) for name in crashes.NAMES}


def kept(folder: Path, before: dict[str, list], restore: Callable[[], object] = lambda: None) -> Callable[[], str]:
    """Return what looks whether all trials that there were are there, and further ones are taken."""

    def look() -> str:
        restore()
        now = told(folder)
        for name, trials in before.items():
            if [one for one in trials if one not in now[name] and one["state"] != "running"]:
                return f"a trial that was acknowledged is lost: {now}"
        Ledger(folder, "a").tell(configuration(30), 3.0)
        after = told(folder)["a"]
        return (
            ""
            if after[-1]["outcome"] == 3.0 and len(after) == len(now["a"]) + 1
            else f"takes no further trial: {after}"
        )

    return look


def _disk(folder: Path, rng: np.random.Generator) -> Attempt:
    """A disk that is full, or fails, from some call on: in a child, whose calls to the system are replaced."""
    kind = str(rng.choice(["disk full", "ENOSPC", "EIO", "EIO after"]))
    at = int(rng.integers(1, 60))
    before = told(folder)
    space = Ledger(folder).description
    crashes.PRIORS.update(
        {n: crashes.publish(folder.with_name("priors"), n) for n in range(4) if n not in crashes.PRIORS}
    )

    def act() -> tuple[str, int]:
        warnings.simplefilter("ignore", ResourceWarning)  # of files that the child leaves open when its calls fail
        base = folder.with_name("base")
        shutil.copytree(folder, base)
        return crashes.survives(base, folder.with_name("tried"), kind, at, space)

    return Attempt(f"{kind} at call {at}", act, lambda found: found[0], "value", after=kept(folder, before))


def _locks(folder: Path, rng: np.random.Generator) -> Attempt:
    """A lock that is no file, or cannot be opened."""
    lock = folder / ".lock"
    lock.unlink(missing_ok=True)
    kind = str(
        rng.choice(
            [
                "a folder",
                "a link to nowhere",
                "a link to itself",
                "a pipe",
                "a long link",
                "trials is a file",
                "record is a folder",
            ]
        )
    )
    restored = lambda: _put_back(lock)  # noqa: E731
    end, named = "refusal", ".lock"
    if kind == "a folder":
        lock.mkdir()
    elif kind == "a link to nowhere":
        lock.symlink_to(folder / "none" / "x")
    elif kind == "a link to itself":
        lock.symlink_to(lock)
    elif kind == "a pipe":
        os.mkfifo(lock)
        end = "either"
    elif kind == "a long link":
        lock.symlink_to("x" * 300)
    elif kind == "trials is a file":
        (folder / "trials").rename(folder / "aside")
        (folder / "trials").write_text("x")
        named, restored = "trials", lambda: ((folder / "trials").unlink(), (folder / "aside").rename(folder / "trials"))
    else:
        (folder / store.RECORD).rename(folder / "aside")
        (folder / store.RECORD).mkdir()
        named, restored = (
            store.RECORD,
            lambda: ((folder / store.RECORD).rmdir(), (folder / "aside").rename(folder / store.RECORD)),
        )
    before = told(_aside(folder)) if "is a" in kind else told(folder)
    return Attempt(
        f"lock: {kind}",
        lambda: Ledger(folder, "a").tell(configuration(20), 0.5),
        lambda one: "" if one["outcome"] == 0.5 else f"told {one}",
        end,
        (named,),
        kept(folder, before, restored),
    )


def _aside(folder: Path) -> Path:
    """Return a copy of the folder as it was before something was put aside."""
    copy = folder.with_name("as it was")
    crashes.prepare(copy, "used")
    return copy


def _put_back(lock: Path) -> None:
    if not lock.is_symlink() and lock.is_dir():
        lock.rmdir()
    else:
        lock.unlink()


def _links(folder: Path, rng: np.random.Generator) -> Attempt:
    """Files or folders that are links: to the same elsewhere they are followed and kept whole, to others refused."""
    before = told(folder)
    kind = str(
        rng.choice(
            [
                "the folder",
                "trials",
                "the prior",
                "the record",
                "trials to nowhere",
                "trials to themselves",
                "a study to nowhere",
                "a study to /dev/zero",
                "a study to a folder",
                "the prior to nowhere",
            ]
        )
    )
    away = folder.with_name("away")
    trials, study = folder / "trials", store.trials_path(folder, "a")
    prior, record = store.prior_path(folder, store.require(folder)), folder / store.RECORD
    used, end, named = folder, "value", ("study",)
    undo = lambda: None  # noqa: E731

    def linked(path: Path, to: Path) -> Callable[[], object]:
        path.rename(away)
        path.symlink_to(to)
        return lambda: (path.unlink(), away.rename(path))

    if kind == "the folder":
        used = folder.with_name("linked")
        used.symlink_to(folder)
    elif kind in ("trials", "the prior", "the record"):
        path = {"trials": trials, "the prior": prior, "the record": record}[kind]
        path.rename(away)
        path.symlink_to(away)
    elif kind == "the prior to nowhere":
        undo, end, named = linked(prior, folder / "none"), "refusal", ("prior-",)
    elif kind == "trials to nowhere":
        undo, end, named = linked(trials, folder / "none" / "x"), "either", ("trials",)
    elif kind == "trials to themselves":
        undo, end, named = linked(trials, trials), "refusal", ("trials",)
    else:
        to = {"nowhere": folder / "none" / "x", "/dev/zero": Path("/dev/zero"), "a folder": folder}[
            kind.partition(" to ")[2]
        ]
        undo, end, named = linked(study, to), "either" if "nowhere" in kind else "refusal", ("a.json",)

    def act() -> dict:
        ledger = Ledger(used, "a")
        store.prior_path(used, ledger.record)
        return ledger.tell(configuration(20), 0.5)

    return Attempt(
        f"link: {kind}",
        act,
        lambda one: "" if one["outcome"] == 0.5 else f"told {one}",
        end,
        named,
        kept(folder, before, undo),
    )


def _names(folder: Path, rng: np.random.Generator) -> Attempt:
    """Names of studies, of who claims and of claims, and ages."""
    before = told(folder)
    kind = int(rng.integers(4))
    outside = {path for path in folder.parent.rglob("*") if not path.is_relative_to(folder)}

    def after() -> str:
        new = {path for path in folder.parent.rglob("*") if not path.is_relative_to(folder)} - outside
        return f"wrote {new}" if new else kept(folder, before)()

    if kind == 0:
        fine = bool(rng.random() < 0.3)
        name = str(rng.choice(FINE_NAMES)) if fine else NAMES[int(rng.integers(len(NAMES)))]
        new = configuration(21)
        return Attempt(
            f"study {name[:50]!r}",
            lambda: (Ledger(folder, name).tell(new, 0.25), Ledger(folder, name).trials),
            lambda found: "" if [found[0]] == found[1][-1:] else f"told {found}",
            "value" if fine else "refusal",
            ("study '",),
            after,
        )
    if kind == 1:
        by = ODD[int(rng.integers(len(ODD)))]
        return Attempt(
            f"claim by {_short(by)}",
            lambda: crashes.claim_of(by),
            lambda claim: "" if by is None or claim["by"] == by else f"{claim}",
            "either",
            ("by ",),
            after,
        )
    if kind == 2:
        claims = [ODD[int(rng.integers(len(ODD)))]] if rng.random() < 0.5 else ODD[int(rng.integers(len(ODD)))]
        return Attempt(
            f"release {_short(claims)}",
            lambda: Ledger(folder, "a").release(claims),
            lambda gone: _released(claims, gone),
            "either",
            ("claim",),
            after,
        )
    ages = ("", "1", "h", "1 y", "-1h", "1e3h", "9" * 400 + "d", "1h\n", "٣h", "1.5h", "2 min", "0s", *CONTROL)
    age = str(rng.choice(ages))
    wanted = {
        "1.5h": timedelta(hours=1.5),
        "2 min": timedelta(minutes=2),
        "0s": timedelta(0),
        "9" * 400 + "d": timedelta.max,
        "1h\n": timedelta(hours=1),
        "٣h": timedelta(hours=3),
    }
    return Attempt(
        f"age {age[:50]!r}",
        lambda: listing.age_in(age),
        lambda found: "" if found == wanted.get(age) else f"read as {found}",
        "value" if age in wanted else "refusal",
        ("age",),
        after,
    )


def _released(claims: object, gone: list) -> str:
    """All running trials go for None, none for an empty collection; nothing else names one here."""
    wanted = 1 if claims is None else 0
    return "" if len(gone) == wanted else f"released {gone}"


def _edited(folder: Path, rng: np.random.Generator) -> Attempt:
    """JSON of the record or of the trials with bytes or values changed, half of the records sealed again."""
    before = told(folder)
    of_record = bool(rng.random() < 0.5)
    path = folder / store.RECORD if of_record else store.trials_path(folder, "a")
    content = path.read_bytes()
    kind = str(rng.choice(["bytes", "digit", "value", "cut", "value sealed"]))
    if kind == "cut":
        changed = content[: int(rng.integers(len(content)))]
    elif kind == "bytes":
        at, by = int(rng.integers(len(content))), int(rng.integers(1, 256))
        changed = content[:at] + bytes([content[at] ^ by]) + content[at + 1 :]
    elif kind == "digit":  # most other bytes make no JSON
        at = int(rng.choice([place for place, one in enumerate(content) if chr(one).isdecimal()]))
        other = (int(chr(content[at])) + int(rng.integers(1, 10))) % 10
        changed = content[:at] + str(other).encode() + content[at + 1 :]
    elif of_record:
        found = json.loads(content)
        _replace(found, rng)
        changed = json.dumps(sealed(found) if kind == "value sealed" and _can_be_sealed(found) else found).encode()
    else:
        lines = content.decode().splitlines()
        place = int(rng.integers(len(lines)))
        found = json.loads(lines[place])
        _replace(found, rng)
        lines[place] = json.dumps(found)
        first = 1 if kind == "value sealed" else 0  # without its first line a file is sealed again
        changed = "\n".join(lines[first:]).encode() + b"\n"
    path.write_bytes(changed)
    inside = changed == content

    def right(found: dict[str, list]) -> str:
        if of_record and kind == "value sealed":  # the user's own space, by which values are read: '64' may be 64 there
            kept = all(_outcomes(found[name]) == _outcomes(before[name]) for name in before)
            return "" if kept else f"other outcomes: {found}"
        if of_record:
            return "" if found == before else f"other trials: {found}"
        if kind == "cut":  # at the end of a row, or in the last one, which does not count then
            return "" if found["a"] == before["a"][: len(found["a"])] else f"other trials: {found['a']}"
        if kind == "value sealed":  # the user's own change
            return "" if all(math.isfinite(one["outcome"] or 0) for one in found["a"]) else f"{found['a']}"
        same = found["a"] == before["a"] or inside
        return "" if same or found["a"] == before["a"][:-1] else f"taken although it was edited: {found['a']}"

    return Attempt(
        f"{path.name}: {kind} of {changed[:0]!r}{path.name}",
        lambda: told(folder),
        right,
        "either",
        (path.name, "prior", "a.json"),
        kept(folder, before, lambda: path.write_bytes(content)),
    )


def _outcomes(trials: list[dict]) -> list[tuple]:
    return [(one["number"], one["state"], one["outcome"]) for one in trials]


def _can_be_sealed(found: object) -> bool:
    try:
        return isinstance(found, dict) and bool(sealed(found))
    except ValueError:
        return False


def _replace(found: object, rng: np.random.Generator) -> None:
    """Put an odd value somewhere into JSON."""
    places = [(box, key) for box, key in _inner(found)]
    box, key = places[int(rng.integers(len(places)))]
    odd = [
        None,
        True,
        "",
        "x",
        -1,
        0,
        1e308,
        math.nan,
        math.inf,
        [],
        {},
        "a\nb",
        "\x1b[2J",
        10**400,
        2**63,
        "9" * 3000,
        [[]],
        {"": {}},
        0.5,
    ]
    value = odd[int(rng.integers(len(odd)))]
    if isinstance(box, dict) and rng.random() < 0.2:
        box[str(value)] = box.pop(key)
    else:
        box[key] = value


def _inner(found: object):
    for key, value in list(
        found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    ):
        yield found, key
        yield from _inner(value)


def _arguments(folder: Path, rng: np.random.Generator) -> Attempt:
    """Configurations, outcomes and numbers of another type than they have."""
    before = told(folder)
    odd = ODD[int(rng.integers(len(ODD)))]
    fine = configuration(22)
    kind = str(rng.choice(["outcome", "value", "name", "configuration", "results", "outcome as text"]))
    ledger = Ledger(folder, "a")
    if kind == "outcome":
        return Attempt(
            f"outcome {_short(odd)}",
            lambda: ledger.tell(fine, odd),
            lambda one: _right_outcome(odd, one),
            "either",
            ("outcome",),
            kept(folder, before),
        )
    if kind == "outcome as text":
        text = odd if isinstance(odd, str) else _written(odd)[:1000]
        return Attempt(
            f"--outcome {_short(text)}",
            lambda: _as_command(text),
            lambda value: "" if value is None or math.isnan(value) or value == float(text) else f"read as {value}",
            "either",
            (),
            kept(folder, before),
        )
    if kind == "results":
        given = [(fine, 0.5), odd] if rng.random() < 0.5 else odd
        return Attempt(
            f"results {_short(given)}",
            lambda: ledger.tell_all(given),
            lambda found: "" if found == [] else f"told {found}",
            "either",
            ("result", "configuration"),
            kept(folder, before),
        )
    if kind == "configuration":
        return Attempt(
            f"configuration {_short(odd)}",
            lambda: ledger.tell(odd, 0.5),
            lambda one: f"told {one}",
            "refusal",
            ("configuration", "parameter"),
            kept(folder, before),
        )
    if kind == "name":
        name = odd if isinstance(odd, str | int | float | bool | tuple | None) else str(odd)
        return Attempt(
            f"parameter called {_short(name)}",
            lambda: ledger.tell({**fine, name: 1}, 0.5),
            lambda one: f"told {one}",
            "refusal",
            ("unknown parameter",),
            kept(folder, before),
        )
    field = str(rng.choice(list(fine)))
    return Attempt(
        f"{field} {_short(odd)}",
        lambda: ledger.tell({**fine, field: odd}, 0.5),
        lambda one: _right_value(field, odd, one["parameters"][field]),
        "either",
        (field,),
        kept(folder, before),
    )


def _as_command(text: str) -> float | None:
    """Read an outcome as the command line does, whose parser prints what is refused in one line."""
    from argparse import ArgumentTypeError

    try:
        return outcome(text)
    except ArgumentTypeError as error:
        raise MetaboError(str(error)) from error


def _right_outcome(given: object, one: dict) -> str:
    """Tell whether a trial has the outcome that was told: a number as Python has it, None for what is not finite."""
    try:
        value = math.nan if given is None else float(given)
    except (TypeError, ValueError, OverflowError):
        return f"{_short(given)} was told as {one}"
    wanted = value if math.isfinite(value) else None
    return (
        ""
        if one["outcome"] == wanted and one["state"] == ("failed" if wanted is None else "done")
        else f"told as {one}"
    )


def _right_value(field: str, given: object, value: object) -> str:
    """Tell whether a value is what was given: the same number, or for a choice the same or what is written so."""
    given = given.item() if isinstance(given, np.generic) else given
    if field == "kind":
        return (
            ""
            if (type(given) is type(value) and given == value)
            or str(given).strip() in (str(value).strip(), f"{value}.0")
            else f"{given!r} became {value!r}"
        )
    try:
        return (
            ""
            if not isinstance(given, bool) and math.isclose(float(given), value, rel_tol=1e-9)
            else f"{given!r} became {value!r}"
        )
    except (TypeError, ValueError, OverflowError):
        return f"{_short(given)} became {value!r}"


def _written(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        return f"a {type(value).__name__} that is too long"


def _short(value: object) -> str:
    text = _written(value)[:60]
    return text if text.isprintable() else ascii(text)
