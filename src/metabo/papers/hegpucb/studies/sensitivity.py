"""Study of how the comparison depends on what the paper does not say (hegpucb §7): a declared grid, every cell kept.

Frequentist problems: B x noise variance x outputs raw or standardised, and, at the first value of each, the variants of
the function. Bayesian problem (d): B is not used; height x width of the hills x noise variance x scaling. Every
problem, at the first values: deviations that include the noise.
"""

from itertools import product
from typing import Any

import pandas as pd

from metabo.compute import progress
from metabo.papers.engine.studies.files import Frames
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.studies.profiles import BAYESIAN, COMPARED, case, execute, run_table

STUDIES = {"hegpucb_sensitivity": {}}

UNUSED = 0.0
"""What a cell shows for a setting that its problem does not have."""


def cells(name: str, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the settings of every cell of a problem: variant, norm, noise, standardise, predictive, height,
    width."""
    variants, scaling = problems.VARIANTS[name], product(spec["noise"], spec["standardise"])
    if name in BAYESIAN:
        hills = list(product(spec["height"], spec["width"]))
        found = [
            {"variant": variants[0], "norm": UNUSED, "noise": noise, "standardise": scaled, "predictive": False,
             "height": h, "width": w}
            for noise, scaled in scaling for h, w in hills
        ]  # fmt: skip
        return [*found, found[0] | {"predictive": True}]
    plain = {"predictive": False, "height": UNUSED, "width": UNUSED}
    found = [
        {"variant": variants[0], "norm": norm, "noise": noise, "standardise": scaled, **plain}
        for noise, scaled in scaling
        for norm in spec["norm"]
    ]
    others = [found[0] | {"variant": variant} for variant in variants[1:]]
    return [*found, found[0] | {"predictive": True}, *others]


def run(spec: dict[str, Any]) -> Frames:
    """Return the last state of every run in every cell.

    `spec`: seed, delta, seeds, problems (name to points, initial, iterations), and the values of norm, noise,
    standardise, height, width, the first of each being that of the profile `plain`. "ending": problem, cell (number
    within the problem), the cell's settings (standardise and predictive as 0 or 1), method, seed, cumulative,
    simple, alive.
    """
    frames = []
    for name in progress.loop((name for name in problems.VARIANTS if name in spec["problems"]), "problems"):
        sizes = spec["problems"][name]
        for number, cell in progress.loop(enumerate(cells(name, spec)), "cells"):
            hills = ("height", "width") if name in BAYESIAN else ()
            made = {key: cell[key] for key in ("noise", "standardise", "predictive", "variant", *hills)}
            made |= {"norm": cell["norm"]} if name not in BAYESIAN else {}
            one = case(name, sizes, spec["seeds"], spec["seed"], delta=spec["delta"], **made)
            where = f"study hegpucb_sensitivity, problem {name}, cell {number}"
            trace = execute(one, COMPARED[name], spec["seeds"], spec["seed"], where)
            table = run_table(one, trace, COMPARED[name], problem=name, cell=number)
            ending = table[table["iteration"] == sizes["iterations"]]
            kept = ending[["problem", "cell", "method", "seed", "cumulative", "simple", "alive"]]
            frames.append(kept.assign(**cell | {key: int(cell[key]) for key in ("standardise", "predictive")}))
    return {"ending": pd.concat(frames, ignore_index=True)}
