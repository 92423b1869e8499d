"""Read frozen dataclasses from YAML, JSON and literal tables, and write them back as JSON. Their types are the schema.

Fields may be text, numbers, booleans, `Literal`, tuples, other such dataclasses, `Values`, a union of one of these with
None, and any of them as `Annotated[..., Values({...})]` with further keywords of JSON schema.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from metabo.errors import ConfigError
from metabo.plan.schema import Schema, violations
from metabo.records.files import Json

T = TypeVar("T")

Setting: TypeAlias = "bool | int | float | str | tuple[Setting, ...] | Values | None"
NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}


class Values(Mapping[str, Setting]):
    """An immutable JSON object. Lists become tuples, so that it is hashable."""

    def __init__(self, values: Mapping[str, Json] | None = None):
        self._values = {key: _frozen(value) for key, value in (values or {}).items()}

    def __getitem__(self, key: str) -> Setting:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._values == Values(other)._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"Values({self._values!r})"

    def __or__(self, other: Mapping[str, Json]) -> "Values":
        return Values({**self, **other})


def _frozen(value: Json) -> Setting:
    if isinstance(value, Mapping):
        return value if isinstance(value, Values) else Values(value)
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return tuple(map(_frozen, value))


NOTHING = Values()
Count = Annotated[int, Values({"minimum": 1})]


def read(kind: Callable[..., T], value: Json, what: str, where: str = "") -> T:
    """Make a `kind` (a dataclass, `Values`, text) from the contents of a file. `what` names the file or table, `where`
    the key in it. Raises ConfigError with the line of `violations` for each fault."""
    if not fits(kind, value) and (faults := violations(value, schema(kind), what, where)):
        raise ConfigError(*faults)
    return kind(**_fields(kind, value)) if isinstance(value, Mapping) and kind is not Values else kind(value)


def read_each(kind: Callable[..., T], values: Json, what: str) -> dict[str, T]:
    """Make a `kind` from every value of a mapping, by key. Raises ConfigError, which lists all faults."""
    if not (isinstance(values, Mapping) and all(fits(kind, value) for value in values.values())):
        listed = {"type": "object", "additionalProperties": schema(kind)}
        if faults := violations(values, listed, what):
            raise ConfigError(*faults)
    return {name: read(kind, value, what, name) for name, value in read(Values, values, what).items()}


def plain(value: object) -> Json:
    """Return the JSON from which `read` makes this value, without fields that have their default."""
    if value is None or isinstance(value, (str, bool, int, float)):  # by far the most values
        return value
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if is_dataclass(value):
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        return {field.name: plain(held[field.name]) for field in fields(value) if held[field.name] != field.default}
    raise TypeError(f"{value!r} cannot be written as JSON")


def written(value: object) -> dict[str, Json]:
    """Return a record as the JSON object from which `read` makes it."""
    made = plain(value)
    assert isinstance(made, dict)
    return made


def fits(kind: object, value: Json) -> bool:
    """Tell whether a value certainly fits the schema of a type, without the library that explains faults. Importing
    that library takes longer than everything that most jobs read."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return fits(args[0], value) and all(_keeps(word, bound, value) for word, bound in args[1].items())
    if origin is Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            return False
        if args[-1] is Ellipsis:
            return all(fits(args[0], entry) for entry in value)
        return len(value) == len(args) and all(map(fits, args, value))
    if origin in (Union, UnionType):
        return any(fits(arg, value) for arg in args)
    if isinstance(value, Mapping):
        if not is_dataclass(kind):
            return kind is Values
        types, needed = _types(kind), {f.name for f in fields(kind) if f.default is MISSING}
        return needed <= value.keys() <= types.keys() and all(fits(types[name], value[name]) for name in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return kind in NAMES and type(value) is kind


def _keeps(word: str, bound: Setting, value: Json) -> bool:
    """Tell whether a value of the right type fits one further keyword of a schema. This is False if that is
    uncertain."""
    if word == "minimum":
        return isinstance(value, int | float) and isinstance(bound, int | float) and value >= bound
    if not isinstance(value, list | tuple):
        return False
    if word == "uniqueItems":
        return all(isinstance(entry, str) for entry in value) and len(set(map(str, value))) == len(value)
    return word == "minItems" and isinstance(bound, int) and len(value) >= bound


@cache
def schema(kind: object) -> Schema:
    """Return the JSON schema of a type."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {**schema(args[0]), **written(args[1])}
    if origin is Literal:
        return {"enum": list(args)}
    if origin is tuple and args[-1] is Ellipsis:
        return {"type": "array", "items": schema(args[0])}
    if origin is tuple:
        return {"type": "array", "prefixItems": [*map(schema, args)], "minItems": len(args), "maxItems": len(args)}
    if origin in (Union, UnionType):
        parts = [schema(arg) for arg in args]
        if all("type" in part for part in parts):
            return {key: value for part in parts for key, value in part.items()} | {"type": [p["type"] for p in parts]}
        return {"anyOf": parts}
    if kind is Values:
        return {"type": "object"}
    if kind in NAMES:
        return {"type": NAMES[kind]}
    if not is_dataclass(kind):
        raise TypeError(f"{kind!r} has no JSON schema here")
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: schema(of) for name, of in _types(kind).items()},
        "required": [f.name for f in fields(kind) if f.default is MISSING],
    }


@cache
def _types(kind: object) -> dict[str, object]:
    return get_type_hints(kind, include_extras=True)


def _fields(kind: object, value: Mapping[str, Json]) -> dict[str, object]:
    types = _types(kind)
    return {name: _made(types[name], entry) for name, entry in value.items()}


def _made(kind: object, value: Json) -> object:
    """Convert a value that fits the schema of `kind` to an object of that kind."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _made(args[0], value)
    if origin in (Union, UnionType):
        wanted = next((arg for arg in args if _holds(arg, value)), None)
        return value if wanted is None else _made(wanted, value)
    if isinstance(value, Mapping):
        assert isinstance(kind, type)
        return kind(value) if kind is Values else kind(**_fields(kind, value))
    if isinstance(value, list | tuple):
        inner = [args[0]] * len(value) if args[-1] is Ellipsis else args
        return tuple(_made(of, entry) for of, entry in zip(inner, value, strict=True))
    return value


def _holds(kind: object, value: Json) -> bool:
    """Tell whether a mapping or list belongs to this member of a union."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if isinstance(value, Mapping):
        return kind is Values or is_dataclass(kind)
    return isinstance(value, list | tuple) and get_origin(kind) is tuple
