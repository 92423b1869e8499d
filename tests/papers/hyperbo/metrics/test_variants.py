"""Variants beside a reference: endings, overlap of bands, tables by structure, worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from metabo.errors import ConfigError
from metabo.metrics import Runs
from metabo.papers.hyperbo.metrics import variants


def test_endings_by_hand():
    """Two priors, two tasks, two iterations: curves (3, 1) and (5, 3) over tasks."""
    values = {"h_nll": np.array([[[[4.0, 2.0], [2.0, 0.0]]], [[[6.0, 4.0], [4.0, 2.0]]]])}
    runs = Runs(values, {"h_nll": (0, 1)}, ("a", "b"), np.array([1, 2]), frozenset())
    found = variants.endings(runs).set_index("metric")
    assert found.loc["last", ["mean", "std", "repetitions"]].tolist() == [2.0, 1.0, 2]
    assert found.loc["mean", ["mean", "std"]].tolist() == [3.0, 1.0]


def test_bands_meet_where_they_touch():
    low = {"a": [1.0, 1.0, 1.0, 1.0], "b": [0.5, 2.0, 3.0, 0.0]}
    high = {"a": [2.0, 2.0, 2.0, 2.0], "b": [0.9, 2.5, 4.0, 9.0]}
    curves = pd.concat(
        pd.DataFrame({"method": m, "iteration": range(1, 5), "low": low[m], "high": high[m]}) for m in ("a", "b")
    )
    found = variants.band_overlap(curves, "a")
    assert found.to_dict("records") == [{"method": "b", "reference": "a", "share": 0.5}]
    with pytest.raises(ConfigError, match="unknown method in these curves 'c'"):
        variants.band_overlap(curves, "c")


def test_structures_are_spread_by_mean_and_layers():
    names = ["h_nll_zero_32", "h_nll_zero_8", "h_nll_linear_8", "h_nll_linear_128"]
    table = pd.DataFrame({"method": names, "mean": [1.0, 2.0, 1.5, 0.5]})
    wide = variants.by_structure(table, "mean")
    assert wide.columns.tolist() == ["(8,)", "(32, 32)", "(128, 128)"]
    assert wide.index.tolist() == ["zero", "linear_mlp"]
    assert wide.loc["zero"].tolist()[:2] == [2.0, 1.0] and wide.loc["linear_mlp", "(128, 128)"] == 0.5
    assert variants.lower_share(wide, "linear_mlp", "zero") == (1, 1)  # (8,) alone has both
