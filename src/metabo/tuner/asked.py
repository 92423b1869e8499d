"""What an Optuna objective asks for, in terms of the prior's space: narrower ranges, steps, and other choices.

Optuna itself only compares ranges, and rejects any difference. Here, a number moves to the nearest one that the
objective allows, and choices are limited to those that both have.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from metabo.data.history.fields import Field, Value
from metabo.data.imports.optuna_ranges import level
from metabo.errors import ConfigError
from metabo.tuner.asking import Only


def distribution(field: Field) -> BaseDistribution:
    """Return Optuna's distribution of a parameter. An ordinal parameter is categorical in Optuna."""
    if field.choices:
        return CategoricalDistribution(field.choices)
    if field.kind == "int":
        return IntDistribution(int(field.low), int(field.high), log=field.log)
    return FloatDistribution(field.low, field.high, log=field.log)


def moved(number: float, to: FloatDistribution | IntDistribution) -> float | int:
    """Return the value of a distribution that is nearest to a number."""
    inside = min(max(number, to.low), to.high)
    if to.step is not None:
        inside = min(to.low + round((inside - to.low) / to.step) * to.step, to.high)
    return round(inside) if isinstance(to, IntDistribution) else inside


def called(field: Field, choice: object) -> Value:
    """Return the space's value for a choice of Optuna's, which may be None. Raises ValueError if the space has no such
    value."""
    try:
        return field.read(cast(Value, choice))  # or else it raises
    except ValueError:
        return field.read(level(choice))


def offered(field: Field, choices: Iterable[object]) -> dict[Value, object]:
    """Return the choices that the space has too, keyed by the space's value for each."""
    found: dict[Value, object] = {}
    for choice in choices:
        try:
            found.setdefault(called(field, choice), choice)
        except ValueError:
            continue
    return found


def nearest(field: Field, number: Value, to: Mapping[Value, object]) -> object:
    """Return the choice that is nearest to a number of the space."""
    return to[min(to, key=lambda one: abs(field.unit(one) - field.unit(number)))]


def required(field: Field, asked: BaseDistribution) -> dict[Value, object]:
    """Return the choices that the objective and the space both have. Raises ConfigError if there is none, or if the
    objective asks for numbers where the space has choices."""
    found = offered(field, asked.choices) if isinstance(asked, CategoricalDistribution) else {}
    if not found:
        raise ConfigError(
            f"parameter '{field.name}': the objective asks for {asked}, and the prior's space has {field.allowed}: no "
            "value is in both; ask for values of the space, or change them in space.yaml and learn the prior again"
        )
    return found


def narrowed(fields: Mapping[str, Field], trials: Iterable[FrozenTrial]) -> Only:
    """Return, for each parameter where the objective offers only some of the space's choices, the choices that it
    offers, according to the latest trial that has the parameter."""
    left = {name for name, field in fields.items() if field.choices}
    found: dict[str, tuple[Value, ...]] = {}
    for trial in reversed(list(trials)):
        if not left:
            break
        for name, asked in trial.distributions.items():
            if name in left and isinstance(asked, CategoricalDistribution):
                found[name] = tuple(offered(fields[name], asked.choices))
        left -= set(found)
    return {name: choices for name, choices in found.items() if 0 < len(choices) < len(fields[name].choices)}
