"""Small spaces, and past studies of a function, for the tests of the tuner's default."""

import numpy as np

from metabo.data.history import description as descriptions
from metabo.data.history.past import past_of
from metabo.data.history.read import History
from metabo.data.history.rows import Trial

MIXED = {
    "rate": {"type": "float", "low": 1.0e-4, "high": 1.0, "scale": "log"},
    "layers": {"type": "int", "low": 1, "high": 6},
    "width": {"type": "int", "low": 4, "high": 64, "scale": "log"},
    "two": {"type": "int", "low": 3, "high": 4},
    "batch": {"type": "ordinal", "choices": [16, 32, 64]},
    "solver": {"type": "categorical", "choices": ["sgd", "adam", "lbfgs"]},
    "momentum": {"type": "float", "low": 0.0, "high": 0.9, "when": {"solver": "sgd"}},
    "deep": {"type": "float", "low": 0.0, "high": 1.0, "when": {"batch": [16, 64]}},
    "nested": {"type": "categorical", "choices": [True, False], "when": {"solver": ["sgd", "adam"]}},
}
FLAT = {name: {"type": "float", "low": 0.0, "high": 1.0} for name in ("a", "b", "c")}
GRID = {"a": {"type": "int", "low": 0, "high": 5}, "b": {"type": "categorical", "choices": ["x", "y"]}}


def space(parameters, goal="maximise", scale="linear"):
    """Return a description with these parameters."""
    outcome = {"column": "y", "goal": goal, "scale": scale}
    return descriptions.of_mapping({"study": "study", "outcome": outcome, "parameters": parameters}, "space.yaml")


def bowl(best):
    """Return a function of the unit cube of `FLAT`, to be maximised, with its best 0 at `best`."""
    return lambda c: -sum((c[name] - at) ** 2 for name, at in zip(FLAT, best, strict=True))


def waves(rng):
    """Return a random smooth function of the unit cube of `FLAT`: about a GP with length-scale 1/3."""
    frequency, phase, size = 3.0 * rng.normal(size=(64, 3)), rng.uniform(0.0, 2 * np.pi, 64), rng.normal(size=64)
    return lambda c: float(size @ np.cos(frequency @ [c[name] for name in FLAT] + phase)) * 32**-0.5


def studies(described, functions, trials=20, seed=0):
    """Return past studies with random trials of these functions."""
    rng, found = np.random.default_rng(seed), []
    for number, function in enumerate(functions):
        for c in described.at(rng.random((trials, len(described.fields)))):
            found.append(Trial(len(found) + 1, f"study {number}", c, float(function(c))))
    return past_of("history", History(found, [], []), described)
