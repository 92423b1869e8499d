import re

import numpy as np
import pandas as pd
import pytest

from metabo import results
from metabo.errors import DataError, MetaboError


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
