"""The file of a study: tables come back as they were; missing numbers and foreign files are refused."""

import pandas as pd
import pytest

from metabo.errors import DataError
from metabo.papers.engine.studies import files as tables


@pytest.fixture
def frames():
    return {
        "loss": pd.DataFrame({"step": [0, 1], "metric": ["a", "b"], "value": [0.5, -1.0]}),
        "band": pd.DataFrame({"x": [1.0, 2.0, 3.0], "observed": [True, False, True], "draw": [3, 4, 5]}),
    }


def test_tables_come_back_with_their_own_columns_and_types(frames, tmp_path):
    tables.write(frames, tmp_path / "study.parquet")
    back = tables.read(tmp_path / "study.parquet")
    assert list(back) == list(frames)
    for name, frame in frames.items():
        pd.testing.assert_frame_equal(back[name], frame)


def test_the_same_tables_give_the_same_bytes(frames, tmp_path):
    for name in ("a", "b"):
        tables.write(frames, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.assign(value=[1.0, float("nan")]), "table 'loss' has a missing value in column 'value'"),
        (lambda frame: frame.iloc[:0], "table 'loss' has no rows"),
    ],
)
def test_missing_numbers_and_empty_tables_are_refused(frames, tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        tables.write(frames | {"loss": change(frames["loss"])}, tmp_path / "study.parquet")
    assert not (tmp_path / "study.parquet").exists()


def test_a_missing_or_foreign_file_is_told(tmp_path):
    with pytest.raises(DataError, match=r"absent.parquet: no such study; make it"):
        tables.read(tmp_path / "absent.parquet")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(DataError, match="not the result of a study"):
        tables.read(tmp_path / "other.parquet")
