"""Gates of MPHD's methods: those of BO runs alone (`metabo.papers.engine.claims.gates`), on the panels that a test
compares."""

from collections.abc import Mapping, Sequence

from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import Gate, strings
from metabo.papers.mphd.checks.spaces import VARIANTS
from metabo.plan import registry
from metabo.plan.runs import RunId

PAIRS = ("beats", "beaten_by", "matches", "by_margin", "ahead_then_behind", "overtaken_at", "fewer_queries")
"""Checks that compare one method with others in a panel, for each acquisition separately."""
OTHER_SIDES = ("others", "by", "reference", "other")
"""Their arguments that name the others."""
SETTINGS = ("default", "ntot")
"""The panels that `costs_little` compares."""


def gates(evidence: Evidence) -> list[Gate]:
    """Return the gates of the paper's own: none."""
    return []


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
