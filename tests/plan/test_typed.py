"""Records from JSON and back: what the types say is checked, and what is written is what was read."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from metabo.errors import ConfigError
from metabo.plan.typed import NOTHING, Count, Values, plain, read, read_each, schema


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
    with pytest.raises(ConfigError, match=r"'a.sizes' is missing\n.*'b.size' is unknown"):
        read_each(Inner, {"a": {}, "b": {"sizes": [], "size": 1}}, "table")


def test_a_type_without_a_schema_is_no_record():
    with pytest.raises(TypeError, match="has no JSON schema"):
        schema(set)


def test_values_do_not_change_and_are_equal_to_what_they_were_made_of():
    written = {"a": [1, {"b": None}]}
    made = Values(written)
    assert made == written and made == Values(written) and {made: 1}[Values(written)] == 1
    assert made | {"c": 2} == {**written, "c": 2} and made != {**written, "c": 2}
