"""What may stand in a ``space.yaml``: its types, and the faults that its schema cannot say."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

import numpy as np
import yaml

from metabo.data.history import constraints
from metabo.data.history.constraints import ConstraintYaml
from metabo.data.history.fields import Field, few
from metabo.errors import ConfigError, nearest, printable, quoted
from metabo.plan.schema import plain_number
from metabo.plan.yaml_files import WIDEST, compose
from metabo.records.csv_cells import is_formula
from metabo.tasks.spaces import Level

REST = "rest"
"""Said of `ignore`: every column that is not named elsewhere."""
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
    default: NotRequired[Level]


class StudyYaml(TypedDict):
    """What ``space.yaml`` says of one past study that differs from today's."""

    goal: NotRequired[Literal["minimise", "maximise"]]
    scale_by: NotRequired[dict[str, float]]


class SpaceYaml(TypedDict):
    """What ``space.yaml`` says (``space.schema.yaml``)."""

    name: NotRequired[str]
    study: str
    outcome: OutcomeYaml
    ignore: NotRequired[list[str] | Literal["rest"]]
    parameters: dict[str, ParameterYaml]
    constraints: NotRequired[dict[str, ConstraintYaml]]
    studies: NotRequired[dict[str, StudyYaml]]


SpaceSource: TypeAlias = str | Path | Mapping[str, object]
"""A space: the path of its ``space.yaml``, or what that says as a dict."""


def plain(value: object, key: str = "") -> object:
    """Return what a program says in place of ``space.yaml`` as YAML would: dicts, lists and Python's numbers, none of
    them shared with the program. `key`: where it stands. Raises ConfigError for a key that is no text, and for a number
    that YAML does not take."""
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise ConfigError(f"space key '{key}' has the key {quoted(name)}; write it as text")
        return {name: plain(below, f"{key}.{name}".lstrip(".")) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, key) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and abs(value) >= WIDEST:
        raise ConfigError(f"space key '{key}' is {quoted(value)}, a whole number beyond 2^63; choose another unit")
    return value


def objectives(outcome: object) -> str:
    """Return the key that names several outcomes, "" if none does."""
    if isinstance(outcome, list | tuple):
        return "outcome"
    known = outcome if isinstance(outcome, Mapping) else {}
    return next((f"outcome.{key}" for key in ("column", "goal") if isinstance(known.get(key), list | tuple)), "")


class StudyFacts(NamedTuple):
    """What sets a past study apart: its outcomes count in the other direction, and what the numbers of a column are
    multiplied by to be in today's units."""

    flipped: bool
    factors: Mapping[str, float]


NOTHING_APART = StudyFacts(False, {})
"""Of a study of which ``space.yaml`` says nothing."""


def facts_of(entry: StudyYaml, outcome: OutcomeYaml) -> StudyFacts:
    """Return what is said of one study, which has no fault."""
    factors = {column: float(factor) for column, factor in entry.get("scale_by", {}).items()}
    return StudyFacts(entry.get("goal", outcome["goal"]) != outcome["goal"], factors)


def field_of(name: str, entry: ParameterYaml) -> Field:
    """Return a parameter from what is said of it. Raises ValueError for a default that it cannot take."""
    parent, needs = next(iter(entry.get("when", {None: ()}).items()))
    field = Field(
        name, entry["type"], float(entry.get("low", 0.0)), float(entry.get("high", 0.0)), entry.get("scale") == "log",
        tuple(entry.get("choices", ())), parent, tuple(needs) if isinstance(needs, list | tuple) else (needs,),
    )  # fmt: skip
    return replace(field, default=field.read(entry["default"])) if "default" in entry else field


def faults_of(data: SpaceYaml, where: str) -> list[str]:
    """Find what the schema cannot say: keys that a type needs or does not have, bounds, conditions, clashes."""
    faults, before = [], {}
    for name, entry in data["parameters"].items():
        key = f"{where} key 'parameters.{printable(name, 80)}"
        numeric = entry["type"] in ("float", "int")
        needed = ("low", "high") if numeric else ("choices",)
        useless = ("choices",) if numeric else ("low", "high", "scale")
        faults += [f"{key}.{k}' is missing: type {entry['type']} needs it" for k in needed if k not in entry]
        faults += [f"{key}.{k}': type {entry['type']} has no such key; remove it" for k in useless if k in entry]
        if not any(k not in entry for k in needed):
            wrong = _bounds(key, entry) if numeric else _choices(key, entry.get("choices", []))
            faults += wrong or _default(name, key, entry)
        if "when" in entry:
            faults += _condition(key, entry["when"], before)
        before[name] = entry
    ignored = data.get("ignore", [])
    if isinstance(ignored, str):
        if ignored != REST:
            faults.append(f"{where} key 'ignore' is the text '{ignored}': write a list of columns, or {REST}")
        ignored = []
    faults += constraints.faults_of(data.get("constraints", {}), where)
    faults += _studies(data, where)
    printed = [data["outcome"]["column"], *data.get("constraints", {})]
    roles = [data["study"], *printed, *ignored]
    for column in [*data["parameters"], *dict.fromkeys(roles)]:
        if column != column.strip() or not column.isprintable():
            faults.append(f"{where}: column {quoted(column)} has outer spaces, or signs that no table keeps; rename it")
    for column in (*data["parameters"], *printed):
        if is_formula(column):
            faults.append(
                f"{where}: column '{printable(column, 80)}' begins like a formula, which a spreadsheet would run; "
                "rename it"
            )
    for column in dict.fromkeys(roles):
        if roles.count(column) > 1 or column in data["parameters"]:
            kinds = "study, outcome, ignore, parameters, constraints"
            faults.append(f"{where}: column '{printable(column, 80)}' has two roles ({kinds}); keep one")
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


def _choices(key: str, choices: list[Level]) -> list[str]:
    """Find too few choices, one that stands twice, and a boolean and a number that Python takes for equal."""
    if len(choices) < 2:
        named = f"one choice, {quoted(choices[0])}" if choices else "no choice"
        return [f"{key}.choices' has {named}; give two choices at least, or remove the parameter"]
    times = Counter((isinstance(one, bool), one) for one in choices)  # 1 and 1.0 are the same, True is another one
    if twice := [one for (_, one), number in times.items() if number > 1]:
        return [f"{key}.choices': {quoted(twice[0])} stands twice; delete one"]
    both = [one for one in choices if isinstance(one, bool) and any(_is_number(other, one) for other in choices)]
    return [f"{key}.choices' has {one} and {int(one)}, which count as equal; put one of them in quotes" for one in both]


def _is_number(choice: Level, value: bool) -> bool:
    return isinstance(choice, int | float) and not isinstance(choice, bool) and choice == value


def _default(name: str, key: str, entry: ParameterYaml) -> list[str]:
    """Find a default outside the space: of trials there nothing is learned."""
    try:
        field_of(name, entry)
    except ValueError as error:
        given = entry.get("default")
        return [f"{key}.default' is {given!r}, which {str(error).rstrip('.')}; give a value of the space"]
    return []


def _studies(data: SpaceYaml, where: str) -> list[str]:
    """Find factors of columns without a unit, and those that no unit has."""
    parameters, outcome = data["parameters"], data["outcome"]["column"]
    numbers = [name for name, entry in parameters.items() if entry["type"] in ("float", "int")]
    able = [*numbers, outcome, *data.get("constraints", {})]
    faults = []
    for study, entry in data.get("studies", {}).items():
        for column, factor in entry.get("scale_by", {}).items():
            key = f"{where} key 'studies.{study}.scale_by.{column}'"
            if column in able:
                wrong = [] if factor > 0 else [f"{key} is {factor}; give a factor above 0"]
            elif column in parameters:
                wrong = [f"{key}: type {parameters[column]['type']} has no unit; factors go to {', '.join(able)}"]
            else:
                wrong = [
                    f"{key} is no parameter, outcome or constraint.{nearest(column, able)} Valid: {', '.join(able)}"
                ]
            faults += wrong
    return faults


def _condition(key: str, when: dict[str, Level | list[Level]], before: dict[str, ParameterYaml]) -> list[str]:
    parent, values = next(iter(when.items()))
    able = [name for name, entry in before.items() if "choices" in entry]
    if parent not in able:
        return [
            f"{key}.when' names '{printable(parent, 80)}', which is no ordinal or categorical parameter above it."
            f"{nearest(parent, able)} Valid: {', '.join(able) or 'none'}"
        ]
    choices = before[parent].get("choices", [])
    values = values if isinstance(values, list) else [values]
    strange = [str(value) for value in values if value not in choices]
    if strange or not values:
        return [f"{key}.when.{parent}' is {few(strange) or 'nothing'}; choose among {few([*map(str, choices)])}"]
    return []


def text_choices(path: Path) -> list[str]:
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
