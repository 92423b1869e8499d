"""The inputs and results of suggestions: the types that all ways of suggesting share."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from jaxtyping import Float, PyTree

from metabo.data.history.account import several
from metabo.data.history.description import Configuration, Description
from metabo.data.history.fields import Field, Value
from metabo.data.history.past import Scale
from metabo.errors import ConfigError
from metabo.plan.specs import MethodSpec


class Prior(NamedTuple):
    """The source of suggestions: the space, the scale of its outcomes (None if there is no past study), the
    specification of the method, and its parameters."""

    description: Description
    scale: Scale | None
    spec: MethodSpec
    params: PyTree


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`: all of them, or with a `step` those that lie whole steps above `low`."""

    low: float
    high: float
    step: float = 0.0

    @property
    def options(self) -> float:
        """Number of values, infinite without a step."""
        return round((self.high - self.low) / self.step) + 1 if self.step else math.inf

    def nearest(self, number: float) -> float:
        """Return the value that is nearest to a number."""
        inside = min(max(number, self.low), self.high)
        return min(self.low + round((inside - self.low) / self.step) * self.step, self.high) if self.step else inside

    def values(self) -> list[float]:
        """Return all values of a range with a step."""
        return [min(self.low + place * self.step, self.high) for place in range(int(self.options))]


Kept: TypeAlias = Collection[Value] | Range
Only: TypeAlias = Mapping[str, Kept]
"""What suggestions keep to, by parameter: some of its values, or a range; one that is not named may take all."""
ALL: Only = MappingProxyType({})


ROUNDING = 1e-12
"""What a coordinate of the unit cube loses in rounding, at most."""


def too_few(space: str, left: int, count: int) -> ConfigError:
    """Build the error for a space that has fewer configurations left than are asked for."""
    if not left:
        return ConfigError(
            f"space '{space}': no configuration is left that is neither evaluated nor running: the space has been "
            "tried out; stop here, or widen it"
        )
    are = "is" if left == 1 else "are"
    return ConfigError(
        f"space '{space}': {several(left, 'configuration')} {are} left that {are} neither evaluated nor running, "
        f"{count} are asked for; ask for fewer, or widen the space"
    )


def everything(description: Description, only: Only, most: int) -> list[Configuration] | None:
    """Return all configurations that keep to `only` if these are at most `most` combinations of values, else None."""
    if not only:
        return description.every(most)
    fields = {field.name: field for field in description.fields}
    if math.prod(_options(field, only.get(name)) for name, field in fields.items()) > most:
        return None
    grid = itertools.product(*(_values(field, only.get(name)) for name, field in fields.items()))
    found = [description.used(dict(zip(fields, values, strict=True))) for values in grid]
    return [dict(items) for items in dict.fromkeys(tuple(one.items()) for one in found)]


def _options(field: Field, kept: Kept | None) -> float:
    if kept is None:
        return field.options
    return kept.options if isinstance(kept, Range) else len(kept)


def _values(field: Field, kept: Kept | None) -> Sequence[Value]:
    """Return the values that are kept, in the order that the space has them in."""
    if kept is None:
        return field.values()
    if isinstance(kept, Range):
        return [round(one) for one in kept.values()] if field.kind == "int" else kept.values()
    return sorted(kept, key=field.unit)


def projected(
    description: Description, units: Float[np.ndarray, "n p"], only: Only, near: bool = False
) -> Float[np.ndarray, "n p"]:
    """Return points of the cube that has one coordinate per parameter, with values that are left out changed into
    others: into each equally often, if the points are even. `near`: numbers are changed into the nearest one."""
    out = units.copy()
    for place, field in enumerate(description.fields):
        if field.name not in only:
            continue
        kept = only[field.name]
        if field.choices:
            out[:, place] = _chosen(field, units[:, place], cast(Collection[Value], kept))
        else:
            even = units[:, place] if near else _spread(field, units[:, place], kept)
            out[:, place] = [_nearest(field, one, kept) for one in even.tolist()]
    return out


def _chosen(field: Field, units: Float[np.ndarray, " n"], only: Collection[Value]) -> Float[np.ndarray, " n"]:
    kept = np.array([i for i, choice in enumerate(field.choices) if choice in only])
    share = units * len(field.choices)
    now = np.minimum(np.floor(share), len(field.choices) - 1)
    other = kept[np.minimum(((share - now) * len(kept)).astype(int), len(kept) - 1)]
    return np.where(np.isin(now, kept), units, (other + 0.5) / len(field.choices))


def _spread(field: Field, units: Float[np.ndarray, " n"], kept: Kept) -> Float[np.ndarray, " n"]:
    """Move what lies outside to even places inside; what lies inside a range stays."""
    if not isinstance(kept, Range):
        places = np.array([field.unit(value) for value in sorted(kept, key=field.unit)])
        return places[np.minimum((units * len(places)).astype(int), len(places) - 1)]
    half = 0.5 if field.kind == "int" else 0.0
    low, high = np.clip([field.unit(kept.low - half), field.unit(kept.high + half)], 0.0, 1.0)
    below, above = units < low - ROUNDING, units > high + ROUNDING
    outside = np.where(below, units, units - (high - low)) / max(1.0 - (high - low), ROUNDING)
    return np.where(below | above, low + outside * (high - low), units)


def _nearest(field: Field, unit: float, kept: Kept) -> float:
    value = field.at(unit)
    if isinstance(kept, Range):
        to: Value = kept.nearest(cast(float, value))
    else:
        to = min(kept, key=lambda one: abs(field.unit(one) - unit))
    return unit if to == value else field.unit(to)


class Told(NamedTuple):
    """Trials of the current study: finished ones with their outcomes (NaN: failed), and running ones."""

    done: list[Configuration]
    outcomes: list[float]
    running: list[Configuration]


class Suggestion(NamedTuple):
    """A configuration with its predicted outcome, as median and central 90 % interval. These are NaN if the method
    makes no predictions, or while the scale of the outcomes is unknown."""

    configuration: Configuration
    median: float
    low: float
    high: float
