"""Constraints of a history: who breaks one counts as failed, and a value that is not there is told, never guessed."""

import math

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metabo.data.history import account, description, past
from metabo.data.history import read as history
from metabo.errors import ConfigError, DataError
from tests.tuner.conftest import HEADER, SPACE, rows, write

MEMORY = "memory_gb"
WITH = [*HEADER[:-1], MEMORY, "error"]


def space(tmp_path, **constraint):
    """A space with a constraint on the memory (at most 8 unless told), and with other keys."""
    data = yaml.safe_load(SPACE) | {"constraints": {MEMORY: constraint or {"at_most": 8}}}
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    return description.load(tmp_path / "space.yaml")


def table(values, outcomes=None):
    """The good table with these values of the memory, and some outcomes changed."""
    changed = outcomes or {}
    return [
        [*row[:-1], value, changed.get(i, row[-1])]
        for i, (row, value) in enumerate(zip(rows(), values, strict=True), start=2)
    ]


def read(tmp_path, values, outcomes=None, header=WITH, skip=False, **constraint):
    return history.read(
        write(tmp_path / "history.csv", header, table(values, outcomes)), space(tmp_path, **constraint), skip
    )


GOOD = ["6.5"] * len(rows())


def with_cells(**cells):
    """The good values with others in some rows ("row12": what stands there)."""
    return [cells.get(f"row{i}", value) for i, value in enumerate(GOOD, start=2)]


class TestSpace:
    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ({}, "key 'constraints.memory_gb' has no bound; give at_most, at_least or both"),
            ({"unrecorded": "met"}, "key 'constraints.memory_gb' has no bound"),
            ({"at_most": 1, "at_least": 2}, "'constraints.memory_gb.at_least' is 2, above at_most (1): no value meets"),
            ({"at_most": "8 GB"}, "key 'constraints.memory_gb.at_most' is the text '8 GB', must be a number"),
            ({"at_most": math.nan}, "key 'constraints.memory_gb.at_most' is the number nan, must be a number"),
            ({"at_most": True}, "key 'constraints.memory_gb.at_most' is the boolean True, must be a number"),
            ({"most": 8}, "key 'constraints.memory_gb.most' is unknown. Did you mean 'at_most'? Allowed: at_least"),
            ({"at_most": 8, "unrecorded": "no"}, "memory_gb.unrecorded' is the text 'no', must be one of: met, drop"),
        ],
    )  # fmt: skip
    def test_a_bad_constraint_is_told(self, tmp_path, entry, message):
        data = yaml.safe_load(SPACE) | {"constraints": {MEMORY: entry}}
        with pytest.raises(ConfigError) as error:
            description.of_mapping(data, "space.yaml")
        (line,) = str(error.value).splitlines()
        assert line.startswith("space.yaml key 'constraints.memory_gb") and message in line

    @pytest.mark.parametrize("name", ["layers", "error", "dataset"])
    def test_a_column_has_one_role(self, name):
        data = yaml.safe_load(SPACE) | {"constraints": {name: {"at_most": 1}}}
        with pytest.raises(ConfigError, match=rf"column '{name}' has two roles \(.*constraints\); keep one"):
            description.of_mapping(data, "space.yaml")

    @pytest.mark.parametrize("name", ["=x", " memory", "a\nb"])
    def test_a_name_that_no_table_keeps_is_refused(self, name):
        data = yaml.safe_load(SPACE) | {"constraints": {name: {"at_most": 1}}}
        with pytest.raises(ConfigError, match="rename it"):
            description.of_mapping(data, "space.yaml")

    def test_bounds_are_said_in_words(self, tmp_path):
        assert space(tmp_path).constraints[0].said == "at most 8"
        assert space(tmp_path, at_least=0.5).constraints[0].said == "at least 0.5"
        assert space(tmp_path, at_least=1, at_most=2).constraints[0].said == "at least 1 and at most 2"


class TestWhoBreaksOne:
    def test_is_infeasible_and_said(self, tmp_path):
        found = read(tmp_path, with_cells(row3="8.5", row12="9", row13="8"))
        assert [trial.row for trial in found.trials if trial.broken] == [3, 12]  # 8 is at most 8
        assert all(math.isnan(trial.counted) for trial in found.trials if trial.broken)
        assert len(found.trials) == len(rows())
        assert "history.csv: rows 3, 12 break 'memory_gb' (at most 8): infeasible, like failed ones" in "\n".join(
            found.remarks
        )
        notes = {one["study"]: one["notes"] for one in found.accounts}
        for study in ("d0", "d1"):
            assert "1 broke memory_gb (at most 8) and count as failed" in notes[study]
            assert any("1 broke memory_gb" in line for line in account.lines(found.accounts) if line.startswith(study))
        assert not any("broke" in note for note in notes["d2"])

    def test_ends_are_inside(self, tmp_path):
        found = read(tmp_path, with_cells(row2="0.99", row3="1", row4="2", row5="2.01"), at_least=1, at_most=2)
        assert [trial.row for trial in found.trials if trial.broken][:2] == [2, 5]
        assert not {3, 4} & {trial.row for trial in found.trials if trial.broken}

    def test_units_are_converted(self, tmp_path):
        data = yaml.safe_load(SPACE) | {
            "constraints": {MEMORY: {"at_most": 8}}, "studies": {"d1": {"scale_by": {MEMORY: 0.001}}},
        }  # fmt: skip
        (tmp_path / "space.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
        values = ["6500" if row[0] == "d1" else "6.5" for row in rows()]
        values[9] = "9000"
        found = history.read(write(tmp_path / "h.csv", WITH, table(values)), description.load(tmp_path / "space.yaml"))
        assert {trial.measured[MEMORY] for trial in found.trials if trial.measured} == {9.0, 6.5}
        assert [(trial.row, trial.study) for trial in found.trials if trial.broken] == [(11, "d1")]

    def test_a_study_whose_successes_all_break_one_is_left_out(self, tmp_path):
        values = ["9" if row[0] == "d2" else "6" for row in rows()]
        found = past.past_of("history.csv", read(tmp_path, values), space(tmp_path))
        assert list(found.tasks) == ["d0", "d1", "d3"]
        assert any("no trial that succeeded and met its constraints" in remark for remark in found.remarks)

    def test_repeats_with_another_value_are_data(self, tmp_path):
        doubled = table(GOOD) + [[*row[:-2], "7.5", row[-1]] for row in table(GOOD)[:1]] + table(GOOD)[1:2]
        found = history.read(write(tmp_path / "history.csv", WITH, doubled), space(tmp_path))
        assert [trial.row for trial in found.trials][-1] == len(rows()) + 2  # and the last row repeats row 3


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(["5", "8", "8.0001", "30"]), min_size=len(rows()), max_size=len(rows())))
def test_what_is_learned_is_the_same_as_from_failed_trials(tmp_path, values):
    """However good their outcomes are."""
    broken = {i: "failed" for i, value in enumerate(values, start=2) if float(value) > 8}
    try:
        one = past.past_of("h", read(tmp_path, values), space(tmp_path))
    except DataError as error:
        assert "no study is left" in str(error)
        return
    other = past.past_of("h", read(tmp_path, values, broken), space(tmp_path))
    assert one.scale == other.scale and list(one.tasks) == list(other.tasks)
    for name, task in one.tasks.items():
        for field in ("x", "y", "metric", "rows"):
            np.testing.assert_array_equal(getattr(task, field), getattr(other.tasks[name], field))


class TestValuesThatAreNotThere:
    @pytest.mark.parametrize(
        ("cell", "said"),
        [("", "has no value"), ("NaN", "has no value"), ("much", "is 'much', no finite number"),
         ("inf", "is 'inf', no finite number"), ("1e400", "is '1e400', no finite number")],
    )  # fmt: skip
    def test_one_cell_is_a_fault_with_row_column_and_remedy(self, tmp_path, cell, said):
        values = with_cells(row4=cell)
        with pytest.raises(DataError) as error:
            read(tmp_path, values)
        head, fault = str(error.value).splitlines()
        assert "history.csv: 1 of 38 rows cannot be used" in head
        assert (
            fault == f"  row 4, field 'memory_gb' {said}; write a number, or 'failed' into 'error' if the trial failed"
        )
        assert 4 not in [trial.row for trial in read(tmp_path, values, skip=True).trials]

    def test_a_failed_trial_needs_none(self, tmp_path):
        found = read(tmp_path, with_cells(row4="", row5="?"), {4: "failed", 5: ""})
        assert [trial.row for trial in found.trials if math.isnan(trial.outcome)][:2] == [4, 5]

    def test_a_study_that_did_not_record_it_is_refused_with_the_choices(self, tmp_path):
        with pytest.raises(DataError) as error:
            read(tmp_path, ["" if row[0] == "d1" else "6" for row in rows()])
        lines = str(error.value).splitlines()
        assert len(lines) == 2 and lines[1].endswith(
            "field 'memory_gb' has no value in all of study 'd1'; write the values, or say under "
            "'constraints.memory_gb.unrecorded' in space.yaml what its trials count as: met (they met it) or drop "
            "(they are left out)"
        )

    def test_its_trials_count_as_having_met_it_if_space_yaml_says_so(self, tmp_path):
        values = ["" if row[0] == "d1" else "9" if i % 5 == 0 else "6" for i, row in enumerate(rows())]
        found = read(tmp_path, values, at_most=8, unrecorded="met")
        assert len(found.trials) == len(rows())
        assert not any(trial.broken or trial.measured for trial in found.trials if trial.study == "d1")
        assert any(trial.broken for trial in found.trials)
        told = {one["study"]: one["notes"] for one in found.accounts}
        assert "memory_gb not recorded, taken as met" in told["d1"] and not any("taken" in note for note in told["d2"])

    def test_or_are_left_out(self, tmp_path):
        values = ["" if row[0] == "d1" else "6" for row in rows()]
        found = read(tmp_path, values, at_most=8, unrecorded="drop")
        assert {trial.study for trial in found.trials} == {"d0", "d2", "d3"}
        (dropped,) = next(one for one in found.accounts if one["study"] == "d1")["dropped"]
        assert dropped["reason"] == "memory_gb not recorded ('constraints.memory_gb.unrecorded' is drop)"
        assert len(dropped["rows"]) == 9 and any("left out rows 10, 11" in remark for remark in found.remarks)

    def test_no_column_is_as_if_no_study_recorded_it(self, tmp_path):
        path = write(tmp_path / "history.csv", HEADER, rows())
        with pytest.raises(DataError, match="'memory_gb' has no value in all of study 'd0'"):
            history.read(path, space(tmp_path))
        found = history.read(path, space(tmp_path, at_most=8, unrecorded="met"))
        assert len(found.trials) == len(rows()) and not any(trial.broken for trial in found.trials)

    def test_a_slip_in_the_header_is_not_taken_for_it(self, tmp_path):
        header = [*WITH[:-2], "memory_GB", "error"]
        with pytest.raises(
            DataError, match=r"'memory_gb' is missing. Did you mean 'memory_GB'\? .*constraint 'memory_gb'"
        ):
            read(tmp_path, GOOD, header=header, at_most=8, unrecorded="met")

    def test_one_empty_cell_of_a_study_that_did_record_it_is_a_fault_all_the_same(self, tmp_path):
        with pytest.raises(DataError, match="row 4, field 'memory_gb' has no value; write a number"):
            read(tmp_path, with_cells(row4=""), at_most=8, unrecorded="met")
