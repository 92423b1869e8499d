"""The figure of matched points and first queries shows all of its table."""

import pandas as pd

from metabo.papers.hyperbo.figures.support import support_figure


def test_the_axis_holds_the_whole_band():
    """A band far below the medians is not cut."""
    curves = pd.DataFrame(
        {"method": "h_nll", "iteration": [1, 2], "median": [0.5, 0.4], "low": [0.02, 0.01], "high": [3, 2]}
    )
    ranges = pd.DataFrame({"input": ["power"], "low": [0.1], "high": [0.8]})
    queries = pd.DataFrame({"method": ["h_nll"], "input": ["power"], "value": [0.4]})
    regret, inputs = support_figure(curves, ranges, queries, "T", "simple regret").axes
    low, high = regret.get_ylim()
    assert low < 0.01 and high > 3
    assert "scaled to [0, 1]" in inputs.get_xlabel()
