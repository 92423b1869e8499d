"""What the distributions of several Optuna studies say of one parameter together, and how its values are written."""

import math
from collections.abc import Collection, Mapping, Sequence
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


def together(name: str, given: "Mapping[str, Sequence[Distribution]]", where: str) -> Drafted | str:
    """Return the parameter whose values are those of all distributions, or why it is none. `given`: by study.

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
    all_of = [level(choice) for ranges in given.values() for one in ranges for choice in one.choices]
    found: dict[str, Level] = {}
    for choice in all_of:
        other = found.setdefault(str(choice), choice)
        if isinstance(other, str) != isinstance(choice, str) or isinstance(other, bool) != isinstance(choice, bool):
            raise DataError(
                f"{where}: parameter '{name}' has the choices {other!r} and {choice!r}, which are alike in a CSV file; "
                "import the studies apart, with --only"
            )
    choices = list(found.values())
    if len(choices) == 1:
        return f"always {choices[0]}"
    notes = ["None is the text 'None' here"] if "None" in found else []
    own = {study: {str(level(c)) for one in ranges for c in one.choices} for study, ranges in given.items()}
    notes += _differing("choices", {study: _few(had) for study, had in own.items() if had != set(found)})
    if all(isinstance(choice, int | float) and not isinstance(choice, bool) for choice in choices):
        entry: ParameterYaml = {"type": "ordinal", "choices": sorted(choices)}
        return Drafted(name, entry, ("check: ordinal, for the choices are numbers", *notes))
    return Drafted(name, {"type": "categorical", "choices": choices}, tuple(notes))


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
    """List choices for a comment; of many the first."""
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
        values |= {float(f"{one.low + i * _step(one):.12g}") for i in range(count + 1)}
    return list(plain(sorted(values))) if 2 <= len(values) <= MOST else []


def level(choice: object) -> Level:
    """Return a choice as ``space.yaml`` has it: None, and what is neither text nor a number, are text."""
    if isinstance(choice, float) and not math.isfinite(choice):
        return str(choice)
    return choice if isinstance(choice, bool | int | float) else " ".join(str(choice).split())


def cell(value: object, entry: ParameterYaml) -> str:
    """Return the cell of a value; one that lies on a grid up to rounding is written as the grid has it."""
    written = level(value)
    if isinstance(written, str | bool):
        return field_of("", entry).written(written)
    for choice in entry.get("choices", ()):
        if not isinstance(choice, str | bool) and math.isclose(choice, written, rel_tol=1e-9, abs_tol=1e-12):
            return str(choice)
    return str(written)
