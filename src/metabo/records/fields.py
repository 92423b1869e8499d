"""Read the fields of a JSON record with their types. A wrong field raises an error with file, field and remedy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from metabo.errors import DataError
from metabo.records.files import Json


@dataclass(frozen=True)
class Fields:
    """An object in a JSON file. `at` is its place in the file ("" for the whole file), `remedy` says what to do if it
    is wrong."""

    values: Mapping[str, Json]
    file: str
    remedy: str = "delete it and run again"
    at: str = ""

    def text(self, name: str) -> str:
        """Return a text. Like all these methods, it raises DataError if the field is missing or of another type."""
        value = self._value(name)
        if not isinstance(value, str):
            raise self._fault(name, value, "text")
        return value

    def number(self, name: str) -> float:
        """Return a number."""
        value = self._value(name)
        if not _is_number(value):
            raise self._fault(name, value, "a number")
        return value

    def numbers(self, name: str) -> list[float]:
        """Return a list of numbers."""
        value = self._value(name)
        found = [one for one in value if _is_number(one)] if isinstance(value, list) else []
        if not isinstance(value, list) or len(found) < len(value):
            raise self._fault(name, value, "a list of numbers")
        return found

    def object(self, name: str) -> "Fields":
        """Return an object's fields."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise self._fault(name, value, "an object")
        return Fields(value, self.file, self.remedy, self._place(name))

    def objects(self, name: str) -> list["Fields"]:
        """Return the fields of each object of a list."""
        value = self._value(name)
        if not isinstance(value, list):
            raise self._fault(name, value, "a list of objects")
        found = []
        for index, entry in enumerate(value):
            if not isinstance(entry, dict):
                raise self._fault(f"{name}.{index}", entry, "an object")
            found.append(Fields(entry, self.file, self.remedy, self._place(f"{name}.{index}")))
        return found

    def lists(self, name: str) -> list[list[float]]:
        """Return a list of lists of numbers."""
        value = self._value(name)
        if not isinstance(value, list):
            raise self._fault(name, value, "a list of lists")
        rows = Fields({f"{name}.{i}": row for i, row in enumerate(value)}, self.file, self.remedy, self.at)
        return [rows.numbers(row) for row in rows.values]

    def texts(self, name: str) -> dict[str, str]:
        """Return an object of texts."""
        own = self.object(name)
        return {key: own.text(key) for key in own.values}

    def maybe(self, name: str) -> bool:
        """Tell whether the field exists and is not null."""
        return self.values.get(name) is not None

    def _value(self, name: str) -> Json:
        if name not in self.values:
            raise DataError(f"{self.file}: field '{self._place(name)}' is missing; {self.remedy}")
        return self.values[name]

    def _fault(self, name: str, value: Json, wanted: str) -> DataError:
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
        return DataError(f"{self.file}: field '{self._place(name)}' is {shown}, must be {wanted}; {self.remedy}")

    def _place(self, name: str) -> str:
        return f"{self.at}.{name}" if self.at else name


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
