"""One parameter as a user describes it: what its cells mean, which values it takes, and where they lie in [0, 1]."""

import math
from dataclasses import dataclass, field

from metabo.data.csv_rows import ABSENT
from metabo.errors import nearest
from metabo.tasks.spaces import Level, Parameter

SWITCHES = ("yes", "no", "on", "off")
"""Words that YAML takes for True and False unless they are in quotes."""

Value = float | int | str | bool | None
"""A value of a parameter; None where it is not in use."""


class OutsideSpace(ValueError):
    """A value of the right kind that the space does not have: beyond the bounds, or none of the choices."""


@dataclass(frozen=True)
class Field:
    """One parameter. `kind`: float, int, ordinal or categorical; `parent`, `needs`: used only where that parameter has
    one of these values (None: always); `default`: its value in past studies that did not tune it, which is no part of
    the space (None: not known)."""

    name: str
    kind: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    choices: tuple[Level, ...] = ()
    parent: str | None = None
    needs: tuple[Value, ...] = ()
    default: Value = field(default=None, compare=False)

    @property
    def options(self) -> float:
        """Number of values, infinite for a float."""
        if self.kind == "float":
            return math.inf
        return len(self.choices) if self.choices else self.high - self.low + 1

    @property
    def numeric(self) -> bool:
        """Tell whether its values are numbers."""
        return all(isinstance(one, int | float) and not isinstance(one, bool) for one in self.choices)

    @property
    def allowed(self) -> str:
        """Say which values it takes."""
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        number = "a whole number" if self.kind == "int" else "a number"
        return f"{number} from {self.low:g} to {self.high:g}"

    def blank(self, cell: str) -> bool:
        """Tell whether a cell has no value; a choice may be called "none"."""
        return cell.lower() in ABSENT and not any(_same(choice, cell) for choice in self.choices)

    def read(self, cell: Value) -> Value:
        """Return the value of a cell (text) or of a Python object.

        Raises ValueError that says what is allowed, OutsideSpace if another space could have the value.
        """
        if self.choices:
            found = [choice for choice in self.choices if _same(choice, cell)]
            if not found:
                raise self._no_choice(str(cell).strip())
            return found[0]
        try:
            number = math.nan if isinstance(cell, bool) or cell is None else float(cell)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"is not {self.allowed}")
        slack = 1e-9 * max(abs(self.low), abs(self.high))  # a bound may have been printed with fewer digits
        if not self.low - slack <= number <= self.high + slack:
            raise OutsideSpace(f"is outside [{self.low:g}, {self.high:g}]")
        if self.kind == "int":
            if number != round(number):
                raise ValueError(f"is not {self.allowed}")
            return round(number)
        return min(max(number, self.low), self.high)

    def _no_choice(self, cell: str) -> ValueError:
        """Build the error for a value that is not offered: a slip of the pen, or a choice of another space."""
        hint = nearest(cell, map(str, self.choices))
        if cell.lower() in SWITCHES and any(isinstance(one, bool) for one in self.choices):
            hint = " YAML reads yes/no/on/off as True and False: put yes/no/on/off in quotes in space.yaml"
            return ValueError(f"is not {self.allowed}.{hint}")
        slip = cell.lower() in (str(one).lower() for one in self.choices) or (self.numeric and not _finite(cell))
        return (ValueError if slip else OutsideSpace)(f"is not {self.allowed}.{hint}")

    def parameter(self) -> Parameter:
        """Return how the model sees it. A whole number with two values is ordinal: to MPHD it is a discrete input."""
        if self.kind == "int" and self.options == 2:
            return Parameter(self.name, "ordinal", levels=(int(self.low), int(self.high)))
        if self.choices:
            return Parameter(self.name, self.kind, levels=self.choices)
        return Parameter(self.name, "log" if self.log else "linear", low=self.low, high=self.high)

    def at(self, u: float) -> Value:
        """Return the value at `u` in [0, 1]: equal shares for choices and whole numbers."""
        if self.choices:
            return self.choices[min(int(u * len(self.choices)), len(self.choices) - 1)]
        low, high = self._edges()
        value = low * (high / low) ** u if self.log else low + (high - low) * u
        value = min(max(value, self.low), self.high)
        return round(value) if self.kind == "int" else value

    def unit(self, value: Value) -> float:
        """Return a `u` with `at(u) == value` (up to rounding); the middle for an unused parameter."""
        if value is None:
            return 0.5
        if self.choices:
            return (self.choices.index(value) + 0.5) / len(self.choices)
        low, high = self._edges()
        number = float(value)
        return math.log(number / low) / math.log(high / low) if self.log else (number - low) / (high - low)

    def values(self) -> tuple[Level, ...]:
        """Return all values of a parameter that is no float."""
        return self.choices or tuple(range(int(self.low), int(self.high) + 1))

    def _edges(self) -> tuple[float, float]:
        half = 0.5 if self.kind == "int" else 0.0
        return self.low - half, self.high + half


def _finite(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _same(choice: Value, cell: Value) -> bool:
    """Tell whether a cell means a choice: numbers by value ("16.0" is 16), booleans in any case, text as it is."""
    if isinstance(choice, bool) or isinstance(cell, bool):
        return str(cell).strip().lower() == str(choice).lower()
    if isinstance(choice, int | float) and cell is not None:
        try:
            return float(cell) == float(choice)
        except (TypeError, ValueError):
            return False
    return str(cell).strip() == choice
