"""Cases of checks of sweeps and variants, as in `cases_bo`."""

from tests.papers.engine.claims.made import either, numbers, over


def beside(good):
    gap = either(good, -0.2, 0.1)
    rows = over("size", size=[100, 196], difference=[0.3, gap], low=[0.1, gap - 0.1], high=[0.5, gap + 0.1])
    return numbers(
        keys=["size"],
        difference=[{**r, "method": "h_ekl", "reference": "stboh", "ratio": 0.5, "split": "s"} for r in rows],
    )


def sweep(good):
    narrow, wide = either(good, (0.1, 0.4), (0.4, 0.1))
    rows = over("size", size=[4, 100, 200], low=[0.1, 0.1, 0.1], high=[0.1 + narrow, 0.1 + narrow, 0.1 + wide])
    return numbers(keys=["size"], curve=[{**row, "method": "fsbo", "split": "s"} for row in rows])


def endings(good, panel="H-NLL"):
    worst = either(good, 0.9, 0.15)
    means = {
        "zero_8": worst,
        "zero_32": worst,
        "constant_8": 0.4,
        "constant_32": 0.3,
        "linear_8": 0.2,
        "linear_32": 0.1,
    }
    return [
        {"metric": metric, "panel": panel, "method": f"h_nll_{name}", "mean": v, "std": 0.0, "repetitions": 3}
        for metric in ("last", "mean")
        for name, v in means.items()
    ]


def gaps(gap, half=0.05, bands=0.9, **more):
    """Two structures beside one with a regret of 0.9: no difference, and `gap` ± `half`. `more`: regret of others."""
    row = {"panel": "H-NLL", "reference": "h_nll_zero_32", "bands_meet": bands}
    differences = [
        {**row, "metric": metric, "method": method, "difference": d, "low": d - half, "high": d + half}
        for method, d in (("h_nll_linear_8", 0.0), ("h_nll_linear_32", gap))
        for metric in ("last", "mean")
    ]
    shown = [
        {"metric": "last", "panel": "H-NLL", "method": method, "mean": v, "std": 0.0, "repetitions": 3}
        for method, v in more.items()
    ]
    return numbers(difference=differences, ending=endings(True) + shown)


PANEL = {"panel": "H-NLL", "metric": "mean"}
EQUAL = {"panel": "H-NLL", "methods": ["h_nll_linear_8", "h_nll_linear_32", "h_nll_zero_32"]}
SWEEPS = {
    "beside_reference": lambda good: (beside(good), {"methods": ["h_ekl"], "sizes": [200, None]}),
    "trend_down": lambda good: (
        numbers(
            trend=over(
                "method",
                method=["h_nll", "ablr"],
                spearman=[-0.9, either(good, -0.7, 0.2)],
                p=[0.01, 0.02],
                points=[9, 9],
            )
        ),
        {"methods": ["h_nll", "ablr", "h_ekl"]},
    ),
    "trend_flat": lambda good: (
        numbers(
            trend=over(
                "method", method=["rfgp"], spearman=[either(good, -0.2, -0.8)], p=[either(good, 0.6, 0.01)], points=[9]
            )
        ),
        {"method": "rfgp"},
    ),
    "wider_beyond": lambda good: (sweep(good), {"methods": ["fsbo"], "size": 100}),
    "fewest_needed": lambda good: (
        numbers(
            below=over(
                "method",
                method=["h_ekl", "h_nll", "ablr"],
                first=[100, either(good, 200, 100), float("nan")],
                lasting=[100, 200, float("nan")],
            )
        ),
        {"method": "h_ekl"},
    ),
    "bands_meet": lambda good: (gaps(0.0, bands=either(good, 0.9, 0.1)), {}),
    "no_difference": lambda good: (gaps(either(good, 0.02, 0.06)), {}),
    "about_equal": lambda good: (gaps(either(good, 0.04, 0.1)), EQUAL),
    "best_are": lambda good: (
        numbers(ending=endings(good)),
        {**PANEL, "methods": ["h_nll_linear_32", "h_nll_linear_8"]},
    ),
    "worst_is": lambda good: (numbers(ending=endings(good)), {**PANEL, "method": "h_nll_zero_8"}),
    "all_above": lambda good: (numbers(ending=endings(good)), {**PANEL, "mean": "zero"}),
    "mean_wins": lambda good: (
        numbers(ending=endings(good)),
        either(good, {"better": "linear_mlp", "worse": "zero"}, {"better": "constant", "worse": "zero"}),
    ),
    "wider_spread": lambda good: (
        numbers(ending=endings(True, either(good, "H-EKL", "H-NLL")) + endings(False, either(good, "H-NLL", "H-EKL"))),
        {"panel": "H-EKL", "than": "H-NLL"},
    ),
    "falls_with_size": lambda good: (
        numbers(ending=endings(good)),
        {**PANEL, "mean": either(good, "linear_mlp", "zero")},
    ),
}
