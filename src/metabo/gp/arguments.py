"""What users give to `metabo.GP`: checked arrays, counts, seeds and names. Each message names the argument."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from metabo.errors import ConfigError, DataError, NumericsWarning

Points = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]

FAR, TOO_FAR = 1e4, 1e8
"""Sizes of inputs: from the first on, distances of order 1 are rounded; from the second on, they are lost."""


def task(x: ArrayLike, y: ArrayLike, dim: int, which: str = "") -> tuple[Points, Values]:
    """Return the rows of one task, x (n, dim) and y (n,), n >= 1. `which`: what follows x and y in messages. Raises
    DataError for anything else. It is called by a public method itself: warnings name the line that called that."""
    rows, values = points(f"x{which}", x, dim, 5), numbers(f"y{which}", y)
    if values.shape != (len(rows),) or not len(values):
        shapes = f"y{which} has shape {values.shape}, x{which} {rows.shape}"
        raise DataError(f"{shapes}; give one value for each point, and one point at least")
    return rows, values


def points(name: str, x: ArrayLike, dim: int, level: int) -> Points:
    """Return points (n, dim). `level`: that of the caller's line, for a warning. Warns of points so far from 0 that
    distances are rounded, and raises DataError if they are lost, for another shape, and as `numbers` does."""
    found = numbers(name, x, "leave that point out")
    if found.ndim != 2 or found.shape[1] != dim:
        hint = f"; write {name}[:, None] for one column" if found.ndim == 1 and dim == 1 else ""
        raise DataError(f"{name} has shape {found.shape}, needs (n, {dim}): one row for each point{hint}")
    largest = float(np.abs(found).max(initial=0.0))
    if largest >= TOO_FAR:
        raise DataError(f"{name} has values of size {largest:.3g}, whose distances are lost; scale {name} to [0, 1]")
    if largest >= FAR:
        said = f"{name} has values of size {largest:.3g}, whose distances are rounded; scale {name} to [0, 1]"
        warnings.warn(said, NumericsWarning, stacklevel=level)
    return found


def numbers(
    name: str, values: ArrayLike, remedy: str = "leave that point out, or give it the worst value"
) -> Float[np.ndarray, "..."]:
    """Return finite numbers. `remedy`: for a number that is not finite. Raises DataError for masked values, for times
    and complex numbers, for what is no array of numbers, and, with its place, for a number that is not finite."""
    if np.ma.is_masked(values) or (isinstance(values, list | tuple) and any(map(np.ma.is_masked, values))):
        raise DataError(f"{name} has masked values; leave these points out, or fill them")
    try:
        given = np.asarray(values)
        if given.dtype.kind in "mMc":
            raise DataError(f"{name} has values of type {given.dtype}; give real numbers")
        array = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} is not an array of numbers ({_first_line(error)}); give real numbers, in rows of equal length"
        ) from error
    if not np.isfinite(array).all():
        place = ", ".join(map(str, np.argwhere(~np.isfinite(array))[0]))
        raise DataError(f"{name}[{place}] is not finite; {remedy}")
    return array


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def lists_tasks(x: object) -> TypeGuard[Sequence[Any]]:
    """Tell whether `x` is a list of tasks, each with rows of its own, in place of one task."""
    if not isinstance(x, list | tuple) or not x:
        return False
    first = x[0]
    if isinstance(first, list | tuple):
        return bool(first) and isinstance(first[0], list | tuple | np.ndarray)
    return np.ndim(first) == 2


def paired(x: Sequence[ArrayLike], y: ArrayLike) -> list[tuple[ArrayLike, ArrayLike]]:
    """Return x and y of each task; a pandas Series of arrays is a list too. Raises DataError unless y has one array for
    each."""
    listed = hasattr(y, "__len__") and hasattr(y, "__iter__") and not isinstance(y, str | bytes | Mapping)
    several: list[ArrayLike] = list(y) if listed else []  # type: ignore[arg-type]
    if len(several) != len(x):
        given = f"has {len(several)}" if listed else "is no list"
        raise DataError(f"x has {len(x)} tasks, y {given}; give one array of values for each task")
    return list(zip(x, several, strict=True))


def count(name: str, value: object) -> int:
    """Return a whole number of at least 1, of Python or NumPy. Raises ConfigError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ConfigError(f"{name} is {value!r}; must be a whole number of at least 1")
    return int(value)


def seed(value: object) -> int:
    """Return a whole number from 0 to 2^63 - 1, of Python or NumPy. Raises ConfigError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 1 << 63:
        raise ConfigError(f"seed is {value!r}; must be a whole number from 0 to 2^63 - 1")
    return int(value)


def layers(name: str, value: object) -> list[int]:
    """Return the sizes of layers. Raises ConfigError for anything but a sequence of whole numbers of at least 1."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise ConfigError(f"{name} is {value!r}; give the sizes of layers, such as (32, 32), or () for none")
    return [count(name, size) for size in value]


def text(name: str, value: object) -> str:
    """Return a name. Raises ConfigError for anything but text."""
    if not isinstance(value, str):
        raise ConfigError(f"{name} is {value!r}; give its name, in quotes")
    return value
