"""Numbers that the studies' figures and tables report, from the tables of the studies alone (hyperbo §5.5.2, §6.3)."""

from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

ORDERS = {
    "nll": ("truth", "pretrained", "single_task"),
    "ekl": ("truth", "pretrained", "single_task"),
    "nll_f": ("truth", "pretrained", "single_task"),
    "nll_df": ("single_task", "pretrained", "truth"),
}
"""Order of the models in each row of Table 2, lowest first."""


def share(hits: int, of: int) -> dict[str, float]:
    """Return the share of hits with its exact (Clopper-Pearson) 95 % interval: share, low, high, of."""
    low, high = stats.binomtest(hits, of).proportion_ci(0.95)
    return {"share": hits / of, "low": float(low), "high": float(high), "of": float(of)}


def differing_argmins(argmin: pd.DataFrame) -> pd.DataFrame:
    """Return per parameter in how many draws EKL and NLL have different lowest grid points (claim C14).

    `argmin`: draw, parameter, metric (ekl, nll), x. Columns: parameter, share, low, high, of, distance (median of the
    absolute difference).
    """
    rows = []
    for parameter, cells in argmin.groupby("parameter", sort=False):
        wide = cells.pivot(index="draw", columns="metric", values="x")
        gap = (wide["ekl"] - wide["nll"]).abs()
        rows.append({"parameter": parameter, **share(int((gap > 0).sum()), len(gap)), "distance": gap.median()})
    return pd.DataFrame(rows)


def _by_draw(marginal: pd.DataFrame, column: str) -> pd.DataFrame:
    """Average a column over the points of each draw: one row per functions, observations, draw; a column per model."""
    keys = ["functions", "observations", "draw"]
    return marginal.pivot_table(index=keys, columns="model", values=column, aggfunc="mean", sort=False)


def kl_medians(marginal: pd.DataFrame) -> pd.DataFrame:
    """Return KL(truth ‖ model), mean over the points and median over the draws (claims C17, C19).

    `marginal`: functions, observations, draw, model, x, kl. Columns: functions, observations, model, median.
    """
    wide = _by_draw(marginal[marginal["model"] != "truth"], "kl")
    medians = wide.groupby(["functions", "observations"], sort=False).median()
    return medians.melt(ignore_index=False, value_name="median").reset_index()


def pretrained_wins(marginal: pd.DataFrame) -> pd.DataFrame:
    """Return the share of draws in which the pre-trained GP has a lower mean KL than both estimates (claim C20)."""
    kl = _by_draw(marginal, "kl")
    won = kl["pretrained"] < kl[["mle", "unbiased"]].min(axis=1)
    groups = won.groupby(["functions", "observations"], sort=False)
    return pd.DataFrame([{"functions": n, "observations": t, **share(int(w.sum()), len(w))} for (n, t), w in groups])


def variance_ratios(marginal: pd.DataFrame) -> pd.DataFrame:
    """Return the mean ratio of posterior variances, model to truth, beside its expectation (claim C18, Theorem 5).

    Columns: functions, observations, model (mle, unbiased), ratio, error (standard error over draws), expected
    ((N - t)/N with t = observations + 1, and 1), z.
    """
    keys = ["functions", "observations", "draw", "x"]
    wide = marginal.pivot(index=keys, columns="model", values="variance")
    rows = []
    for model in ("mle", "unbiased"):
        ratios = (wide[model] / wide["truth"]).groupby(keys[:3]).mean()
        for (n, observed), values in ratios.groupby(keys[:2]):
            expected = (n - observed - 1) / n if model == "mle" else 1.0
            error = values.std() / np.sqrt(len(values))
            found = {"ratio": values.mean(), "error": error, "expected": expected}
            z = (values.mean() - expected) / error
            rows.append({"functions": n, "observations": observed, "model": model, **found, "z": z})
    return pd.DataFrame(rows)


def losses(loss: pd.DataFrame) -> pd.DataFrame:
    """Return mean, std (ddof 0) and median over seeds per model and metric. `loss`: seed, model, metric, value."""
    groups = loss.groupby(["model", "metric"], sort=False)["value"]
    return groups.agg(mean="mean", std=lambda v: v.std(ddof=0), median="median").reset_index()


def orders(loss: pd.DataFrame) -> pd.DataFrame:
    """Return the share of seeds in which the models have the printed order, all three and each pair (claim C21).

    Columns: metric, comparison (e.g. "truth < pretrained"), share, low, high, of.
    """
    rows = []
    for metric, order in ORDERS.items():
        wide = loss[loss["metric"] == metric].pivot(index="seed", columns="model", values="value")
        for chain in (order, order[:2], order[1:], (order[0], order[2])):
            hits = np.all([wide[a] < wide[b] for a, b in pairwise(chain)], axis=0)
            rows.append({"metric": metric, "comparison": " < ".join(chain), **share(int(hits.sum()), len(wide))})
    return pd.DataFrame(rows)
