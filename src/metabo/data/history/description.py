"""``space.yaml``: the parameters that a user tunes, the number that comes out, and the columns that hold them.

A configuration is a dict from parameter to value; a parameter that is not in use (`when`) is None. To the model it is
a point of `SearchSpace`'s unit cube, where an unused parameter takes its lowest value or first choice.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, cast

import numpy as np
import yaml
from jaxtyping import Float

from metabo.data.history.fields import Field, Value
from metabo.errors import ConfigError, DataError, nearest
from metabo.plan.schema import plain_number, violations
from metabo.plan.yaml_files import compose, read_yaml
from metabo.tasks.spaces import Level, SearchSpace

SCHEMA = Path(__file__).with_name("space.schema.yaml")
Configuration = dict[str, Value]
LARGEST = 1e300
"""Bounds of a float, and outcomes, are no larger than this; differences of larger numbers may be infinite."""
WHOLE = 2**53
"""Whole numbers up to this size are floats without rounding."""
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
"""Numbers with an exponent; YAML takes those without a dot, or without a sign of the exponent, for text."""


class OutcomeYaml(TypedDict):
    """`outcome` of ``space.yaml``."""

    column: str
    goal: Literal["minimise", "maximise"]
    scale: NotRequired[Literal["linear", "log"]]


class ParameterYaml(TypedDict):
    """A parameter of ``space.yaml``."""

    type: Literal["float", "int", "ordinal", "categorical"]
    low: NotRequired[float]
    high: NotRequired[float]
    scale: NotRequired[Literal["linear", "log"]]
    choices: NotRequired[list[Level]]
    when: NotRequired[dict[str, Level | list[Level]]]


class SpaceYaml(TypedDict):
    """What ``space.yaml`` says (``space.schema.yaml``)."""

    name: NotRequired[str]
    study: str
    outcome: OutcomeYaml
    ignore: NotRequired[list[str]]
    parameters: dict[str, ParameterYaml]


@dataclass(frozen=True)
class Description:
    """A search space and the columns of its history. `source` is what ``space.yaml`` says, as it says it."""

    name: str
    study: str
    outcome: str
    maximise: bool
    log: bool
    ignore: tuple[str, ...]
    fields: tuple[Field, ...]
    source: SpaceYaml

    @property
    def space(self) -> SearchSpace:
        """Return the space as the model sees it."""
        return SearchSpace(self.name, tuple(field.parameter() for field in self.fields))

    def used(self, configuration: Configuration) -> Configuration:
        """Return the configuration with None for each parameter that is not in use. Parents stand before children."""
        out: Configuration = {}
        for field in self.fields:
            on = field.parent is None or out[field.parent] in field.needs
            out[field.name] = configuration.get(field.name) if on else None
        return out

    def read(self, configuration: Mapping[str, Value]) -> Configuration:
        """Check one configuration given from Python or JSON. Raises DataError that names the field and the fix."""
        for name in configuration:
            if name not in (names := [field.name for field in self.fields]):
                raise DataError(f"unknown parameter '{name}'.{nearest(name, names)} Parameters: {', '.join(names)}")
        out: Configuration = {}
        for field in self.fields:
            if field.parent is not None and out[field.parent] not in field.needs:
                out[field.name] = None
                continue
            if configuration.get(field.name) is None:
                raise DataError(f"parameter '{field.name}' has no value; give {field.allowed}")
            try:
                out[field.name] = field.read(configuration[field.name])
            except ValueError as error:
                raise DataError(
                    f"parameter '{field.name}': {configuration[field.name]!r} {error}; give {field.allowed}"
                ) from None
        return out

    def same(self, one: Configuration, other: Configuration) -> bool:
        """Tell whether two configurations are the same, up to digits lost in printing."""
        return all(field.same(one[field.name], other[field.name]) for field in self.fields)

    def encode(self, configurations: list[Configuration]) -> Float[np.ndarray, "n d"]:
        """Map configurations to the unit cube."""
        columns = {}
        for field in self.fields:
            idle = field.choices[0] if field.choices else field.low
            cells = [idle if c[field.name] is None else c[field.name] for c in configurations]
            columns[field.name] = np.array(cells, dtype=object if field.choices else None)
        return self.space.encode(columns) if configurations else np.zeros((0, self.space.dim))

    def at(self, points: Float[np.ndarray, "n p"]) -> list[Configuration]:
        """Return the configurations at points of the cube that has one coordinate per parameter."""
        rows = points.tolist()
        return [self.used({field.name: field.at(u) for field, u in zip(self.fields, row, strict=True)}) for row in rows]

    def units(self, configuration: Configuration) -> Float[np.ndarray, " p"]:
        """Return a point of that cube where a configuration lies."""
        return np.array([field.unit(configuration[field.name]) for field in self.fields])

    def every(self, most: int) -> list[Configuration] | None:
        """Return all configurations if there are at most `most` combinations of values, else None."""
        if math.prod(field.options for field in self.fields) > most:
            return None
        names = [field.name for field in self.fields]
        grid = itertools.product(*(field.values() for field in self.fields))
        found = [self.used(dict(zip(names, values, strict=True))) for values in grid]
        return [dict(items) for items in dict.fromkeys(tuple(c.items()) for c in found)]


def load(path: str | Path) -> Description:
    """Read a ``space.yaml``. Raises ConfigError that lists every fault with its key, what is valid and the fix."""
    path = Path(path)
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: must be a mapping with the keys study, outcome and parameters")
    return of_mapping({"name": path.stem, **data}, str(path), _text_choices(path))


def of_mapping(data: Mapping[str, object], where: str, found: Sequence[str] = ()) -> Description:
    """Build a description from what ``space.yaml`` says; `where` names the file in messages, `found` are faults that
    its text has. Raises ConfigError."""
    said = cast(SpaceYaml, data)  # if the schema finds no fault
    faults = violations(data, read_yaml(SCHEMA), where) or [*_faults(said, where), *found]
    if faults:
        raise ConfigError("\n".join(faults))
    outcome = said["outcome"]
    return Description(
        name=said.get("name", Path(where).stem),
        study=said["study"],
        outcome=outcome["column"],
        maximise=outcome["goal"] == "maximise",
        log=outcome.get("scale") == "log",
        ignore=tuple(said.get("ignore", ())),
        fields=tuple(_field(name, entry) for name, entry in said["parameters"].items()),
        source=said,
    )


def _text_choices(path: Path) -> list[str]:
    """Find choices that were meant as numbers and that YAML takes for text, such as 1e-3. In quotes they are meant as
    text, which only the file tells: what is read from it is the same."""
    parameters = _items(_items(compose(path)).get("parameters"))
    faults = []
    for name, entry in parameters.items():
        choices = _items(entry).get("choices")
        for choice in choices.value if isinstance(choices, yaml.SequenceNode) else ():
            plain = isinstance(choice, yaml.ScalarNode) and choice.style is None
            if plain and choice.tag.endswith(":str") and EXPONENT.fullmatch(choice.value):
                faults.append(
                    f"{path} key 'parameters.{name}.choices' has {choice.value}, which YAML reads as text: write "
                    f"{plain_number(choice.value) or 'a finite number'}, or '{choice.value}' in quotes if text is meant"
                )
    return faults


def _items(node: yaml.Node | None) -> dict[str, yaml.Node]:
    """Return the values of a YAML mapping by key; nothing for another node."""
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _field(name: str, entry: ParameterYaml) -> Field:
    parent, needs = next(iter(entry.get("when", {None: ()}).items()))
    return Field(
        name, entry["type"], float(entry.get("low", 0.0)), float(entry.get("high", 0.0)), entry.get("scale") == "log",
        tuple(entry.get("choices", ())), parent, tuple(needs) if isinstance(needs, list | tuple) else (needs,),
    )  # fmt: skip


def _faults(data: SpaceYaml, where: str) -> list[str]:
    """Find what the schema cannot say: keys that a type needs or does not have, bounds, conditions, clashes."""
    faults, before = [], {}
    for name, entry in data["parameters"].items():
        key = f"{where} key 'parameters.{name}"
        numeric = entry["type"] in ("float", "int")
        needed = ("low", "high") if numeric else ("choices",)
        useless = ("choices",) if numeric else ("low", "high", "scale")
        faults += [f"{key}.{k}' is missing: type {entry['type']} needs it" for k in needed if k not in entry]
        faults += [f"{key}.{k}': type {entry['type']} has no such key; remove it" for k in useless if k in entry]
        if numeric and not any(k not in entry for k in needed):
            faults += _bounds(key, entry)
        faults += _twins(key, entry.get("choices", []))
        if "when" in entry:
            faults += _condition(key, entry["when"], before)
        before[name] = entry
    roles = [data["study"], data["outcome"]["column"], *data.get("ignore", [])]
    for column in [*data["parameters"], *dict.fromkeys(roles)]:
        if column != column.strip() or not column.isprintable():
            faults.append(f"{where}: column {column!r} has outer spaces, or signs that no table keeps; rename it")
    for column in dict.fromkeys(roles):
        if roles.count(column) > 1 or column in data["parameters"]:
            faults.append(f"{where}: column '{column}' has two roles (study, outcome, ignore, parameters); keep one")
    return faults


def _bounds(key: str, entry: ParameterYaml) -> list[str]:
    low, high = entry.get("low", 0.0), entry.get("high", 0.0)
    if not low < high:
        return [f"{key}.low' is {low}, not below high ({high}); exchange or widen them"]
    if entry.get("scale") == "log" and low <= 0:
        return [f"{key}.low' is {low}: a log scale needs low above 0; raise it or remove scale"]
    if entry["type"] == "int" and (low != round(low) or high != round(high)):
        return [f"{key}': bounds of an int are whole numbers, got {low} and {high}; round them"]
    if entry["type"] == "int" and max(abs(low), abs(high)) > WHOLE:
        return [
            f"{key}': bounds of an int lie within ±{WHOLE}, got {low} and {high}; narrow them, or count in millions"
        ]
    if any(size and not 1 / LARGEST <= size <= LARGEST for size in (abs(low), abs(high), high - low)):
        return [
            f"{key}': bounds are 0, or from {1 / LARGEST:g} to {LARGEST:g} in size, and at least {1 / LARGEST:g} "
            f"apart, got {low} and {high}; choose another unit"
        ]
    return []


def _twins(key: str, choices: list[Level]) -> list[str]:
    """Find a boolean and a number among choices that Python takes for equal."""
    both = [one for one in choices if isinstance(one, bool) and any(_is_number(other, one) for other in choices)]
    return [f"{key}.choices' has {one} and {int(one)}, which count as equal; put one of them in quotes" for one in both]


def _is_number(choice: Level, value: bool) -> bool:
    return isinstance(choice, int | float) and not isinstance(choice, bool) and choice == value


def _condition(key: str, when: dict[str, Level | list[Level]], before: dict[str, ParameterYaml]) -> list[str]:
    parent, values = next(iter(when.items()))
    able = [name for name, entry in before.items() if "choices" in entry]
    if parent not in able:
        return [
            f"{key}.when' names '{parent}', which is no ordinal or categorical parameter above it."
            f"{nearest(parent, able)} Valid: {', '.join(able) or 'none'}"
        ]
    choices = before[parent].get("choices", [])
    values = values if isinstance(values, list) else [values]
    strange = [value for value in values if value not in choices]
    if strange or not values:
        shown = ", ".join(map(str, strange)) or "nothing"
        return [f"{key}.when.{parent}' is {shown}; choose among {', '.join(map(str, choices))}"]
    return []
