"""The study that every tuner is asked about: a mixed space of seven parameters, past studies, and told trials."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from problem import Sizes

Trial = tuple[dict[str, Any], float]
"""A configuration and its outcome."""


@dataclass(frozen=True)
class Parameter:
    """A float or whole number from `low` to `high`, or one of `choices`."""

    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    choices: tuple[Any, ...] = ()


SPACE = {
    "learning_rate": Parameter(1e-5, 1.0, log=True),
    "weight_decay": Parameter(1e-6, 1e-1, log=True),
    "momentum": Parameter(0.0, 0.99),
    "layers": Parameter(1, 8, whole=True),
    "width": Parameter(16, 512, log=True, whole=True),
    "batch_size": Parameter(choices=(16, 32, 64, 128)),
    "optimiser": Parameter(choices=("sgd", "adam", "rmsprop")),
}


def value(parameter: Parameter, u: float) -> Any:
    """Return the value at `u` in [0, 1)."""
    if parameter.choices:
        return parameter.choices[int(u * len(parameter.choices))]
    low, high = parameter.low, parameter.high
    found = low * (high / low) ** u if parameter.log else low + (high - low) * u
    return round(found) if parameter.whole else float(found)


def trials(number: int, seed: int) -> list[Trial]:
    """Return random trials of one study; its optimum is drawn from the seed, as are configurations and noise."""
    rng = np.random.default_rng([11, seed])
    centre = rng.uniform(0.3, 0.7, len(SPACE))
    units, noise = np.split(rng.random((number, len(SPACE) + 1)), [len(SPACE)], axis=1)
    outcomes = 0.1 + np.sum((units - centre) ** 2, axis=1) + 0.02 * noise[:, 0]
    named = [{k: value(p, u) for (k, p), u in zip(SPACE.items(), row, strict=True)} for row in units]
    return list(zip(named, outcomes.tolist(), strict=True))


def told(number: int) -> list[Trial]:
    """Return the trials of the study that is tuned; a smaller number gives a prefix."""
    return trials(number, 0)


def past(sizes: Sizes) -> list[tuple[str, list[Trial]]]:
    """Return the past studies that metabo learns its prior from: name and trials."""
    return [(f"past {i}", trials(sizes.past_trials, i)) for i in range(1, sizes.past_studies + 1)]
