"""Gates of HyperBO's methods: each must work where it must, and not where nothing can (benchmark `control`); and what
varies the data or the structure of H-NLL must train it until its mean is learned."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from metabo.artefacts import api as artefacts
from metabo.metrics import Runs, paired_difference
from metabo.papers.engine.claims.comparing import Moment, at_moment, name, side_values
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import CONTROL, LEAST_TASKS, RANDOM, Gate, strings
from metabo.papers.engine.claims.verdicts import LEVEL, interval
from metabo.papers.hyperbo.metrics import online
from metabo.plan import registry, splits
from metabo.plan.runs import RunId, method_of, on_splits

ALIKE, UNLIKE = "alike", "unlike"
H_NLL = "h_nll"
REDUCED = {"sweep", "crossing"}
"""Sections of config.yaml with sizes for priors that are compared with each other."""
TRAINED = "priors of reduced training know a good first query"
ONLINE, TUNED = ("h_nll_online", "h_ekl_online"), "priors of online tuning know a good first query"
LEARNS, WORKS, ABSTAINS = (
    "knows a good first query where tasks are alike",
    "beats Random on a smooth function",
    "is no better than Random where nothing can be learned",
)
WITH_ALL = ("place", "always_first", "reaches_place", "lowest_rank", "rank_improves", "rank_within")
"""Checks that name one method and compare it with every other one, as a place or a rank among all."""
IN_PANEL = ("best_are", "worst_is", "all_above", "mean_wins", "wider_spread", "falls_with_size")
"""Checks that compare the structures of the panels that they name."""
OF_MEANS = {"mean_wins": ("better", "worse"), "falls_with_size": ("mean",)}
"""Those of IN_PANEL that compare structures with these mean functions alone, by their arguments."""
CORRELATED = ("correlation", "mostly_positive", "negative_in")
"""Checks of the regrets of all methods that have losses. A correlation of two losses rests on no run: this came when
it was known which claim it concerns (C41)."""
OF_TABLE = {
    "bands_meet": "difference", "no_difference": "difference", "beside_reference": "difference",
    "fewest_needed": "difference", "trend_down": "curve", "trend_flat": "curve", "wider_beyond": "curve",
}  # fmt: skip
"""Checks of runs that a table of the figure lists, and that table; they are compared with its column `reference`."""
OF_ALL_IN_TABLE = ("bands_meet", "no_difference", "fewest_needed")
"""Those of OF_TABLE that compare all the runs it lists, not just those of the methods that they name."""
ALTERNATIVES = ("rand", "stbo", "stboh", "mimo", "rfgp", "maf")
"""Speed-ups are over the best of these where the artefact names no others (notebooks/shared/regret_curves.ipynb)."""


def gates(evidence: Evidence) -> list[Gate]:
    """Return the gates of every method on `control`, intervals over its test tasks; they count on all benchmarks.

    A method that learns a mean from tasks has a lower regret than Random after its first query on `alike`, which no
    method without past tasks can have. One without, or with a prior of mean zero (FSBO, ABLR), begins like Random by
    definition: it has a lower area under its curve. On `unlike` no method has an area below
    Random's (Bonferroni over the methods). All query a candidate once there, Random too.
    """
    if evidence.has("online"):
        return list(tuned(evidence.online))
    if not evidence.has("trajectories"):
        return []
    if evidence.benchmark != CONTROL:
        return list(trained(evidence))
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


def compared(
    check: str, given: Mapping[str, object], runs: Sequence[str], evidence: Evidence | None
) -> list[set[str]] | None:
    """Return the runs that a check compares, where it does not compare just those that it names; None for others.

    `given`: its arguments; `runs`: all that the artefact shows. Without the tables of the figure: None for checks that
    read them.
    """
    if check in WITH_ALL:
        return [set(runs)]
    if check == "speedup" and given["over"] == "best alternative":
        parameters = evidence.parameters if evidence else {}
        return [set(runs) & {*strings(given["methods"]), *strings(parameters.get("alternatives", [*ALTERNATIVES]))}]
    if check == "larger_gain":
        methods = strings([given["methods"], given["others"]])
        return [{str(RunId.parse(m).on(str(given[end]))) for m in methods for end in ("fewer", "more")} & set(runs)]
    if evidence is None:
        return None
    if check == "correlation" and "regret" not in str(given["comparison"]).split(" against "):
        return []
    if check in CORRELATED:
        return [set(evidence.evaluations["method"]) & set(runs)]
    if check in IN_PANEL:
        return [_in_panel(check, given, evidence) & set(runs)]
    return [_of_table(check, given, evidence) & set(runs)] if check in OF_TABLE else None


def _in_panel(check: str, given: Mapping[str, object], evidence: Evidence) -> set[str]:
    """Return the structures that a check of IN_PANEL compares; it looks at all panels where it names none."""
    rows, panels = evidence.table("ending"), strings([given.get(key) for key in ("panel", "than", "panels")])
    found = set(rows.loc[rows["panel"].isin(panels) if panels else rows["panel"].notna(), "method"])
    means = {given[key] for key in OF_MEANS.get(check, ())}
    return {run for run in found if not means or registry.method(method_of(run)).model["mean"] in means}


def _of_table(check: str, given: Mapping[str, object], evidence: Evidence) -> set[str]:
    """Return the runs of the rows that a check of OF_TABLE reads, and their references."""
    rows = evidence.table(OF_TABLE[check])
    if check not in OF_ALL_IN_TABLE:
        rows = rows[rows["method"].isin(strings([given.get("methods"), given.get("method")]))]
    own = on_splits(rows["method"], rows["split"]) if "split" in rows else rows["method"]
    return {*own, *rows.get("reference", ())}


def trained(evidence: Evidence) -> Iterator[Gate]:
    """Where priors have sizes of their own (sweeps over data, structures, crossed settings), H-NLL on all the data has
    a lower regret than Random after its first query, by an interval over test tasks; so has each structure whose mean
    is a network. A figure of structures has no Random: one of mean zero stands in, which begins like it where no points
    are given before the first query.

    If not, the mean is not learned, and the figure compares priors that say nothing. That of H-NLL itself counts for
    every test of the artefact, that of a structure for comparisons with it.
    """
    table = evidence.trajectories
    if "split" not in table:
        return
    for split, part in table.groupby("split", sort=False):
        if not _reduced(str(split)):
            continue
        runs, _ = at_moment(artefacts.runs(part, evidence.regret), 1)
        given = bool((part["iteration"] < 1).any())
        zero = [run for run in runs.methods if _structure(run, "zero") and not given]
        reference = next((run for run in (*RANDOM, *zero) if run in runs.methods), None)
        if reference is None or len(runs.tasks) < LEAST_TASKS:
            continue
        whole = [run for run in runs.methods if run in (H_NLL, f"{H_NLL}@{split}")][:1]
        for own in [*whole, *(run for run in runs.methods if _structure(run, "linear_mlp"))]:
            values, random = side_values(runs, [own, reference])
            gap = paired_difference(values, random, np.random.default_rng(3), "nested")
            found = interval(gap.estimate, gap.low, gap.high)
            said = f"{name(own)} on {split} minus {name(reference)}, first query: {found}"
            yield Gate(TRAINED, () if own in whole else (own,), bool(gap.high < 0), float(gap.high), 0.0, said)


def _structure(run: str, mean: str) -> bool:
    """Return whether a run is of a structure of H-NLL with this kind of mean."""
    entry = registry.method(method_of(run))
    return entry.variant_of == H_NLL and entry.own_features and entry.model["mean"] == mean


def tuned(table: pd.DataFrame) -> Iterator[Gate]:
    """In online tuning, the share of Random's queries that are better than a method's first one is below one half, by
    an interval over data sets. Each query of Random is a draw, whatever its iteration; an infeasible one is the worst.

    If not, the prior says nothing before the first observation. `table`: the online runs of an artefact.
    """
    table = table.assign(value=table["y"].where(table["feasible"].astype(bool), -np.inf))
    drawn = {task: own["value"].to_numpy() for task, own in table[table["method"].isin(RANDOM)].groupby("task")}
    first = online.by_data_set(table[table["iteration"] == 1])
    for method in ONLINE:
        own = first[(first["method"] == method) & first["task"].isin(drawn)]
        if own.empty or own["task"].nunique() < LEAST_TASKS:
            continue
        pairs = zip(own["task"], own["value"], strict=True)
        ahead = [np.mean(drawn[task] > value) + np.mean(drawn[task] == value) / 2 for task, value in pairs]
        both = pd.concat([own.assign(ahead=ahead), own.assign(method=RANDOM[0], ahead=0.5)])
        runs, _ = at_moment(artefacts.runs(both, "ahead"), 1)
        gap = paired_difference(*side_values(runs, [method, RANDOM[0]]), np.random.default_rng(4), "nested")
        low, share, high = (0.5 + end for end in (gap.low, gap.estimate, gap.high))
        said = f"share of Random's queries better than the first of {name(method)}: {interval(share, low, high)}"
        yield Gate(TUNED, (method,), bool(high < 0.5), float(high), 0.5, said, everywhere=True)


def _reduced(split: str) -> bool:
    """Return whether priors of a split have sizes of their own and all the data."""
    entry = splits.entry(split)
    return bool({*entry.sizes} & REDUCED) and entry.points is None and entry.tasks is None and entry.rows == "all"


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
