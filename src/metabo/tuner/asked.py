"""What an Optuna objective asks for, in terms of the prior's space: narrower ranges, steps, and other choices.

Optuna itself compares ranges only, and refuses whatever differs. Here, the values that both have count, up to rounding:
a grid of Optuna's has 0.30000000000000004 where a space has 0.3.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from metabo.data.history.description import Configuration, Description
from metabo.data.history.fields import Field, Value
from metabo.data.imports.optuna_ranges import level
from metabo.errors import ConfigError
from metabo.tuner.asking import Kept, Only, Range

Numbers: TypeAlias = FloatDistribution | IntDistribution
Both: TypeAlias = Mapping[Value, object] | Range
"""The values that the objective and the space both have: what the objective calls each, or a range of numbers."""

CLOSE = 1e-9
"""Numbers are the same if they differ by this part of them, of their range or of a step at most."""
SEARCHED = 10_000
"""Steps of a grid among which whole numbers are looked for."""


def distribution(field: Field) -> BaseDistribution:
    """Return Optuna's distribution of a parameter. An ordinal parameter is categorical in Optuna."""
    if field.choices:
        return CategoricalDistribution(field.choices)
    if field.kind == "int":
        return IntDistribution(int(field.low), int(field.high), log=field.log)
    return FloatDistribution(field.low, field.high, log=field.log)


def moved(number: float, to: Numbers) -> float | int:
    """Return the number of a distribution that is nearest to a number."""
    inside = Range(to.low, to.high, to.step or 0.0).nearest(number)
    return round(inside) if isinstance(to, IntDistribution) else inside


def called(field: Field, choice: object) -> Value:
    """Return what the space calls a value of Optuna's, which may be None, or off by rounding. Raises ValueError if it
    has no such value."""
    try:
        return field.read(cast(Value, choice))  # or else it raises
    except ValueError:
        number = isinstance(choice, int | float) and not isinstance(choice, bool) and math.isfinite(choice)
        return field.read(_rounded(field, cast(float, choice)) if number else level(choice))


def _rounded(field: Field, number: float) -> Value:
    """Return the value of the space that a number is up to rounding, or the number."""
    if field.kind == "int":
        return round(number) if math.isclose(number, round(number), rel_tol=CLOSE, abs_tol=CLOSE) else number
    if not field.choices or not field.numeric:
        return number
    choices = cast("tuple[float, ...]", field.choices)
    near = min(choices, key=lambda one: abs(one - number))
    gap = min((abs(one - near) for one in choices if one != near), default=abs(near))
    return near if abs(near - number) <= (min(CLOSE * abs(near), 1e-6 * gap) if near else CLOSE * gap) else number


def offered(field: Field, choices: Iterable[object]) -> dict[Value, object]:
    """Return the values that the space has too, by what it calls each."""
    found: dict[Value, object] = {}
    for choice in choices:
        try:
            found.setdefault(called(field, choice), choice)
        except ValueError:
            continue
    return found


def values(fields: Mapping[str, Field], parameters: Mapping[str, object]) -> Configuration:
    """Return the values that the space has, as it calls them."""
    found = {name: offered(fields[name], [value]) for name, value in parameters.items() if name in fields}
    return {name: next(iter(called)) for name, called in found.items() if called}


def both(field: Field, asked: BaseDistribution) -> Both:
    """Return the values that the objective and the space both have; an empty dict if there are none."""
    if isinstance(asked, CategoricalDistribution):
        return offered(field, asked.choices)
    if not isinstance(asked, FloatDistribution | IntDistribution) or not field.numeric:
        return {}
    if not field.choices:
        return _range(field, asked) or {}
    near = {choice: moved(cast(float, choice), asked) for choice in field.choices}
    return {choice: number for choice, number in near.items() if choice in offered(field, [number])}


def _range(field: Field, asked: Numbers) -> Range | None:
    """Return the numbers of a range that the space has, None if there are none."""
    start, top, step = float(asked.low), float(asked.high), float(asked.step or 0.0)
    if field.kind == "int" and step and not (start.is_integer() and step.is_integer()):
        if not (whole := _whole(start, top, step)):
            return None
        start, top, step = (whole[0], top, whole[1] - whole[0]) if len(whole) > 1 else (*whole, *whole, 0.0)
    if field.kind == "int" and not step:
        start, top, step = math.ceil(start - CLOSE), math.floor(top + CLOSE), 1.0
    if step:
        first = max(0, math.ceil((field.low - start) / step - CLOSE))
        last = math.floor((min(top, field.high) - start) / step + CLOSE)
        return Range(start + first * step, start + last * step, step) if first <= last else None
    low = field.low if field.same(start, field.low) else max(start, field.low)
    high = field.high if field.same(top, field.high) else min(top, field.high)
    return Range(min(low, high), high) if low <= high or field.same(low, high) else None


def _whole(start: float, top: float, step: float) -> list[float]:
    """Return the first two whole numbers of a grid; the others follow at the same distance."""
    places = range(min(SEARCHED, math.floor((top - start) / step + CLOSE) + 1))
    grid = (start + place * step for place in places)
    return list(itertools.islice((float(round(n)) for n in grid if abs(n - round(n)) <= CLOSE * max(1.0, abs(n))), 2))


def required(field: Field, asked: BaseDistribution) -> Both:
    """Return the values that the objective and the space both have. Raises ConfigError if there is none, or if it asks
    for numbers where the space has none."""
    if not (found := both(field, asked)):
        raise ConfigError(
            f"parameter '{field.name}': the objective asks for {asked}, and the prior's space has {field.allowed}: no "
            "value is in both; ask for values of the space, or change them in space.yaml and learn the prior again"
        )
    return found


def close(field: Field, one: Value, other: Value) -> bool:
    """Tell whether two values of the space are the same up to rounding."""
    if one is None or other is None or field.choices:
        return one == other
    return abs(field.unit(one) - field.unit(other)) <= CLOSE


def nearest(field: Field, value: Value, asked: BaseDistribution, to: Both) -> Value:
    """Return the value of the space that is nearest to one, among those that both have."""
    if isinstance(to, Range):
        number = moved(to.nearest(cast(float, value)), cast(Numbers, asked))
        return next(iter(offered(field, [number])), number)
    return value if value in to else min(to, key=lambda one: abs(field.unit(one) - field.unit(value)))


def given(value: Value, asked: BaseDistribution, to: Both) -> object:
    """Return what the objective calls a value that both have."""
    return moved(cast(float, value), cast(Numbers, asked)) if isinstance(to, Range) else to[value]


def others(asked: BaseDistribution, to: Both) -> list[object]:
    """Return the choices of the objective that the space does not have."""
    had = [] if isinstance(to, Range) else list(to.values())
    return [choice for choice in getattr(asked, "choices", ()) if choice not in had]


def kept(field: Field, to: Both) -> Kept | None:
    """Return what suggestions keep to; None if they may take all values of the space, or there is none."""
    if not isinstance(to, Range):
        return tuple(to) if 0 < len(to) < field.options else None
    whole = (to.low, to.high, to.step) == (field.low, field.high, 1.0 if field.kind == "int" else 0.0)
    return None if whole else to


def differs(field: Field, asked: BaseDistribution, to: Both) -> bool:
    """Tell whether the objective and the space have other values, up to rounding."""
    if not isinstance(to, Range):
        return len(to) < max(field.options, _options(asked))
    own, numbers = cast(Numbers, distribution(field)), cast(Numbers, asked)
    ends = (own.low, numbers.low), (own.high, numbers.high)
    return type(own) is not type(asked) or own.step != numbers.step or not all(field.same(*pair) for pair in ends)


def _options(asked: BaseDistribution) -> float:
    if isinstance(asked, CategoricalDistribution):
        return len(asked.choices)
    return Range(cast(Numbers, asked).low, cast(Numbers, asked).high, cast(Numbers, asked).step or 0.0).options


def latest(fields: Mapping[str, Field], trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return what the objective asks for of each parameter: as the latest of the trials was asked."""
    found: dict[str, BaseDistribution] = {}
    for trial in reversed(list(trials)):
        if len(found) == len(fields):
            break
        found = {**{name: asked for name, asked in trial.distributions.items() if name in fields}, **found}
    return found


def narrowed(fields: Mapping[str, Field], ranges: Mapping[str, BaseDistribution]) -> Only:
    """Return what suggestions keep to, where the objective does not ask for all values of the space."""
    found = {name: kept(fields[name], both(fields[name], asked)) for name, asked in ranges.items()}
    return {name: one for name, one in found.items() if one is not None}


def settled(
    fields: Mapping[str, Field], configuration: Configuration, ranges: Mapping[str, BaseDistribution]
) -> Configuration:
    """Return a configuration with the values that the objective will be given, as the space calls them."""
    out = dict(configuration)
    for name, asked in ranges.items():
        if out.get(name) is not None and (found := both(fields[name], asked)):
            out[name] = nearest(fields[name], out[name], asked, found)
    return out


def strangers(space: Description, trials: Iterable[FrozenTrial]) -> ConfigError:
    """Build the error for an objective that asks for no parameter of the space."""
    named = dict.fromkeys(name for trial in trials for name in trial.params)
    known = ", ".join(field.name for field in space.fields)
    return ConfigError(
        f"the objective asks for no parameter of the prior's space '{space.name}': it asks for {', '.join(named)}, the "
        f"space has {known}; use these names, or make a prior for yours"
    )
