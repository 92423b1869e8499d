"""Figures: functions that take a tidy DataFrame and return a matplotlib Figure, in one style (`metabo.plots.style`).

Nothing here computes a result, reads a file or touches matplotlib's global state.
"""

from metabo.plots.correlations import correlation_panels
from metabo.plots.crossing import crossing_figure, learner_label
from metabo.plots.curves import profile_panels, rank_curves, regret_figure
from metabo.plots.matrices import correlation_matrices
from metabo.plots.online import online_panels
from metabo.plots.spaces import space_panels
from metabo.plots.sweeps import sweep_figure, three_views
from metabo.plots.tables import mean_std_cells, table_figure

__all__ = [
    "correlation_matrices",
    "correlation_panels",
    "crossing_figure",
    "learner_label",
    "mean_std_cells",
    "online_panels",
    "profile_panels",
    "rank_curves",
    "regret_figure",
    "space_panels",
    "sweep_figure",
    "table_figure",
    "three_views",
]
