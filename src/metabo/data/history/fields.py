"""One parameter as a user describes it: what its cells mean, which values it takes, and where they lie in [0, 1]."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from metabo.data.csv_rows import ABSENT
from metabo.data.history.numbers import read_number
from metabo.errors import nearest, printable
from metabo.records.csv_cells import in_quotes, is_formula
from metabo.tasks.spaces import Level, Parameter

SWITCHES = ("yes", "no", "on", "off")
"""Words that YAML takes for True and False unless they are in quotes."""

CLOSE = 1e-9
"""Digits get lost in printing: numbers that differ by at most this part of each, and of their range, are the same."""

SINGLE = 1e-6
"""A trial's code may compute in single precision: a number and what single precision keeps of it are the same, if they
differ by at most this part of the range."""

FEWEST = 2
"""Digits that a spreadsheet keeps at least of a number: it may write 1.3E-05 for 1.3033e-05."""

SHOWN = 8
"""Choices that a message lists."""

Value = float | int | str | bool | None
"""A value of a parameter; None where it is not in use."""


def few(texts: Sequence[str]) -> str:
    """Return the first of some texts for a message, each cut, and how many more there are."""
    more = f" (and {len(texts) - SHOWN} more)" if len(texts) > SHOWN else ""
    return ", ".join(printable(one, 24) for one in texts[:SHOWN]) + more


NO_LOGARITHM = "without a logarithm"
"""What is said of a number that no wider space of scale log can have."""


def widening(said: str) -> str:
    """Return what to do to the space so that it has a value, of which it is `said` that it lies outside."""
    both = "remove its 'scale: log' and widen it in" if said.endswith(NO_LOGARITHM) else "widen the space in"
    return f"{both} space.yaml"


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
            return f"one of {few([self.written(one) for one in self.choices])}"
        number = "a whole number" if self.kind == "int" else "a number"
        return f"{number} from {_shown(self.low)} to {_shown(self.high)}"

    def blank(self, cell: str) -> bool:
        """Tell whether a cell has no value; a choice may be called "none"."""
        return cell.lower() in ABSENT and not self._meant(cell)

    def read(self, cell: Value) -> Value:
        """Return the value that a Python object or JSON means; a text may also be written as in a table (`parse`).

        Raises ValueError that says what is allowed, OutsideSpace if another space could have the value.
        """
        if isinstance(cell, np.generic):
            cell = cell.item()
        if not self.choices:
            return self._whole(cell) if self.kind == "int" else self._real(cell)
        exact = [choice for choice in self.choices if _kind(choice) is _kind(cell) and choice == cell]
        return exact[0] if exact else self.parse(str(cell))

    def parse(self, cell: str) -> Value:
        """Return the value that a cell of a table means. Raises ValueError as `read` does.

        Outer spaces do not count, and what could be a number and a text is the number; a text in double quotes, as JSON
        writes it, is that text (`written`).
        """
        if not self.choices:
            return self.read(cell)
        found = self._meant(cell)
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(f"could be {' or '.join(map(json.dumps, found))}: write one of these, quotes included")
        raise self._no_choice(cell.strip())

    def _meant(self, cell: str) -> list[Level]:
        """Return the choices that a cell may mean: several only of texts that differ in outer spaces or capitals."""
        texts = [choice for choice in self.choices if isinstance(choice, str)]
        if (quoted := in_quotes(cell.strip())) in texts:
            return [quoted]
        for choice in self.choices:
            if not isinstance(choice, str) and _means(cell, choice):
                return [choice]
        bare = cell.strip()
        found = [bare] if bare in texts else [text for text in texts if text.strip() == bare]
        return found or [text for text in texts if cell in ("True", "False") and text.lower() == cell.lower()]

    def _no_choice(self, cell: str) -> ValueError:
        """Build the error for a value that is not offered: a slip of the pen, or a choice of another space."""
        hint = nearest(cell, map(str, self.choices))
        if cell.lower() in SWITCHES and any(isinstance(one, bool) for one in self.choices):
            hint = " YAML reads yes/no/on/off as True and False: put yes/no/on/off in quotes in space.yaml"
            return ValueError(f"is not {self.allowed}.{hint}")
        slip = cell.lower() in (str(one).lower() for one in self.choices)
        slip = slip or (self.numeric and not math.isfinite(_number(cell)))
        return (ValueError if slip else OutsideSpace)(f"is not {self.allowed}.{hint}")

    def written(self, value: Value) -> str:
        """Return the cell of a table that `parse` reads as this value: a text in double quotes where it would be taken
        for another choice or for a formula, or a table would not keep it. A parameter that is not in use has an empty
        cell."""
        plain = "" if value is None else str(value)
        if not isinstance(value, str):
            return plain
        try:
            kept = plain.isprintable() and not is_formula(plain) and self.parse(plain.strip()) == value
        except ValueError:
            kept = False
        return plain if kept else json.dumps(value)

    def same(self, one: Value, other: Value) -> bool:
        """Tell whether two values are the same, up to digits lost in printing or in single precision. Whole numbers and
        choices lose none."""
        if self.kind != "float" or one is None or other is None:
            return one == other
        first, second = float(one), float(other)
        return self._close(first, second) or self._is_single(first, second) or self._is_single(second, first)

    def cut(self, whole: Value, short: Value) -> bool:
        """Tell whether `short` is `whole`, or that rounded to FEWEST digits or more: significant ones or decimals."""
        if self.same(whole, short) or self.kind != "float" or whole is None or short is None:
            return self.same(whole, short)
        forms = (f"{float(whole):.{digits}{form}}" for form in "gf" for digits in range(FEWEST, 17))
        return any(float(short) == float(one) != 0 for one in forms)

    def _is_single(self, number: float, of: float) -> bool:
        """Tell whether a number is what single precision keeps of another one."""
        if 0.0 in (number, of) or abs(number - of) > SINGLE * (self.high - self.low):
            return False
        with np.errstate(over="ignore"):
            return number == float(np.float32(of))

    def _close(self, one: float, other: float) -> bool:
        return abs(one - other) <= CLOSE * min(abs(one), abs(other), self.high - self.low)

    def _whole(self, cell: Value) -> int:
        number = _number(cell)
        if not math.isfinite(number) or number != round(number):
            raise ValueError(f"is not {self.allowed}")
        if not self.low <= number <= self.high:
            raise OutsideSpace(self._outside(number))
        return round(number)

    def _real(self, cell: Value) -> float:
        number = float(_number(cell))
        if not math.isfinite(number):
            raise ValueError(f"is not {self.allowed}")
        bound = min(max(number, self.low), self.high)
        if number != bound and not self._close(number, bound) and not self._is_single(number, bound):
            raise OutsideSpace(self._outside(number))
        return bound

    def _outside(self, number: float) -> str:
        said = f"is outside [{_shown(self.low)}, {_shown(self.high)}]"
        return f"{said}, {NO_LOGARITHM}" if self.log and number <= 0 else said

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
        value = low ** (1.0 - u) * high**u if self.log else low + (high - low) * u  # low / high may be no number
        value = min(max(value, self.low), self.high)
        return round(value) if self.kind == "int" else value

    def unit(self, value: Value) -> float:
        """Return a `u` with `at(u) == value` (up to rounding); the middle for an unused parameter."""
        if value is None:
            return 0.5
        if self.choices:
            return (self.choices.index(value) + 0.5) / len(self.choices)
        low, high = self._edges()
        low, high, number = (math.log(x) if self.log else x for x in (low, high, float(value)))
        return (number - low) / (high - low)

    def values(self) -> tuple[Level, ...]:
        """Return all values of a parameter that is no float."""
        return self.choices or tuple(range(int(self.low), int(self.high) + 1))

    def _edges(self) -> tuple[float, float]:
        half = 0.5 if self.kind == "int" else 0.0
        return self.low - half, self.high + half


def _kind(value: Value) -> type:
    """Return what tells values apart that Python or a table takes for equal: a boolean, a number or a text."""
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _number(cell: Value) -> float:
    """Return the number that a cell means, whole numbers exactly; NaN if it means none."""
    try:
        number = read_number(cell)
        return int(cell) if _digits(cell) and math.isfinite(number) else number
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _digits(cell: Value) -> bool:
    return isinstance(cell, int) or (isinstance(cell, str) and cell.strip().lstrip("+-").isdecimal())


def _means(cell: str, choice: Value) -> bool:
    """Tell whether a cell means a choice that is no text: numbers by value ("16.0" is 16), booleans in any case."""
    if isinstance(choice, bool):
        return cell.strip().lower() == str(choice).lower()
    return _number(cell) == choice


def _shown(bound: float) -> str:
    """Return a bound with as many digits as it has."""
    short = f"{bound:g}"
    return short if float(short) == bound else str(int(bound)) if bound.is_integer() else repr(bound)
