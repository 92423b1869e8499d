"""Overrides of registered method settings (config key `methods`), checked against the registrations."""

from collections import defaultdict
from collections.abc import Mapping

from metabo.errors import nearest, unknown
from metabo.plan import registry
from metabo.plan.entries import MethodEntry
from metabo.plan.schema import Schema, joined, required_mapping, shown, violations
from metabo.plan.typed import NOTHING, Setting, Values, plain
from metabo.records.files import Json

OVERRIDABLE = ("model", "pretrain", "policy", "online")


def faults(methods: Mapping[str, Mapping[str, Json]], schema: Schema) -> list[str]:
    """Return a line for each fault of config `methods`: unknown method, section or parameter, wrong type, or value out
    of range.

    `schema` is that of the configuration, which has the ranges of sizes.
    """
    found, known = [], registry.methods()
    for method, sections in methods.items():
        if method not in known:
            where = joined("methods", method)
            found.append(f"config key '{where}': {unknown('method', where.removeprefix('methods.'), known)}")
            continue
        registered = registry.method(method)
        for section, values in sections.items():
            where = joined(f"methods.{method}", section)
            if section not in OVERRIDABLE:
                found.append(
                    f"config key '{where}' is unknown.{nearest(section, OVERRIDABLE)} Allowed: {', '.join(OVERRIDABLE)}"
                )
            elif not isinstance(values, Mapping):
                found.append(f"config key '{where}' is {shown(values)}, must be a mapping")
            else:
                found += _parameter_faults(where, values, _section(registered, section), schema)
    return found


def registered_faults(sizes: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """Return a line for each setting of methods.yaml that names no size, or whose type differs from that of the same
    setting in all other methods that have it. `sizes` are those of the configuration, by section and key."""
    found: list[str] = []
    kinds: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)  # by section and key, then by method
    for method in registry.methods():
        for section in OVERRIDABLE:
            for key, setting in _section(registry.method(method), section).items():
                where, value = f"{registry.METHODS.name} key '{method}.{section}.{key}'", plain(setting)
                if isinstance(value, str) and value.startswith("@"):
                    at, _, size = value[1:].partition(".")
                    if size not in sizes.get(at, {}):
                        listed = [f"@{one}.{each}" for one in sizes for each in sizes[one]]
                        found.append(f"{where}: '{value}' names no size of config.yaml.{nearest(value, listed)}")
                        continue
                    value = sizes[at][size]
                if kind := _kind(value):
                    kinds[section, key][method] = kind
    for (section, key), by_method in kinds.items():
        for method, kind in by_method.items():
            others = [other for name, other in by_method.items() if name != method]
            if len(others) > 1 and len(set(others)) == 1 and kind not in others:
                found.append(
                    f"{registry.METHODS.name} key '{method}.{section}.{key}' is a {kind}; it is a {others[0]} in all "
                    "other methods: write one"
                )
    return found


def _kind(value: Json) -> str:
    """Return the kind of a setting, or "" for an empty one, which stands for everything."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "" if value is None else "list" if isinstance(value, list) else "mapping"


def _section(entry: MethodEntry, name: str) -> Values:
    sections = {"model": entry.model, "pretrain": entry.pretrain, "policy": entry.policy, "online": entry.online}
    return sections[name] or NOTHING


RANGES: dict[str, Schema] = {
    "batch": {"minimum": 1},
    "nll_weight": {"minimum": 0},
    "outputs": {"enum": list(registry.literal("tasks.training_set", "OUTPUTS"))},
    "learning_rate": {"exclusiveMinimum": 0},
    "decay": {"exclusiveMinimum": 0, "maximum": 1},
    "features": {"items": {"type": "integer", "minimum": 1}},
    "mean": {"enum": list(registry.literal("gp.settings", "MEANS"))},
    "kernel": {"enum": list(registry.literal("gp.settings", "KERNELS"))},
    "objective": {"enum": sorted(registry.literal("methods.pretrained.settings", "OBJECTIVES"))},
    "epochs": {"minimum": 1},
    "rule": {"enum": list(registry.literal("methods.elimination.policy", "CHOICES"))},
    "delta": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    **{key: {"minimum": 0} for key in ("value_weight", "entropy_weight")},
    **{key: {"minimum": 0, "maximum": 1} for key in ("discount", "smoothing")},
    **{key: {"exclusiveMinimum": 0} for key in ("clip", "min_regret", "ridge")},
    **{key: {"minimum": 1} for key in ("members", "embedding")},
    **{key: {"items": {"type": "integer", "minimum": 1}} for key in ("shared", "unshared")},
}
"""The values that a method's setting may have, beyond the type of the registered one. Sizes have the range of their
key."""


def _parameter_faults(where: str, values: Mapping[str, Json], registered: Values, schema: Schema) -> list[str]:
    faults = []
    for key, value in values.items():
        if key not in registered:
            allowed = ", ".join(sorted(registered)) or "nothing: this method has no settings here"
            faults.append(f"config key '{joined(where, key)}' is unknown.{nearest(key, registered)} Allowed: {allowed}")
        else:
            faults += violations(value, _range(key, registered[key], schema), "config", f"{where}.{key}")
    return faults


def _range(key: str, registered: Setting, schema: Schema) -> Schema:
    """Return the schema of a setting: that of the size that it is registered as, or that of values like the registered
    one."""
    if not (isinstance(registered, str) and registered.startswith("@")):
        return _like(registered) | RANGES.get(key, {})
    section, _, size = registered[1:].partition(".")
    for name in ("properties", section, "properties", size):
        schema = dict(required_mapping(schema[name], name))
    return schema


def _like(value: Setting) -> Schema:
    """Return the schema of values of the same type as a registered one."""
    if isinstance(value, tuple):
        return {"type": "array", "items": _like(value[0]) if value else {}}
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): ["number", "null"]}
    return {"type": names[type(value)]} if type(value) in names else {}
