"""Hyperparameters of a learner as HPO-B writes them: numbers in [0, 1] with indicators of what is absent and chosen.

A number takes one column, scaled to [0, 1] (on the log scale where it says so). A number that can be absent takes a
second column, `name.na`: 1 where absent, and the first column is then 0. A choice takes one 0/1 column per level.
"""

from dataclasses import dataclass

import numpy as np

from metabo.errors import DataError

Value = float | int | str | None
Params = dict[str, Value]

FILLER = 0.0
"""Content of the column of a number that is absent."""


@dataclass(frozen=True)
class Number:
    """A number in [low, high]. It is absent (None) unless the choice `when[0]` takes the level `when[1]`; or, where
    `absent` is given instead, in that share of the drawn configurations (the learner's own default applies then)."""

    name: str
    low: float
    high: float
    log: bool = False
    integer: bool = False
    absent: float = 0.0
    when: tuple[str, str] | None = None


@dataclass(frozen=True)
class Choice:
    """One of several levels, equally likely."""

    name: str
    levels: tuple[str, ...]


Space = tuple[Number | Choice, ...]


def columns(space: Space) -> tuple[str, ...]:
    """Name the encoded columns in their order."""
    out: list[str] = []
    for p in space:
        if isinstance(p, Choice):
            out += [f"{p.name}.{level}" for level in p.levels]
        else:
            out += [p.name, f"{p.name}.na"] if _nullable(p) else [p.name]
    return tuple(out)


def coordinates(space: Space) -> int:
    """Return the dimension of the cube that `resolve` reads: one per parameter, one more per optional number."""
    return len(space) + sum(isinstance(p, Number) and p.absent > 0 for p in space)


def resolve(space: Space, u: np.ndarray) -> Params:
    """Turn a point of the cube, (coordinates,) in [0, 1), into parameters; absent ones are None."""
    left = iter(u)
    params: Params = {}
    for p in space:
        at = float(next(left))
        params[p.name] = p.levels[int(at * len(p.levels))] if isinstance(p, Choice) else _from_unit(p, at)
        if isinstance(p, Number) and p.absent > 0 and float(next(left)) < p.absent:
            params[p.name] = None
    return {p.name: params[p.name] if _active(p, params) else None for p in space}


def encode(space: Space, params: Params) -> np.ndarray:
    """Return the row (columns,) float32 of some parameters. Raises DataError if one is missing or cannot be."""
    row: list[float] = []
    for p in space:
        if p.name not in params:
            raise DataError(f"configuration lacks '{p.name}'; it has {', '.join(params)}")
        value = params[p.name]
        if isinstance(p, Choice):
            if value not in p.levels:
                raise DataError(f"parameter {p.name}={value!r}; its levels are {', '.join(p.levels)}")
            row += [float(value == level) for level in p.levels]
        elif value is None:
            _check_absent(p, params, absent=True)
            row += [FILLER, 1.0]
        else:
            _check_absent(p, params, absent=False)
            row += [_to_unit(p, float(value)), 0.0] if _nullable(p) else [_to_unit(p, float(value))]
    return np.array(row, dtype=np.float32)


def decode(space: Space, row: np.ndarray) -> Params:
    """Return the parameters of an encoded row (columns,). Raises DataError for a row that no configuration has."""
    names = columns(space)
    if np.shape(row) != (len(names),):
        raise DataError(f"encoded row of shape {np.shape(row)}; the {len(names)} columns are {', '.join(names)}")
    cells: dict[str, float] = {name: float(v) for name, v in zip(names, row, strict=True)}
    if bad := [name for name, v in cells.items() if not 0 <= v <= 1]:
        raise DataError(f"encoded row: {bad[0]}={cells[bad[0]]} is outside [0, 1]")
    params: Params = {p.name: _chosen(p, cells) if isinstance(p, Choice) else _number(p, cells) for p in space}
    for p in space:
        if isinstance(p, Number):
            _check_absent(p, params, absent=params[p.name] is None)
    return params


def _chosen(p: Choice, cells: dict[str, float]) -> str:
    shown = {level: cells[f"{p.name}.{level}"] for level in p.levels}
    if sorted(shown.values()) != [0.0] * (len(shown) - 1) + [1.0]:
        raise DataError(f"encoded row: the columns of {p.name} are {shown}; exactly one must be 1 and the others 0")
    return max(shown, key=shown.__getitem__)


def _number(p: Number, cells: dict[str, float]) -> Value:
    missing = cells.get(f"{p.name}.na", 0.0)
    if missing not in (0.0, 1.0) or (missing and cells[p.name] != FILLER):
        raise DataError(f"encoded row: {p.name}={cells[p.name]}, {p.name}.na={missing}; absent is {FILLER} and 1")
    return None if missing else _from_unit(p, cells[p.name])


def _check_absent(p: Number, params: Params, absent: bool) -> None:
    """Refuse a number that is absent where it is needed, or present where it has no meaning."""
    needed = not _nullable(p) or (p.when is not None and _active(p, params))
    if absent and needed:
        raise DataError(f"parameter {p.name} is absent; this configuration needs it")
    if not absent and not _active(p, params):
        raise DataError(f"parameter {p.name} is given; it has a meaning only where {' is '.join(p.when or ())}")


def _active(p: Number | Choice, params: Params) -> bool:
    return isinstance(p, Choice) or p.when is None or params.get(p.when[0]) == p.when[1]


def _nullable(p: Number) -> bool:
    return p.when is not None or p.absent > 0


def _from_unit(p: Number, u: float) -> float | int:
    value = p.low * (p.high / p.low) ** u if p.log else p.low + (p.high - p.low) * u
    return round(value) if p.integer else min(max(value, p.low), p.high)


def _to_unit(p: Number, value: float) -> float:
    if not p.low <= value <= p.high:
        raise DataError(f"parameter {p.name}={value} is outside [{p.low}, {p.high}]")
    return float(np.log(value / p.low) / np.log(p.high / p.low)) if p.log else (value - p.low) / (p.high - p.low)
