"""CSV files of loaders: what is read, and that every fault names file, row and column, and what to do."""

import numpy as np
import pytest

from metabo.data import csv_rows
from metabo.errors import DataError
from metabo.tasks.spaces import Parameter, SearchSpace

SPACE = SearchSpace("s", (Parameter("rate", "log", 1e-3, 1.0), Parameter("kind", "categorical", levels=("a", "b"))))
GOOD = "study,kind,rate,error,seed\nx,a,0.001,0.5,7\n\ny,b,1,,7\n"


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Return a function that writes a table and reads it."""
    monkeypatch.chdir(tmp_path)

    def call(text, mark=b""):
        (tmp_path / "t.csv").write_bytes(mark + text.encode())
        return csv_rows.read("t.csv", ["study", "kind"], ["rate", "error"], empty=["error"])

    return call


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_rows_have_their_place_and_cells(read, mark):
    first, second = read(GOOD, mark)
    assert first == ("t.csv, row 2", {"study": "x", "kind": "a"}, {"rate": 0.001, "error": 0.5})
    assert second.place == "t.csv, row 4" and second.numbers["rate"] == 1 and np.isnan(second.numbers["error"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "study",
            "studi",
            "t.csv: row 1, column 'study' is missing. Did you mean 'studi'? Columns there: studi, kind, ",
        ),
        ("seed", "rate", "t.csv: row 1, column 'rate' is there 2 times; rename one"),
        ("\nx,", "\n,", "t.csv, row 2: column 'study' is empty; fill it in, or delete the row"),
        ("0.001", "fast", "t.csv, row 2: column 'rate': 'fast' is no finite number; write one, or delete the row"),
        ("0.5", "inf", "t.csv, row 2: column 'error': 'inf' is no finite number"),
        ("b,1,", "b,nan,", "t.csv, row 4: column 'rate' has no value; write a number, or delete the row"),
        ("b,1,", "b,", "t.csv, row 4: 4 cells, the header has 5; check commas and quotes"),
        (
            "y,b,1,,7", "x, a,0.001,0.5,7",
            "t.csv, row 4: the same as row 2; delete one, or tell repeated trainings apart in a column (seed)",
        ),
        (GOOD[GOOD.index("\n") :], "\n", "t.csv: no rows below the header; check that it is the right file"),
    ],
)  # fmt: skip
def test_a_fault_names_file_row_and_column(read, old, new, message):
    assert old in GOOD
    with pytest.raises(DataError) as error:
        read(GOOD.replace(old, new, 1))
    assert str(error.value).startswith(message)


def test_repeated_trainings_that_a_column_tells_apart_stay(read):
    assert len(read("study,kind,rate,error,seed\nx,a,0.1,0.5,7\nx,a,0.1,0.5,8\n")) == 2


def test_rows_are_encoded(read):
    assert csv_rows.encoded(SPACE, read(GOOD)).tolist() == [[0, 1, 0], [1, 0, 1]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("b,1,", "b,0,", "parameter 'rate': value 0.0 is outside [0.001, 1.0] (log scale)"),
        ("y,b", "y,c", "parameter 'kind': value 'c' is not one of ['a', 'b']"),
    ],
)
def test_a_value_out_of_the_space_names_the_row(read, old, new, message):
    with pytest.raises(DataError) as error:
        csv_rows.encoded(SPACE, read(GOOD.replace(old, new, 1)))
    assert str(error.value) == f"t.csv, row 4: {message}; correct the row or delete it"


def test_a_parameter_that_is_no_column_is_told_with_the_nearest_one(read):
    space = SearchSpace("s", (Parameter("Rate", "log", 1e-3, 1.0),))
    with pytest.raises(DataError, match=r"^space 's': parameter 'Rate' is none of the columns .*Did you mean 'rate'\?"):
        csv_rows.encoded(space, read(GOOD))
    assert csv_rows.encoded(space, []).shape == (0, 1)
