"""Numbers that the figures of MPHD's studies report, from the tables of the studies alone (§3.2, App. F; claims M1 to
M5, M19 to M21)."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from metabo.methods.hierarchical.hyperprior import Parameters, kl_gamma
from metabo.papers.engine.claims.intervals import spearman_p

KINDS = Parameters("normal", "gamma", "gamma", "gamma")
"""Family of each parameter's prior: Normal (mean, standard deviation) or Gamma (shape, rate)."""
RANGES = Parameters((-1.0, 1.0), (0.0, 2.0), (0.5, 2.0), (0.0, 1e-3))
"""Where densities are drawn and compared (authors' code)."""
GRID = 401
CONFIDENCE = 0.95


def density(parameter: str, x: np.ndarray, first: float, second: float) -> np.ndarray:
    """Return the density at x of a parameter's prior, by its two numbers."""
    if getattr(KINDS, parameter) == "normal":
        return stats.norm.pdf(x, first, second)
    return stats.gamma.pdf(x, first, scale=1.0 / second)


def densities(prior: pd.DataFrame, truth: pd.DataFrame, parameter: str, ends: Iterable[int]) -> pd.DataFrame:
    """Return the densities of a parameter's prior at the numbers of domains `ends`, and of the truth (train and seed
    0): train, seed, x, density. `prior`: train, seed, parameter, first, second; `truth`: parameter, first, second.

    The grid leaves out the lower end where a Gamma's density may be infinite.
    """
    x = np.linspace(*getattr(RANGES, parameter), GRID)[1:]
    known = truth[truth["parameter"] == parameter].assign(train=0, seed=0)
    rows = pd.concat([known, prior[(prior["parameter"] == parameter) & prior["train"].isin(ends)]])
    parts = [
        pd.DataFrame({"train": r.train, "seed": r.seed, "x": x, "density": density(parameter, x, r.first, r.second)})
        for r in rows.itertuples()
    ]
    return pd.concat(parts, ignore_index=True)


def from_truth(parameter: str, truth: tuple[float, float], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return KL(truth ‖ prior) in nats of a parameter's priors."""
    mean, std = truth
    if getattr(KINDS, parameter) == "normal":
        return np.log(second / std) + (std**2 + (mean - first) ** 2) / (2 * second**2) - 0.5
    return kl_gamma(mean, std, first, second)


def convergence(prior: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """Return what claims M1, M2, M20 and M21 speak of, per parameter and number of training domains.

    Columns: parameter, train, mean and std (over seeds; ddof 1) of the first number of the prior (shape, or mean of the
    Normal), error (|mean - truth|), kl (KL(truth ‖ prior), mean over seeds), spread (∫ variance over seeds of the
    density, over RANGES). `prior`, `truth`: as in `densities`.
    """
    rows = []
    known = truth.set_index("parameter")
    for (parameter, train), own in prior.groupby(["parameter", "train"], sort=False):
        first, second = (own[column].to_numpy() for column in ("first", "second"))
        true = tuple(known.loc[parameter, ["first", "second"]])
        x = np.linspace(*getattr(RANGES, parameter), GRID)[1:]
        curves = np.array([density(parameter, x, a, b) for a, b in zip(first, second, strict=True)])
        rows.append({
            "parameter": parameter, "train": train, "mean": first.mean(), "std": first.std(ddof=1),
            "error": abs(first.mean() - true[0]), "kl": from_truth(parameter, true, first, second).mean(),
            "spread": curves.var(axis=0, ddof=1).sum() * (x[1] - x[0]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def spread_tests(prior: pd.DataFrame) -> pd.DataFrame:
    """Test whether the spread over seeds differs between the fewest and the most domains (M1; Levene, median-centred).

    Columns: parameter, fewest, most (standard deviations of the prior's first number there), statistic, p (NaN for
    fewer than three seeds: two are always equally far from their median).
    """
    rows = []
    for parameter, own in prior.groupby("parameter", sort=False):
        ends = [own.loc[own["train"] == end, "first"] for end in (own["train"].min(), own["train"].max())]
        statistic, p = stats.levene(*ends) if min(map(len, ends)) > 2 else (np.nan, np.nan)
        few, many = (values.std(ddof=1) for values in ends)
        rows.append({"parameter": parameter, "fewest": few, "most": many, "statistic": statistic, "p": p})
    return pd.DataFrame(rows)


def trend(table: pd.DataFrame, by: str, value: str) -> dict[str, float]:
    """Return Spearman's rank correlation of `by` with the mean and the variance (over rows) of `value` there (M3).

    Keys: mean, mean_p, variance, variance_p; NaN where undefined, and for two numbers, whose ranks always agree or not.
    """
    groups = table.groupby(by)[value]
    found = {}
    for name, numbers in (("mean", groups.mean()), ("variance", groups.var())):
        varies = len(numbers) > 2 and np.ptp(numbers) > 0
        rho, p = _spearman(numbers.index, numbers) if varies else (np.nan, np.nan)
        found |= {name: rho, f"{name}_p": p}
    return found


def _spearman(x: Sequence[float] | pd.Index | pd.Series, y: pd.Series) -> tuple[float, float]:
    """Return Spearman's rank correlation and its p value (`spearman_p`): Student's t alone gives five points that are
    in order p = 0."""
    rho = float(stats.spearmanr(x, y).statistic)
    return rho, spearman_p(rho, len(y))


def mass(prior: pd.DataFrame, parameter: str, upper: float) -> pd.DataFrame:
    """Return the mass that a parameter's Gamma has up to `upper`: train, mean, low, high over seeds (M21)."""
    own = prior[prior["parameter"] == parameter]
    below = stats.gamma.cdf(upper, own["first"], scale=1.0 / own["second"])
    return own.assign(mass=below).groupby("train")["mass"].agg(mean="mean", low="min", high="max").reset_index()


def mean_divergence(divergence: pd.DataFrame) -> pd.DataFrame:
    """Average the divergence over the dimensions, equally (Figure 6): output, train, seed, kl."""
    return divergence.groupby(["output", "train", "seed"], sort=False)["kl"].mean().reset_index()


def network_differences(means: pd.DataFrame) -> pd.DataFrame:
    """Compare the networks with the prior without one, paired by seed (M5).

    `means`: from `mean_divergence`. Columns: output, train, difference (network minus non_nn, mean over seeds), low,
    high (its 95 % t interval; NaN for one seed), wins (share of seeds in which it is negative).
    """
    wide = means.pivot(index=["train", "seed"], columns="output", values="kl")
    rows = []
    for output in [o for o in dict.fromkeys(means["output"]) if o != "non_nn"]:
        for train, gap in (wide[output] - wide["non_nn"]).groupby("train"):
            error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
            half = stats.t.ppf(0.5 + CONFIDENCE / 2, max(len(gap) - 1, 1)) * error
            centre = gap.mean()
            row = {"output": output, "train": train, "difference": centre, "low": centre - half, "high": centre + half}
            rows.append({**row, "wins": (gap < 0).mean()})
    return pd.DataFrame(rows)


def estimate_spread(estimate: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """Return mean, std (ddof 1), error (|mean - truth|) per parameter and number of sub-datasets (M19).

    `estimate`: functions, run, parameter, value; `truth`: parameter, value.
    """
    groups = estimate.groupby(["parameter", "functions"], sort=False)["value"]
    table = groups.agg(mean="mean", std=lambda v: v.std(ddof=1)).reset_index()
    known = truth.set_index("parameter")["value"]
    return table.assign(error=(table["mean"] - table["parameter"].map(known)).abs())


def spread_trends(spread: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's correlation of the number of sub-datasets with the standard deviation: parameter, spearman, p
    (M19; NaN for two numbers, whose ranks always agree or not). `spread`: from `estimate_spread`."""
    rows = []
    for parameter, own in spread.groupby("parameter", sort=False):
        rho, p = _spearman(own["functions"], own["std"]) if len(own) > 2 else (np.nan, np.nan)
        rows.append({"parameter": parameter, "spearman": rho, "p": p})
    return pd.DataFrame(rows)
