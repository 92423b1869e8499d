"""Gates: positive controls that a benchmark and its runs must pass before a claim about them is judged.

A comparison of methods says nothing where none of them finds anything that random search does not, where a policy asks
for one point over and over, or where two acquisitions that are compared choose the same points. What rests on a failed
gate is not testable, and its row names it. The rules here and their constants were fixed before any result was seen,
but for FIRST_QUERY, which came when it was known which claims it concerns. A paper's own gates are in its module
`gates`, with one function `gates(evidence)`; the module says where its rules were fixed later.
"""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pandas as pd

from metabo.artefacts import api as artefacts
from metabo.metrics import Difference, Runs, paired_difference
from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.comparing import OTHERS, at_moment, name, side_values
from metabo.papers.engine.claims.evidence import Evidence, NoTable
from metabo.papers.engine.claims.sheet import ClaimTest
from metabo.papers.engine.claims.verdicts import LEVEL, interval
from metabo.plan import registry
from metabo.plan.runs import RunId

LEARNABLE, ASKING, DIFFERING = "a method beats Random", "asks for more than one point", "acquisitions differ"
CONTROL = "control"
STUCK = 0.9
"""A run is stuck if one point that is not the best takes this share of its queries."""
MOST = 0.5
"""The share of runs that may be stuck, or be the same under two acquisitions."""
RANDOM = ("rand", "rand_once")
LEAST_TASKS = 5
"""With fewer test tasks an interval over them has no power."""
BY_COMPARISON = (
    *("lower_regret", "best_areas", "always_first", "more_solved", "lower_in_pairs", "mostly_ahead"),
    *("best_are", "worst_is", "all_above", "falls_with_size"),
    *(
        "wins_most",
        "behind_most",
        "ahead_in_most",
        "small_gain",
        "fewer_solved",
        "best_in_band",
        "falls_every_decade",
        "negative_transfer",
    ),
    *("overtakes_early", "more_clusters_help"),
)
"""Checks of pairs of runs, one comparison each: a gate that is about one run takes its comparisons alone
(`Evidence.failing`), and the others can still contradict."""
FIRST_QUERY = (1, [1], (1,))
"""Moments after one query alone: no point can have been asked twice, so that ASKING says nothing about it."""
ASIDE = ("but",)
"""Arguments of checks that name what is left out."""
COLUMNS = ("paper", "gate", "artefact", "benchmark", "subjects", "verdict", "value", "bound", "said", "claims")
"""Of the table of gates; `claims`: those that rest on it."""
PASSES, FAILS = "passes", "fails"


class Gate(NamedTuple):
    """A gate of one artefact on one benchmark.

    `subjects`: the runs (or problems) that it is about: it counts for tests that compare them all with each other
    (`compared`); none: for every test. `unless_named`: also where the test does not name them. `checks`: it counts for
    tests by these checks only (empty: by all). `everywhere`: on all artefacts of the paper, whatever the acquisition,
    not on its own alone. `value` is compared with `bound`.
    """

    name: str
    subjects: tuple[str, ...]
    passed: bool
    value: float
    bound: float
    said: str
    unless_named: bool = True
    checks: tuple[str, ...] = ()
    everywhere: bool = False

    @property
    def failure(self) -> str:
        """What a row that rests on the gate says when the gate fails."""
        return f"gate '{self.name}' fails: {self.said}"


def of(paper: str, evidence: Evidence) -> list[Gate]:
    """Return the gates of an artefact on a benchmark: those of its BO runs, and the paper's own."""
    found = of_runs(evidence) if evidence.has("trajectories") else []
    for module in registry.gate_modules(paper):
        found += importlib.import_module(module).gates(evidence)
    return found


def of_runs(evidence: Evidence) -> list[Gate]:
    """Return the gates of BO runs, split by split: LEARNABLE, ASKING for every run's name, DIFFERING for pairs of
    acquisitions. Methods without a prior keep their name on all splits, so that runs are only unique within one."""
    table, found = evidence.trajectories, []
    splits = table["split"] if "split" in table else pd.Series("", index=table.index)
    for split, part in table.groupby(splits, sort=False):
        queries = part[(part["iteration"] >= 1) & (part["candidate"] >= 0)]
        where = f" on {split}" if splits.nunique() > 1 else ""
        found += [
            *learnable(artefacts.runs(part, evidence.regret), where),
            *asking(queries, where),
            *differing(queries),
        ]
    return found


def learnable(runs: Runs, where: str = "") -> list[Gate]:
    """The area under the regret curve of some method is below Random's: an interval over tasks, each with the mean of
    its repetitions, at level 1 - LEVEL / methods (Bonferroni). Three priors are too few units for that: a gate must not
    fail for lack of power. No gate without Random, with Random alone, or with fewer than LEAST_TASKS tasks."""
    here, _ = at_moment(runs, "area")
    reference = next((run for run in RANDOM if run in here.methods), None)
    others = [run for run in here.methods if run not in RANDOM]
    if reference is None or not others or len(runs.tasks) < LEAST_TASKS:
        return []
    gaps = []
    for place, run in enumerate(others):
        gap = over_tasks(here, run, reference, [0, place], LEVEL / len(others))
        gaps.append((gap.high, run, gap))
    high, best, gap = min(gaps, key=lambda one: one[0])
    said = f"{name(best)} minus Random, area{where}: {interval(gap.estimate, gap.low, gap.high)}"
    return [Gate(LEARNABLE, (), bool(high < 0), float(high), 0.0, said)]


def over_tasks(runs: Runs, run: str, reference: str, seed: Sequence[int], level: float) -> Difference:
    """Return a run's value minus the reference's, at one moment: an interval at level 1 - `level` over tasks, each with
    the mean of its repetitions."""
    first, second = side_values(runs, [run, reference])
    return paired_difference(first, second, np.random.default_rng(seed), "nested", level=1 - level)


def asking(queries: pd.DataFrame, where: str = "") -> list[Gate]:
    """At most MOST of a method's runs ask STUCK of their queries for one point that is not the best."""
    run = ["method", "space", "task", "prior_seed", "seed"]
    counts = queries.groupby([*run, "candidate"], sort=False).size().groupby(run, sort=False).max()
    regret = "simple_regret" if "simple_regret" in queries else "normalised_regret"
    ends = queries.groupby(run, sort=False)[regret].min()
    totals = queries.groupby(run, sort=False).size()
    stuck = (counts >= STUCK * totals) & (ends > 0) & (totals > 1)
    found = []
    for method, share in stuck.groupby("method", sort=False).mean().items():
        said = f"{share:.0%} of the runs of {name(str(method))}{where} ask {STUCK:.0%} of their queries for one point"
        found.append(Gate(ASKING, (str(method),), bool(share <= MOST), float(share), MOST, said))
    return found


def differing(queries: pd.DataFrame) -> list[Gate]:
    """At most MOST of the runs are the same, query by query, under two acquisitions of a method. It counts for tests
    that name both; a claim that acquisitions are alike does not rest on it."""
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
                found.append(Gate(DIFFERING, pair, bool(same <= MOST), same, MOST, said, unless_named=False))
    return found


def _same_queries(queries: pd.DataFrame, first: str, second: str) -> float | None:
    """Of the runs that two names share, return the share with the same queries; None if they share none."""
    keys = ["space", "task", "prior_seed", "seed", "iteration"]
    pair = [
        queries.loc[queries["method"] == m, [*keys, "candidate"]].set_index(keys)["candidate"] for m in (first, second)
    ]
    joined = pd.concat(pair, axis=1, join="inner", keys=["first", "second"])
    if joined.empty:
        return None
    alike = (joined["first"] == joined["second"]).groupby(level=keys[:-1]).all()
    return float(alike.mean())


def rests(gate: Gate, paper: str, test: ClaimTest, runs: Sequence[str], evidence: Evidence | None = None) -> bool:
    """Return whether a test rests on a gate: it compares the runs that the gate is about with each other.

    `runs`: all that the artefact shows; `evidence`: its tables, which say what its panels show.
    """
    if gate.checks and test.check not in gate.checks:
        return False
    if not gate.subjects:
        return True
    given = checks.arguments(paper, test.check, test.arguments)
    if gate.name == ASKING and given.get("at") in FIRST_QUERY:
        return False
    words = strings({key: value for key, value in given.items() if key not in ASIDE})
    groups = compared(paper, test, runs, evidence)
    if not gate.unless_named:
        named = named_runs(words, given.get("acquisitions"), runs)
        groups = [group & named for group in groups]
    if gate.everywhere:
        known = [{RunId.parse(run).method for run in group} for group in groups]
    else:
        known = [group | words - set(runs) for group in groups]
    return any(set(gate.subjects) <= group for group in known)


def compared(paper: str, test: ClaimTest, runs: Sequence[str], evidence: Evidence | None = None) -> list[set[str]]:
    """Return the runs that a test compares, in at least one group within which it compares them.

    A paper's module `gates` says this for the checks that do not compare just the runs they name (its function
    `compared(test, arguments, runs, evidence)`, which returns None for all others). These compare the runs that they
    name, and with OTHERS, or where they name none, all but those that they leave out (ASIDE).
    """
    given = checks.arguments(paper, test.check, test.arguments)
    for module in map(importlib.import_module, registry.gate_modules(paper)):
        try:
            own = module.compared(test.check, given, runs, evidence) if hasattr(module, "compared") else None
        except NoTable:  # the check will say so
            own = None
        if own is not None:
            return own or [set()]
    words = strings({key: value for key, value in given.items() if key not in ASIDE})
    named = named_runs(words, given.get("acquisitions"), runs)
    if OTHERS in words or not named:
        aside = named_runs(strings([given.get(key) for key in ASIDE]), given.get("acquisitions"), runs)
        named |= set(runs) - aside
    return [named]


def apart(gate: Gate, test: ClaimTest) -> bool:
    """Return whether a failed gate takes comparisons of its one run alone, not the whole test."""
    return len(gate.subjects) == 1 and test.check in BY_COMPARISON


def failing(failed: Iterable[Gate], runs: Sequence[str]) -> dict[str, str]:
    """Return the runs that failed gates are about, each with the reason."""
    found = {}
    for gate in failed:
        for run in runs:
            subject = RunId.parse(run).method if gate.everywhere else run
            if subject in gate.subjects:
                found.setdefault(run, gate.failure)
    return found


def named_runs(words: Iterable[str], acquisitions: object, runs: Sequence[str]) -> set[str]:
    """Return the runs that words of a claim's arguments mean: of that method, on any split unless a word names one,
    with the acquisition that it names, those that the test lists apart (`acquisitions`), or else the method's own."""
    listed = {"", *strings(acquisitions)}
    found = set()
    for word, run in product(map(RunId.parse, words), map(RunId.parse, runs)):
        scored = run.acquisition == word.acquisition if word.acquisition else run.acquisition in listed
        if run.method == word.method and scored and word.split in ("", run.split):
            found.add(str(run))
    return found


def strings(value: object) -> set[str]:
    """Return all texts inside a value."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, Mapping):
        return set().union(*map(strings, value.values())) if value else set()
    if isinstance(value, list | tuple):
        return set().union(*map(strings, value)) if value else set()
    return set()
