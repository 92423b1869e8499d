"""What suggestions are made from and what they are: the nouns that all ways of suggesting share."""

from typing import NamedTuple

from jaxtyping import PyTree

from metabo.data.history.description import Configuration, Description
from metabo.data.history.past import Scale
from metabo.plan.specs import MethodSpec


class Prior(NamedTuple):
    """What suggestions come from: the space, the scale of its outcomes (None: no past study tells), the specification
    of the method, and its parameters."""

    description: Description
    scale: Scale | None
    spec: MethodSpec
    params: PyTree


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
