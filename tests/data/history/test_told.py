"""What is told: a fault's remedy works for a study, which keeps the space that it was made with."""

import pytest
import yaml

from metabo.data.history import description
from metabo.data.history.told import read_told
from metabo.errors import DataError
from tests.tuner.conftest import HEADER, SPACE, write

ROW = dict(zip(HEADER[1:], ["0.01", "3", "32", "adam", "", "0.5"], strict=True))


@pytest.fixture
def refused(tmp_path):
    """Return a function that has a row refused, and returns the message without its file."""
    space = description.of_mapping({"name": "s", **yaml.safe_load(SPACE)}, "s")

    def call(**cells):
        row = ROW | cells
        path = write(tmp_path / "told.csv", list(row), [list(row.values())])
        with pytest.raises(DataError) as error:
            read_told(path, space)
        return str(error.value).removeprefix(f"{path}: ")

    return call


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"layers": "9"}, "row 2, field 'layers': '9' is outside [1, 6]; write a whole number from 1 to 6, or widen "
                          "the space in space.yaml"),
        ({"batch": "33"}, "row 2, field 'batch': '33' is not one of 16, 32, 64. Did you mean '32'?; write one of 16, "
                          "32, 64, or widen the space in space.yaml"),
        ({"layers": "two"}, "row 2, field 'layers': 'two' is not a whole number from 1 to 6; write a whole number from "
                            "1 to 6, or correct space.yaml"),
        ({"error": "-1"}, "row 2, field 'error': '-1' has no logarithm; write a number above 0, or remove 'scale: log' "
                          "of the outcome from space.yaml"),
    ],
)  # fmt: skip
def test_an_edited_space_reaches_a_study_with_pretrain(refused, cells, said):
    assert refused(**cells) == f"{said} and give `metabo pretrain` the folder again"


def test_a_remedy_without_the_space_stays_short(refused):
    assert refused(error="good").endswith("is no number; write one, or 'failed' for a failed trial")


def test_a_column_that_is_no_part_of_the_study_is_to_be_deleted(refused):
    ends = "what is told has columns of parameters, constraints and outcome"
    assert refused(layer="3") == f"row 1, column 'layer' is not in space.yaml. Delete the column: {ends}"
    assert refused(a="1", b="2") == f"row 1, column 'a' is not in space.yaml. Delete the columns a, b: {ends}"
