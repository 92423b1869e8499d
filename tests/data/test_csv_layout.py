"""How a CSV file is written: each usual layout is read as the plain one, and what has two readings is refused."""

import pytest

from metabo.data.csv_layout import read_sheet
from metabo.errors import DataError

HEADER = ["study", "rate", "kind", "error"]
ROWS = [["köln", "0.001", "a, b", "0.5"], ["köln", "1e-2", "c", ""], ["x", "12.5", "d", "3"]]
NUMERIC = ["rate", "error"]


@pytest.fixture
def read(tmp_path):
    """Return a function that writes bytes, or text in an encoding, and reads them."""

    def call(content, encoding="utf-8", numeric=NUMERIC, text=()):
        path = tmp_path / "t.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return read_sheet(path, numeric, text)

    return call


def written(delimiter=",", decimal=".", end="\n"):
    def cell(text, column):
        text = text.replace(".", decimal) if column in NUMERIC else text
        return f'"{text}"' if delimiter in text else text

    lines = [HEADER, *([cell(text, column) for text, column in zip(row, HEADER, strict=True)] for row in ROWS)]
    return "".join(delimiter.join(line) + end for line in lines)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_every_layout_is_read_as_the_plain_one_and_said(read, encoding, delimiter, decimal):
    sheet = read(written(delimiter, decimal, "\r\n"), encoding)
    assert sheet.header == HEADER and sheet.rows == list(enumerate(ROWS, start=2))
    name = {"utf-8-sig": "UTF-8", "cp1252": "cp1252"}.get(encoding, encoding.upper()[:6].rstrip("-"))
    assert sheet.layout[:3] == (name, delimiter, decimal)
    marks = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
    assert f"separated by {marks[delimiter]}, decimal {'commas' if decimal == ',' else 'points'}" in sheet.layout.said
    assert sheet.layout.usual == (name == "UTF-8" and delimiter == "," and decimal == ".")


def test_a_guessed_encoding_names_what_to_check(read):
    assert "check that row 2 has the letter 'ö'" in read(written(), "cp1252").layout.said
    assert "it has no mark that says so" in read(written(), "utf-16-le").layout.said


def test_excels_own_row_names_the_mark_and_rows_keep_their_numbers(read):
    sheet = read("sep=;\na;b\n1;2,5\n", numeric=["b"])
    assert sheet.header == ["a", "b"] and sheet.rows == [(3, ["1", "2.5"])]


def test_columns_of_numbers_are_found_where_none_are_named(read):
    sheet = read("a;version;b\nx;1,2,3;0,5\ny;2,0;1,5\n", numeric=None)
    assert sheet.rows == [(2, ["x", "1,2,3", "0.5"]), (3, ["y", "2,0", "1.5"])]
    assert read("a;b\nx;3\n", numeric=None).layout.decimal == "."
    times = "a;time;b\nx;12.30;0,5\n"
    with pytest.raises(DataError, match=r"'0,5' has a decimal comma, and row 2 field 'time': '12\.30' a decimal point"):
        read(times, numeric=None)
    assert read(times, numeric=None, text=["time"]).rows == [(2, ["x", "12.30", "0.5"])]


def test_text_keeps_its_commas_and_a_ragged_row_its_cells(read):
    sheet = read("a;rate\n1,5;2,5\n3,5\n", numeric=["rate"])
    assert sheet.rows == [(2, ["1,5", "2.5"]), (3, ["3,5"])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "row 1 begins as UTF-32 does; save the file as CSV UTF-8"),
        (b"a,b\n1,2\x00\n", "row 2 has a byte 0x00, which no text has; save"),
        (b"\xff\xfea\x00,\x00b\x00\n\x00\x00\xd8", "begins as UTF-16 and is broken at byte 10"),
        (b"a,b\n1,\x81\n", "row 2 is neither UTF-8 nor cp1252 (byte 0x81); save the file as CSV UTF-8"),
        ("a;b,c\n", "row 1, its columns may be separated by commas or by semicolons; save it with one"),
        ("study;rate\nx;0,5\nx;1.5\n",
         "row 2, field 'rate': '0,5' has a decimal comma, and row 3 field 'rate': '1.5' a decimal point; write all"),
        ("study;rate\nx;1,234\nx;5,678\n",
         "row 2, field 'rate': '1,234' has a comma that may set off thousands or decimals; write it with a decimal"),
        ('study,rate\n"x,1\n', "not a CSV table"),
        ("", "the file is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_or_read_in_two_ways(read, content, message):
    with pytest.raises(DataError) as error:
        read(content)
    assert "t.csv: " in str(error.value) and message in str(error.value)
    assert "\n" not in str(error.value)
