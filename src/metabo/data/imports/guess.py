"""What a column of past trials may be, guessed from its cells by these rules, which a draft's comments repeat:

- one value throughout, no value at all, or whole numbers that count the rows (of each study): not tuned;
- true and false: categorical;
- whole numbers: ordinal if they are at most `FEW` different ones with gaps, else int;
- other numbers: ordinal if they are at most `FEW` different ones, each on average four times there, else float;
- numbers without choices: bounds are the smallest and largest value seen; log if they are above 0, span a factor of
  `WIDE` or more, and half of them lie below a fifth of the largest;
- text, or text among numbers: categorical if it has at most `MANY` different values, each on average twice there; else
  not tuned.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from metabo.data.csv_rows import ABSENT
from metabo.data.history.space_yaml import ParameterYaml
from metabo.data.imports.draft import Drafted
from metabo.errors import DataError

FEW, MANY, WIDE = 8, 20, 100
BOOLEANS = ("true", "false")


def parameters(
    columns: Mapping[str, Sequence[str]], studies: Sequence[str], places: Sequence[str]
) -> tuple[list[Drafted], dict[str, str]]:
    """Return the parameters among columns of text, and why the others are none. `studies`, `places`: the study of each
    row, and where it is.

    Raises DataError for a column of numbers with a cell that is none, unless it is rich in text.
    """
    found, none = [], {}
    for name, cells in columns.items():
        given = [(place, cell) for place, cell in zip(places, cells, strict=True) if cell.lower() not in ABSENT]
        one = "whole numbers that count the rows" if _counts(cells, studies) else parameter(name, given)
        if isinstance(one, str):
            none[name] = one
        else:
            found.append(one)
    return found, none


def parameter(name: str, given: Sequence[tuple[str, str]]) -> Drafted | str:
    """Return what a column is: a parameter, or why it is none. `given`: where its cells with a value are, and these."""
    cells = [cell for _, cell in given]
    different = list(dict.fromkeys(cells))
    if not cells:
        return "it has no value"
    if all(cell.lower() in BOOLEANS for cell in cells):
        several = len({cell.lower() for cell in cells}) > 1
        return Drafted(name, {"type": "categorical", "choices": [False, True]}) if several else f"always {cells[0]}"
    numbers = [_number(cell) for cell in cells]
    whole = [number for number in numbers if number is not None]
    if len(whole) == len(numbers):
        return _of_numbers(name, whole)
    if len(different) == 1:
        return f"always {cells[0]}"
    if len(different) <= MANY and 2 * len(different) <= len(cells):
        text: ParameterYaml = {"type": "categorical", "choices": sorted(different)}
        return Drafted(name, text, ("check: choices as seen",))
    if whole:
        place, cell = next(pair for pair, number in zip(given, numbers, strict=True) if number is None)
        raise DataError(
            f"{place}, field '{name}': {cell!r} is no number, as {len(whole)} other cells of the column are; "
            f"correct it, or leave the column out with --ignore {name}"
        )
    return f"text with {len(different)} different values"


def _counts(cells: Sequence[str], studies: Sequence[str]) -> bool:
    """Tell whether whole numbers go up by one from row to row, in all of the table or anew in each study."""
    numbers = [_number(cell) for cell in cells]
    if any(number is None or not number.is_integer() for number in numbers):
        return False
    groups: dict[str, list[float]] = {}
    for number, study in zip(numbers, studies, strict=True):
        groups.setdefault(study, []).append(number or 0.0)
    whole = [number or 0.0 for number in numbers]
    anew = max(map(len, groups.values())) > 2 and all(one[0] == whole[0] and _rises(one) for one in groups.values())
    return (len(whole) > 2 and _rises(whole)) or anew


def _rises(numbers: Sequence[float]) -> bool:
    return all(number == numbers[0] + i for i, number in enumerate(numbers))


def _of_numbers(name: str, numbers: list[float]) -> Drafted | str:
    different = sorted(set(numbers))
    if len(different) == 1:
        return f"always {numbers[0]:g}"
    integers = all(number.is_integer() for number in numbers)
    consecutive = integers and different[-1] - different[0] == len(different) - 1
    rich = integers or len(numbers) >= 4 * len(different)
    if len(different) <= FEW and not consecutive and rich:
        return Drafted(name, {"type": "ordinal", "choices": plain(different)}, ("check: choices as seen",))
    low, high = different[0], different[-1]
    bounds = plain([low, high]) if integers else [low, high]
    entry: ParameterYaml = {"type": "int" if integers else "float", "low": bounds[0], "high": bounds[1]}
    notes = ["check: bounds as seen"]
    if low > 0 and high / low >= WIDE and median(numbers) <= high / 5:
        entry["scale"] = "log"
        notes.append(f"check: log, for it spans a factor of {high / low:.2g} and half of it is below {high / 5:.2g}")
    return Drafted(name, entry, tuple(notes))


def plain(numbers: Sequence[float]) -> list[int | float]:
    """Return numbers, the whole ones as ints."""
    return [int(number) if float(number).is_integer() else float(number) for number in numbers]


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
