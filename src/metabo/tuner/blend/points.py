"""Many configurations at once: from points of a cube with one coordinate per parameter to the inputs of the model."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from metabo.data.history.description import Configuration, Description
from metabo.data.history.fields import Field, Value

STEPS = (0.3, 0.15, 0.07, 0.03, 0.01)
"""Standard deviations of the steps from a centre, as shares of a parameter's range."""


class Points(NamedTuple):
    """Configurations as `units` (n, p), with one coordinate per parameter, and as `x` (n, d), the inputs of the
    model."""

    units: Float[np.ndarray, "n p"]
    x: Float[np.ndarray, "n d"]


def owners(description: Description) -> Int[np.ndarray, " d"]:
    """Return, for each column of the encoding, the position of its parameter."""
    return np.repeat(np.arange(len(description.fields)), [p.width for p in description.space.parameters])


def at(description: Description, where: Float[np.ndarray, "n p"]) -> Points:
    """Encode the configurations `description.at(where)`, with the same numbers as `description.encode`."""
    used: dict[str, Bool[np.ndarray, " n"]] = {}
    levels: dict[str, Places] = {}
    columns = []
    for place, field in enumerate(description.fields):
        u, on = where[:, place], np.ones(len(where), dtype=bool)
        if field.parent is not None:
            on = used[field.parent] & levels[field.parent].among(field.needs)
        used[field.name] = on
        levels[field.name] = Places(field, _choice(field, u) if field.choices else _number(field, u))
        columns.append(_encoded(field, levels[field.name].values, on))
    return Points(where, np.concatenate(columns, axis=1))


class Places(NamedTuple):
    """Values of a parameter, as numbers or as positions among its choices."""

    field: Field
    values: Float[np.ndarray, " n"]

    def among(self, needs: tuple[Value, ...]) -> Bool[np.ndarray, " n"]:
        """Tell which of them are among `needs`."""
        choices = self.field.choices
        wanted = [choices.index(one) for one in needs if one is not None] if choices else [*needs]
        return np.isin(self.values, np.array(wanted, dtype=np.float64))


def _choice(field: Field, u: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return np.minimum(np.floor(u * len(field.choices)), len(field.choices) - 1)


def _number(field: Field, u: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    half = 0.5 if field.kind == "int" else 0.0
    low, high = field.low - half, field.high + half
    found = np.clip(low ** (1.0 - u) * high**u if field.log else low + (high - low) * u, field.low, field.high)
    return np.rint(found) if field.kind == "int" else found


def _encoded(field: Field, values: Float[np.ndarray, " n"], on: Bool[np.ndarray, " n"]) -> Float[np.ndarray, "n w"]:
    parameter = field.parameter()
    if parameter.levels:
        place = np.where(on, values if field.choices else values - field.low, 0.0)
        shares = place / (len(parameter.levels) - 1)
        return np.eye(parameter.width)[place.astype(int)] if parameter.width > 1 else shares[:, None]
    low, high, number = (np.log(one) if field.log else one for one in (field.low, field.high, values))
    return np.where(on, np.clip((number - low) / (high - low), 0.0, 1.0), 0.0)[:, None]


def units(description: Description, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n p"]:
    """Return points that `at` encodes as x, rounded to values of the space."""
    found, start = [], 0
    for field, parameter in zip(description.fields, description.space.parameters, strict=True):
        part = x[:, start : start + parameter.width]
        start += parameter.width
        if parameter.levels:
            place = np.argmax(part, 1) if parameter.width > 1 else np.rint(part[:, 0] * (len(parameter.levels) - 1))
            found.append((place + 0.5) / len(parameter.levels))
            continue
        low, high = (np.log(one) if field.log else one for one in (field.low, field.high))
        if field.kind == "int":
            value = low + part[:, 0] * (high - low)
            whole = np.rint(np.exp(value) if field.log else value)
            low, high = (np.log(one) if field.log else one for one in (field.low - 0.5, field.high + 0.5))
            found.append(((np.log(whole) if field.log else whole) - low) / (high - low))
        else:
            found.append(part[:, 0])
    return np.stack(found, axis=1)


def of(description: Description, configurations: list[Configuration]) -> Points:
    """Return configurations as points."""
    x = description.encode(configurations)
    return Points(units(description, x), x)


def joined(one: Points, other: Points) -> Points:
    """Return the points of both."""
    return Points(np.concatenate([one.units, other.units]), np.concatenate([one.x, other.x]))


def rows(where: Points, chosen: Bool[np.ndarray, " n"] | list[int]) -> Points:
    """Return some of the points."""
    return Points(where.units[chosen], where.x[chosen])


def near(
    description: Description, centres: Float[np.ndarray, "c p"], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "n p"]:
    """Draw `count` points around the centres, which take turns. Some coordinates move, by a step of one of several
    sizes; coordinates of choices are drawn anew."""
    width = centres.shape[1]
    origin = centres[np.arange(count) % len(centres)]
    moves = rng.random((count, width)) < max(0.3, 1.5 / width)
    moves[np.arange(count), rng.integers(width, size=count)] = True
    stepped = np.clip(origin + rng.normal(size=(count, width)) * rng.choice(STEPS, size=(count, 1)), 0.0, 1.0)
    choices = np.array([bool(field.choices) for field in description.fields])
    return np.where(moves, np.where(choices, rng.random((count, width)), stepped), origin)
