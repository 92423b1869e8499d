"""Gates of cm-BO's methods: on a crisp case each must work, and its clusters must help (benchmark `cmbo_control`); and
the noise of the target's GP must not be at the end of its range."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from metabo.artefacts import api as artefacts
from metabo.methods.source_gps.clusters_policy import NOISE
from metabo.metrics import Runs, paired_difference
from metabo.papers.cmbo.metrics import VARIANTS, WITHOUT_CLUSTERS, printed, reading_of
from metabo.papers.engine.claims.comparing import at_moment, name, side_values
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import MOST, RANDOM, STUCK, Gate
from metabo.papers.engine.claims.verdicts import interval
from metabo.plan.runs import method_of

CONTROL = "cmbo_control"
GLOBAL = "cm_global"
"""The same prior without clusters."""
CLUSTERED = (*VARIANTS, *WITHOUT_CLUSTERS)
FREE = "noise is not at its upper end"
WORKS, CHOOSES = "beats Random on two mirrored families", "the right cluster beats the average of all tasks"


def gates(evidence: Evidence) -> list[Gate]:
    """Return the gates of every method on `cmbo_control`, intervals over its eight targets; they count everywhere. And,
    on the artefact's own benchmark, FREE for the methods whose noise is fitted.

    The area under the normalised regret of a method is below Random's, and that of a method with clusters is also below
    that of GlobalCen under the same reading of the noise: there the average of all tasks says nothing, so that only the
    right cluster can help.
    """
    if not evidence.has("trajectories"):
        return []
    found = list(free_noise(evidence.trajectories))
    if evidence.benchmark == CONTROL:
        found += crisp(artefacts.runs(evidence.trajectories, "normalised_regret"))
    return found


def crisp(every: Runs) -> list[Gate]:
    """Return WORKS and CHOOSES from runs on `cmbo_control`."""
    runs, _ = at_moment(every, "area")
    reference = next((run for run in RANDOM if run in runs.methods), None)
    found = []
    for place, run in enumerate(runs.methods):
        if reference is None or run == reference:
            continue
        rivals = [(WORKS, reference)]
        average = GLOBAL + reading_of(method_of(run))
        if printed(method_of(run)) in VARIANTS and average in runs.methods:
            rivals.append((CHOOSES, average))
        found += [_below(runs, test, run, rival, place) for test, rival in rivals]
    return found


def free_noise(table: pd.DataFrame) -> Iterator[Gate]:
    """In at most half of a method's runs the fitted noise variance is at the upper end of its range in 90 % of the
    queries: there the model takes for noise what its prior cannot explain, and smooths over what it has seen.

    The lower end is no fault where outputs have no noise.
    """
    queries = table[(table["iteration"] >= 1) & table["method"].map(method_of).map(printed).isin(CLUSTERED)]
    if "noise" not in queries or queries.empty:
        return
    run = ["method", "space", "task", "prior_seed", "seed"]
    capped = (queries["noise"] ** 2 >= NOISE[1] * (1 - 1e-9)).groupby([queries[key] for key in run], sort=False).mean()
    for method, share in (capped >= STUCK).groupby(level="method", sort=False).mean().items():
        said = f"{name(str(method))}: at its upper end in {STUCK:.0%} of the queries in {share:.0%} of its runs"
        yield Gate(FREE, (str(method),), bool(share <= MOST), float(share), MOST, said)


def _below(runs: Runs, test: str, run: str, rival: str, place: int) -> Gate:
    first, second = side_values(runs, [run, rival])
    gap = paired_difference(first, second, np.random.default_rng([2, place]), "nested")
    said = f"{name(run)} minus {name(rival)} on {CONTROL}, area: {interval(gap.estimate, gap.low, gap.high)}"
    return Gate(test, (run,), bool(gap.high < 0), float(gap.high), 0.0, said, everywhere=True)
