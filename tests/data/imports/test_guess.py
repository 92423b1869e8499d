"""A space.yaml drafted from a table: each rule, in the file with its comment, and readable at once."""

import numpy as np
import pytest

from metabo.data.csv_layout import Sheet, read_sheet
from metabo.data.history import description
from metabo.data.history.past import read_all
from metabo.data.imports import draft, guess
from metabo.data.imports.imported import draft_of
from metabo.errors import ConfigError, DataError
from tests.tuner.conftest import HEADER, SPACE, rows, write

RNG = np.random.default_rng(0)
N = 40


def column(cells, name="p"):
    return guess.parameter(name, [(f"t.csv: row {i}", str(cell)) for i, cell in enumerate(cells, start=2)])


@pytest.mark.parametrize(
    ("cells", "entry"),
    [
        (["True", "false"] * 20, {"type": "categorical", "choices": [False, True]}),
        ([16, 32, 64, 128] * 10, {"type": "ordinal", "choices": [16, 32, 64, 128]}),
        ([1, 2, 3, 5, 4, 2] * 7, {"type": "int", "low": 1, "high": 5}),
        (["2.0", "10", "7", *range(20, 60)], {"type": "int", "low": 2, "high": 59}),
        ([1, 2, 4, 8, 16, 32, 64, 128, 256, 512] * 4, {"type": "int", "low": 1, "high": 512, "scale": "log"}),
        ([0.1, 0.2, 0.5] * 4, {"type": "ordinal", "choices": [0.1, 0.2, 0.5]}),
        ([0.1, 0.2, 0.5, 0.7], {"type": "float", "low": 0.1, "high": 0.7}),
        ([1e-4, 0.5, *10 ** np.linspace(-3.9, -0.5, N)], {"type": "float", "low": 1e-4, "high": 0.5, "scale": "log"}),
        ([0.001, 0.99, *np.linspace(0.01, 0.98, N)], {"type": "float", "low": 0.001, "high": 0.99}),
        ([-1.5, *np.linspace(0.01, 0.98, N)], {"type": "float", "low": -1.5, "high": 0.98}),
        (["sgd", "adam"] * 3, {"type": "categorical", "choices": ["adam", "sgd"]}),
        (["auto", "0.5", "1"] * 5, {"type": "categorical", "choices": ["0.5", "1", "auto"]}),
    ],
)
def test_what_a_column_is(cells, entry):
    found = column(cells)
    assert found.entry == entry
    if entry.get("scale") == "log":
        assert any(note.startswith("check: log, for it spans a factor of ") for note in found.notes)
    assert (entry["type"] == "categorical" and entry["choices"] == [False, True]) or found.notes


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ([], "it has no value"),
        (["3", "3.0", "3"], "always 3"),
        (["True"] * 3, "always True"),
        (["adam"] * 3, "always adam"),
        ([f"run {i}" for i in range(9)], "text with 9 different values"),
        (
            [f"0,{i}1" for i in range(1, 10)],
            "numbers with decimal commas, read as text; read the table with decimal=','",
        ),
    ],
)
def test_what_was_not_tuned(cells, why):
    assert column(cells) == why


def test_numbers_that_count_the_rows_are_not_tuned():
    studies = ["a"] * 4 + ["b"] * 4
    columns = {
        "id": [str(i) for i in range(8)],
        "trial": ["0", "1", "2", "3"] * 2,
        "layers": ["1", "2", "1", "2", "1", "2", "3", "1"],
    }
    found, none, _ = guess.parameters(columns, studies, [f"t.csv: row {i}" for i in range(2, 10)])
    assert [one.name for one in found] == ["layers"]
    assert none == dict.fromkeys(["id", "trial"], "whole numbers that count the rows")


def test_a_slip_among_numbers_is_told():
    with pytest.raises(DataError) as error:
        column([*np.linspace(0, 1, 30), "fast"])
    assert str(error.value) == (
        "t.csv: row 32, field 'p': 'fast' is no number, as 30 other cells of the column are; correct it, or leave the "
        "column out with --ignore p"
    )


@pytest.mark.parametrize(
    ("cells", "entry", "note"),
    [
        (["none", "cosine"] * 6, {"type": "categorical", "choices": ["cosine", "none"]},
         "check: choices as seen, 'none' among them"),
        (["none", "l1", "l2", ""] * 3, {"type": "categorical", "choices": ["l1", "l2", "none"]}, "'none' among them"),
        (["None", "4", "8"] * 6, {"type": "categorical", "choices": [4, 8, "None"]}, "'None' among them"),
        (["null", "0.5", "None"] * 6, {"type": "categorical", "choices": [0.5, "null", "None"]}, "'null' and 'None' a"),
        (["true", "False", "None"] * 2, {"type": "categorical", "choices": [False, True, "None"]}, "'None' among them"),
        (["None", *map(str, range(0, 40, 3))], {"type": "int", "low": 0, "high": 39},
         "check: 1 cells 'None' taken as missing"),
        (["nan", "sgd", "adam", "sgd", "adam"], {"type": "categorical", "choices": ["adam", "sgd"]},
         "check: 1 cells 'nan' taken as missing"),
    ],
)  # fmt: skip
def test_a_choice_may_be_called_none(cells, entry, note):
    (found,), none, _ = guess.parameters({"p": cells}, ["s"] * len(cells), [""] * len(cells))
    assert found.entry == entry and note in "; ".join(found.notes) and not none


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["None"] * 5, "always None"),
        (["none", "a", "b"], "text with 3 different values"),
        (["8", "8", "None"], "always 8 (1 cells 'None' taken as missing)"),
        (["cosine", "cosine", "NA", "NA", ""], "always cosine (2 cells 'NA' taken as missing)"),
        (["nan", "nan"], "it has no value (2 cells 'nan' taken as missing)"),
    ],
)
def test_what_was_taken_as_missing_is_said(cells, why):
    assert guess.parameters({"p": cells}, ["s"] * len(cells), [""] * len(cells)) == ([], {"p": why}, {})


@pytest.fixture
def drafted(tmp_path):
    """Return a function that drafts the space of a table and reads it back."""

    def call(header, table, ignore=(), name="own"):
        path = write(tmp_path / "history.csv", header, table)
        made = draft_of([read_sheet(path)], "dataset", "error", "minimise", dict.fromkeys(ignore, "asked"), name)
        (tmp_path / "space.yaml").write_text(draft.text(made), encoding="utf-8")
        return path, tmp_path / "space.yaml", description.load(tmp_path / "space.yaml")

    return call


def test_the_draft_of_a_history_is_readable_at_once_and_finds_the_condition(drafted):
    table = [[*row, str(i), f"run {i}"] for i, row in enumerate(rows())]
    history, space, found = drafted([*HEADER, "id", "note"], table)
    text = space.read_text()
    assert "- id  # whole numbers that count the rows" in text and "- note  # text with 38 different values" in text
    assert found.name == "own" and found.outcome == "error" and not found.maximise and not found.log
    fields = {field.name: field for field in found.fields}
    assert [field.kind for field in found.fields] == ["float", "int", "ordinal", "categorical", "float"]
    assert fields["learning_rate"].log and fields["momentum"].parent == "optimiser"
    assert fields["momentum"].needs == ("sgd",) and "{optimiser: sgd}}  # check: bounds as seen; check: has" in text
    (past,) = read_all([history], [space])
    assert sum(len(task.y) for task in past.tasks.values()) == 38


def test_a_parameter_that_a_study_did_not_tune_is_told_and_not_filled(drafted):
    place = HEADER.index("layers")
    table = [["" if row[0] == "d1" and i == place else cell for i, cell in enumerate(row)] for row in rows()]
    history, space, found = drafted(HEADER, table)
    assert (
        "# check: bounds as seen; check: not tuned in 'd1': add default: with the value that it had"
        in space.read_text()
    )
    assert all(field.default is None for field in found.fields)
    with pytest.raises(DataError, match="has no value in all of study 'd1'; write the value that it had there under"):
        read_all([history], [space])


def test_gaps_that_nothing_explains_are_told(drafted):
    table = rows()
    table[3][HEADER.index("layers")] = ""
    _, space, _ = drafted(HEADER, table)
    assert "check: 1 trials have no value, and no other parameter tells when" in space.read_text()


def test_a_history_with_choices_called_none_is_read_whole(drafted):
    header, words = ["dataset", "scheduler", "penalty", "depth", "rate", "error"], ["none", "l1", "Null"]
    table = [
        [f"d{i % 2}", ["cosine", "none"][i % 3 > 0], words[i % 3], [4, "None", 8][i % 5 % 3], 0.1 + i / 7, 1 / (1 + i)]
        for i in range(30)
    ]
    history, space, found = drafted(header, table)
    fields = {field.name: field.choices for field in found.fields}
    assert fields["scheduler"] == ("cosine", "none") and fields["penalty"] == ("Null", "l1", "none")
    assert fields["depth"] == (4, 8, "None") and not found.ignore
    (past,) = read_all([history], [space])
    assert sum(len(task.y) for task in past.tasks.values()) == 30
    seen = {one["depth"] for several in past.configurations.values() for one in several}
    assert seen == {4, 8, "None"}


def test_none_that_another_parameter_explains_says_that_there_is_no_value(drafted):
    header = ["dataset", "optimiser", "momentum", "error"]
    table = [[f"d{i % 2}", *(("adam", "None") if i % 3 else ("sgd", [0.5, 0.9][i % 2])), i / 9] for i in range(36)]
    history, space, found = drafted(header, table)
    assert found.fields[1].choices == (0.5, 0.9) and found.fields[1].needs == ("sgd",)
    assert "check: 24 cells 'None' taken as missing" in space.read_text()
    assert sum(len(task.y) for task in read_all([history], [space])[0].tasks.values()) == 36


@pytest.mark.parametrize("index", [[str(i) for i in range(38)], [str(i * i % 41) for i in range(38)]])
def test_a_column_without_a_name_is_not_tuned(drafted, index):
    table = [[number, *row, ""] for number, row in zip(index, rows(), strict=True)]
    history, space, found = drafted(["", *HEADER, ""], table)
    assert "- ''  # it has no name" in space.read_text() and found.ignore == ("",)
    assert sum(len(task.y) for task in read_all([history], [space])[0].tasks.values()) == 38


def test_names_and_choices_that_yaml_reads_otherwise(drafted):
    header = ["dataset", "yes", "1", "a: b", "kind", "error"]
    kinds = ["1e-3", "no", "2024-05-01", "x#y", "'q'", "ü, ö"]
    table = [[f"d{i % 2}", 0.1 * i, i % 3, 7 - i, kinds[i % 6], 0.3 + i] for i in range(24)]
    history, space, found = drafted(header, table)
    assert {field.name for field in found.fields} == {"yes", "1", "a: b", "kind"}
    assert {field.name: set(field.choices) for field in found.fields}["kind"] == set(kinds)
    assert len(read_all([history], [space])[0].tasks) == 2


def test_columns_can_be_left_out_by_name(drafted):
    _, space, found = drafted(HEADER, rows(), ignore=["momentum"])
    assert "momentum" in found.ignore and "- momentum  # asked" in space.read_text()


@pytest.mark.parametrize(
    ("header", "table", "ignore", "kind", "message"),
    [
        (["data", *HEADER[1:]], rows(), (), DataError, "column 'dataset' is missing. Did you mean 'data'?"),
        (HEADER, [], (), DataError, "no rows below the header; a history has one row per past trial"),
        (HEADER, [["", *rows()[0][1:]]], (), DataError, "row 2, field 'dataset' is empty; name the study"),
        (HEADER, [rows()[0], rows()[1][:-1]], (), DataError, "row 3 has 6 cells, the header has 7; check separators"),
        (HEADER, rows(), ["momentun"], ConfigError, "unknown column to ignore 'momentun'. Did you mean 'momentum'?"),
        (["dataset", "error"], [["a", 1], ["b", 2]], (), DataError, "no column is a parameter that was tuned (there"),
        (["dataset", "x", "error"], [["a", 3, 1], ["b", 3, 2]], (), DataError, "was tuned (x: always 3); add one"),
    ],
)
def test_a_table_that_cannot_be_drafted(drafted, header, table, ignore, kind, message):
    with pytest.raises(kind) as error:
        drafted(header, table, ignore)
    assert message in str(error.value)


def test_the_example_drafted_is_the_space_that_it_came_from_but_for_bounds(drafted):
    _, _, found = drafted(HEADER, rows(studies=6, fewest=20))
    import yaml

    meant = description.of_mapping({"name": "own", **yaml.safe_load(SPACE)}, "s")
    kinds = {"batch": "ordinal", "optimiser": "categorical"}
    for field, other in zip(found.fields, meant.fields, strict=True):
        assert (field.name, field.log, field.parent, field.needs) == (other.name, other.log, other.parent, other.needs)
        assert kinds.get(field.name, other.kind) == field.kind
        if not field.choices:
            assert other.low <= field.low < field.high <= other.high


def test_a_draft_names_a_few_studies_and_stays_in_its_line():
    studies = [f"study\n{i}" for i in range(8)]
    sheet = Sheet("t", ["dataset", "a", "b", "error"], [
        (i, [study, str(i * i), "" if i else "1", "0.5"]) for i, study in enumerate(studies)
    ])  # fmt: skip
    sheet.rows.append((9, [studies[0], "70", "4", "0.1"]))
    made = draft_of([sheet], "dataset", "error", "maximise", {}, "own")
    text = draft.text(made)
    assert "not tuned in 'study 1', 'study 2', 'study 3', 'study 4', 'study 5' and 2 more: add default:" in text
