"""Gates of cm-BO's methods (benchmark `cmbo_control`): on a crisp case each must work, and its clusters must help;
where all tasks are alike, what learns from them must work. And the noise of the target's GP must leave something to
learn.

Every method that learns from tasks needs a case in which it must work, and that case must be one that it can win. The
average of all tasks (GlobalCen) says nothing on two mirrored families, and is the right prior where all are alike. So
it is judged on the second case, and on the first it is what clusters are compared with. The others are judged on both.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from metabo.artefacts import api as artefacts
from metabo.data.cmbo_control import ALIKE, MIRRORED
from metabo.metrics import Runs, paired_difference
from metabo.metrics.clusters import clusters
from metabo.papers.cmbo.metrics import VARIANTS, WITHOUT_CLUSTERS, of_acquisition, printed, reading_of
from metabo.papers.engine.claims.comparing import at_moment, name, side_values
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import MOST, RANDOM, STUCK, Gate, strings
from metabo.papers.engine.claims.verdicts import interval
from metabo.plan import registry
from metabo.plan.runs import acquisition_of, method_of

CONTROL = "cmbo_control"
GLOBAL = "cm_global"
"""The same prior without clusters."""
CLUSTERED = (*VARIANTS, *WITHOUT_CLUSTERS)
FREE, EVERYTHING = "noise leaves something to learn", 1.0
"""A gate, and the noise variance that explains all of a standardised output."""
WORKS, CHOOSES = "beats Random on two mirrored families", "the right cluster beats the average of all tasks"
TRANSFERS = "beats Random where all tasks are alike"
IN_PANELS = (
    "wins_most",
    "behind_most",
    "small_gain",
    "best_areas",
    "falls_every_decade",
    "negative_transfer",
    "overtakes_early",
)
"""Checks of methods within the panel of every acquisition."""
POOLED = ("best_in_band", "fewer_solved", "ahead_in_most")
"""Checks that average over the acquisitions; the ranks and shares of the first are compared with all other methods."""


def gates(evidence: Evidence) -> list[Gate]:
    """Return the gates of every method on `cmbo_control` (`crisp`), which count everywhere. And, on the artefact's own
    benchmark, FREE for the methods whose noise is fitted."""
    if not evidence.has("trajectories"):
        return []
    found = list(free_noise(evidence.trajectories))
    if evidence.benchmark == CONTROL:
        found += crisp(evidence.trajectories)
    return found


def compared(
    check: str, given: Mapping[str, object], runs: Sequence[str], evidence: Evidence | None
) -> list[set[str]] | None:
    """Return the runs that a check compares, by panel, where it does not compare just those that it names; None for
    other checks. `given`: its arguments; `runs`: all that the artefact shows. `evidence` is not used."""
    if not runs or check not in (*IN_PANELS, *POOLED):
        return None
    methods = strings(given)
    kinds = [kind for kind in dict.fromkeys(map(acquisition_of, runs)) if kind != "uniform"]
    panels = [{method_of(run): run for run in of_acquisition(runs, kind)} for kind in kinds]
    if check in POOLED:  # of the methods that were run with every acquisition
        shared = set(map(method_of, runs)).intersection(*panels)
        shared &= shared if check == "best_in_band" else methods
        return [{panel[method] for panel in panels for method in shared}]
    return [{run for method, run in panel.items() if method in methods} for panel in panels]


def crisp(table: pd.DataFrame) -> list[Gate]:
    """Return WORKS and CHOOSES from the runs on `mirrored`, TRANSFERS from those on `alike`: the area under the
    normalised regret of a method is below that of its rival, by an interval over the draws of the space."""
    found = []
    for space, rivals in ((MIRRORED, _on_mirrored), (ALIKE, _on_alike)):
        part = table[table["space"] == space]
        if part.empty:
            continue
        runs, _ = at_moment(artefacts.runs(part, "normalised_regret"), "area")
        random = next((run for run in RANDOM if run in runs.methods), None)
        for place, run in enumerate(runs.methods):
            if random is not None and run != random:
                found += [_below(runs, test, (run, rival), place, space) for test, rival in rivals(runs, run, random)]
    return found


def _on_mirrored(runs: Runs, run: str, random: str) -> Iterator[tuple[str, str]]:
    """Yield each gate of a run with its rival. All but GlobalCen, whose prior says nothing there, must beat Random;
    with clusters they must beat GlobalCen too, under the same reading of the noise: only the right cluster can help.
    Methods with a given number of clusters (Figure 3) are asked themselves, beside one cluster of their kind."""
    method = method_of(run)
    number = _number(method)
    if printed(method) != GLOBAL and number != 1:
        yield WORKS, random
    averages = [GLOBAL + reading_of(method)]
    if number > 1:
        averages = [one for one in runs.methods if _number(one) == 1 and _kind(one) == _kind(run)]
    if (printed(method) in VARIANTS or number > 1) and (shown := [one for one in averages if one in runs.methods]):
        yield CHOOSES, shown[0]


def _on_alike(runs: Runs, run: str, random: str) -> Iterator[tuple[str, str]]:
    """Yield the gate of a run with its rival: all that learn from past tasks must beat Random. A method without them
    has no use for tasks that are alike."""
    if run not in runs.single_task:
        yield TRANSFERS, random


def free_noise(table: pd.DataFrame) -> Iterator[Gate]:
    """In at most half of a method's runs the fitted noise variance is at least EVERYTHING in 90 % of the queries: there
    the model takes all that it sees for noise, and learns nothing from it.

    A noise near 0 is not a fault where outputs have none.
    """
    queries = table[(table["iteration"] >= 1) & table["method"].map(_stands_for).isin(CLUSTERED)]
    if "noise" not in queries or queries.empty:
        return
    run = ["method", "space", "task", "prior_seed", "seed"]
    blind = (queries["noise"] ** 2 >= EVERYTHING).groupby([queries[key] for key in run], sort=False).mean()
    for method, share in (blind >= STUCK).groupby(level="method", sort=False).mean().items():
        said = f"{name(str(method))}: noise is all variance in {STUCK:.0%} of the queries in {share:.0%} of its runs"
        yield Gate(FREE, (str(method),), bool(share <= MOST), float(share), MOST, said)


def _stands_for(run: str) -> str:
    """Return the method of the paper that a run's method is, or is a variant of: another number of clusters, another
    reading of the noise."""
    method = method_of(run)
    return printed(registry.method(method).variant_of or method)


def _below(runs: Runs, test: str, pair: tuple[str, str], place: int, space: str) -> Gate:
    """Return the gate that the first of two runs is below the second; `place` keys its random numbers."""
    first, second = side_values(runs, pair)
    gap = paired_difference(first, second, np.random.default_rng([2, place]), "nested", **runs.clusters)
    run, rival = map(name, pair)
    where = f"{CONTROL} ({space}, {clusters(first.shape[1], **runs.clusters).folds} draws)"
    said = f"{run} minus {rival} on {where}, area: {interval(gap.estimate, gap.low, gap.high)}"
    return Gate(test, (method_of(pair[0]),), bool(gap.high < 0), float(gap.high), 0.0, said, everywhere=True)


def _number(run: str) -> int:
    """Return the number of clusters that a run's method is given (Figure 3); 0 where the index chooses it."""
    entry = registry.method(method_of(run))
    number = entry.policy.get("clusters")
    return number if isinstance(number, int) and printed(entry.variant_of or "") in VARIANTS else 0


def _kind(run: str) -> tuple[str | None, str]:
    """Return the variant that a run's method is with another number of clusters, and its reading of the noise."""
    method = method_of(run)
    return registry.method(method).variant_of, reading_of(method)
