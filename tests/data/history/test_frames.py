"""Past trials from DataFrames: the same trials as from a CSV, and faults that name the frame, the row and the field."""

import numpy as np
import pandas as pd
import pytest
import yaml

import metabo
from metabo.data.history import frames, past
from metabo.errors import ConfigError, DataError
from tests.tuner.conftest import HEADER, SPACE, rows, write


@pytest.fixture
def space(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    return tmp_path / "space.yaml"


def frame(table=None):
    """The good table as pandas reads it."""
    made = pd.DataFrame(table or rows(), columns=HEADER).replace("", np.nan)
    return made.astype({"learning_rate": float, "layers": int, "batch": int, "momentum": float, "error": float})


def by_study(made):
    return {study: part.drop(columns="dataset") for study, part in made.groupby("dataset")}


def same(found, expected):
    assert list(found.tasks) == list(expected.tasks) and found.scale == pytest.approx(expected.scale)
    for name, task in expected.tasks.items():
        np.testing.assert_allclose(found.tasks[name].x, task.x)
        np.testing.assert_allclose(found.tasks[name].y, task.y)


@pytest.mark.parametrize(
    "given",
    [
        lambda made: [made],
        lambda made: [made.sample(frac=1, random_state=0).sort_index().set_index("layers", drop=False)],
        lambda made: [by_study(made)],
        lambda made: [part for _, part in made.groupby("dataset")],
        lambda made: [made.astype({"layers": "Int64", "optimiser": "category"})],
    ],
    ids=["one", "any index", "dict", "list", "dtypes"],
)  # fmt: skip
def test_frames_are_the_same_history_as_a_file(given, space, tmp_path):
    (expected,) = past.read_all([write(tmp_path / "history.csv", HEADER, rows())], [space])
    (found,) = past.read_all(given(frame()), [space])
    same(found, expected)
    assert found.name in ("DataFrame", "DataFrames") and found.layout == ""
    assert [one["used"] for one in found.accounts] == [8, 9, 10, 11]


def test_a_list_without_a_column_for_the_study_is_one_study_each(space):
    (found,) = past.read_all(list(by_study(frame()).values()), [space])
    assert list(found.tasks) == ["1", "2", "3", "4"]


def test_a_list_of_one_without_that_column_is_one_study_and_a_frame_alone_is_refused(space):
    name, one = next(iter(by_study(frame()).items()))
    (found,) = past.read_all(frames.required([one]), [space])
    assert list(found.tasks) == ["1"]
    (same_one,) = past.read_all([{"1": one}], [space])
    same(found, same_one)
    with_column = frame()[frame()["dataset"] == name]
    (found,) = past.read_all(frames.required((with_column,)), [space])
    assert list(found.tasks) == [name]
    with pytest.raises(DataError, match="column 'dataset' is missing"):
        past.read_all(frames.required(one), [space])


def test_several_spaces_go_with_several_frames(space, tmp_path):
    (tmp_path / "other.yaml").write_text(SPACE)
    found = past.read_all([frame(), by_study(frame())], [space, tmp_path / "other.yaml"])
    assert [len(one.tasks) for one in found] == [4, 4] and "other: d0" in found[1].tasks


def test_single_precision_and_a_frame_without_a_parameter(space):
    made = frame()
    short = made.assign(learning_rate=np.float32(0.1)).astype({"learning_rate": np.float32})
    (found,) = past.read_all([short], [space])
    assert set(found.tasks["d0"].x[:, 0].round(12)) == {0.75}  # 0.1 of 1e-4 to 1 on the log scale, not 0.100000001
    data = yaml.safe_load(SPACE)
    data["parameters"]["layers"]["default"] = 2
    space.write_text(yaml.safe_dump(data, sort_keys=False))
    parts = by_study(made)
    parts["d2"] = parts["d2"].drop(columns="layers")
    (found,) = past.read_all([parts], [space])
    assert "layers not tuned, taken as 2" in found.accounts[2]["notes"] and not found.accounts[1]["notes"]


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (lambda made: [made.assign(layers=[*made["layers"][:-1], 2.5])], DataError,
         "DataFrame (rows counted from 0): 1 of 38 rows cannot be used; correct them, or leave them out with "
         "--skip-bad-rows (in Python: skip_bad_rows=True):\n  row 37, field 'layers': '2.5' is not a whole number"),
        (lambda made: [{**by_study(made), "d3": by_study(made)["d3"].assign(layers=2.5)}], DataError,
         "DataFrame 'd3' (rows counted from 0): 11 of 11 rows cannot be used"),
        (lambda made: [made.drop(columns="layers")], DataError,
         "DataFrame (rows counted from 0): column 'layers' is missing. Columns there: dataset, learning_rate, "),
        (lambda made: [made.assign(seed=1)], DataError, "column 'seed' is not in space.yaml."),
        (lambda made: [made.iloc[:0]], DataError, "DataFrame (rows counted from 0): no rows below the header"),
        (lambda made: [pd.concat([made, made[["error"]]], axis=1)], DataError, "column 'error' is there 2 times"),
        (lambda made: [pd.concat({"a": made}, axis=1)], DataError, "its columns have 2 levels; give it columns of one"),
        (lambda made: [{"d0": made}], DataError,
         "DataFrame 'd0' (rows counted from 0): column 'dataset' names the study, and so does the dict; drop the"),
        (lambda made: [made, made.drop(columns="dataset")], ConfigError,
         "DataFrame number 2 has no column 'dataset' and others have; give the column to all, or name the studies"),
        (lambda made: [made, "history.csv"], ConfigError, "2 histories and 1 spaces; give each history its space"),
    ],
)  # fmt: skip
def test_a_fault_names_the_frame_the_row_and_the_field(given, kind, message, space):
    with pytest.raises(kind) as error:
        past.read_all(given(frame()), [space])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"d0": "history.csv"}, "study 'd0' is of type str; give a DataFrame of its trials"),
        ([], "the list of histories is empty"),
        ({}, "the dict of DataFrames is empty; give one DataFrame for each past study"),
        ([3], "a history is of type int; give the path of a CSV file, a DataFrame, or a dict of DataFrames"),
        (pd.Series([1.0]), "a history is of type Series; give the path of a CSV file, a DataFrame, or a dict of"),
        (None, "a history is of type NoneType; give the path"),
    ],
)
def test_what_is_no_history(given, message, space):
    with pytest.raises(ConfigError) as error:
        metabo.pretrain(given, space, space.parent / "to")
    assert message in str(error.value)
