"""Gates of MPHD's methods: on functions that are drawn from a known model, the true prior beats Random, and so does
each method that learns from tasks, where every candidate is queried once. Else those of BO runs alone
(`metabo.papers.engine.claims.gates`), on the panels that a test compares.

The rule on methods that learn was written when the regrets at the end of these runs were known: none was above
Random's."""

from collections.abc import Mapping, Sequence

import pandas as pd

from metabo.artefacts import api as artefacts
from metabo.metrics import Runs
from metabo.papers.engine.claims.comparing import at_moment, name
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import LEAST_TASKS, RANDOM, Gate, over_tasks, strings
from metabo.papers.engine.claims.verdicts import LEVEL, interval
from metabo.papers.mphd.checks.spaces import VARIANTS
from metabo.plan import registry
from metabo.plan.runs import RunId

PAIRS = ("beats", "beaten_by", "matches", "by_margin", "ahead_then_behind", "overtaken_at", "fewer_queries")
"""Checks that compare one method with others in a panel, for each acquisition separately."""
OTHER_SIDES = ("others", "by", "reference", "other")
"""Their arguments that name the others."""
SETTINGS = ("default", "ntot")
"""The panels that `costs_little` compares."""


TRUE, ORACLE = ("gp_truth", "hgp_truth"), "the true prior beats Random"
"""Methods with the parameters, or the priors, that synthetic functions were drawn from, and their gate."""
WORKS = "beats Random on functions of a known model, each candidate once"


def gates(evidence: Evidence) -> list[Gate]:
    """Return the gates of functions that are drawn from a known model: those where a method with the true prior is.

    The area under the regret curve of each run with the true prior is below Random's, by an interval over test
    functions, each with the mean of its repetitions. If not, no method can show there that its prior is good, so that
    it counts for every test of the artefact. Where every candidate is queried once, so is the area of each method that
    learns from tasks, with its own acquisition: what it learned must be of use on functions of the model that it
    assumes. This counts for the method's comparisons there alone, in the default setting: at the default scale there
    are 20 functions, and half of the true GP's advantage is found with a power of 0.45 to 0.88, by method. With 80 all
    methods pass (docs/replication-notes.md).
    """
    if not evidence.has("trajectories"):
        return []
    table, found = evidence.trajectories, []
    shown = table["method"].map(lambda run: RunId.parse(run).method)
    if not shown.isin(TRUE).any():
        return []
    table = table[shown.isin([*TRUE, *RANDOM]) | table["method"].map(lambda run: not RunId.parse(run).acquisition)]
    for _, part in table.groupby("split", sort=False) if "split" in table else [("", table)]:
        found += _known_model(artefacts.runs(part, evidence.regret), _once(part))
    return found


def _once(table: pd.DataFrame) -> bool:
    """Return whether no run queries a candidate twice."""
    run = ["method", "space", "task", "prior_seed", "seed"]
    queries = table[(table["iteration"] >= 1) & (table["candidate"] >= 0)]
    return not queries.duplicated([*run, "candidate"]).any()


def _known_model(runs: Runs, once: bool) -> list[Gate]:
    here, _ = at_moment(runs, "area")
    reference = next((run for run in RANDOM if run in here.methods), None)
    if reference is None or len(here.tasks) < LEAST_TASKS:
        return []
    found = []
    for place, run in enumerate(run for run in here.methods if run not in RANDOM):
        method = RunId.parse(run).method
        if method not in TRUE and not (once and run not in here.single_task):
            continue
        gap = over_tasks(here, run, reference, [3, place], LEVEL)
        said = f"{name(run)} minus Random, area: {interval(gap.estimate, gap.low, gap.high)}"
        kind, subjects = (ORACLE, ()) if method in TRUE else (WORKS, (run,))
        found.append(Gate(kind, subjects, bool(gap.high < 0), float(gap.high), 0.0, said))
    return found


def compared(
    check: str, given: Mapping[str, object], runs: Sequence[str], evidence: Evidence | None
) -> list[set[str]] | None:
    """Return the runs that a check of regret compares: by panel and acquisition, without `but` and our own variants,
    as in `metabo.papers.mphd.checks.spaces`. None for other checks, or without the figure's table `ending`.

    `given`: its arguments; `runs`: all that the artefact shows.
    """
    if evidence is None or not evidence.has("data") or not runs:
        return None
    if check == "best_acquisition":
        return [{run for run in runs if RunId.parse(run).method == given["method"]}]
    if check in PAIRS:
        named = {str(given["method"]), *strings([given.get(side) for side in OTHER_SIDES])}
        chosen = [(str(given["panel"]), acq) for acq in sorted(strings(given.get("acquisitions", "pi")))]
        return [_shown(evidence, [key], named, strings(given.get("but", [])), runs) for key in chosen]
    if check == "falls_less":
        named = {str(given["reference"]), *strings(given["methods"])}
        return [_shown(evidence, [(str(given["panel"]), "pi")], named, set(), runs)]
    if check == "costs_little":
        return [_shown(evidence, [(panel, "pi") for panel in SETTINGS], {str(given["method"])}, set(), runs)]
    if check == "wins":
        panels = evidence.table("ending")[["panel", "acquisition"]].drop_duplicates().itertuples(index=False)
        return [_shown(evidence, [tuple(key)], {"others"}, strings(given["but"]), runs) for key in panels]
    return None


def _shown(
    evidence: Evidence, panels: Sequence[tuple[str, str]], named: set[str], but: set[str], runs: Sequence[str]
) -> set[str]:
    """Return the runs of the named methods ("others": of all but `but` and VARIANTS) in these (panel, acquisition).

    The figure names a run by its split only where a method that learns across spaces is on another than the first.
    """
    rows = evidence.table("ending")
    apart = {RunId.parse(run).split for run in rows["method"]} - {""}
    kept = set(zip(rows["panel"], rows["acquisition"], strict=True)) & set(panels)
    own = [key in kept for key in zip(rows["panel"], rows["acquisition"], strict=True)]
    found = set()
    for shown in map(RunId.parse, rows.loc[own, "method"].unique()):
        everyone = "others" in named and shown.method not in {*but, *VARIANTS}
        if not (shown.method in named or everyone):
            continue
        across = registry.made_of(shown.method).across_spaces
        for run in map(RunId.parse, runs):
            here = not across or (run.split == shown.split if shown.split else run.split not in apart)
            if run[:2] == shown[:2] and here:
                found.add(str(run))
    return found
