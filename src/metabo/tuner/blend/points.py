"""Many configurations at once: from points of a cube with one coordinate per parameter to what the model sees."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from metabo.data.history.description import Configuration, Description
from metabo.data.history.fields import Field

STEPS = (0.3, 0.15, 0.07, 0.03, 0.01)
"""Standard deviations of the steps from a centre, of a parameter's range."""


class Points(NamedTuple):
    """Configurations as `units` (n, p), one coordinate per parameter, and as `x` (n, d), what the model sees."""

    units: Float[np.ndarray, "n p"]
    x: Float[np.ndarray, "n d"]


def owners(description: Description) -> Int[np.ndarray, " d"]:
    """Return for each column of the encoding the position of its parameter."""
    return np.repeat(np.arange(len(description.fields)), [p.width for p in description.space.parameters])


def at(description: Description, units: Float[np.ndarray, "n p"]) -> Points:
    """Encode the configurations `description.at(units)`: the same numbers as `description.encode` gives of them."""
    used: dict[str, Bool[np.ndarray, " n"]] = {}
    ranks: dict[str, Int[np.ndarray, " n"]] = {}
    columns = []
    for place, field in enumerate(description.fields):
        u = units[:, place]
        on = np.ones(len(u), dtype=bool)
        if field.parent is not None:
            parent = next(one for one in description.fields if one.name == field.parent)
            levels = parent.values()
            needed = np.array([level in field.needs for level in levels])
            on = used[parent.name] & needed[ranks[parent.name]]
        used[field.name] = on
        if field.options < np.inf:
            ranks[field.name] = _ranks(field, u)
        columns.append(_encoded(field, u, ranks.get(field.name), on))
    return Points(units, np.concatenate(columns, axis=1) if columns else np.zeros((len(units), 0)))


def _ranks(field: Field, u: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return the position of each value among `field.values()`."""
    if field.choices:
        return np.minimum((u * len(field.choices)).astype(int), len(field.choices) - 1)
    return np.rint(_numbers(field, u)).astype(int) - int(field.low)


def _numbers(field: Field, u: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    half = 0.5 if field.kind == "int" else 0.0
    low, high = field.low - half, field.high + half
    found = low * (high / low) ** u if field.log else low + (high - low) * u
    return np.clip(found, field.low, field.high)


def _encoded(
    field: Field, u: Float[np.ndarray, " n"], rank: Int[np.ndarray, " n"] | None, on: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, "n w"]:
    parameter = field.parameter()
    if parameter.levels:
        place = np.where(on, rank, 0)
        return np.eye(parameter.width)[place] if parameter.width > 1 else (place / (len(parameter.levels) - 1))[:, None]
    value = _numbers(field, u) if rank is None else rank + field.low
    warp = np.log if field.log else np.asarray
    low, high = warp(field.low), warp(field.high)
    return np.where(on, np.clip((warp(value) - low) / (high - low), 0.0, 1.0), 0.0)[:, None]


def near(
    description: Description, centres: Float[np.ndarray, "c p"], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "n p"]:
    """Draw `count` points around the centres, in turn: some coordinates move, by a step of one of several sizes; those
    of choices are drawn anew."""
    width = centres.shape[1]
    origin = centres[np.arange(count) % len(centres)]
    moves = rng.random((count, width)) < max(0.3, 1.5 / width)
    moves[np.arange(count), rng.integers(width, size=count)] = True
    stepped = np.clip(origin + rng.normal(size=(count, width)) * rng.choice(STEPS, size=(count, 1)), 0.0, 1.0)
    choices = np.array([bool(field.choices) for field in description.fields])
    return np.where(moves, np.where(choices, rng.random((count, width)), stepped), origin)


def of(description: Description, configurations: list[Configuration]) -> Points:
    """Return configurations as points."""
    units = [description.units(one) for one in configurations]
    width = len(description.fields)
    return Points(np.array(units).reshape(len(units), width), description.encode(configurations))
