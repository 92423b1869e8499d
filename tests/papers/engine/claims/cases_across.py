"""Cases of checks of priors and regret across search spaces, as in `cases_bo`."""

from tests.papers.engine.claims.made import either, numbers, over


def priors(good, noise=False):
    level = [50.0, either(good, 11.0, 60.0)] if not noise else [9.0, either(good, 0.1, 9.0)]
    parameter = "noise" if noise else "lengthscale"
    table = over(
        "train",
        parameter=[parameter] * 2,
        train=[2, 16],
        mean=level,
        std=[20.0, either(good, 1.0, 30.0)],
        error=[40, 1],
        kl=[1.0, either(good, 0.1, 2.0)],
        spread=[1.0, 0.1],
    )
    return numbers(
        keys=["train"],
        convergence=table,
        levene=[{"parameter": parameter, "fewest": 2, "most": 16, "statistic": 5, "p": 0.01}],
        truth=[{"parameter": parameter, "first": 10.0, "second": 30.0}],
        noise_mass=[{"train": n, "mean": either(good, 0.9, 0.6), "low": 0.5, "high": 1.0} for n in (2, 16)],
    )


def spaces(good, method="mphd", acquisition="pi", suffix=""):
    """Differences of others minus MPHD at iterations 3 and 100, and the last regrets."""
    gap = either(good, 0.05, -0.05)
    others = {"rand": 0.3, "mphd_non_nn": gap, "hgp_truth": 0.001}
    keys = {"acquisition": acquisition, "panel": "default", "reference": method + suffix}
    extra = {"overtaken": either(good, 80.0, 12.0), "overtaken_low": either(good, 60.0, 5.0), "overtaken_high": 90.0}
    extra |= {} if good else {"overtaken_high": 53.0}
    rows = [
        {**keys, **extra, "method": m + suffix, "iteration": t, "difference": d, "low": d - 0.003, "high": d + 0.003}
        for m, d in others.items()
        for t in (3, 100)
    ]
    ends = over("method", method=[m + suffix for m in ("mphd", *others)], last=[0.05, 0.35, 0.05 + gap, 0.051])
    ends = [
        {**end, "std": 0.01, "area": 1.0, "place": 1, "panel": "default", "acquisition": acquisition} for end in ends
    ]
    costs = [{**end, "panel": "ntot", "last": end["last"] + either(good, 0.005, 0.1)} for end in ends]
    return numbers("mphd_l", keys=["iteration"], difference=rows, ending=ends + costs)


def early(good):
    keys = {"acquisition": "pi", "panel": "default", "reference": "mphd", "method": "h_nll"}
    gap = [either(good, -0.2, 0.2), 0.1, 0.2]
    rows = over(
        "iteration", iteration=[3, 15, 100], difference=gap, low=[g - 0.05 for g in gap], high=[g + 0.05 for g in gap]
    )
    return numbers("mphd_l", keys=["iteration"], difference=[{**keys, **row} for row in rows])


def acquisitions(good):
    rows = over(
        "method",
        method=["gp_truth-ei", "gp_truth-ucb3", "rand"],
        difference=[0.2, either(good, 0.1, -0.1), -1.0],
        low=[0.1, either(good, 0.05, -0.2), -1],
        high=[0.3, either(good, 0.2, -0.05), -1],
    )
    return numbers(
        "mphd_l",
        keys=["iteration"],
        difference=[
            {**r, "reference": "gp_truth", "iteration": 100, "panel": "default", "acquisition": "pi"} for r in rows
        ],
    )


ACROSS = {
    "settles": lambda good: (priors(good), {"parameters": ["lengthscale"]}),
    "steadier": lambda good: (priors(good), {"parameter": "lengthscale"}),
    "noise_stays_away": lambda good: (priors(good, noise=True), {"least": 0.8}),
    "nll_falls": lambda good: (
        numbers(
            nll_trend=[
                {"metric": "nll", "mean": -0.9, "mean_p": 0.01, "variance": either(good, -0.9, 0.1), "variance_p": 0.01}
            ]
        ),
        {},
    ),
    "divergence_falls": lambda good: (
        numbers(
            keys=["train", "seed"],
            divergence=[
                {"method": "mphd", "train": n, "seed": r, "kl": either(good, 1 / n, n) + 0.001 * r}
                for n in (1, 2, 4, 8)
                for r in range(3)
            ],
        ),
        {"methods": ["mphd", "mphd_non_nn"]},
    ),
    "lower_divergence": lambda good: (
        numbers(
            keys=["train"],
            difference=over(
                "train",
                method=["mphd"] * 2,
                train=[1, 2],
                difference=[-0.2, either(good, -0.2, 0.2)],
                low=[-0.3, either(good, -0.3, 0.1)],
                high=[-0.1, either(good, -0.1, 0.3)],
                wins=[5, 5],
            ),
        ),
        {"method": "mphd"},
    ),
    "spread_falls": lambda good: (
        numbers(
            trend=over(
                "parameter", parameter=["noise", "constant"], spearman=[-1.0, either(good, -0.9, 0.3)], p=[0.0, 0.04]
            )
        ),
        {},
    ),
    "beats": lambda good: (spaces(good), {"method": "mphd", "but": ["hgp_truth"]}),
    "beaten_by": lambda good: (spaces(not good), {"method": "mphd", "by": ["mphd_non_nn"], "panel": "default"}),
    "matches": lambda good: (spaces(good), {"method": "mphd", "reference": either(good, "hgp_truth", "mphd_non_nn")}),
    "by_margin": lambda good: (
        spaces(good),
        {"method": "mphd", "other": "mphd_non_nn", "panel": "default", "deviations": 2},
    ),
    "ahead_then_behind": lambda good: (early(good), {"method": "h_nll", "reference": "mphd", "early": 3, "late": 15}),
    "overtaken_at": lambda good: (spaces(good), {"method": "rand", "reference": "mphd", "at": 80}),
    "costs_little": lambda good: (spaces(good), {"method": "mphd"}),
    "best_acquisition": lambda good: (acquisitions(good), {"method": "gp_truth"}),
    "wins": lambda good: (spaces(good), {"method": "mphd", "but": ["hgp_truth"]}),
}
