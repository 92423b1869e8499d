"""Templates: the parameters that their notebooks have, and how a cell that cannot be read is told."""

import json

import pytest

from metabo.errors import ConfigError
from metabo.plan import templates


def notebook(code: str, tags=("parameters",)) -> str:
    title = {"cell_type": "markdown", "metadata": {}, "source": ["# a"]}
    return json.dumps({"cells": [title, {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": [code]}]})


def test_names_and_defaults_are_read(tmp_path):
    (tmp_path / "t.ipynb").write_text(notebook("# why\na = -1.5\nb = [\n  'x',\n]  # two\n"))
    assert templates.parameters(tmp_path / "t.ipynb") == {"a": -1.5, "b": ["x"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            notebook("a = 1 / 10"),
            "t.ipynb, cell 'parameters': line 1: '1 / 10' is no literal; write `name = literal` lines only",
        ),
        (notebook("a = 1\nimport os"), "cell 'parameters': line 2 is no assignment to one name"),
        (notebook("a = ("), "cell 'parameters': .*never closed"),
        (notebook("a = 1", tags=()), "t.ipynb has no cell tagged 'parameters'"),
        ("{}", r"t.ipynb is not a readable notebook .*; take it from git \(`git checkout -- .*t.ipynb`\), or copy"),
        ("a = 1", "t.ipynb is not a readable notebook"),
        ("[]", "t.ipynb is not a readable notebook"),
    ],
)
def test_a_cell_that_cannot_be_read_is_told_with_its_file(tmp_path, text, message):
    (tmp_path / "t.ipynb").write_text(text)
    with pytest.raises(ConfigError, match=message):
        templates.parameters(tmp_path / "t.ipynb")


def test_a_whole_number_for_one_with_decimals_is_told_with_the_remedy(tmp_path):
    (tmp_path / "t.ipynb").write_text(notebook("share = 0.1"))
    templates.require(tmp_path / "t.ipynb", [], {"share": 1.0})
    with pytest.raises(ConfigError, match=r"'share' is 1, must be of the type of the default, 0\.1: write 1\.0"):
        templates.require(tmp_path / "t.ipynb", [], {"share": 1})
