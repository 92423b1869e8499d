"""JSON schemas: validate values, and say in plain words what is wrong and where."""

import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from metabo.errors import ConfigError, nearest, printable, without_passwords
from metabo.plan.yaml_files import read_yaml
from metabo.records.files import Json

if TYPE_CHECKING:  # imported only to validate something: it takes half as long as the rest of a job's start
    import jsonschema
    from jsonschema.protocols import Validator

Schema: TypeAlias = dict[str, Json]


def read_schema(path: Path) -> Schema:
    """Read one JSON schema, written as YAML. Raises ConfigError if it cannot be read."""
    return dict(required_mapping(read_yaml(path), str(path)))


def required_mapping(value: Json, what: str) -> Mapping[str, Json]:
    """Return a value that must be a mapping. Raises ConfigError for any other value."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what} is {shown(value)}, must be a mapping")
    return value


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_checker: object, value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_mapping(_checker: object, value: object) -> bool:
    return isinstance(value, Mapping)


def _is_list(_checker: object, value: object) -> bool:
    return isinstance(value, list | tuple)


@cache
def _validator() -> "type[Validator]":
    """Return a stricter validator: JSON schema accepts 8000.0 as an integer, and nan; here a count must be an int, and
    a rate finite."""
    from jsonschema import Draft202012Validator, validators

    types = {"integer": _is_integer, "number": _is_number, "object": _is_mapping, "array": _is_list}
    return validators.extend(Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(types))


def violations(instance: Json, schema: Schema, kind: str, where: str = "") -> list[str]:
    """Return a line for each place where `instance` breaks a JSON schema.

    `kind` names what it is ("config"), and `where` is its key in a larger file.
    """
    errors = sorted(
        _validator()(schema).iter_errors(instance), key=lambda e: ([str(p) for p in e.absolute_path], str(e.validator))
    )
    return [without_passwords(line) for error in errors for line in _describe(error, kind, where)]


def _describe(error: "jsonschema.ValidationError", kind: str, prefix: str) -> list[str]:
    """Turn one schema error into lines that name the key, its allowed values, and the nearest match."""
    where = ".".join([*([prefix] if prefix else []), *(_key(p) for p in error.absolute_path)])
    # An error from `validate` has all three, although their types do not say so.
    value, wanted, schema = (getattr(error, name) for name in ("instance", "validator_value", "schema"))
    if error.validator == "additionalProperties":
        unknown = [key for key in value if not _known(key, schema)]
        return [f"{kind} key '{joined(where, key)}' is unknown.{_allowed(schema, key)}" for key in unknown]
    if error.validator == "required":
        missing = next(key for key in wanted if error.message.startswith(f"'{key}'"))
        held = _described(schema, missing)
        return [f"{kind} key '{joined(where, missing)}' is missing; add it{f': {held}' if held else ''}"]
    if error.validator == "enum":
        values = [str(v) for v in wanted]
        match = nearest(value, values)
        return [f"{kind} key '{where}' is {shown(value)}, must be one of: {', '.join(values)}.{match}"]
    if error.validator == "type":
        types = wanted if isinstance(wanted, list) else [wanted]
        return [f"{kind} key '{where}' is {shown(value)}, must be {_types(types)}{_hint(value, types)}"]
    if error.validator == "minItems" and not value:
        return [f"{kind} key '{where}' is an empty list; name at least one, or leave the key out"]
    return [f"{kind} key '{where}': {error.message}"]


def _described(schema: Schema, key: str) -> str:
    """Return the first sentence of a schema's description of a key."""
    held = schema.get("properties", {})
    below = held.get(key) if isinstance(held, Mapping) else None
    text = below.get("description") if isinstance(below, Mapping) else None
    return str(text or "").split(". ")[0].rstrip(".")


def _names(schema: Schema, word: str) -> list[str]:
    """Return the names, or patterns of names, that a schema has under a word."""
    held = schema.get(word, {})
    return list(held) if isinstance(held, Mapping) else []


def _known(key: str, schema: Schema) -> bool:
    patterns = _names(schema, "patternProperties")
    return key in _names(schema, "properties") or any(re.search(pattern, str(key)) for pattern in patterns)


def _allowed(schema: Schema, key: str) -> str:
    known = sorted(_names(schema, "properties"))
    names = known or [_in_words(schema, pattern) for pattern in _names(schema, "patternProperties")]
    return f"{nearest(key, known)} Allowed: {', '.join(names)}"


def _in_words(schema: Schema, pattern: str) -> str:
    """Return a schema's description of the names that fit a pattern."""
    held = schema["patternProperties"]
    below = held[pattern] if isinstance(held, Mapping) else None
    described = below.get("description") if isinstance(below, Mapping) else None
    return f"{described}" if described else f"names like {pattern}"


def joined(where: str, key: object) -> str:
    """Return the path of a key inside another one, for a message."""
    return f"{where}.{_key(key)}" if where else _key(key)


def _key(key: object) -> str:
    return printable(str(key), 80)


def shown(value: Json) -> str:
    """Return a value with the name of its YAML type, for a message."""
    names = {str: "the text", bool: "the boolean", list: "the list", tuple: "the list", type(None): "empty"}
    name = "the mapping" if isinstance(value, Mapping) else names.get(type(value), "the number")
    return name + ("" if value is None else f" {printable(repr(value), 200)}")


def _types(wanted: list[str]) -> str:
    names = {"object": "a mapping", "array": "a list", "integer": "an integer", "null": "null", "string": "text"}
    return " or ".join(names.get(t, f"a {t}") for t in wanted)


def _hint(value: Json, wanted: list[str]) -> str:
    """Explain the slips that YAML invites: a number read as text, text read as a number, and text that begins with #,
    which is a comment."""
    if value is None and "string" in wanted:
        return "; write text in quotes if it begins with #, which YAML takes for a comment"
    if isinstance(value, int) and "string" in wanted:
        return f"; write it in quotes: '{_key(value)}'"
    if not (isinstance(value, str) and {"integer", "number"} & set(wanted)):
        return ""
    if not (plain := plain_number(value)):
        return ""
    return (
        f"; YAML reads quoted numbers, and exponents without a dot (1e-4), as text: write {plain}"
        " (nested values after --config always arrive as text: put them into a file for --configfile)"
    )


def plain_number(text: str) -> str:
    """Return a number as YAML takes it for one: 1.0e-04 for 1e-4; "" for text that is no finite number."""
    try:
        mantissa, exponent = f"{float(text):e}".split("e")
    except ValueError:
        return ""
    whole = float(text).is_integer() and abs(float(text)) < 1e15
    return str(int(float(text))) if whole else f"{mantissa.rstrip('0').ljust(3, '0')}e{exponent}"
