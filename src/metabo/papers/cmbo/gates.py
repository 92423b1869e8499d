"""Gates of cm-BO's methods: on a crisp case each must work, and its clusters must help (benchmark `cmbo_control`)."""

import numpy as np

from metabo.artefacts import api as artefacts
from metabo.metrics import Runs, paired_difference
from metabo.papers.cmbo.metrics import VARIANTS, printed, reading_of
from metabo.papers.engine.claims.comparing import at_moment, name, side_values
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import RANDOM, Gate
from metabo.papers.engine.claims.verdicts import interval
from metabo.plan.runs import method_of

CONTROL = "cmbo_control"
GLOBAL = "cm_global"
"""The same prior without clusters."""
WORKS, CHOOSES = "beats Random on two mirrored families", "the right cluster beats the average of all tasks"


def gates(evidence: Evidence) -> list[Gate]:
    """Return the gates of every method on `cmbo_control`, intervals over its eight targets; they count everywhere.

    The area under the normalised regret of a method is below Random's, and that of a method with clusters is also below
    that of GlobalCen under the same reading of the noise: there the average of all tasks says nothing, so that only the
    right cluster can help.
    """
    if evidence.benchmark != CONTROL or not evidence.has("trajectories"):
        return []
    runs, _ = at_moment(artefacts.runs(evidence.trajectories, "normalised_regret"), "area")
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


def _below(runs: Runs, test: str, run: str, rival: str, place: int) -> Gate:
    first, second = side_values(runs, [run, rival])
    gap = paired_difference(first, second, np.random.default_rng([2, place]), "nested")
    said = f"{name(run)} minus {name(rival)} on {CONTROL}, area: {interval(gap.estimate, gap.low, gap.high)}"
    return Gate(test, (run,), bool(gap.high < 0), float(gap.high), 0.0, said, everywhere=True)
