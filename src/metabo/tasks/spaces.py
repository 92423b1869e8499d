"""Search spaces: named, typed parameters and their map to the unit cube.

Numeric parameters are warped (linear or log) and scaled to [0, 1]; ordinal ones become their rank divided by (levels -
1); categorical ones become one-hot columns. `SearchSpace.encode` and `decode` are inverses of each other on the domain
of the parameters.
"""

from dataclasses import dataclass
from typing import NotRequired, TypedDict

import numpy as np

from metabo.errors import DataError

Level = str | int | float | bool
"""A value of an ordinal or categorical parameter."""


class ParameterJson(TypedDict):
    """`Parameter` as stored in files."""

    name: str
    kind: str
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    levels: NotRequired[list[Level]]


class SpaceJson(TypedDict):
    """`SearchSpace` as stored in files."""

    name: str
    parameters: list[ParameterJson]


@dataclass(frozen=True)
class Parameter:
    """One dimension. `kind`: "linear", "log" (low and high given), "ordinal" or "categorical" (levels given)."""

    name: str
    kind: str
    low: float | None = None
    high: float | None = None
    levels: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        if self.kind in ("linear", "log"):
            if self.low is None or self.high is None or not self.low < self.high:
                raise DataError(f"parameter '{self.name}': needs low < high, got {self.low}, {self.high}")
            if self.kind == "log" and self.low <= 0:
                raise DataError(f"parameter '{self.name}': a log scale needs low > 0, got {self.low}")
        elif self.kind in ("ordinal", "categorical"):
            if len(self.levels) < 2:
                raise DataError(f"parameter '{self.name}': needs at least two levels, got {list(self.levels)}")
        else:
            raise DataError(f"parameter '{self.name}': unknown kind '{self.kind}' (linear, log, ordinal, categorical)")

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return len(self.levels) if self.kind == "categorical" else 1

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest value. Raises DataError for a parameter with levels."""
        if self.low is None or self.high is None:
            raise DataError(f"parameter '{self.name}': of kind {self.kind}, it has levels and no bounds")
        return self.low, self.high

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Map n raw values to an (n, width) float64 array in [0, 1]. Raises DataError, which names the first bad
        row."""
        if self.kind in ("linear", "log"):
            low, high = self.bounds
            raw = np.asarray(values, dtype=np.float64)
            warp = np.log if self.kind == "log" else np.asarray
            with np.errstate(divide="ignore", invalid="ignore"):
                unit = (warp(raw) - warp(low)) / (warp(high) - warp(low))
            scale = " (log scale)" if self.kind == "log" else ""
            self._refuse(~((unit >= -1e-9) & (unit <= 1 + 1e-9)), values, f"outside [{low}, {high}]{scale}")
            return np.clip(unit, 0.0, 1.0)[:, None]
        rank = {level: i for i, level in enumerate(self.levels)}
        ranks = np.array([rank.get(v, -1) for v in np.asarray(values, dtype=object)])
        self._refuse(ranks < 0, values, f"not one of {list(self.levels)}")
        if self.kind == "ordinal":
            return (ranks / (len(self.levels) - 1)).astype(np.float64)[:, None]
        return np.eye(len(self.levels))[ranks]

    def decode(self, unit: np.ndarray) -> np.ndarray:
        """Map an (n, width) array in the unit cube back to n raw values (nearest level for discrete kinds)."""
        if self.kind == "linear":
            low, high = self.bounds
            return low + unit[:, 0] * (high - low)
        if self.kind == "log":
            low, high = (np.log(bound) for bound in self.bounds)
            return np.exp(low + unit[:, 0] * (high - low))
        if self.kind == "ordinal":
            ranks = np.rint(unit[:, 0] * (len(self.levels) - 1)).astype(int)
        else:
            ranks = np.argmax(unit, axis=1)
        return np.array(self.levels, dtype=object)[ranks]

    def _refuse(self, bad: np.ndarray, values: np.ndarray, why: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            where = f", row {row}" if len(bad) > 1 else ""
            raise DataError(f"parameter '{self.name}'{where}: value {np.asarray(values).tolist()[row]!r} is {why}")


@dataclass(frozen=True)
class SearchSpace:
    """An ordered set of parameters."""

    name: str
    parameters: tuple[Parameter, ...]

    @property
    def dim(self) -> int:
        """Number of encoded columns d."""
        return sum(p.width for p in self.parameters)

    def encode(self, columns: dict[str, np.ndarray]) -> np.ndarray:
        """Map raw columns (name -> n values) to an (n, d) array in the unit cube. Raises DataError for a missing column
        or a value outside its parameter's domain."""
        missing = [p.name for p in self.parameters if p.name not in columns]
        if missing:
            raise DataError(f"space '{self.name}': missing columns {missing}; found {sorted(columns)}")
        return np.hstack([p.encode(np.asarray(columns[p.name])) for p in self.parameters])

    def decode(self, unit: np.ndarray) -> dict[str, np.ndarray]:
        """Map an (n, d) array in the unit cube back to raw columns."""
        columns, start = {}, 0
        for p in self.parameters:
            columns[p.name] = p.decode(unit[:, start : start + p.width])
            start += p.width
        return columns

    def to_json(self) -> SpaceJson:
        """Return the space as stored in files."""
        return {
            "name": self.name,
            "parameters": [
                {"name": p.name, "kind": p.kind, "low": p.low, "high": p.high, "levels": list(p.levels)}
                for p in self.parameters
            ],
        }

    @classmethod
    def from_json(cls, data: SpaceJson) -> "SearchSpace":
        """Inverse of `to_json`. Raises DataError for a parameter without a name or a kind."""
        for number, parameter in enumerate(data["parameters"]):
            if lacking := [field for field in ("name", "kind") if field not in parameter]:
                raise DataError(
                    f"space '{data['name']}', parameter {parameter.get('name', number)}: no field '{lacking[0]}'; "
                    "describe it in the loader (kind: linear, log, ordinal, categorical)"
                )
        parameters = tuple(
            Parameter(p["name"], p["kind"], p.get("low"), p.get("high"), tuple(p.get("levels", ())))
            for p in data["parameters"]
        )
        return cls(data["name"], parameters)
