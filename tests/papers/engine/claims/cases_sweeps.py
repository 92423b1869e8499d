"""Cases of checks of sweeps and variants, as in `cases_bo`."""

from metabo.plan.runs import RunId
from tests.papers.engine.claims.made import either, numbers, runs

CURVE = {"low": 0.1, "high": 0.2}


def uneven(table, method, noise):
    """Add `noise` to a method's regret on every second task, and take it off on the others."""
    odd = table["task"].str[1:].astype(int) % 2
    chosen = table["method"] == method
    table.loc[chosen, "simple_regret"] += noise * (2 * odd[chosen] - 1)
    return table


def sizes(table, kind, **columns):
    """Return rows of a table of the figure: a method's run on split "s100" has the size 100."""
    found = [RunId.parse(method) for method in dict.fromkeys(table["method"])]
    return {
        kind: [
            {"method": run.method, "split": run.split, "size": int(run.split[1:]), **columns}
            for run in found
            if run.split
        ]
    }


def beside(**levels):
    """Runs at sizes beside STBOH, which has a regret of 0.5."""
    table = runs(stboh=0.5, **levels)
    return numbers(keys=["size"], trajectories=table, **sizes(table, "difference", reference="stboh", ratio=0.5))


def line(method="", noise=0.0, **levels):
    """Runs at sizes, and Random with a regret of 0.6; those at the largest size are uneven by `noise`."""
    table = uneven(runs(rand=0.6, **levels), method, noise)
    return numbers(keys=["size"], trajectories=table, **sizes(table, "curve", **CURVE))


def spread(good):
    """Priors differ above 100 points, or up to it."""
    table = runs(fsbo__s4=0.5, fsbo__s100=0.5, fsbo__s200=0.5)
    chosen = table["method"].isin(either(good, ["fsbo@s200"], ["fsbo@s4", "fsbo@s100"]))
    table.loc[chosen, "simple_regret"] *= 1 + 0.3 * (table.loc[chosen, "prior_seed"] - 1)
    return numbers(keys=["size"], trajectories=table, **sizes(table, "curve", **CURVE))


def endings(names, panel="H-NLL"):
    """Rows that say which structures a panel has."""
    return [
        {"metric": metric, "panel": panel, "method": method, "mean": 0.0, "std": 0.0, "repetitions": 3}
        for metric in ("last", "mean")
        for method in names
    ]


WIDE = {"zero_8": 0.9, "zero_32": 0.8, "constant_8": 0.4, "constant_32": 0.3, "linear_8": 0.2, "linear_32": 0.1}
"""Regret of structures; a bad result has the opposite of each."""
NARROW = {name: 0.1 + 0.1 * level for name, level in WIDE.items()}


def structures(good):
    levels = {f"h_nll_{name}": either(good, level, 1 - level) for name, level in WIDE.items()}
    return numbers(trajectories=runs(tasks=12, **levels), ending=endings(levels))


def two_panels(good):
    first, second = either(good, (WIDE, NARROW), (NARROW, WIDE))
    ekl, nll = ({f"{m}_{name}": v for name, v in own.items()} for m, own in (("h_ekl", first), ("h_nll", second)))
    return numbers(trajectories=runs(**ekl, **nll), ending=endings(ekl, "H-EKL") + endings(nll))


def gaps(gap, noise=0.0, **more):
    """Two structures beside one with a regret of 0.9: no difference, and `gap`, uneven by `noise`; bands of 0.1.

    `more`: regret of others.
    """
    levels = {"h_nll_zero_32": 0.9, "h_nll_linear_8": 0.9, "h_nll_linear_32": 0.9 + gap}
    table = uneven(runs(**levels, **more), "h_nll_linear_32", noise)
    row = {"panel": "H-NLL", "reference": "h_nll_zero_32", "bands_meet": 0.9}
    differences = [
        {**row, "metric": metric, "method": method} for method in list(levels)[1:] for metric in ("last", "mean")
    ]
    curves = [{"panel": "H-NLL", "method": method, "iteration": t, **CURVE} for method in levels for t in (1, 2)]
    shown = {"difference": differences, "ending": endings(levels), "curve": curves}
    return numbers(keys=["iteration"], trajectories=table, **shown)


PANEL = {"panel": "H-NLL", "metric": "mean"}
EQUAL = {"panel": "H-NLL", "methods": ["h_nll_linear_8", "h_nll_linear_32", "h_nll_zero_32"]}
SWEEPS = {
    "beside_reference": lambda good: (
        beside(h_ekl__s100=0.9, h_ekl__s196=either(good, 0.3, 0.7)),
        {"methods": ["h_ekl"], "sizes": [200, None]},
    ),
    "trend_down": lambda good: (
        line(h_nll__s4=0.5, h_nll__s100=0.3, ablr__s4=0.4, ablr__s100=0.3, ablr__s200=either(good, 0.2, 0.7)),
        {"methods": ["h_nll", "ablr"]},
    ),
    "trend_flat": lambda good: (
        line(rfgp__s4=0.4, rfgp__s100=0.41, rfgp__s200=either(good, 0.4, 0.1)),
        {"method": "rfgp"},
    ),
    "wider_beyond": lambda good: (spread(good), {"methods": ["fsbo"], "size": 100}),
    "fewest_needed": lambda good: (
        beside(h_ekl__s4=0.8, h_ekl__s100=either(good, 0.3, 0.7), h_nll__s100=0.6, h_nll__s200=0.3, ablr__s20=0.7),
        {"method": "h_ekl"},
    ),
    "bands_meet": lambda good: (gaps(either(good, 0.05, 0.5)), {}),
    "no_difference": lambda good: (gaps(either(good, 0.02, 0.2)), {}),
    "about_equal": lambda good: (gaps(either(good, 0.04, 0.2)), EQUAL),
    "best_are": lambda good: (structures(good), {**PANEL, "methods": ["h_nll_linear_32", "h_nll_linear_8"]}),
    "worst_is": lambda good: (structures(good), {**PANEL, "method": "h_nll_zero_8"}),
    "all_above": lambda good: (structures(good), {**PANEL, "mean": "zero"}),
    "mean_wins": lambda good: (structures(good), {"better": "linear_mlp", "worse": "zero"}),
    "wider_spread": lambda good: (two_panels(good), {"panel": "H-EKL", "than": "H-NLL"}),
    "falls_with_size": lambda good: (structures(good), {**PANEL, "mean": "linear_mlp"}),
}
