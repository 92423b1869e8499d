"""Write the JSON schema of the configuration, and the tables of keys in config/README.md, from the configuration's
types.

``make reference`` rewrites both; a test compares them with the types.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from metabo.errors import ConfigError
from metabo.plan.schema import Schema, plain_number, required_mapping
from metabo.plan.sections.config import Config
from metabo.plan.yaml_files import read_yaml
from metabo.records.files import Json, write_text

SCHEMA = Path("workflow/schemas/config.yaml")
README = Path("config/README.md")
BEGIN, END = "<!-- keys: written by make reference -->", "<!-- keys: end -->"

UNSAID = ("title", "default")
"""What pydantic says about a field but readers of the schema do not need: the field's name again, and null for keys
that may be left out. The defaults of all other keys are the values in config.yaml."""


@cache
def schema() -> Schema:
    """Return the JSON schema of config.yaml, with every section in its place (no references)."""
    whole = Config.model_json_schema()
    parts = whole.pop("$defs")
    told = _told(whole, parts)
    if not isinstance(told, dict):
        raise TypeError("a schema is a mapping")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "config.yaml of metabo"} | told


def _told(part: Json, parts: Mapping[str, Json]) -> Json:
    if isinstance(part, list):
        return [_told(item, parts) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        own = {key: value for key, value in part.items() if key != "$ref"}
        inner = _told(parts[str(part["$ref"]).rpartition("/")[2]], parts)
        return inner | own if isinstance(inner, dict) else inner
    if "properties" in part and isinstance(part["properties"], dict):
        fields = {name: _told(field, parts) for name, field in part["properties"].items()}
        return {key: _said(value) for key, value in part.items() if key not in ("properties", *UNSAID)} | {
            "properties": fields
        }
    return _plain({key: _told(value, parts) for key, value in part.items() if key not in UNSAID})


def _said(value: Json) -> Json:
    return " ".join(value.split()) if isinstance(value, str) else value


def _plain(part: Schema) -> Schema:
    """Write a field as messages need it: "an X or null" as one type with two names, so that messages say what X must
    be, and a choice of names without a type, unless a name looks like a number that YAML reads as one if it is not
    quoted."""
    match part:
        case {"enum": [*names], "type": "string", **own} if not any(plain_number(str(name)) for name in names):
            return {**own, "enum": names}
        case {"anyOf": [{"type": str(kind), **rest}, {"type": "null"}], **own}:
            return rest | own | {"type": [kind, "null"]}
    return part


def schema_file() -> str:
    """Return the text of workflow/schemas/config.yaml."""
    head = "# Written by `make reference` from src/metabo/plan/sections: edit the types there.\n"
    return head + yaml.safe_dump(schema(), sort_keys=False, allow_unicode=True, width=120)


def readme(text: str, values: Mapping[str, Json]) -> str:
    """Return the text of config/README.md with its tables of keys rewritten.

    `values` is config.yaml, whose values are the defaults. Raises ConfigError if the marks of the tables are missing.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ConfigError(f"{README}: the marks '{BEGIN}' and '{END}' are missing; put them where the keys belong")
    return f"{before}{BEGIN}\n\n{_tables(schema(), values)}\n{END}{after}"


def _tables(whole: Schema, values: Mapping[str, Json]) -> str:
    fields = _fields(whole)
    single = {name: field for name, field in fields.items() if not _fields(field)}
    parts = [_table(single, values)]
    for name, field in fields.items():
        if name not in single:
            own = values.get(name)
            parts.append(f"### `{name}`\n\n{field['description']}\n\n{_table(_leaves(field), own)}")
    return "\n".join(parts)


def _fields(part: Schema) -> dict[str, Schema]:
    found = part.get("properties", {})
    return {name: field for name, field in found.items() if isinstance(field, dict)} if isinstance(found, dict) else {}


def _leaves(part: Schema, path: str = "") -> dict[str, Schema]:
    """Return the keys of a section and of the sections in it, by dotted name."""
    found: dict[str, Schema] = {}
    for name, field in _fields(part).items():
        inner = _leaves(field, f"{path}{name}.")
        found |= {f"{path}{name}": field} | inner
    return found


def _table(fields: dict[str, Schema], values: Json) -> str:
    lines = ["| key | value in config.yaml | allowed | what it sets |", "|---|---|---|---|"]
    for name, field in fields.items():
        own = "" if _fields(field) else _shown(name, field, values)
        lines.append(f"| `{name}` | {own} | {_allowed(field)} | {field.get('description', '')} |")
    return "\n".join(lines) + "\n"


def _shown(name: str, field: Schema, values: Json) -> str:
    """Return the value of a dotted key as YAML writes it, or "" for a key that config.yaml leaves out."""
    for key in name.split("."):
        if not isinstance(values, Mapping) or key not in values:
            return ""
        values = values[key]
    items = field.get("items")
    if isinstance(items, dict) and items.get("enum") == values:
        return "all of them"
    text = yaml.safe_dump(values, default_flow_style=True, width=10_000).replace("\n...", "").strip()
    return f"`{text}`"


KINDS = {"integer": "an integer", "number": "a number", "string": "text", "boolean": "true or false"}
ITEMS = {"integer": "integers", "number": "numbers", "string": "texts", "boolean": "true or false"}


def _allowed(field: Schema) -> str:
    """Return in a few words which values a key may have."""
    match field:
        case {"properties": _}:
            return "the keys below"
        case {"enum": [*names]}:
            return ", ".join(f"`{name}`" for name in names)
        case {"type": "array", "items": dict(items)}:
            least = field.get("minItems")
            kind = f"{ITEMS[str(items['type'])]}{_range(items)}" if "enum" not in items else _allowed(items)
            return f"a list of {kind}" + (f"; at least {least}" if least else "")
        case {"type": [str(kind), "null"]}:
            return f"{_allowed(field | {'type': kind})}, or null"
        case {"type": str(kind)}:
            return KINDS.get(kind, "a mapping") + _range(field)
    return ""


def _range(field: Schema) -> str:
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    said = [f" {sign} {field[key]}" for key, sign in bounds.items() if key in field]
    return " and".join(said)


def write(root: Path = Path()) -> None:
    """Write the schema and the tables of the README below the project folder `root`."""
    write_text(root / SCHEMA, schema_file())
    values = required_mapping(read_yaml(root / "config.yaml"), "config.yaml")
    write_text(root / README, readme((root / README).read_text(encoding="utf-8"), values))


if __name__ == "__main__":
    write()
