import re

import numpy as np
import pandas as pd
import pytest

from metabo.errors import DataError, MetaboError
from metabo.records import results


def table(rows=3):
    columns = {}
    for name, kind in results.COLUMNS.items():
        if kind == "str":
            columns[name] = [f"{name} {i % 2}" for i in range(rows)]
        elif kind == "bool":
            columns[name] = np.arange(rows) % 2 == 0
        else:
            columns[name] = np.arange(rows, dtype=kind)
    return pd.DataFrame(columns)


def refusal(frame):
    with pytest.raises(DataError) as caught:
        results.check(frame)
    return str(caught.value)


def test_columns_come_back_in_schema_order_and_untouched():
    shuffled = table()[list(results.COLUMNS)[::-1]]
    pd.testing.assert_frame_equal(results.check(shuffled), table())


def test_unknown_and_missing_columns_are_named():
    message = refusal(table().drop(columns="best_y").assign(regret=1.0))
    assert "missing columns ['best_y']" in message and "unknown columns ['regret']" in message


@pytest.mark.parametrize(
    ("column", "kind"),
    [("y", "float32"), ("simple_regret", "int64"), ("iteration", "int32"), ("candidate", "float64"), ("ok", "int64")],
)
def test_wrong_types_are_named(column, kind):
    message = refusal(table().astype({column: kind}))
    assert f"column '{column}' is {kind}, must be {results.COLUMNS[column]}" in message


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named_with_their_run(bad):
    frame = table()
    frame.loc[2, "y"] = bad
    message = refusal(frame)
    assert "column 'y' is not finite in row 2" in message
    assert "'task': 'task 0'" in message and re.search(r"'iteration': .*2", message)


def test_predictions_may_be_missing():
    frame = table()
    frame.loc[0, ["mean", "std"]] = np.nan
    assert results.check(frame)["mean"].isna().tolist() == [True, False, False]


def test_round_trip_and_same_bytes(tmp_path):
    results.write(table(5), tmp_path / "a.parquet")
    results.write(table(5), tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    back = results.read([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    pd.testing.assert_frame_equal(back, pd.concat([table(5), table(5)], ignore_index=True))
    assert type(back["task"].iloc[0]) is str


def test_a_refused_table_leaves_no_file(tmp_path):
    with pytest.raises(DataError):
        results.write(table().astype({"y": "float32"}), tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PAR1 nonsense", None])
def test_unreadable_files_are_named(tmp_path, content):
    path = tmp_path / "a.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.parquet: not a readable trajectory table .*delete it and run again"):
        results.read([path])


def test_truncated_file_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    results.write(table(50), path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"a\.parquet"):
        results.read([path])


def test_a_table_of_another_schema_is_refused_when_read(tmp_path):
    table().drop(columns="ok").to_parquet(tmp_path / "a.parquet")
    with pytest.raises(MetaboError, match="missing columns"):
        results.read([tmp_path / "a.parquet"])


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MetaboError, match="cannot write here"):
        results.write(table(), tmp_path / "file" / "a.parquet")


def evaluations(rows=4):
    columns = {name: [f"{name} {i % 2}" for i in range(rows)] for name in results.EVALUATION_COLUMNS}
    return pd.DataFrame(columns).assign(prior_seed=np.arange(rows), value=np.linspace(-1.0, 2.0, rows))


def test_evaluations_round_trip_and_same_bytes(tmp_path):
    shuffled = evaluations()[list(results.EVALUATION_COLUMNS)[::-1]]
    results.write_evaluations(evaluations(), tmp_path / "a.parquet")
    results.write_evaluations(shuffled, tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    back = results.read_evaluations([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    pd.testing.assert_frame_equal(back, pd.concat([evaluations()] * 2, ignore_index=True))
    assert type(back["metric"].iloc[0]) is str


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="value"), r"missing columns \['value'\]"),
        (lambda t: t.assign(values=1.0), r"unknown columns \['values'\]"),
        (lambda t: t.astype({"prior_seed": "float64"}), "column 'prior_seed' is float64, must be int64"),
        (
            lambda t: t.assign(value=np.nan),
            "column 'value' is not finite in row 0: .*'task': 'task 0'.*'metric': 'metr",
        ),
    ],
)
def test_evaluations_of_another_schema_are_refused_when_written_and_when_read(tmp_path, change, message):
    with pytest.raises(DataError, match=f"^evaluation table: .*{message}"):
        results.write_evaluations(change(evaluations()), tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []
    change(evaluations()).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=rf"a\.parquet: evaluation table: .*{message}"):
        results.read_evaluations([tmp_path / "a.parquet"])


def test_unreadable_evaluations_are_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match=r"a\.parquet: not a readable evaluation table .*delete it and run again"):
        results.read_evaluations([tmp_path / "a.parquet"])
