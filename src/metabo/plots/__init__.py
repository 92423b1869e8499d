"""Figures: functions that take a tidy DataFrame and return a matplotlib Figure, in one style (`metabo.plots.style`).

Nothing here computes a result, reads a file or touches matplotlib's global state.
"""

from metabo.plots.curves import profile_panels, rank_curves, regret_figure, split_panels
from metabo.plots.matrices import correlation_matrices
from metabo.plots.tables import mean_std_cells, table_figure

__all__ = [
    "correlation_matrices",
    "mean_std_cells",
    "profile_panels",
    "rank_curves",
    "regret_figure",
    "split_panels",
    "table_figure",
]
