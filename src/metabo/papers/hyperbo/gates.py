"""Gates of HyperBO's methods: each must work where it must, and not where nothing can (benchmark `control`)."""

import numpy as np

from metabo.metrics import Runs, paired_difference
from metabo.papers.engine.claims.comparing import Moment, at_moment, name, side_values
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import CONTROL, RANDOM, Gate
from metabo.papers.engine.claims.verdicts import LEVEL, interval
from metabo.plan import registry
from metabo.plan.runs import method_of

ALIKE, UNLIKE = "alike", "unlike"
LEARNS, WORKS, ABSTAINS = (
    "knows a good first query where tasks are alike",
    "beats Random on a smooth function",
    "is no better than Random where nothing can be learned",
)


def gates(evidence: Evidence) -> list[Gate]:
    """Return the gates of every method on `control`, intervals over its test tasks; they count on all benchmarks.

    A method that learns a mean from tasks has a lower regret than Random after its first query on `alike`, which no
    method without past tasks can have. One without, or with a prior of mean zero (FSBO, ABLR), begins like Random by
    definition: it has a lower area under its curve. On `unlike` no method has an area below
    Random's (Bonferroni over the methods). All query a candidate once there, Random too.
    """
    if evidence.benchmark != CONTROL or not evidence.has("trajectories"):
        return []
    runs = evidence.runs
    reference = next((run for run in RANDOM if run in runs.methods), None)
    methods = [method for method in runs.methods if method not in RANDOM]
    if reference is None:
        return []
    found = []
    for place, run in enumerate(methods):
        kind, moment = (LEARNS, 1) if run not in runs.single_task and _learns_mean(run) else (WORKS, "area")
        for here, test, at, level in ((ALIKE, kind, moment, LEVEL), (UNLIKE, ABSTAINS, "area", LEVEL / len(methods))):
            gap = _gap(runs, run, reference, here, at, place, level)
            if gap is not None:
                low, estimate, high = gap
                better = high < 0
                said = f"{name(run)} minus Random on {here}: {interval(estimate, low, high)}"
                passed = better if here == ALIKE else not better
                found.append(Gate(test, (run,), bool(passed), float(high), 0.0, said, everywhere=True))
    return found


def _learns_mean(run: str) -> bool:
    return registry.method(method_of(run)).model.get("mean") != "zero"


def _gap(
    runs: Runs, run: str, reference: str, space: str, moment: Moment, place: int, level: float
) -> tuple[float, float, float] | None:
    """Return low end, mean and high end of a method's regret minus Random's over the tasks of a space."""
    here, _ = at_moment(runs, moment)
    own = np.array([task.startswith(f"{space}/") for task in here.tasks])
    if own.sum() < 2:
        return None
    first, second = (values[:, own] for values in side_values(here, [run, reference]))
    gap = paired_difference(first, second, np.random.default_rng([1, place]), "nested", level=1 - level)
    return gap.low, gap.estimate, gap.high
