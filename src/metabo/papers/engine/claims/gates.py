"""Gates: positive controls that a benchmark and its runs must pass before a claim about them is judged.

A comparison of methods says nothing where none of them finds anything that random search does not, where a policy asks
for one point over and over, or where two acquisitions choose the same points. A claim that rests on a failed gate is
not testable, and its row names the gate. The rules and their constants were fixed before any result was looked at; a
paper's own gates are in its module `gates`, with one function `gates(evidence)`.
"""

import importlib
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from metabo.metrics import paired_difference
from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.comparing import OTHERS, at_moment, name, side_values
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.sheet import ClaimTest
from metabo.papers.engine.claims.verdicts import LEVEL, interval
from metabo.plan import registry
from metabo.plan.runs import RunId

LEARNABLE, ASKING, DIFFERING = "a method beats Random", "asks for more than one point", "acquisitions differ"
STUCK = 0.9
"""A run is stuck if one point that is not the best takes this share of its queries."""
MOST = 0.5
"""The share of runs that may be stuck, or be the same under two acquisitions."""
RANDOM = ("rand", "rand_once")
COLUMNS = ("paper", "gate", "artefact", "benchmark", "subjects", "verdict", "value", "bound", "said", "claims")
"""Of the table of gates; `claims`: those that rest on it."""
PASSES, FAILS = "passes", "fails"


class Gate(NamedTuple):
    """A gate of one artefact on one benchmark.

    `subjects`: what it is about, named as in a claim's arguments (runs, problems): the gate counts for tests that name
    them all; none: for every test. `unless_named`: it counts as well for a test that names no run at all.
    `everywhere`: on all artefacts of the paper, not on its own alone. `value` is compared with `bound`.
    """

    name: str
    subjects: tuple[str, ...]
    passed: bool
    value: float
    bound: float
    said: str
    unless_named: bool = True
    everywhere: bool = False


def of(paper: str, evidence: Evidence) -> list[Gate]:
    """Return the gates of an artefact on a benchmark: those of its BO runs, and the paper's own."""
    found = of_runs(evidence) if evidence.has("trajectories") else []
    for module in registry.gate_modules(paper):
        found += importlib.import_module(module).gates(evidence)
    return found


def of_runs(evidence: Evidence) -> list[Gate]:
    """Return the gates of BO runs: LEARNABLE once, ASKING for every run's name, DIFFERING for pairs of acquisitions."""
    table = evidence.trajectories
    queries = table[(table["iteration"] >= 1) & (table["candidate"] >= 0)]
    return [*learnable(evidence), *asking(queries, evidence.regret), *differing(queries)]


def learnable(evidence: Evidence) -> list[Gate]:
    """The area under the regret curve of some method is below Random's: an interval over tasks, each with the mean of
    its repetitions, at level 1 - LEVEL / methods (Bonferroni). Three priors are too few units for that: a gate must not
    fail for lack of power. No gate without Random, with Random alone, or with one task."""
    here, _ = at_moment(evidence.runs, "area")
    reference = next((run for run in RANDOM if run in here.methods), None)
    others = [run for run in here.methods if run not in RANDOM]
    if reference is None or not others:
        return []
    gaps = []
    for place, run in enumerate(others):
        first, second = side_values(here, [run, reference])
        rng = np.random.default_rng([0, place])
        gap = paired_difference(first, second, rng, "nested", level=1 - LEVEL / len(others))
        if np.isfinite(gap.high):
            gaps.append((gap.high, run, gap))
    if not gaps:
        return []
    high, best, gap = min(gaps, key=lambda one: one[0])
    said = f"{name(best)} minus Random, area: {interval(gap.estimate, gap.low, gap.high)}"
    return [Gate(LEARNABLE, (), bool(high < 0), float(high), 0.0, said)]


def asking(queries: pd.DataFrame, regret: str = "simple_regret") -> list[Gate]:
    """At most MOST of a method's runs ask STUCK of their queries for one point that is not the best."""
    run = ["method", "space", "task", "prior_seed", "seed"]
    counts = queries.groupby([*run, "candidate"], sort=False).size().groupby(run, sort=False).max()
    ends = queries.groupby(run, sort=False)[regret].min()
    totals = queries.groupby(run, sort=False).size()
    stuck = (counts >= STUCK * totals) & (ends > 0) & (totals > 1)
    found = []
    for method, share in stuck.groupby("method", sort=False).mean().items():
        said = f"{share:.0%} of the runs of {name(str(method))} ask {STUCK:.0%} of their queries for one point"
        found.append(Gate(ASKING, (str(method),), bool(share <= MOST), float(share), MOST, said))
    return found


def differing(queries: pd.DataFrame) -> list[Gate]:
    """At most MOST of the runs are the same, query by query, under two acquisitions of a method."""
    groups: dict[tuple[str, str], list[str]] = {}
    for method in dict.fromkeys(queries["method"]):
        parsed = RunId.parse(method)
        groups.setdefault((parsed.method, parsed.split), []).append(method)
    found = []
    for runs in groups.values():
        for pair in combinations(runs, 2):
            same = _same_queries(queries, *pair)
            if same is not None:
                said = f"{same:.0%} of the runs of {name(pair[0])} and {name(pair[1])} ask for the same points"
                found.append(Gate(DIFFERING, pair, bool(same <= MOST), same, MOST, said))
    return found


def _same_queries(queries: pd.DataFrame, first: str, second: str) -> float | None:
    """Return the share of runs that two names share which have the same queries; None if they share none."""
    keys = ["space", "task", "prior_seed", "seed", "iteration"]
    pair = [
        queries.loc[queries["method"] == m, [*keys, "candidate"]].set_index(keys)["candidate"] for m in (first, second)
    ]
    joined = pd.concat(pair, axis=1, join="inner", keys=["first", "second"])
    if joined.empty:
        return None
    alike = (joined["first"] == joined["second"]).groupby(level=keys[:-1]).all()
    return float(alike.mean())


def rests(gate: Gate, paper: str, test: ClaimTest, runs: Sequence[str]) -> bool:
    """Return whether a test rests on a gate: it names all its subjects, or the gate is about the whole benchmark.

    `runs`: all that the artefact shows. A gate that counts everywhere is about methods, whatever their acquisition.
    """
    if not gate.subjects:
        return True
    named = _strings(checks.arguments(paper, test.check, test.arguments))
    if gate.unless_named and (OTHERS in named or not named & set(runs)):
        named |= set(runs)
    if gate.everywhere:
        named = {RunId.parse(one).method for one in named}
    return set(gate.subjects) <= named


def _strings(value: object) -> set[str]:
    """Return all texts inside a value."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, Mapping):
        return set().union(*map(_strings, value.values())) if value else set()
    if isinstance(value, list | tuple):
        return set().union(*map(_strings, value)) if value else set()
    return set()
