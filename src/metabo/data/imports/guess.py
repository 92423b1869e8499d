"""What a column of past trials may be, guessed from its cells by these rules, which a draft's comments repeat:

- one value throughout, no value at all, or whole numbers that count the rows (of each study): not tuned;
- true and false: categorical;
- whole numbers: ordinal if there are at most `FEW` different ones with gaps, else int;
- other numbers: ordinal if there are at most `FEW` different ones that each occur four times on average, else float;
- numbers without choices: bounds are the smallest and largest value seen; log if they are above 0, span a factor of
  `WIDE` or more, and half of them lie below a fifth of the largest;
- text, or text among numbers: categorical if there are at most `MANY` different values that each occur twice on
  average; else not tuned;
- "none" and "null": choices among text, true and false, and at most `FEW` different numbers that each occur twice on
  average; where they say that a number has no value, and where "nan" and the like do, a comment counts them.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from metabo.data.csv_rows import ABSENT, WORDS
from metabo.data.history.numbers import read_number
from metabo.data.history.space_yaml import ParameterYaml
from metabo.data.imports.draft import Drafted
from metabo.errors import DataError

FEW, MANY, WIDE = 8, 20, 100
BOOLEANS = ("true", "false")


def missing(cell: str) -> bool:
    """Tell whether a cell surely has no value: "none" may be a choice."""
    return cell.lower() in ABSENT and cell.lower() not in WORDS


def parameters(
    columns: Mapping[str, Sequence[str]], studies: Sequence[str], places: Sequence[str]
) -> tuple[list[Drafted], dict[str, str], dict[str, Drafted]]:
    """Return the parameters among columns of text, why the others are not parameters, and what a parameter of numbers
    with "none" among its choices is if "none" means that there is no value. `studies`, `places`: the study of each row,
    and where it is.

    Raises DataError for a column of numbers with a cell that is not a number, unless it has much text.
    """
    found, none, others = [], {}, {}
    for name, cells in columns.items():
        given = [(place, cell) for place, cell in zip(places, cells, strict=True) if not missing(cell)]
        values = [(place, cell) for place, cell in given if cell.lower() not in WORDS]
        one = "whole numbers that count the rows" if _counts(cells, studies) else parameter(name, values)
        without = _counted(one, [cell for cell in cells if cell.lower() in ABSENT])
        one = _counted(one, [cell for cell in cells if missing(cell)])
        if len(values) < len(given):
            named = _with_words(name, [cell for _, cell in given], [cell for _, cell in values])
            if isinstance(without, Drafted) and all(_number(cell) is not None for _, cell in values):
                others[name] = without
            one = without if named is None else _counted(named, [cell for cell in cells if missing(cell)])
        if isinstance(one, str):
            none[name] = one
        else:
            found.append(one)
    return found, none, others


def _counted(one: Drafted | str, absent: Sequence[str]) -> Drafted | str:
    """Add to what a column is which of its cells were taken as missing, but for empty ones."""
    said = [f"{count} cells '{cell}' taken as missing" for cell, count in Counter(absent).items() if cell]
    if isinstance(one, str):
        return f"{one} ({', '.join(said)})" if said else one
    return replace(one, notes=(*one.notes, *(f"check: {text}" for text in said)))


def _with_words(name: str, cells: Sequence[str], values: Sequence[str]) -> Drafted | str | None:
    """Return what a column is if "none" is a value; None if it cannot be a value. `values`: the other values."""
    different = list(dict.fromkeys(cells))
    words = [cell for cell in different if cell.lower() in WORDS]
    numbers = [_number(cell) for cell in values]
    whole = [number for number in numbers if number is not None]
    several = 2 * len(different) <= len(cells)
    if len(different) == 1:
        return f"always {cells[0]}"
    if values and all(cell.lower() in BOOLEANS for cell in values):
        seen = [one for one in (False, True) if str(one).lower() in {cell.lower() for cell in values}]
        entry: ParameterYaml = {"type": "categorical", "choices": [*seen, *words]}
    elif values and len(whole) == len(numbers):
        if len(set(whole)) + len(words) > FEW or not several:
            return None
        entry = {"type": "categorical", "choices": [*plain(sorted(set(whole))), *words]}
    elif len(different) <= MANY and several:
        entry = {"type": "categorical", "choices": sorted(different)}
    else:
        return f"text with {len(different)} different values"
    among = " and ".join(f"'{word}'" for word in words)
    return Drafted(name, entry, (f"check: choices as seen, {among} among them",))


def parameter(name: str, given: Sequence[tuple[str, str]]) -> Drafted | str:
    """Return what a column is: a parameter, or why it is not one. `given`: where its cells with a value are, and
    these."""
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
    if all(_number(cell.replace(",", ".", 1)) is not None for cell in cells):  # of a DataFrame: files have a layout
        return "numbers with decimal commas, read as text; read the table with decimal=','"
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
    elif low == 0 and (rest := [number for number in different if number]) and high / rest[0] >= WIDE:
        notes.append(f"check: no log, for there are zeros; the others span a factor of {high / rest[0]:.2g}")
    return Drafted(name, entry, tuple(notes))


def plain(numbers: Sequence[float]) -> list[int | float]:
    """Return numbers, the whole ones as ints."""
    return [int(number) if float(number).is_integer() else float(number) for number in numbers]


def _number(cell: str) -> float | None:
    try:
        number = read_number(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
