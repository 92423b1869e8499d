"""Facts of single studies: other bounds, parameters that were not tuned, units, directions; each with its broken
variant, which one line tells."""

import math

import pytest
import yaml

from metabo.data.history import account, description, past
from metabo.data.history import read as history
from metabo.errors import ConfigError, DataError
from tests.tuner.conftest import HEADER, SPACE, rows, write


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a table with a space that has some keys set ("a.b.c": value; None removes)."""

    def call(table, header=HEADER, skip=False, **changes):
        data = yaml.safe_load(SPACE)
        for key, value in changes.items():
            *path, last = key.split("__")
            part = data
            for name in path:
                part = part.setdefault(name, {})
            part.pop(last) if value is None else part.__setitem__(last, value)
        (tmp_path / "space.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
        space = description.load(tmp_path / "space.yaml")
        return history.read(write(tmp_path / "history.csv", header, table), space, skip)

    return call


def changed(column, change, studies=("d1",)):
    """The good table with a column of some studies changed."""
    place, table = HEADER.index(column), rows()
    return [[change(cell) if i == place and row[0] in studies else cell for i, cell in enumerate(row)] for row in table]


def of(found, study):
    return next(one for one in found.accounts if one["study"] == study)


def fault(error):
    """Return a message without its first line, which counts, if it has several."""
    lines = str(error.value).splitlines()
    return lines[-1] if len(lines) > 1 else lines[0]


def test_a_good_history_is_accounted_for(read):
    found = read(rows())
    assert [(one["study"], one["read"], one["used"]) for one in found.accounts] == [
        ("d0", 8, 8), ("d1", 9, 9), ("d2", 10, 10), ("d3", 11, 11),
    ]  # fmt: skip
    for one in found.accounts:
        own = [row for row in rows() if row[0] == one["study"]]
        assert one["failed"] == sum(row[-1] == "" for row in own) and not one["dropped"]
    shown = account.lines(found.accounts)
    assert [line.split()[:3] for line in shown] == [
        ["study", "read", "used"],
        *([f"d{i}", str(n), str(n)] for i, n in enumerate((8, 9, 10, 11))),
        ["all", "38", "38"],
    ]


class TestOtherBounds:
    def test_trials_outside_todays_space_are_left_out_and_told(self, read):
        found = read(rows(), parameters__learning_rate__high=0.1)
        outside = [i for i, row in enumerate(rows(), start=2) if float(row[1]) > 0.1]
        assert outside and [trial.row for trial in found.trials] == [i for i in range(2, 40) if i not in outside]
        told = [(one["study"], d["reason"], row) for one in found.accounts for d in one["dropped"] for row in d["rows"]]
        assert [row for *_, row in told] == outside
        assert {reason for _, reason, _ in told} == {"learning_rate outside [0.0001, 0.1]"}
        assert any("learning_rate outside [0.0001, 0.1]; widen the space" in remark for remark in found.remarks)
        assert any("learning_rate outside [0.0001, 0.1] (row" in line for line in account.lines(found.accounts))

    def test_a_choice_of_another_space_is_left_out(self, read):
        found = read(changed("optimiser", lambda cell: "rmsprop" if cell == "adam" else cell))
        (dropped,) = of(found, "d1")["dropped"]
        assert dropped["reason"] == "optimiser is not one of sgd, adam"
        assert len(dropped["rows"]) + of(found, "d1")["used"] == 9
        (dropped,) = of(read(changed("batch", lambda cell: "33")), "d1")["dropped"]
        assert dropped["reason"].startswith("batch is not one of 16, 32, 64") and len(dropped["rows"]) == 9

    def test_a_number_beyond_a_bound_is_outside_unless_it_is_the_bound_with_digits_lost(self, read):
        table = changed("learning_rate", lambda cell: "1.0000000005")
        found = read(table)
        assert {t.configuration["learning_rate"] for t in found.trials if t.study == "d1"} == {1.0}
        for beyond, why in (("1.00000001", ""), ("-5e-8", ", without a logarithm")):
            (dropped,) = of(read(changed("learning_rate", lambda cell, to=beyond: to)), "d1")["dropped"]
            assert dropped["reason"] == f"learning_rate outside [0.0001, 1]{why}" and len(dropped["rows"]) == 9

    def test_a_narrow_study_is_told(self, read):
        found = read(changed("learning_rate", lambda cell: repr(1e-3 * (1 + float(cell))), ["d3"]))
        assert of(found, "d3")["used"] == 11
        (note,) = [note for note in of(found, "d3")["notes"] if "learning_rate" in note]
        assert note.startswith("only learning_rate 0.001")
        assert not any("learning_rate" in note for one in found.accounts[:3] for note in one["notes"])
        assert "only optimiser adam" in of(read(changed("optimiser", lambda cell: "adam", ["d3"])), "d3")["notes"]

    @pytest.mark.parametrize(
        ("choices", "said"),
        [([16, 32, 64], False), ([16, 32, 64, 128], True), ([16, 32, 64, 128, 256], True),
         ([16, 32, 64, 128, 256, 512], False)],
    )  # fmt: skip
    def test_a_study_with_half_of_the_choices_or_fewer_is_told(self, read, choices, said):
        """If it has two trials for each choice at least: d3 has eleven, and d0 with eight is too short to tell."""
        table = changed("batch", lambda cell: "16" if cell == "32" else cell, ["d0", "d3"])
        found = read(table, parameters__batch__choices=choices)
        assert ("only batch 16, 64" in of(found, "d3")["notes"]) == said
        assert not any("batch" in note for note in of(found, "d0")["notes"])

    def test_nothing_inside_is_refused(self, read):
        with pytest.raises(DataError) as error:
            read(rows(), parameters__layers={"type": "int", "low": 10, "high": 12})
        assert "history.csv: no usable row is left, the first: row 2, field 'layers': " in fault(error)
        assert "is outside [10, 12]; write a whole number from 10 to 12, or widen the space in space.yaml" in fault(
            error
        )


class TestNotTuned:
    def test_the_default_is_taken_where_a_whole_study_has_no_value(self, read):
        table = changed("layers", lambda cell: "")
        found = read(table, parameters__layers__default=3)
        assert {trial.configuration["layers"] for trial in found.trials if trial.study == "d1"} == {3}
        assert "layers not tuned, taken as 3" in of(found, "d1")["notes"] and of(found, "d1")["used"] == 9
        assert not any("not tuned" in note for note in of(found, "d2")["notes"])

    def test_it_may_have_no_column(self, read):
        place = HEADER.index("layers")
        found = read([[*row[:place], *row[place + 1 :]] for row in rows()], [*HEADER[:place], *HEADER[place + 1 :]],
                     parameters__layers__default=2)  # fmt: skip
        assert {trial.configuration["layers"] for trial in found.trials} == {2}
        assert all("layers not tuned, taken as 2" in one["notes"] for one in found.accounts)

    def test_a_slip_in_the_header_is_not_taken_for_a_parameter_that_was_not_tuned(self, read):
        header = ["layer" if column == "layers" else column for column in HEADER]
        with pytest.raises(DataError, match=r"row 1, column 'layers' is missing. Did you mean 'layer'\? Correct the"):
            read(rows(), header, parameters__layers__default=2, ignore="rest")

    def test_without_a_default_the_study_is_told_once(self, read):
        table = changed("layers", lambda cell: "", ("d1", "d2"))
        with pytest.raises(DataError) as error:
            read(table)
        lines = str(error.value).splitlines()
        assert len(lines) == 3 and "history.csv: 19 of 38 rows cannot be used" in lines[0]
        assert lines[1] == (
            "  rows 10, 11, 12, ... (9 rows), field 'layers' has no value in all of study 'd1'; write the value that "
            "it had there under 'parameters.layers.default' in space.yaml"
        )
        found = read(table, skip=True)
        assert of(found, "d1")["dropped"][0]["reason"] == "layers not tuned, and no default in space.yaml"
        assert {trial.study for trial in found.trials} == {"d0", "d3"}

    def test_a_row_without_the_name_of_a_study_is_counted(self, read):
        table = rows()
        table[3][HEADER.index("dataset")] = ""
        found = read(table, skip=True)
        assert of(found, "(without a study)")["dropped"][0]["rows"] == [5]
        assert sum(one["read"] for one in found.accounts) == 38

    def test_one_empty_cell_is_a_fault_all_the_same(self, read):
        table = rows()
        table[3][HEADER.index("layers")] = ""
        with pytest.raises(DataError) as error:
            read(table, parameters__layers__default=3)
        assert fault(error) == "  row 5, field 'layers' has no value; write a whole number from 1 to 6"

    def test_a_default_does_not_fill_a_parameter_that_is_not_in_use(self, read):
        found = read(changed("momentum", lambda cell: ""), parameters__momentum__default=0.5)
        for trial in found.trials:
            if trial.study == "d1":
                assert trial.configuration["momentum"] == (0.5 if trial.configuration["optimiser"] == "sgd" else None)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("layers", 9, "parameters.layers.default' is 9, which is outside [1, 6]; give a value of the space"),
            ("layers", 2.5, "parameters.layers.default' is 2.5, which is not a whole number from 1 to 6; give a value"),
            ("optimiser", "adm", "parameters.optimiser.default' is 'adm', which is not one of sgd, adam. Did you mean"),
        ],
    )
    def test_a_default_outside_the_space(self, read, name, value, message):
        with pytest.raises(ConfigError) as error:
            read(rows(), **{f"parameters__{name}__default": value})
        assert "space.yaml key '" in fault(error) and message in fault(error)

    def test_a_default_is_no_part_of_the_space(self):
        data = {"name": "s", **yaml.safe_load(SPACE)}
        plain = description.of_mapping(data, "s")
        data["parameters"]["layers"]["default"] = 3
        assert description.of_mapping(data, "s").fields == plain.fields


class TestUnits:
    def test_a_factor_brings_numbers_into_todays_unit(self, read):
        table = changed("learning_rate", lambda cell: repr(1000 * float(cell)))
        table = [[*row[:-1], repr(100 * float(row[-1])) if row[-1] and row[0] == "d1" else row[-1]] for row in table]
        found = read(table, studies={"d1": {"scale_by": {"learning_rate": 0.001, "error": 0.01}}})
        for trial, good in zip(found.trials, read(rows()).trials, strict=True):
            assert trial.configuration == pytest.approx(good.configuration)
            assert trial.outcome == pytest.approx(good.outcome, nan_ok=True)
        assert of(found, "d1")["notes"][:2] == ["learning_rate times 0.001", "error times 0.01"]

    def test_whole_numbers_stay_whole(self, read):
        found = read(changed("layers", lambda cell: str(10 * int(cell))), studies={"d1": {"scale_by": {"layers": 0.1}}})
        assert [t.configuration["layers"] for t in found.trials] == [
            t.configuration["layers"] for t in read(rows()).trials
        ]

    def test_a_factor_keeps_the_digits(self, read):
        wide = {"type": "int", "low": 1, "high": 4_000_000_000_000_000}
        table = changed("layers", lambda cell: f"12345678901234{cell}")
        found = read(table, parameters__layers=wide, studies={"d1": {"scale_by": {"layers": 10}}})
        own = [t.configuration["layers"] for t in found.trials if t.study == "d1"]
        assert own == [int(f"12345678901234{row[2]}0") for row in rows() if row[0] == "d1"]

    @pytest.mark.parametrize(
        ("study", "factors", "message"),
        [
            ("d9", {"layers": 2}, "space.yaml key 'studies.d9' names no study of "),
            (
                "d1",
                {"layer": 2},
                "space.yaml key 'studies.d1.scale_by.layer' is no parameter, outcome or constraint. Did",
            ),
            ("d1", {"optimiser": 2}, "'studies.d1.scale_by.optimiser': type categorical has no unit; factors go to "),
            ("d1", {"layers": 0}, "'studies.d1.scale_by.layers' is 0; give a factor above 0"),
            ("d1", {"layers": "ten"}, "'studies.d1.scale_by.layers' is the text 'ten', must be a number"),
        ],
    )
    def test_a_factor_that_goes_nowhere(self, read, study, factors, message):
        with pytest.raises(ConfigError) as error:
            read(rows(), studies={study: {"scale_by": factors}})
        assert message in fault(error)
        if study == "d9":
            assert "Did you mean 'd" in fault(error) and "Studies there: d0, d1, d2, d3" in fault(error)

    def test_a_cell_that_is_no_number_is_told_as_it_stands(self, read):
        table = changed("learning_rate", lambda cell: "fast")
        with pytest.raises(DataError, match="row 10, field 'learning_rate': 'fast' is not a number"):
            read(table, studies={"d1": {"scale_by": {"learning_rate": 0.001}}})


class TestDirections:
    def test_the_sign_of_a_study_of_the_other_goal_is_flipped_and_told(self, read):
        table = changed("error", lambda cell: f"-{cell}" if cell else "")
        found = read(table, studies={"d1": {"goal": "maximise"}}, outcome={"column": "error", "goal": "minimise"})
        assert [t.outcome for t in found.trials if t.study == "d1"] == pytest.approx(
            [t.outcome for t in read(rows()).trials if t.study == "d1"], nan_ok=True
        )
        assert of(found, "d1")["notes"][0] == "sign of error flipped (it was tuned the other way)"
        same = read(rows(), studies={"d1": {"goal": "minimise"}})
        assert next(t.outcome for t in same.trials if math.isfinite(t.outcome)) > 0
        assert not any("flipped" in note for note in of(same, "d1")["notes"])

    def test_a_flipped_outcome_has_no_logarithm(self, read):
        with pytest.raises(DataError) as error:
            read(rows(), studies={"d1": {"goal": "maximise"}})
        first = str(error.value).splitlines()[1]
        assert first.startswith("  row 10, field 'error': ") and "has no logarithm with its sign flipped" in first
        assert first.endswith(
            "convert the outcomes of the study, or remove 'scale: log' of the outcome from space.yaml"
        )

    def test_a_goal_that_is_none(self, read):
        with pytest.raises(ConfigError, match=r"key 'studies.d1.goal' .* must be one of: minimise, maximise. Did you"):
            read(rows(), studies={"d1": {"goal": "maximum"}})


class TestIgnoringTheRest:
    def test_columns_that_are_not_named_are_left_out_and_listed(self, read):
        table = [["made up", *row, str(i)] for i, row in enumerate(rows())]
        found = read(table, ["comment", *HEADER, "id"], ignore="rest")
        assert found.trials == [
            t._replace(outcome=o.outcome) for t, o in zip(read(rows()).trials, found.trials, strict=True)
        ]
        assert any(remark.endswith("history.csv: ignored (ignore: rest): comment, id") for remark in found.remarks)

    def test_a_parameter_that_is_misspelt_is_not_left_out(self, read):
        with pytest.raises(DataError, match=r"row 1, column 'layers' is missing. Did you mean 'layer'\?"):
            read(rows(), ["layer" if column == "layers" else column for column in HEADER], ignore="rest")

    def test_another_word_is_refused(self, read):
        with pytest.raises(ConfigError) as error:
            read(rows(), ignore="others")
        assert "space.yaml key 'ignore' is the text 'others': write a list of columns, or rest" in fault(error)

    def test_without_it_the_message_offers_it(self, read):
        with pytest.raises(DataError, match=r"column 'id' is not in space.yaml.*list under 'ignore' .*ignore: rest"):
            read([[*row, "1"] for row in rows()], [*HEADER, "id"])


def test_studies_without_a_signal_are_in_the_table(read, tmp_path):
    found = read([[*row[:-1], "0.5"] if row[0] == "d1" else row for row in rows()])
    space = description.load(tmp_path / "space.yaml")
    told = past.past_of("history.csv", found, space)
    one = next(one for one in told.accounts if one["study"] == "d1")
    assert one["used"] == 0 and one["dropped"][0]["reason"] == "one and the same outcome throughout"
    assert len(one["dropped"][0]["rows"]) == 9


def test_bad_rows_and_copies_are_in_the_table(read):
    table = rows()
    found = read([*table[:-1], [*table[-1][:2], "many", *table[-1][3:]], table[0]], skip=True)
    assert of(found, "d3")["dropped"] == [{"reason": "bad layers", "rows": [39]}]
    assert of(found, "d0")["dropped"] == [{"reason": "repeats an earlier row", "rows": [40]}]
    assert (of(found, "d0")["read"], of(found, "d0")["used"]) == (9, 8)
