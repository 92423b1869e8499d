"""What the distributions of several Optuna studies say of one parameter together, and how its values are written."""

import math
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from metabo.data.history.space_yaml import ParameterYaml, field_of
from metabo.data.imports.draft import SHOWN, Drafted
from metabo.data.imports.guess import plain
from metabo.errors import DataError
from metabo.tasks.spaces import Level

if TYPE_CHECKING:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    Distribution: TypeAlias = CategoricalDistribution | FloatDistribution | IntDistribution

MOST = 32
"""Values of a grid that become choices."""
CLOSE, LAST = 1e-8, 4
"""Most that rounding moves a value off its grid: this share of a step (Optuna's own tolerance), or this many units in
the last place of the largest value."""


def together(name: str, given: "Mapping[str, Sequence[Distribution]]", where: str) -> Drafted | str:
    """Return the parameter whose values are those of all distributions, or why there is none. `given`: by study.

    Raises DataError if it has choices in one study and bounds in another, or choices that are alike as text.
    """
    choosing = [study for study, ranges in given.items() if any(hasattr(one, "choices") for one in ranges)]
    bounded = [study for study, ranges in given.items() if any(hasattr(one, "low") for one in ranges)]
    if choosing and bounded:
        raise DataError(
            f"{where}: parameter '{name}' has choices in study '{choosing[0]}' and bounds in study '{bounded[0]}', so "
            "it is not one parameter; import the studies apart, with --only"
        )
    return _choices(name, given, where) if choosing else _bounds(name, given)


def _choices(name: str, given: "Mapping[str, Sequence[Distribution]]", where: str) -> Drafted | str:
    all_of = [(study, choice) for study, ranges in given.items() for one in ranges for choice in one.choices]
    found: dict[tuple[type, Level], Level] = {}
    first: dict[str, tuple[str, object]] = {}
    for study, choice in all_of:
        kept = found.setdefault(_by_value(level(choice)), level(choice))
        of, other = first.setdefault(str(kept), (study, choice))
        if not _same(other, choice):
            remedy = (
                f"leave study '{of}' out with --without" if of == study else "import the studies apart, with --only"
            )
            raise DataError(
                f"{where}: parameter '{name}' has the choices {other!r} and {choice!r}, which are alike in a CSV file; "
                f"{remedy}"
            )
    choices = list(found.values())
    if len(choices) == 1:
        return f"always {choices[0]}"
    notes = ["None is the text 'None' here"] if any(choice is None for _, choice in all_of) else []
    own = {study: {_by_value(level(c)) for one in ranges for c in one.choices} for study, ranges in given.items()}
    others = {study: _few([str(found[one]) for one in had]) for study, had in own.items() if had != set(found)}
    notes += _differing("choices", others)
    if all(isinstance(choice, int | float) and not isinstance(choice, bool) for choice in choices):
        entry: ParameterYaml = {"type": "ordinal", "choices": sorted(choices)}
        return Drafted(name, entry, ("check: ordinal, for the choices are numbers", *notes))
    return Drafted(name, {"type": "categorical", "choices": choices}, tuple(notes))


def _by_value(choice: Level) -> tuple[type, Level]:
    """Return what tells choices apart: 16 and 16.0 are one number; True and 1 are two choices."""
    number = isinstance(choice, int | float) and not isinstance(choice, bool)
    return float if number else type(choice), choice


def _same(one: object, other: object) -> bool:
    """Tell whether two choices that are alike as text are one: numbers by value, what becomes text as Python has it."""
    if isinstance(level(one), str) and isinstance(level(other), str):
        return repr(one) == repr(other)
    return _by_value(level(one)) == _by_value(level(other))


def _bounds(name: str, given: "Mapping[str, Sequence[Distribution]]") -> Drafted | str:
    ranges = [one for several in given.values() for one in several]
    low, high = min(one.low for one in ranges), max(one.high for one in ranges)
    if low == high:
        return f"always {low:g}"
    own = {study: (min(o.low for o in ranges), max(o.high for o in ranges)) for study, ranges in given.items()}
    notes = _differing("bounds", {study: f"{a:g} to {b:g}" for study, (a, b) in own.items() if (a, b) != (low, high)})
    if grid := _grid(ranges):
        return Drafted(name, {"type": "ordinal", "choices": grid}, ("check: the steps as choices", *notes))
    integers = all(type(one).__name__ == "IntDistribution" for one in ranges)
    if not integers and any(type(one).__name__ == "IntDistribution" for one in ranges):
        notes.append("check: float, for some studies have whole numbers and others not")
    if any(_step(one) for one in ranges):
        notes.append("check: its steps are left out, it may take values between them")
    bounds = plain([low, high]) if integers else [low, high]
    entry: ParameterYaml = {"type": "int" if integers else "float", "low": bounds[0], "high": bounds[1]}
    logs = [bool(one.log) for one in ranges]
    if any(logs) and low > 0:
        entry["scale"] = "log"
    if any(logs) and not (all(logs) and low > 0):
        notes.append(f"check: {'log' if low > 0 else 'linear'}, for some studies have a log scale and others not")
    return Drafted(name, entry, tuple(notes))


def _differing(what: str, own: Mapping[str, str]) -> list[str]:
    """Say which studies had other bounds or choices than all together: `own`, by study."""
    if not own:
        return []
    other = [f"'{study}' had {had}" for study, had in own.items()]
    more = f" and {len(other) - SHOWN} more" if len(other) > SHOWN else ""
    return [f"check: {what} of all studies together; {', '.join(other[:SHOWN])}{more}"]


def _few(choices: Collection[str]) -> str:
    """List choices for a comment; of many, the first ones."""
    return ", ".join(sorted(choices)[:SHOWN]) + (", ..." if len(choices) > SHOWN else "")


def _step(one: "Distribution") -> float:
    """Return the step of a grid; 0 for none, and for whole numbers one apart."""
    step = getattr(one, "step", None) or 0.0
    return 0.0 if type(one).__name__ == "IntDistribution" and step == 1 else float(step)


def _grid(ranges: "Sequence[Distribution]") -> list[Level]:
    """Return the values of grids together, if all have steps and there are few values."""
    if not all(_step(one) for one in ranges):
        return []
    values = set()
    for one in ranges:
        count = round((one.high - one.low) / _step(one))
        if count >= MOST:
            return []
        low, step = Decimal(str(one.low)), Decimal(str(one.step))  # as decimals 0.1 + 2 * 0.1 is 0.3
        values |= {low + i * step for i in range(count + 1)}
    apart, kept = CLOSE * min(map(_step, ranges)), list[Decimal]()
    for value in sorted(values):
        if not kept or value - kept[-1] > apart:  # 0.30000000000000004 of another study is 0.3
            kept.append(value)
    return list(plain(kept)) if 2 <= len(kept) <= MOST else []


def level(choice: object) -> Level:
    """Return a choice as ``space.yaml`` has it: None, and what is neither text nor a number, are text."""
    if isinstance(choice, float) and not math.isfinite(choice):
        return str(choice)
    return choice if isinstance(choice, bool | int | float) else " ".join(str(choice).split())


def cell(value: object, entry: ParameterYaml) -> str:
    """Return the cell of a value: its choice if it is one, or lies on a grid up to rounding; else as it is."""
    written = level(value)
    if isinstance(written, str | bool):
        return field_of("", entry).written(written)
    numbers = [choice for choice in entry.get("choices", ()) if not isinstance(choice, str | bool)]
    near = min(numbers, key=lambda choice: abs(choice - written), default=written)
    return str(near if abs(near - written) <= _rounding(near, numbers) else written)


def _rounding(choice: float, numbers: Sequence[float]) -> float:
    """Return how far a value may be from its choice: a small part of the step to the next one, or the last digits of
    the largest number, and never as far as half of the way to the next one."""
    step = min((abs(other - choice) for other in numbers if other != choice), default=0.0)
    return min(step / 4, max(CLOSE * step, LAST * math.ulp(max(map(abs, numbers), default=0.0))))
