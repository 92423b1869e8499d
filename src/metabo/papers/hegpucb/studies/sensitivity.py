"""Study of how the comparison depends on what the paper does not say (hegpucb §7): a declared grid, every cell kept.

Frequentist problems: noise variance x outputs raw or standardised, and, at the first value of each, the variants of the
function. Bayesian problem (d): height x width of the hills x noise variance x scaling. Every problem, at the first
values: the other constants β, β of the repaired theorems, and deviations that include the noise.
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
THEOREM = 0.0
"""What a cell shows for β of the repaired theorems (profile `plain`)."""


class SensitivitySpec(StudySpec):
    """δ, seeds, the problems with their sizes, and the values of the grid, those of the profile `figure` first."""

    delta: float
    seeds: int
    problems: dict[str, ProblemGrid]
    beta: list[float]
    noise: list[float]
    standardise: list[bool]
    height: list[float]
    width: list[float]


class GridCell(NamedTuple):
    """The settings of one cell; `beta` 0: that of the repaired theorems, which varies."""

    variant: str
    beta: float
    noise: float
    standardise: bool
    predictive: bool
    height: float
    width: float


def cells(name: str, spec: SensitivitySpec) -> list[GridCell]:
    """Return every cell of a problem."""
    variants, (first, *others) = problems.VARIANTS[name], spec["beta"]
    hills = list(product(spec["height"], spec["width"])) if name in BAYESIAN else [(UNUSED, UNUSED)]
    found = [
        GridCell(variants[0], first, noise, scaled, False, height, width)
        for noise, scaled in product(spec["noise"], spec["standardise"])
        for height, width in hills
    ]
    found += [found[0]._replace(beta=beta) for beta in (*others, THEOREM)]
    found.append(found[0]._replace(predictive=True))
    # The readings of (d) are its hills; the other problems have variants of the function.
    return found if name in BAYESIAN else [*found, *(found[0]._replace(variant=other) for other in variants[1:])]


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
                case, name, sizes, spec["seeds"], spec["seed"], profile="plain" if cell.beta == THEOREM else "figure",
                delta=spec["delta"], beta=cell.beta, noise=cell.noise, standardise=cell.standardise,
                predictive=cell.predictive, variant=cell.variant,
            )  # fmt: skip
            one = made(height=cell.height, width=cell.width) if name in BAYESIAN else made()
            where = f"study hegpucb_sensitivity, problem {name}, cell {number}"
            trace = execute(one, COMPARED[name], spec["seeds"], spec["seed"], where)
            table = run_table(one, trace, COMPARED[name], problem=name, cell=number)
            ending = table[table["iteration"] == sizes["iterations"]]
            kept = ending[["problem", "cell", "method", "seed", "cumulative", "simple", "alive"]]
            shown = cell._asdict() | {"standardise": int(cell.standardise), "predictive": int(cell.predictive)}
            frames.append(kept.assign(**shown))
    return {"ending": pd.concat(frames, ignore_index=True)}
