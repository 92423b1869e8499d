"""The support of matched points beside first queries."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from metabo.plots import look, style
from metabo.plots.curves import legend_with_counts

JITTER = 0.28


def support_figure(
    curves: pd.DataFrame,
    ranges: pd.DataFrame,
    queries: pd.DataFrame,
    title: str,
    unit: str,
    distinct: Mapping[str, float] | None = None,
) -> Figure:
    """Draw regret curves (method, iteration, median, low, high), and for each input the range of the matched points
    over folds (`ranges`: input, low, high), with a dot for each run's first query (`queries`: method, input, value).
    `distinct`: as in `metabo.plots.regret_figure`."""
    inputs, methods = list(dict.fromkeys(ranges["input"])), list(dict.fromkeys(curves["method"]))
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        style.regret_axis(left, curves[["median", "low", "high"]].to_numpy().ravel())
        for method in methods:
            own, drawn = curves[curves["method"] == method], look.of(method)
            left.plot(own["iteration"], own["median"], color=drawn.colour, dashes=drawn.dashes or (None, None))
            left.fill_between(own["iteration"], own["low"], own["high"], color=drawn.colour, alpha=0.15, linewidth=0)
        left.set(xlabel="BO iteration", ylabel=f"{unit}, mean over tasks")
        rng = np.random.default_rng(0)
        for place, name in enumerate(inputs):
            own = ranges[ranges["input"] == name]
            right.barh(place, own["high"].min() - own["low"].max(), left=own["low"].max(), height=0.8, color="0.9")
            for number, method in enumerate(methods):
                asked = queries[(queries["input"] == name) & (queries["method"] == method)]["value"]
                offset = (number - (len(methods) - 1) / 2) * JITTER
                heights = place + offset + rng.uniform(-0.09, 0.09, len(asked))
                drawn = look.of(method)
                right.scatter(asked, heights, s=7, color=drawn.colour, marker=drawn.marker, linewidths=0, alpha=0.7)
        right.set_yticks(range(len(inputs)), inputs)
        right.set(
            xlabel="first query,\ninputs scaled to [0, 1] (grey:\nmatched points of every fold)",
            ylim=(len(inputs) - 0.5, -0.5),
        )
        legend_with_counts(figure, methods, distinct, int(curves["iteration"].max()))
        figure.suptitle(title)
    return figure
