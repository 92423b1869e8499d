"""What suggestions are made from and what they are: the nouns that all ways of suggesting share."""

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
    """What suggestions come from: the space, the scale of its outcomes (None: no past study tells), the specification
    of the method, and its parameters."""

    description: Description
    scale: Scale | None
    spec: MethodSpec
    params: PyTree


Only: TypeAlias = Mapping[str, Collection[Value]]
"""The choices that suggestions keep to, by parameter; one that is not named may take all of its values."""
ALL: Only = MappingProxyType({})


def within(configuration: Configuration, only: Only) -> bool:
    """Tell whether a configuration keeps to some choices; a parameter that it does not use has none."""
    return all(configuration[name] is None or configuration[name] in choices for name, choices in only.items())


def projected(description: Description, units: Float[np.ndarray, "n p"], only: Only) -> Float[np.ndarray, "n p"]:
    """Return points of the cube that has one coordinate per parameter, with choices that are left out changed into
    others: into each as often, if the points are even."""
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
    """Trials of the study that is tuned: finished ones with their outcomes (NaN: failed), and running ones."""

    done: list[Configuration]
    outcomes: list[float]
    running: list[Configuration]


class Suggestion(NamedTuple):
    """A configuration with the predicted outcome: median and central 90 % interval; NaN if the method predicts none, or
    no scale of outcomes is known yet."""

    configuration: Configuration
    median: float
    low: float
    high: float
