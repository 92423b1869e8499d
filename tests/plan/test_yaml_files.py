"""The one reader of YAML: equal to PyYAML on our own files, and one line for every fault."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from metabo.errors import ConfigError
from metabo.plan.yaml_files import DEEPEST, KEPT, LARGEST, compose, read_yaml

ROOT = Path(__file__).parents[2]
OURS = sorted(
    path
    for folder in ("config", "workflow", "src", "examples", "profiles")
    for path in [*(ROOT / folder).rglob("*.yaml")]
)


def read(tmp_path, content):
    path = tmp_path / "a.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_yaml(path)


def test_our_files_are_read_as_pyyaml_reads_them():
    assert len(OURS) > 15
    for path in [ROOT / "config.yaml", *OURS]:
        assert read_yaml(path) == yaml.safe_load(path.read_text(encoding="utf-8")), path


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 30)
)
REFUSED = {
    "a: 1\na: 2": "key 'a' stands twice, in lines 1 and 2; delete or rename one",
    "a: {b: 1, b: 2}": "key 'b' stands twice, in line 1; delete",
    "on: 1": "line 1: YAML does not read the key on as text; write 'on'",
    "1: x": "does not read the key 1 as text",
    "? [a]\n: 1": "line 1: a key must be text, not a list or a mapping",
    "d: 2024-05-01": "line 1: YAML reads 2024-05-01 as a date; write '2024-05-01'",
    "a: 1\nd: 2024-13-77": "line 2: YAML reads 2024-13-77 as a date",
    "a: 010": "YAML reads 010 as an octal number; drop the 0, or write '010'",
    "a: 1:30": "YAML reads 1:30 as a number to the base 60; write '1:30'",
    "a: 1:30.5": "to the base 60",
    f"a: {10**30}": "is too large for a whole number of 64 bits",
    f"a: {'9' * 5000}": r"999999999999... \(5000 characters\) is too large",
    "a: 1.0e+400": "1.0e.400 is too large for a number",
    "a: !!binary aGk=": "a value of type 'binary'; write text, numbers, lists and mappings only",
    "a: !!set {x, y}": "a value of type 'set'",
    "a: !!python/object:os.system x": "a value of type 'python/object:os.system'",
    "a: !own x": "a value of type '!own'",
    BOMB: "its aliases stand for more than 200,000 values; write fewer",
    "a: &a [*a]": "line 1: an alias stands within what it names; write it out",
    "[" * (DEEPEST + 10): f"values stand more than {DEEPEST} levels deep; flatten them",
    "[" * 100_000: "levels deep",
    "a: [1, 2": "line 1, column 9: not valid YAML: while parsing a flow sequence",
    "a: b: c": "line 1, column 5: not valid YAML: mapping values are not allowed here",
    "a: 1\n---\nb: 2": "expected a single document",
    "a: *b": "undefined alias",
    "\ta: 1": "line 1, column 1: a tab stands here, and YAML indents by spaces alone; put spaces in its place",
}


@pytest.mark.parametrize("content", REFUSED, ids=[key[:20] for key in REFUSED])
def test_what_is_refused_is_told_in_one_line(tmp_path, content):
    with pytest.raises(ConfigError, match=REFUSED[content]) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(f"{tmp_path / 'a.yaml'}: ") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: \xe9t\xe9", "byte 3 is not UTF-8; save the file as UTF-8"),
        (b"\xff\xfea\x00:\x00", "byte 0 is not UTF-8"),
        (b"a: \x00", "not valid YAML"),
        (b"a: " + b"x" * LARGEST, "it has more than 2,097,152 bytes; is it the right file?"),
    ],
)
def test_bytes_that_are_no_text_of_ours(tmp_path, content, message):
    with pytest.raises(ConfigError, match=message) as error:
        read(tmp_path, content)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ConfigError, match="cannot read it"):
            read_yaml(path)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (
            "title: a: b",
            "line 1, column 9: not valid YAML: mapping values are not allowed here; write text that contains ': ' in",
        ),
        ("marker: *", "; write text that begins with * in quotes"),
        ("marker: &", "; write text that begins with & in quotes"),
        ("marker: @x", "; write text that begins so in quotes"),
    ],
)
def test_text_that_needs_quotes_is_told(tmp_path, text, remedy):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(remedy)):
        read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a:\n\tb: 1", "line 2, column 1: a tab stands here, and YAML indents by spaces alone; put spaces in its"),
        ("a:\n  b: 1\n   c: 2", "line 3, column 5: an indent of 3 spaces, which no line above has; indent it as its"),
        ("a: text\n   goes on: 1", "line 2, column 11: an indent of 3 spaces, which no line above has; indent it as"),
        ("a:\n  b: 1\n c: 2", "line 3, column 2: an indent of 1 space, which no line above has; indent it as its"),
        ("a:\n  - b\n - c", "line 3, column 2: an indent of 1 space"),
        ("  a: 1\nb: 2", "line 2, column 1: an indent of 0 spaces"),
    ],
)
def test_tabs_and_indents_are_told_in_plain_words(tmp_path, text, said):
    with pytest.raises(ConfigError, match=re.escape(f"a.yaml: {said}")) as error:
        read(tmp_path, text)
    assert "not valid YAML" not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text", ["a:\n  - x\n  b: 2", "- a\nb: 1", "{a: 1}\nb: 2", '"text"\na: 1', "a: *\tb", "a\nb: 1", "seeds:5\nb: 1"]
)
def test_no_indent_and_no_tab_is_blamed_for_another_fault(tmp_path, text):
    with pytest.raises(ConfigError, match=r"a\.yaml: line [0-9]+, column [0-9]+: not valid YAML: ") as error:
        read(tmp_path, text)
    assert ("may lack the ': ' after its key" in str(error.value)) == (text in ("a\nb: 1", "seeds:5\nb: 1"))


@pytest.mark.parametrize("text", [".nan", ".NaN"])
def test_what_is_not_a_number_is_refused_with_its_line(tmp_path, text):
    with pytest.raises(ConfigError, match=rf"line 2: \{text} is not a number; write one, or leave the key out"):
        read(tmp_path, f"a: 1\nb: {text}\n")


def test_what_is_meant_is_kept(tmp_path):
    text = "a: 0\nb: -0\nc: 0x1F\nd: .inf\ne: '010'\nf: \"on\"\n'on': 1\ng: 1e-4\nh: 9223372036854775807\ni: [~, yes]\n"
    assert read(tmp_path, "﻿" + text) == yaml.safe_load(text)
    assert read(tmp_path, "base: &b {x: 1}\nmore: {<<: *b, y: 2}")["more"] == {"x": 1, "y": 2}
    assert read(tmp_path, "") is None and read(tmp_path, "# nothing\n") is None


def test_nodes_know_how_a_value_was_written(tmp_path):
    (tmp_path / "a.yaml").write_text("a: ['x', y]")
    _, values = compose(tmp_path / "a.yaml").value[0]
    assert [node.style for node in values.value] == ["'", None]


def test_a_file_read_again_is_parsed_once_and_its_values_are_new(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("base: &b {x: [1]}\nmore: {<<: *b, y: 2}")
    nodes, first = compose(path), read_yaml(path)
    first["more"]["x"].append(2)
    assert compose(path) is nodes and read_yaml(path) == {"base": {"x": [1]}, "more": {"x": [1], "y": 2}}
    for i in range(KEPT):
        assert read(tmp_path, f"a: {i}") == {"a": i}
    path.write_text("base: &b {x: [1]}\nmore: {<<: *b, y: 2}")
    assert compose(path) is not nodes  # only so many are kept


def test_a_fault_is_told_each_time_that_the_file_is_read(tmp_path):
    for _ in range(2):
        with pytest.raises(ConfigError, match="expected a mapping or list of mappings for merging"):
            read(tmp_path, "a: {<<: 3, b: 1}")


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text("ab:-[]{}&*!#|>'\" \n0123.eE+~,?", max_size=60).map(str.encode)))
def test_any_bytes_give_a_value_or_one_line(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    try:
        found = read_yaml(path)
    except ConfigError as error:
        assert "\n" not in str(error)
    else:
        assert repr(found) == repr(yaml.safe_load(content.decode()))  # NaN differs from itself
