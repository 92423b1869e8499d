"""Reading a history: what is kept, what is said, and that every fault names file, row, field and fix."""

import math

import numpy as np
import pytest
import yaml

from metabo.data.history import description, past
from metabo.data.history import read as history
from metabo.errors import ConfigError, DataError
from tests.tuner.conftest import HEADER, SPACE, rows, write


@pytest.fixture
def read(tmp_path):
    """Return a function that writes a table (or bytes), and reads it."""
    (tmp_path / "space.yaml").write_text(SPACE)
    space = description.load(tmp_path / "space.yaml")

    def call(table, header=HEADER, **options):
        path = tmp_path / "history.csv"
        if isinstance(table, bytes):
            path.write_bytes(table)
        else:
            write(path, header, table)
        return history.read(path, space, **options)

    return call


def altered(row: int, column: str, value: str) -> list[list[str]]:
    """The good table with one cell changed; `row` as a spreadsheet counts."""
    table = rows()
    table[row - 2][HEADER.index(column)] = value
    return table


def test_the_good_history_is_read_whole(read):
    found = read(rows())
    assert [trial.row for trial in found.trials] == list(range(2, 40))
    first = rows()[0]
    assert found.trials[0].study == "d0" and found.trials[0].configuration["learning_rate"] == float(first[1])
    failed = [trial.row for trial in found.trials if math.isnan(trial.outcome)]
    assert failed == [i + 2 for i, row in enumerate(rows()) if row[-1] == ""] and failed
    assert found.remarks == [f"{found.remarks[0].split(': ')[0]}: {history.listed(failed)} without a finite outcome "
                             "count as failed trials"]  # fmt: skip


@pytest.mark.parametrize("value", ["0", "-0.01"])
def test_a_number_without_a_logarithm_is_not_to_be_had_by_a_wider_space(read, value):
    remarks = read(altered(3, "learning_rate", value)).remarks
    (said,) = [remark for remark in remarks if "left out" in remark]
    assert said.endswith("without a logarithm; remove its 'scale: log' and widen it in space.yaml to use them")


def test_a_parameter_that_no_study_has_is_told(read, tmp_path):
    header = ["depth" if name == "layers" else name for name in HEADER]
    space = yaml.safe_load(SPACE)
    space["parameters"]["layers"]["default"] = 3
    space["ignore"] = "rest"
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(space, sort_keys=False))
    write(tmp_path / "history.csv", header, rows())
    remarks = history.read(tmp_path / "history.csv", description.load(tmp_path / "other.yaml")).remarks
    assert any("no study has a value of 'layers', so nothing is learned about it" in one for one in remarks)
    assert not any("nothing is learned" in remark for remark in read(rows()).remarks)


def test_one_failed_trial_is_no_several(read):
    place = next(place for place, row in enumerate(rows()) if row[-1] == "")
    table = [row for row in rows() if row[-1]] + [rows()[place]]
    (remark,) = read(table).remarks
    assert remark.endswith(f": row {len(table) + 1} without a finite outcome counts as a failed trial")


def test_column_order_blank_rows_and_a_byte_order_mark_do_not_matter(read):
    order = [6, 0, 3, 1, 2, 5, 4]
    table = [[row[i] for i in order] for row in rows()]
    one, other = read(rows()), read([*table[:5], [""] * 7, *table[5:]], [HEADER[i] for i in order])
    assert [t[1:3] for t in one.trials] == [t[1:3] for t in other.trials]
    assert [t.row for t in other.trials][4:6] == [6, 8]
    text = "\ufeff" + ",".join(HEADER) + "\n" + "\n".join(",".join(row) for row in rows())
    assert len(read(text.encode()).trials) == len(one.trials)


@pytest.mark.parametrize(
    ("row", "column", "value", "parts"),
    [
        (3, "learning_rate", "", ["row 3, field 'learning_rate' has no value", "a number from 0.0001 to 1"]),
        (3, "learning_rate", "NaN", ["row 3, field 'learning_rate' has no value"]),
        (3, "learning_rate", "fast", ["row 3, field 'learning_rate': 'fast' is not a number"]),
        (3, "optimiser", "None", ["'optimiser' has no value; write one of sgd, adam, or add 'None' to its choices in"]),
        (4, "layers", "2.5", ["row 4, field 'layers': '2.5' is not a whole number from 1 to 6"]),
        (5, "batch", "wide", ["row 5, field 'batch': 'wide' is not one of 16, 32, 64"]),
        (5, "optimiser", "Adam", ["row 5, field 'optimiser': 'Adam' is not one of sgd, adam. Did you mean 'adam'?"]),
        (6, "dataset", "", ["row 6, field 'dataset' is empty", "name the study"]),
        (7, "error", "good", ["row 7, field 'error': 'good' is no number", "'failed' for a failed trial"]),
        (7, "error", "-0.1", ["row 7, field 'error': '-0.1' has no logarithm", "scale: log"]),
    ],
)
def test_a_bad_cell_is_told_and_can_be_left_out(read, row, column, value, parts):
    with pytest.raises(DataError) as error:
        read(altered(row, column, value))
    assert "history.csv: 1 of 38 rows cannot be used" in str(error.value) and "--skip-bad-rows" in str(error.value)
    for part in parts:
        assert part in str(error.value)
    kept = read(altered(row, column, value), skip_bad_rows=True)
    assert row not in [trial.row for trial in kept.trials] and len(kept.trials) == 37
    reason = kept.remarks[0].partition(f"left out row {row}: ")[2]
    assert reason == "no study" or column in reason, "each fault is named"


def test_a_value_of_a_parameter_that_is_not_in_use_is_not_read_and_said(read):
    """A wrong `when` would leave out a whole column in silence."""
    given = rows()
    idle = next(number for number, row in enumerate(given, start=2) if row[HEADER.index("optimiser")] == "adam")
    found = read(altered(idle, "momentum", "0.5"))
    (said,) = [one for one in found.remarks if "momentum" in one]
    assert said.endswith(f"history.csv: row {idle} has a value of 'momentum', which is not in use there ('when' in "
                         "space.yaml): it is not read")  # fmt: skip
    assert next(one for one in found.trials if one.row == idle).configuration["momentum"] is None
    assert not any("momentum" in one for one in read(altered(idle, "momentum", "")).remarks)


def test_outcomes_whose_differences_are_infinite_are_refused_unless_logarithms_are_taken(read, tmp_path):
    read(altered(7, "error", "1.7e308"))
    linear = description.of_mapping({"name": "s", **yaml.safe_load(SPACE.replace(", scale: log}\np", "}\np"))}, "s")
    assert not linear.log
    for cell in ("1e301", "-1.7e308", "1e400"):
        path = write(tmp_path / "large.csv", HEADER, altered(7, "error", cell))
        with pytest.raises(DataError, match=rf"row 7, field 'error': '{cell}' is larger than 1e\+300 in size"):
            history.read(path, linear)


def test_cells_that_need_quotes_are_read_with_them(tmp_path):
    mixed = {"type": "categorical", "choices": [64, "64", " sgd ", "sgd"]}
    space = description.of_mapping({"name": "s", "study": "a", "outcome": {"column": "b", "goal": "maximise"},
                                    "parameters": {"c": mixed}}, "s")  # fmt: skip
    cells = ["64", '"64"', '" sgd "', "sgd", "64.0"]
    path = write(tmp_path / "history.csv", ["a", "b", "c"], [["x", str(i), cell] for i, cell in enumerate(cells)])
    assert [trial.configuration["c"] for trial in history.read(path, space).trials] == [64, "64", " sgd ", "sgd", 64]


def test_many_bad_rows_are_counted_and_the_first_ten_shown(read):
    table = [[*row[:2], "few", *row[3:]] for row in rows()]
    with pytest.raises(DataError, match=r"38 of 38 rows cannot(.|\n)*row 11, field(.|\n)*\.\.\. and 28 more rows"):
        read(table)
    with pytest.raises(DataError, match="no usable row is left, the first: row 2, field 'layers'"):
        read(table, skip_bad_rows=True)


@pytest.mark.parametrize(
    ("header", "table", "parts"),
    [
        ([*HEADER[:-1], "err"], rows(), ["row 1, column 'error' is missing", "Did you mean 'err'?", "Columns there"]),
        ([*HEADER, "seed"], [[*r, "1"] for r in rows()], ["row 1, column 'seed' is not in space.yaml", "'ignore'"]),
        ([*HEADER, "error"], [[*r, "1"] for r in rows()], ["column 'error' is there 2 times"]),
        (HEADER, [], ["no rows below the header"]),
        (HEADER, [rows()[0], rows()[1][:-1]], ["row 3, it has 6 cells, the header has 7"]),
    ],
)
def test_a_header_or_a_shape_that_does_not_fit(read, header, table, parts):
    with pytest.raises(DataError) as error:
        read(table, header)
    for part in ["history.csv", *parts]:
        assert part in str(error.value)


def test_a_column_that_is_there_is_not_meant_by_another_one(read):
    with pytest.raises(DataError, match=r"column 'layer' is not in space\.yaml\. Describe it under"):
        read([[*row, "1"] for row in rows()], [*HEADER, "layer"])


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["the file is empty", "first row must name the columns"]),
        (",".join(HEADER).encode() + b"\nd\x81,1\n", ["row 2 is neither UTF-8 nor cp1252 (byte 0x81)", "CSV UTF-8"]),
        ("/".join(HEADER).encode() + b"\n1/2\n", ["'dataset' is missing", "Columns there: dataset/learning_rate/"]),
        (b'dataset,error\n"open,1\n', ["not a CSV table"]),
    ],
)
def test_a_file_that_is_no_table(read, content, parts):
    with pytest.raises(DataError) as error:
        read(content)
    for part in ["history.csv", *parts]:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (1, 0, "row 1, column 1 has no name: the index of a D"),
        (0, 2, "row 1, columns 8, 9 have no name: the index of a"),
    ],
)
def test_columns_without_a_name(read, tmp_path, before, after, said):
    """The index of pandas, and columns that a spreadsheet left empty; two are not one column twice."""
    header = [""] * before + HEADER + [""] * after
    table = [[str(i)] * before + row + [""] * after for i, row in enumerate(rows())]
    with pytest.raises(DataError) as error:
        read(table, header)
    assert said in str(error.value) and "index=False" in str(error.value) and "\n" not in str(error.value)
    assert str(error.value).endswith("(delete it), or leave it out with ignore: [''] in space.yaml")
    for line in ("ignore: ['']", "ignore: rest"):
        space = description.of_mapping({"name": "s", **yaml.safe_load(f"{SPACE}{line}\n")}, "s")
        found = history.read(tmp_path / "history.csv", space)
        assert len(found.trials) == 38
        assert ("a column without a name" in found.remarks[-1]) == (line == "ignore: rest")


def test_a_missing_file_is_named(tmp_path, read):
    space = description.of_mapping({"name": "s", "study": "a", "outcome": {"column": "b", "goal": "maximise"},
                                    "parameters": {"c": {"type": "float", "low": 0, "high": 1}}}, "s")  # fmt: skip
    with pytest.raises(DataError, match=r"none\.csv: cannot read it"):
        history.read(tmp_path / "none.csv", space)


def test_copies_are_left_out_and_repeats_stay(read):
    table = rows()
    repeat = [*table[0][:-1], repr(float(table[0][-1]) * 1.1)]
    found = read([*table, table[0], repeat, table[3]])
    assert [trial.row for trial in found.trials][-1] == 41 and len(found.trials) == 39
    assert found.remarks[0].endswith("left out rows 40, 42: each repeats an earlier row, outcome included")


class TestPast:
    def of(self, read, table):
        space = description.of_mapping({"name": "s", **yaml.safe_load(SPACE)}, "s")
        return past.past_of("history.csv", read(table), space)

    def test_outcomes_are_maximised_on_the_log_scale_and_failures_are_their_studys_worst(self, read):
        found = self.of(read, rows())
        for study, task in found.tasks.items():
            cells = [row[-1] for row in rows() if row[0] == study]
            good = np.array([cell != "" for cell in cells])
            raw = -np.log(np.array([float(cell) for cell in cells if cell]))
            expected = np.maximum((raw - found.scale.centre) / found.scale.spread, past.FLOOR)
            np.testing.assert_allclose(task.y[good], expected)
            assert (task.y[~good] == expected.min()).all()
            assert (task.metric[~good] == max(float(cell) for cell in cells if cell)).all()
        everything = np.concatenate([task.y for task in found.tasks.values()])
        assert np.isfinite(everything).all() and everything.min() >= past.FLOOR
        assert found.scale.original(0.0, found.description) == pytest.approx(np.exp(-found.scale.centre))

    def test_outcomes_of_any_size_have_a_finite_scale(self):
        """Spreads of 1e±300, where squares and differences leave the numbers, are like those of 1."""
        rng = np.random.default_rng(0)
        values = rng.normal(size=50)
        one = past.scale_of(values, values[:3])
        for size in (2.0**996, 2.0**-996):
            same = past.scale_of(values * size, values[:3] * size)
            assert (same.centre, same.spread, same.worst) == (one.centre * size, one.spread * size, one.worst)
            assert same.scaled(values * size).tolist() == one.scaled(values).tolist()
        few = np.array([0.0] * 8 + [1e300])  # half of them are equal: the standard deviation
        assert past.scale_of(few).spread == pytest.approx(np.std(few / 1e300) * 1e300)
        assert past.Scale(0.0, 1e-300, -2.0).scaled(np.array([1e300, -1e300])).tolist() == [past.CEILING, past.FLOOR]

    def test_studies_without_a_signal_are_left_out_by_name(self, read):
        table = rows()
        flat = [[*row[:-1], "0.5"] if row[0] == "d1" else row for row in table]
        lost = [[*row[:-1], "failed"] if row[0] == "d2" else row for row in flat]
        found = self.of(read, lost)
        assert list(found.tasks) == ["d0", "d3"]
        assert any("left out study 'd1' (rows 10, 11" in r and "one and the same outcome" in r for r in found.remarks)
        assert any("left out study 'd2'" in r and "no trial that succeeded" in r for r in found.remarks)
        single = [row for i, row in enumerate(table) if row[0] != "d1" or table[i - 1][0] != "d1"]
        remarks = self.of(read, single).remarks
        assert any("left out study 'd1'" in r and "one trial alone, so there is nothing" in r for r in remarks)
        with pytest.raises(DataError, match="no study is left with two different values of 'error'"):
            self.of(read, [[*row[:-1], "0.5"] for row in table])

    def test_a_hopeless_outcome_does_not_set_the_scale(self, read):
        found = self.of(read, altered(2, "error", "1e300"))
        assert found.tasks["d0"].y.min() == past.FLOOR and any("spreads below the median" in r for r in found.remarks)
        assert found.scale.spread < 5


def test_histories_and_spaces_go_together(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    files = write(tmp_path / "history.csv", HEADER, rows()), tmp_path / "space.yaml"
    with pytest.raises(ConfigError, match="2 histories and 1 spaces"):
        past.read_all([files[0]] * 2, [files[1]])
    with pytest.raises(ConfigError, match="two spaces have the name 'space'"):
        past.read_all([files[0]] * 2, [files[1]] * 2)


@pytest.mark.parametrize(("number", "told"), [(history.MANY - 1, False), (history.MANY, True)])
def test_a_parameter_that_is_empty_in_many_rows_may_need_a_condition(read, number, told):
    table = rows()
    for row in table[:number]:
        row[HEADER.index("layers")] = ""
    with pytest.raises(DataError) as error:
        read(table)
    said = f"'layers' is empty in {number} rows; if it is used only where another parameter has certain values, say so"
    assert (said in str(error.value)) == told
    for row in table:  # what has a condition, and lacks a value where it holds, needs no other one
        row[HEADER.index("momentum")] = ""
    with pytest.raises(DataError, match="'momentum' has no value") as error:
        read([row for row in table if row[HEADER.index("layers")]])
    assert "'momentum' is empty" not in str(error.value)
