"""What cm-BO reports about its clusters: their indices, and regret by their number (§4.2, Figure 3)."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from metabo.errors import DataError
from metabo.metrics.runs import Runs
from metabo.papers.cmbo.metrics import endings
from metabo.plan import registry
from metabo.plan.runs import method_of
from metabo.records import sidecars as records
from metabo.records.fields import Fields


def clusters_of(paths: Iterable[str]) -> pd.DataFrame:
    """Return what the sidecars of the priors say about the clusters behind tables of runs, each file of priors once:
    one row per distance, space, fold and number of clusters.

    `chosen`: 1 for the number that the indices choose; intra, inter and their ratio (infinite where inter is 0);
    `iterations` of k-means; `largest`: tasks of the largest cluster. Empty where there are no sidecars.
    """
    rows, seen = [], set()
    for path in paths:
        for prior in records.of(path).get("inputs", {}):
            record = records.of(prior)
            if record.get("stage") != "pretrain" or prior in seen:
                continue
            seen.add(prior)
            fields = Fields(record, prior)
            for space in fields.objects("training"):
                for fold in space.objects("clusters") if space.maybe("clusters") else []:
                    distance = fields.object("spec").object("pretrain").text("distance")
                    rows += _rows_of(distance, space.text("space"), fold)
    columns = ["distance", "space", "fold", "clusters", "chosen", "intra", "inter", "ratio", "iterations", "largest"]
    return pd.DataFrame(rows, columns=columns)


def _rows_of(distance: str, space: str, fold: Fields) -> list[dict[str, str | float]]:
    keys = {"distance": distance, "space": space, "fold": fold.text("fold")}
    chosen = fold.number("chosen")
    parts = zip(
        fold.numbers("intra"), fold.numbers("inter"), fold.numbers("iterations"), fold.lists("sizes"), strict=True
    )
    return [
        {
            **keys, "clusters": i, "chosen": float(i == chosen), "intra": intra, "inter": inter,
            "ratio": intra / inter if inter > 0 else np.inf, "iterations": float(iterations),
            "largest": float(max(sizes)),
        }
        for i, (intra, inter, iterations, sizes) in enumerate(parts, start=1)
    ]  # fmt: skip


def cluster_numbers(runs: Runs) -> pd.DataFrame:
    """Return method, clusters (their number), last, better: last regret by the number of clusters that the registration
    of each variant fixes; `better`: 1 if it is below that of one cluster (B17)."""
    table = endings(runs)
    counts = [registry.method(method_of(name)).policy["clusters"] for name in table["method"]]
    table = table.assign(clusters=counts)
    alone = table.loc[table["clusters"] == 1, "last"]
    if alone.empty:
        raise DataError("no run with one cluster to compare with; give its trajectories")
    better = (table["last"] < float(alone.iloc[0])).astype(np.float64)
    return table.assign(better=better).sort_values("clusters", ignore_index=True)


def index_correlation(numbers: pd.DataFrame, indices: pd.DataFrame) -> pd.DataFrame:
    """Return distance, spearman, points: Spearman's correlation of intraCE/interCS (mean over folds) with the last
    regret, over the numbers of clusters of at least 2 (B18); no row without indices or with fewer than three numbers.

    `numbers`: as `cluster_numbers`; `indices`: as `clusters_of` of the same runs.
    """
    rows = []
    for distance, own in indices.groupby("distance", sort=False):
        ratio = own.groupby("clusters")["ratio"].mean().rename("ratio").reset_index()
        both = numbers.merge(ratio, on="clusters")
        both = both[both["clusters"] > 1]
        if len(both) >= 3:
            value = float(spearmanr(both["ratio"], both["last"]).statistic)
            rows.append({"distance": distance, "spearman": value, "points": len(both)})
    return pd.DataFrame(rows, columns=["distance", "spearman", "points"])
