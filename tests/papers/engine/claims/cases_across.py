"""Cases of checks of priors and regret across search spaces, as in `cases_bo`."""

import numpy as np

from tests.papers.engine.claims.made import either, numbers, over

SEEDS = np.linspace(-1.5, 1.5, 10)
"""What seeds differ by."""


def priors(good, noise=False, apart=1.0):
    """Priors of ten seeds: near the truth and steady (a noise prior: far from it and steady), or neither.

    `apart`: how far seeds are from each other, in steps of these.
    """
    steady, wild = ((0.5, 0.02, 1.5e4), (9.0, 3.0, 9e3)) if noise else ((11.0, 0.5, None), (60.0, 20.0, None))
    ends = {2: either(good, wild, steady), 16: either(good, steady, wild)}
    parameter = "noise" if noise else "lengthscale"
    rows = []
    for train, (mean, deviation, rate) in ends.items():
        for seed, step in enumerate(apart * SEEDS):
            first = mean + deviation * step
            rows.append(
                {"parameter": parameter, "train": train, "seed": seed, "first": first, "second": rate or 3 * first}
            )
    return numbers(keys=["train", "seed"], prior=rows, truth=[{"parameter": parameter, "first": 10.0, "second": 30.0}])


def losses(good):
    """NLL of ten seeds, which falls with the domains as its spread does, or rises with them."""
    rows = [
        {"train": n, "seed": seed, "value": (100 + 20 * step) * either(good, 1 / n, n)}
        for n in (2, 4, 8, 16)
        for seed, step in enumerate(SEEDS)
    ]
    return numbers(keys=["train", "seed"], nll=rows)


def divergences(good, gap=0.0):
    """Divergences of five seeds of the network and of one Gamma for all, `gap` above it."""
    return [
        {"method": method, "train": n, "seed": seed, "kl": either(good, 1 / n, float(n)) + 0.001 * seed + more}
        for method, more in (("mphd", 0.0), ("mphd_non_nn", gap))
        for n in (1, 2, 4, 8)
        for seed in range(5)
    ]


def lower(good):
    gap = [-0.2, either(good, -0.2, 0.2)]
    rows = over(
        "train", method=["mphd"] * 2, train=[1, 2], difference=gap, low=[g - 0.05 for g in gap],
        high=[g + 0.05 for g in gap], wins=[5, 5],
    )  # fmt: skip
    return numbers(keys=["train", "seed"], difference=rows, divergence=divergences(good, 0.2))


def estimates(good):
    """Estimates of ten runs, whose spread falls with the sub-datasets, or rises for one parameter."""
    rows = [
        {"parameter": parameter, "functions": n, "run": run, "value": step * (n if rises else 1 / n)}
        for parameter, rises in (("noise", False), ("constant", not good))
        for n in (5, 10, 25)
        for run, step in enumerate(SEEDS)
    ]
    return numbers(keys=["functions", "run"], estimate=rows)


def suited(row):
    """Add to a row of differences over spaces the same intervals for this suite, of 40 seeds."""
    ends = ("low", "high", "area_low", "area_high", "overtaken_low", "overtaken_high")
    return {
        **row,
        **{f"suite_{end}": row[end] for end in ends if end in row},
        "suite_units": 40,
        "freedom": row["units"] - 1,
    }


def spaces(good, method="mphd", acquisition="pi", suffix=""):
    """Differences of others minus MPHD at iterations 3 and 100 and over all, over 16 spaces, and the regrets."""
    gap = either(good, 0.05, -0.05)
    others = {"rand": 0.3, "mphd_non_nn": gap, "hgp_truth": 0.001}
    extra = {"overtaken": either(good, 80.0, 12.0), "overtaken_low": either(good, 60.0, 5.0), "overtaken_high": 90.0}
    extra |= {"units": 16} if good else {"units": 16, "overtaken_high": 53.0}
    rows, ends, curves = [], [], []
    for panel, more in (("default", 0.0), ("ntot", either(good, 0.001, 0.1))):
        keys = {"acquisition": acquisition, "panel": panel}
        for m, d in others.items():
            size = {"difference": d, "low": d - 0.003, "high": d + 0.003}
            size |= {"area": 2 * d, "area_low": 2 * d - 0.003, "area_high": 2 * d + 0.003}
            own = {**keys, **extra, **size, "reference": method + suffix, "method": m + suffix}
            rows += [suited({**own, "iteration": t}) for t in (3, 100)]
        for m, d in {"mphd": 0.0, **others}.items():
            end = {**keys, "method": m + suffix, "last": 0.05 + d + more, "area": 0.2 + 2 * d + more, "std": 0.01}
            ends.append({**end, "place": 1})
            curves += [{**keys, "method": m + suffix, "iteration": t, "mean": 0.4, "seeds": 40} for t in (3, 100)]
    rise = {"difference": either(good, 0.001, 0.1), "reference": method + suffix, "method": method + suffix}
    rise |= {"low": rise["difference"] - 0.003, "high": rise["difference"] + 0.003, "iteration": 100}
    rows.append(suited({**keys, **extra, **rise, "panel": "cost"}))
    return numbers("mphd_l", keys=["iteration"], difference=rows, ending=ends, curve=curves)


def early(good):
    keys = {"acquisition": "pi", "panel": "default"}
    gap = [either(good, -0.2, 0.2), 0.1, 0.2]
    rows = over(
        "iteration", iteration=[3, 15, 100], difference=gap, low=[g - 0.05 for g in gap], high=[g + 0.05 for g in gap]
    )
    rows = [suited({**keys, **row, "reference": "mphd", "method": "h_nll", "units": 16}) for row in rows]
    curve = [{**keys, "method": "rand", "iteration": t, "mean": 0.5, "seeds": 3} for t in (3, 15, 100)]
    return numbers("mphd_l", keys=["iteration"], difference=rows, curve=curve)


def acquisitions(good):
    keys = {"panel": "default", "acquisition": "pi"}
    rows = over(
        "method",
        method=["gp_truth-ei", "gp_truth-ucb3", "rand"],
        difference=[0.2, either(good, 0.1, -0.1), -1.0],
        low=[0.1, either(good, 0.05, -0.12), -1],
        high=[0.3, either(good, 0.2, -0.08), -1],
    )
    rows = [suited({**row, **keys, "reference": "gp_truth", "iteration": 100, "units": 16}) for row in rows]
    ends = [{**keys, "method": "rand", "last": 0.5, "area": 0.6, "std": 0.1, "place": 1}]
    return numbers("mphd_l", keys=["iteration"], difference=rows, ending=ends)


def reached(good):
    """Doublings of the queries that others need over MPHD: half as many and more, or as many for one of them."""
    keys = {"acquisition": "pi", "panel": "ntot", "reference": "mphd@new_space", "iteration": 100}
    rows = [
        suited({**keys, "method": m, "difference": d, "low": d - 0.4, "high": d + 0.4, "units": 9, "reached": 0.9})
        for m, d in (("rand", 2.0), ("hgp_flat", either(good, 1.0, -1.0)), ("mphd_squashed@new_space", -3.0))
    ]
    return numbers("super_mini", keys=["iteration"], savings=rows)


def late(good):
    """Shares of the regret at iteration 50 that are kept: all but all, or MPHD keeps more than one of them."""
    keys = {"acquisition": "pi", "panel": "default", "reference": "mphd", "since": 50, "iteration": 100, "units": 9}
    rows = [
        suited({**keys, "method": m, "against": against, "difference": d, "low": d - 0.01, "high": d + 0.01, "fall": 0})
        for m, against, d in (
            ("h_nll", "reference", 0.3), ("h_nll", "limit", 0.07), ("fsbo", "limit", 0.07),
            ("fsbo", "reference", either(good, 0.2, -0.2)),
        )
    ]  # fmt: skip
    return numbers("super_mini", keys=["iteration", "since"], falls=rows)


ACROSS = {
    "settles": lambda good: (priors(good), {"parameters": ["lengthscale"]}),
    "steadier": lambda good: (priors(good), {"parameter": "lengthscale"}),
    "noise_stays_away": lambda good: (priors(good, noise=True), {"least": 0.8}),
    "nll_falls": lambda good: (losses(good), {}),
    "divergence_falls": lambda good: (
        numbers(keys=["train", "seed"], divergence=divergences(good)),
        {"methods": ["mphd", "mphd_non_nn"]},
    ),
    "lower_divergence": lambda good: (lower(good), {"method": "mphd"}),
    "spread_falls": lambda good: (estimates(good), {}),
    "beats": lambda good: (spaces(good), {"method": "mphd", "but": ["hgp_truth"]}),
    "beaten_by": lambda good: (
        spaces(not good),
        {"method": "mphd", "by": ["mphd_non_nn"], "panel": "default", "metric": "area"},
    ),
    "matches": lambda good: (
        spaces(good),
        {"method": "mphd", "reference": either(good, "hgp_truth", "mphd_non_nn"), "metric": "area"},
    ),
    "by_margin": lambda good: (
        spaces(good),
        {"method": "mphd", "other": "mphd_non_nn", "panel": "default", "deviations": 2},
    ),
    "ahead_then_behind": lambda good: (early(good), {"method": "h_nll", "reference": "mphd", "early": 3, "late": 15}),
    "overtaken_at": lambda good: (spaces(good), {"method": "rand", "reference": "mphd", "at": 80}),
    "costs_little": lambda good: (spaces(good), {"method": "mphd"}),
    "best_acquisition": lambda good: (acquisitions(good), {"method": "gp_truth"}),
    "fewer_queries": lambda good: (reached(good), {"method": "mphd", "panel": "ntot"}),
    "falls_less": lambda good: (late(good), {"methods": ["h_nll", "fsbo"], "reference": "mphd", "start": 50}),
    "wins": lambda good: (spaces(good), {"method": "mphd", "but": ["hgp_truth"], "metric": "area"}),
}
