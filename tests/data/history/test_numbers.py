"""A number is what people write as one: Python alone reads 0_12 as 12, and digits of other scripts."""

import math

import numpy as np
import pytest

from metabo.data.history import description
from metabo.data.history.constraints import finite
from metabo.data.history.fields import Field
from metabo.data.history.numbers import read_number
from metabo.data.history.read import read
from metabo.data.history.told import read_told
from metabo.errors import DataError
from tests.tuner.conftest import HEADER, SPACE, rows, write


@pytest.fixture
def files(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    return tmp_path / "history.csv", tmp_path / "space.yaml"


ODD = ["0_12", "1_000", "٠.٥", "１２", "1e_3", ""]


@pytest.mark.parametrize(
    ("given", "number"), [("0.12", 0.12), (" -1e-3 ", -1e-3), ("\xa05\xa0", 5.0), ("-inf", -math.inf), (7, 7.0),
                          (np.float32(0.5), 0.5), (np.int64(3), 3.0)],
)  # fmt: skip
def test_what_is_a_number(given, number):
    assert read_number(given) == number and type(read_number(given)) is float


@pytest.mark.parametrize("given", [*ODD, "good", "−1", True, b"12", None, [1]])
def test_what_is_none(given):
    with pytest.raises((ValueError, TypeError)):
        read_number(given)


@pytest.mark.parametrize("given", ODD)
def test_none_is_a_parameter_or_a_constraint(given):
    for field in (Field("x", "float", 0.0, 1e6), Field("n", "int", 0.0, 1e6)):
        with pytest.raises(ValueError, match="is not a "):
            field.read(given)
    with pytest.raises(ValueError, match="is not one of"):
        Field("batch", "ordinal", choices=(12, 1000, 5)).read(given)
    assert math.isnan(finite(given))


@pytest.mark.parametrize(("column", "said"), [("error", "'0_12' is no number"), ("learning_rate", "'0_12' is not a n")])
def test_none_is_read_from_a_table(files, tmp_path, column, said):
    history, path = files
    space, table = description.load(path), rows()
    table[0][HEADER.index(column)] = "0_12"
    with pytest.raises(DataError, match=f"row 2, field '{column}': {said}"):
        read(write(history, HEADER, table), space)
    told = write(tmp_path / "told.csv", HEADER[1:], [table[0][1:]])
    with pytest.raises(DataError, match=f"row 2, field '{column}': {said}"):
        read_told(told, space)


def test_none_is_told_in_another_unit(files):
    """A factor of `scale_by` makes no number of it."""
    history, path = files
    path.write_text(path.read_text() + "studies: {d0: {scale_by: {error: 10.0}}}\n")
    table = rows()
    table[0][-1] = "0_12"
    with pytest.raises(DataError, match="row 2, field 'error': '0_12' is no number"):
        read(write(history, HEADER, table), description.load(path))
