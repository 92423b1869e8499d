"""Gates of HyperBO's methods: each must work where it must, and not where nothing can (benchmark `control`)."""

import numpy as np

from metabo.metrics import paired_difference
from metabo.papers.engine.claims.comparing import at_moment, name, side_values
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import RANDOM, Gate
from metabo.papers.engine.claims.verdicts import interval

CONTROL, ALIKE, UNLIKE = "control", "alike", "unlike"
WORKS, ABSTAINS = "works where tasks are alike", "is no better than Random where nothing can be learned"


def gates(evidence: Evidence) -> list[Gate]:
    """Return both gates of every method on `control`: its area under the regret curve minus Random's, an interval of
    95 % over test tasks, lies below 0 on `alike`, and not wholly below 0 on `unlike`. They count on all benchmarks."""
    if evidence.benchmark != CONTROL or not evidence.has("trajectories"):
        return []
    here, _ = at_moment(evidence.runs, "area")
    reference = next((run for run in RANDOM if run in here.methods), None)
    if reference is None:
        return []
    found = []
    for place, run in enumerate(method for method in here.methods if method not in RANDOM):
        first, second = side_values(here, [run, reference])
        for space in (ALIKE, UNLIKE):
            own = np.array([task.startswith(f"{space}/") for task in here.tasks])
            if own.sum() > 1:
                rng = np.random.default_rng([1, place])
                gap = paired_difference(first[:, own], second[:, own], rng, "nested")
                said = f"{name(run)} minus Random on {space}: {interval(gap.estimate, gap.low, gap.high)}"
                better = bool(gap.high < 0)
                kind, passed = (WORKS, better) if space == ALIKE else (ABSTAINS, not better)
                found.append(Gate(kind, (run,), passed, float(gap.high), 0.0, said, everywhere=True))
    return found
