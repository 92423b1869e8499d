"""What a user tells in Python or JSON, checked: a configuration, its outcome, and the values of its constraints."""

from collections.abc import Mapping
from math import isfinite, nan
from typing import TypeAlias

from metabo.data.history import constraints as bounds
from metabo.data.history.description import Configuration, Description
from metabo.data.history.numbers import read_number
from metabo.data.history.space_yaml import LARGEST
from metabo.errors import DataError, quoted
from metabo.tuner.trials import Result

ToldResult: TypeAlias = (
    tuple[Configuration, float | None] | tuple[Configuration, float | None, Mapping[str, float] | None]
)
"""A configuration, its outcome (None: it failed), and the values of its constraints if the space has any."""


def read_result(told: ToldResult, space: Description, where: str) -> Result:
    """Check and return what a user tells. Raises DataError, which starts with `where`, if it cannot be used."""
    if not isinstance(told, tuple | list) or not 2 <= len(told) <= 3:
        raise DataError(
            f"{where}{quoted(told)} is no pair of a configuration and its outcome, nor these with a dict of constraints"
        )
    configuration, outcome, *more = told
    try:
        read, value = space.read(_mapping(configuration)), _checked(outcome, space)
        measured = bounds.measured(space.constraints, more[0] if more else None) if isfinite(value) else {}
    except DataError as error:
        raise DataError(f"{where}{error}") from None
    return Result(read, value, where, measured)


def _mapping(configuration: Configuration) -> Configuration:
    """Return a configuration. Raises DataError for anything else."""
    if isinstance(configuration, Mapping):
        return configuration
    if hasattr(configuration, "configuration"):
        raise DataError("a suggestion was told in place of its configuration; tell suggestion.configuration")
    raise DataError(f"configuration {quoted(configuration)} is no dict; tell a dict of parameters and their values")


def _checked(outcome: float | None, space: Description) -> float:
    """Return an outcome, with NaN for None. Raises DataError for anything but a number, and for a number outside the
    outcome's scale."""
    try:
        value = nan if outcome is None else read_number(outcome)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"outcome {quoted(outcome)} of '{space.outcome}' is no number; tell one, or None if the trial failed"
        ) from None
    if space.log and isfinite(value) and value <= 0:
        raise DataError(
            f"outcome {value:g} of '{space.outcome}' has no logarithm (its scale is log); tell a number above 0, or "
            "that the trial failed"
        )
    if not space.log and isfinite(value) and abs(value) > LARGEST:
        raise DataError(
            f"outcome {value:g} of '{space.outcome}' is larger than {LARGEST:g} in size; tell it in another unit, or "
            "that the trial failed"
        )
    return value
