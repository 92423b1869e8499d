"""Constraints: numbers besides the outcome that a trial is measured to have, each with a bound in the user's unit.

A trial whose value breaks one is infeasible: it counts as a failed trial does, whatever its outcome. These are the
outcome constraints of Ax and BoTorch, with the bound as it is; Optuna writes them as values that must not be above 0.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, NotRequired, TypedDict

from metabo.data.csv_rows import ABSENT
from metabo.data.history.numbers import read_number
from metabo.errors import DataError, nearest

Unrecorded = Literal["met", "drop"]
"""What the trials of a past study that did not record a constraint count as: they met it, or they are left out."""


class ConstraintYaml(TypedDict):
    """A constraint of ``space.yaml``."""

    at_most: NotRequired[float]
    at_least: NotRequired[float]
    unrecorded: NotRequired[Unrecorded]


class Constraint(NamedTuple):
    """A column whose values must lie from `least` to `most`, ends included; `unrecorded`: see `Unrecorded` (None: a
    past study without its values is refused)."""

    name: str
    least: float
    most: float
    unrecorded: Unrecorded | None

    @property
    def said(self) -> str:
        """Say the bound in words."""
        ends = [f"at least {self.least:g}"] if math.isfinite(self.least) else []
        return " and ".join([*ends, *([f"at most {self.most:g}"] if math.isfinite(self.most) else [])])

    @property
    def excess(self) -> str:
        """Say how Optuna writes a value: above 0 it breaks the constraint."""
        over = [f"value - {self.most:g}"] if math.isfinite(self.most) else []
        parts = [*over, *([f"{self.least:g} - value"] if math.isfinite(self.least) else [])]
        return parts[0] if len(parts) == 1 else f"max({', '.join(parts)})"

    def blank(self, cell: str) -> bool:
        """Tell whether a cell has no value."""
        return cell.lower() in ABSENT


def constraint_of(name: str, entry: ConstraintYaml) -> Constraint:
    """Return what is said of one constraint, which has no fault."""
    ends = float(entry.get("at_least", -math.inf)), float(entry.get("at_most", math.inf))
    return Constraint(name, *ends, entry.get("unrecorded"))


def faults_of(entries: Mapping[str, ConstraintYaml], where: str) -> list[str]:
    """Find constraints without a bound, and those that no value meets."""
    faults = []
    for name, entry in entries.items():
        key, one = f"{where} key 'constraints.{name}", constraint_of(name, entry)
        if not one.said:
            faults.append(f"{key}' has no bound; give at_most, at_least or both")
        elif one.least > one.most:
            faults.append(
                f"{key}.at_least' is {one.least:g}, above at_most ({one.most:g}): no value meets both; exchange them"
            )
    return faults


def broken(constraints: Sequence[Constraint], values: Mapping[str, float]) -> list[str]:
    """Return the names of the constraints that values break. One without a value is met: it is one that a past study
    did not record, and ``space.yaml`` says so."""
    return [one.name for one in constraints if one.name in values and not one.least <= values[one.name] <= one.most]


def finite(value: object) -> float:
    """Return the finite number that a value or a cell means; NaN if it means none."""
    try:
        number = read_number(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def measured(constraints: Sequence[Constraint], given: Mapping[str, object] | None) -> dict[str, float]:
    """Return the values of all constraints of a trial that did not fail, as a user's program or JSON gives them.

    Raises DataError for one that is unknown, has no value, or a value that is no finite number.
    """
    names, values = [one.name for one in constraints], {} if given is None else given
    if not isinstance(values, Mapping):
        raise DataError(f"constraints {given!r} is no dict; tell a dict of the constraints' names and values")
    for name in values:
        if name not in names:
            there = f"{nearest(name, names)} Constraints: {', '.join(names)}" if names else " The space has none"
            raise DataError(f"unknown constraint '{name}'.{there}; they stand under 'constraints' in space.yaml")
    for name in names:
        if values.get(name) is None:
            raise DataError(
                f"constraint '{name}' has no value; tell it with the outcome (constraints={{'{name}': ...}}, "
                "--constraints on the command line), or that the trial failed"
            )
        if math.isnan(finite(values[name])):
            raise DataError(
                f"constraint '{name}': {values[name]!r} is no finite number; tell one, or that the trial failed"
            )
    return {name: finite(values[name]) for name in names}
