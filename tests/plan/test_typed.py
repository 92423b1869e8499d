"""Records from JSON and back: what the types say is checked, and what is written is what was read."""

import dataclasses
import subprocess
import sys
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from metabo.errors import ConfigError
from metabo.plan import specs
from metabo.plan.entries import BenchmarkEntry, CatalogueEntry, Inputs, MethodEntry, Split
from metabo.plan.schema import violations
from metabo.plan.typed import NOTHING, Count, Values, fits, plain, read, read_each, schema

SPECS = [kind for kind in vars(specs).values() if dataclasses.is_dataclass(kind) and kind.__module__ == specs.__name__]


@dataclass(frozen=True)
class Inner:
    sizes: tuple[Count, ...]
    pair: tuple[float, str] | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    rate: Annotated[float, Values({"exclusiveMinimum": 0})]
    which: Literal["all", "some"] | int = "all"
    inner: Inner | None = None
    free: Values = NOTHING


WHOLE = {
    "name": "a",
    "rate": 1,
    "which": 3,
    "inner": {"sizes": [1, 2], "pair": [0.5, "b"]},
    "free": {"x": [{"y": None}]},
}


def test_what_is_read_is_written_again():
    made = read(Outer, WHOLE, "table")
    assert made.inner == Inner((1, 2), (0.5, "b")) and made.free["x"] == (Values({"y": None}),)
    assert plain(made) == WHOLE and hash(made) == hash(read(Outer, WHOLE, "table"))
    assert type(plain(made)["rate"]) is int  # as it was written: a spec is compared as text


def test_a_default_is_not_written():
    assert plain(read(Outer, {"name": "a", "rate": 0.5}, "table")) == {"name": "a", "rate": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nmae": "b"}, "table key 'k.nmae' is unknown. Did you mean 'name'? Allowed: free, inner, name, rate, which"),
        ({"name": 3}, "table key 'k.name' is the number 3, must be text"),
        ({"rate": 0}, "table key 'k.rate'"),
        ({"rate": True}, "table key 'k.rate' is the boolean True, must be a number"),
        ({"inner": {"sizes": [1, 0]}}, "table key 'k.inner"),
        ({"inner": 3}, "table key 'k.inner' is the number 3, must be a mapping or null"),
        ({"free": []}, "table key 'k.free' is the list [], must be a mapping"),
    ],
)
def test_a_fault_is_told_with_its_key(change, message):
    with pytest.raises(ConfigError) as error:
        read(Outer, WHOLE | change, "table", "k")
    assert message in str(error.value)


def test_the_faults_of_all_entries_are_told_at_once():
    with pytest.raises(ConfigError, match=r"'a.sizes' is missing; add it\n.*'b.size' is unknown"):
        read_each(Inner, {"a": {}, "b": {"sizes": [], "size": 1}}, "table")


def test_a_type_without_a_schema_is_no_record():
    with pytest.raises(TypeError, match="has no JSON schema"):
        schema(set)


def test_values_do_not_change_and_are_equal_to_what_they_were_made_of():
    written = {"a": [1, {"b": None}]}
    made = Values(written)
    assert made == written and made == Values(written) and {made: 1}[Values(written)] == 1
    assert made | {"c": 2} == {**written, "c": 2} and made != {**written, "c": 2}


SLIPS = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "a",
    "all",
    [],
    [1],
    ["a", "a"],
    {},
    {"a": 1},
    [[]],
]


@pytest.mark.parametrize("kind", [Inner, Outer, Split, Inputs, BenchmarkEntry, MethodEntry, CatalogueEntry, *SPECS])
def test_what_fits_at_once_has_no_fault_by_the_schema(kind):
    """And what has none of the words that only the schema knows is found without it."""
    base = {name: sample(of) for name, of in get_type_hints(kind, include_extras=True).items()}
    assert violations(base, schema(kind), "x") == [] and fits(kind, base) == (kind is not Outer)  # exclusiveMinimum
    for name in (*base, "stranger"):
        for slip in SLIPS:
            changed = base | {name: slip}
            if fits(kind, changed):
                assert violations(changed, schema(kind), "x") == [], (name, slip)
        left = {key: value for key, value in base.items() if key != name}
        assert not fits(kind, left) or violations(left, schema(kind), "x") == [], name


def sample(of):
    """A value of a type."""
    origin, args = get_origin(of), get_args(of)
    if origin is Annotated:
        return sample(args[0])
    if origin is Literal:
        return args[0]
    if origin is tuple:
        return [sample(args[0])] if args[-1] is Ellipsis else [sample(arg) for arg in args]
    if origin in (Union, UnionType):
        return sample(args[0])
    if is_dataclass(of):
        return {f.name: sample(get_type_hints(of, include_extras=True)[f.name]) for f in fields(of)}
    return {str: "a", bool: True, int: 1, float: 0.5, Values: {}}[of]


def test_jobs_read_their_specs_without_the_library_of_schemas():
    code = (
        "import sys; import metabo.stages.bo; from metabo.plan import config, registry, splits; "
        "from metabo.plan.typed import read, written; from metabo.plan.specs import BOSpec; "
        "registry.method('h_nll'), registry.benchmark('pd1_mini'), splits.entry('clustered'); "
        "registry.check('mphd', 'lemma1'); "
        "read(BOSpec, {'benchmark': 'a', 'split': 'b', 'method': 'c', 'acquisition': 'd', 'seed': 0, 'seeds': 1, "
        "'iterations': 1, 'policy': {}, 'candidates': 'all', "
        "'once': False, 'exceptions': []}, 'spec'); print('jsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n", done.stdout
