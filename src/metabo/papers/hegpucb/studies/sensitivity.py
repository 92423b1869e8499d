"""Study of how the comparison depends on what the paper does not say (hegpucb §7): a declared grid, every cell kept.

Frequentist problems: B x noise variance x outputs raw or standardised, and, at the first value of each, the variants of
the function. Bayesian problem (d): B is not used; height x width of the hills x noise variance x scaling. Every
problem, at the first values: deviations that include the noise.
"""

from functools import partial
from itertools import product
from typing import NamedTuple

import pandas as pd

from metabo.compute import progress
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.studies.profiles import BAYESIAN, COMPARED, ProblemGrid, case, execute, run_table

STUDIES = {"hegpucb_sensitivity": {}}

UNUSED = 0.0
"""What a cell shows for a setting that its problem does not have."""


class SensitivitySpec(StudySpec):
    """δ, seeds, the problems with their sizes, and the values of the grid, those of the profile `plain` first."""

    delta: float
    seeds: int
    problems: dict[str, ProblemGrid]
    norm: list[float]
    noise: list[float]
    standardise: list[bool]
    height: list[float]
    width: list[float]


class GridCell(NamedTuple):
    """The settings of one cell."""

    variant: str
    norm: float
    noise: float
    standardise: bool
    predictive: bool
    height: float
    width: float


def cells(name: str, spec: SensitivitySpec) -> list[GridCell]:
    """Return every cell of a problem."""
    variants, scaling = problems.VARIANTS[name], product(spec["noise"], spec["standardise"])
    if name in BAYESIAN:
        hills = list(product(spec["height"], spec["width"]))
        found = [
            GridCell(variants[0], UNUSED, noise, scaled, False, height, width)
            for noise, scaled in scaling
            for height, width in hills
        ]
        return [*found, found[0]._replace(predictive=True)]
    found = [
        GridCell(variants[0], norm, noise, scaled, False, UNUSED, UNUSED)
        for noise, scaled in scaling
        for norm in spec["norm"]
    ]
    others = [found[0]._replace(variant=variant) for variant in variants[1:]]
    return [*found, found[0]._replace(predictive=True), *others]


def run(spec: SensitivitySpec) -> Frames:
    """Return the last state of every run in every cell.

    "ending": problem, cell (number within the problem), the cell's settings (standardise and predictive as 0 or 1),
    method, seed, cumulative, simple, alive.
    """
    frames = []
    for name in progress.loop((name for name in problems.VARIANTS if name in spec["problems"]), "problems"):
        sizes = spec["problems"][name]
        for number, cell in progress.loop(enumerate(cells(name, spec)), "cells"):
            made = partial(
                case, name, sizes, spec["seeds"], spec["seed"], delta=spec["delta"], noise=cell.noise,
                standardise=cell.standardise, predictive=cell.predictive, variant=cell.variant,
            )  # fmt: skip
            one = made(height=cell.height, width=cell.width) if name in BAYESIAN else made(norm=cell.norm)
            where = f"study hegpucb_sensitivity, problem {name}, cell {number}"
            trace = execute(one, COMPARED[name], spec["seeds"], spec["seed"], where)
            table = run_table(one, trace, COMPARED[name], problem=name, cell=number)
            ending = table[table["iteration"] == sizes["iterations"]]
            kept = ending[["problem", "cell", "method", "seed", "cumulative", "simple", "alive"]]
            shown = cell._asdict() | {"standardise": int(cell.standardise), "predictive": int(cell.predictive)}
            frames.append(kept.assign(**shown))
    return {"ending": pd.concat(frames, ignore_index=True)}
