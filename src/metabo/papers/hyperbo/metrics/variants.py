"""Variants of one method beside a reference: acquisition functions, mean and kernel structures (hyperbo D.2, D.3)."""

import numpy as np
import pandas as pd

from metabo.errors import unknown
from metabo.metrics.runs import Runs, repetitions
from metabo.plan import registry


def endings(runs: Runs, unit: str = "prior") -> pd.DataFrame:
    """Return method, metric, mean, std, repetitions: regret, mean over tasks, over repetitions (ddof 0).

    `metric`: "last", at the last iteration, or "mean", over all iterations (the area below the curve).
    """
    rows = []
    for method, values in repetitions(runs, unit).items():
        curve = values.mean(axis=1)
        for metric, v in (("last", curve[:, -1]), ("mean", curve.mean(axis=1))):
            row = {"method": method, "metric": metric, "mean": v.mean(), "std": v.std(), "repetitions": len(v)}
            rows.append(row)
    return pd.DataFrame(rows)


def band_overlap(curves: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return method, reference, share: in which share of the iterations two 20-80 % bands meet (claims C70, C71).

    `curves`: method, iteration, low, high (`metrics.regret_curves`). Raises ConfigError for an unknown reference.
    """
    bands = {m: rows.set_index("iteration")[["low", "high"]] for m, rows in curves.groupby("method", sort=False)}
    if reference not in bands:
        raise unknown("method in these curves", reference, bands)
    base = bands[reference]
    rows = []
    for method, band in bands.items():
        meet = (band["low"] <= base["high"]) & (base["low"] <= band["high"])
        rows.append({"method": method, "reference": reference, "share": float(meet.mean())})
    return pd.DataFrame([row for row in rows if row["method"] != reference])


def by_structure(table: pd.DataFrame, values: str) -> pd.DataFrame:
    """Spread `values` of a table of structures: mean function as rows, layers of the network as columns (D.3)."""
    models = [registry.method(method).model for method in table["method"]]
    layers = [tuple(model["features"]) for model in models]
    means = [model["mean"] for model in models]
    tidy = pd.DataFrame({"mean": means, "layers": map(str, layers), "value": table[values].to_numpy()})
    columns = [str(sizes) for sizes in sorted(set(layers), key=lambda sizes: (len(sizes), sizes))]
    return tidy.pivot(index="mean", columns="layers", values="value").reindex(dict.fromkeys(means), columns=columns)


def lower_share(wide: pd.DataFrame, row: str, other: str) -> tuple[int, int]:
    """Count the columns in which `row` is below `other`, of those that have both (claim C75)."""
    both = wide.loc[[row, other]].dropna(axis=1)
    return int(np.sum(both.loc[row] < both.loc[other])), both.shape[1]
