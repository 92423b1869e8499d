"""The inputs and results of suggestions: the types that all ways of suggesting share."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, PyTree

from metabo.data.history.description import Configuration, Description
from metabo.data.history.fields import Value
from metabo.data.history.past import Scale
from metabo.plan.specs import MethodSpec


class Prior(NamedTuple):
    """The source of suggestions: the space, the scale of its outcomes (None if there is no past study), the
    specification of the method, and its parameters."""

    description: Description
    scale: Scale | None
    spec: MethodSpec
    params: PyTree


Only: TypeAlias = Mapping[str, Collection[Value]]
"""The choices that suggestions are restricted to, by parameter. A parameter that is not named may take all of its
values."""
ALL: Only = MappingProxyType({})


def within(configuration: Configuration, only: Only) -> bool:
    """Tell whether a configuration respects such a restriction. A parameter that it does not use always does."""
    return all(configuration[name] is None or configuration[name] in choices for name, choices in only.items())


def projected(description: Description, units: Float[np.ndarray, "n p"], only: Only) -> Float[np.ndarray, "n p"]:
    """Return points of the cube with one coordinate per parameter, after replacing excluded choices by allowed ones. If
    the points are evenly spread, each allowed choice is used equally often."""
    out = units.copy()
    for place, field in enumerate(description.fields):
        if field.name in only:
            kept = np.array([i for i, choice in enumerate(field.choices) if choice in only[field.name]])
            share = units[:, place] * len(field.choices)
            now = np.minimum(np.floor(share), len(field.choices) - 1)
            other = kept[np.minimum(((share - now) * len(kept)).astype(int), len(kept) - 1)]
            out[:, place] = np.where(np.isin(now, kept), out[:, place], (other + 0.5) / len(field.choices))
    return out


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
