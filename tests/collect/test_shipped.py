"""Shipped tables: read only with the right checksum; put into the package with their origin."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from metabo.collect import shipped
from metabo.errors import DataError
from metabo.plan import config
from metabo.records.files import digest


@pytest.fixture
def collected(tmp_path):
    table = pd.DataFrame(
        {
            "task": ["a", "a", "b"],
            "status": ["done", "diverged", "done"],
            "error": np.array([0.25, np.nan, 0.5], np.float32),
            "curve": [[0.5, 0.25], [0.5, None], [0.75, 0.5]],
        }
    )
    path = tmp_path / "collect" / "mini.parquet"
    shipped.write_table(table, path)
    origin = {"spec": {"benchmark": "mini", "seed": 0}, "outputs": {"mini.parquet": digest(path)}, "wall_s": 1.0}
    path.with_suffix(".json").write_text(json.dumps(origin))
    return path


@pytest.fixture
def packed(collected, tmp_path):
    shipped.ship("mini", collected, tmp_path / "package")
    return tmp_path / "package" / "mini.parquet"


def test_what_is_shipped_is_what_was_collected(collected, packed):
    pd.testing.assert_frame_equal(shipped.read("mini", packed), shipped.read_table(collected))
    record = json.loads(packed.with_suffix(".json").read_text())
    assert (record["rows"], record["spec"]) == (3, {"benchmark": "mini", "seed": 0})
    assert "wall_s" not in record


def test_the_same_table_gives_the_same_bytes(collected, tmp_path):
    shipped.write_table(shipped.read_table(collected), tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == collected.read_bytes()


def test_text_comes_back_as_text_and_curves_as_lists(packed):
    table = shipped.read("mini", packed)
    assert list(table["task"]) == ["a", "a", "b"] and table["task"].dtype == object
    assert list(table["curve"][2]) == [0.75, 0.5]


def test_a_changed_byte_is_a_checksum_error(packed):
    content = bytearray(packed.read_bytes())
    content[len(content) // 2] ^= 1
    packed.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"mini\.parquet: checksum error.*restore"):
        shipped.read("mini", packed)


@pytest.mark.parametrize("damage", ["{}", "[]", "no json"])
def test_a_damaged_record_is_named(packed, damage):
    packed.with_suffix(".json").write_text(damage)
    with pytest.raises(DataError, match=r"mini\.json: no readable checksum"):
        shipped.read("mini", packed)


@pytest.mark.parametrize("lost", [".parquet", ".json"])
def test_a_missing_file_is_named(packed, lost):
    packed.with_suffix(lost).unlink()
    with pytest.raises(DataError, match="is missing; restore both"):
        shipped.read("mini", packed)


def test_a_version_is_shipped_under_its_own_name(collected, tmp_path):
    origin = json.loads(collected.with_suffix(".json").read_text())
    collected.with_suffix(".json").write_text(json.dumps(origin | {"spec": {"benchmark": "mini", "version": 2}}))
    shipped.ship("mini", collected, tmp_path / "package")
    assert sorted(path.name for path in (tmp_path / "package").iterdir()) == ["mini_2.json", "mini_2.parquet"]


def test_a_table_without_sidecar_is_not_shipped(collected, tmp_path):
    collected.with_suffix(".json").unlink()
    with pytest.raises(DataError, match="no collected table with its sidecar"):
        shipped.ship("mini", collected, tmp_path / "package")


def test_a_table_of_another_benchmark_or_another_run_is_not_shipped(collected, tmp_path):
    with pytest.raises(DataError, match="a collection of mini, not of maxi"):
        shipped.ship("maxi", collected, tmp_path / "package")
    shipped.write_table(shipped.read_table(collected).iloc[:1], collected)
    with pytest.raises(DataError, match=r"not the table that mini\.json was written with"):
        shipped.ship("mini", collected, tmp_path / "package")


@pytest.mark.parametrize("benchmark", ["pd1_mini", "hpob_mini"])
def test_the_shipped_tables_are_whole_and_small(benchmark):
    assert len(shipped.read(benchmark)) > 10_000
    assert sum(path.stat().st_size for path in shipped.FOLDER.glob("*")) < 12 * 2**20


@pytest.mark.parametrize("benchmark", ["pd1_mini", "hpob_mini"])
def test_the_newest_shipped_version_is_the_default(benchmark):
    assert config.load(Path(__file__).parents[2]).sizes["benchmarks"][benchmark]["version"] == shipped.newest(benchmark)
