"""What checks of HE-GP-UCB compare: runs of the artefact's study on one problem, paired by seed."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from metabo.errors import ConfigError
from metabo.metrics import paired_difference
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import Estimate
from metabo.papers.engine.claims.verdicts import MARGIN, Finding, untestable
from metabo.papers.hegpucb.problems import PERIODS
from metabo.papers.hegpucb.studies import summaries

STUDY = "hegpucb_runs"
COMMON = "hegpucb_common"
"""Runs of problem (b) alone, with candidates that share a length-scale."""
WORDS = {
    "he_gp_ucb": "HE-GP-UCB", "a_gp_ucb": "A-GP-UCB", "expected_ucb": "ExpectedUCB", "mle": "MLE", "gp_ucb": "GP-UCB",
    "uniform": "random points",
}  # fmt: skip
OURS, POINTS = "he_gp_ucb", "uniform"
THEOREM = "plain"
"""The profile with the β of the theorems."""
LAST, EARLY, LATE = "last", "early", "late"
"""When regrets are compared: at a run's last iteration, or at the two of panel (c), `summaries.EARLY` and `.LATE`."""


def profile(evidence: Evidence) -> str:
    """Return which settings of the study an artefact reads."""
    return str(evidence.parameters.get("profile", "figure"))


def profile_runs(evidence: Evidence, under: str = "") -> pd.DataFrame:
    """Return the runs of the artefact's study, of its profile or that of `under`; of COMMON, those with its
    `lengthscale`."""
    common = COMMON in evidence.studies
    runs = evidence.studies[COMMON if common else STUDY]["run"]
    own = runs[runs["profile"] == (under or profile(evidence))]
    shared = evidence.parameters.get("lengthscale", PERIODS["lengthscales"][-1])
    return own[own["lengthscale"] == shared] if common else own


def runs_of(evidence: Evidence, problem: str, under: str = "") -> pd.DataFrame:
    """Return the runs on a problem, of the artefact's profile or that of `under`."""
    runs = profile_runs(evidence, under)
    return runs[runs["problem"] == problem]


def iteration_at(moment: str, runs: pd.DataFrame) -> int:
    """Return the iteration that a moment means: the last one of shorter runs. Raises ConfigError for another word."""
    known = {LAST: math.inf, EARLY: summaries.EARLY, LATE: summaries.LATE}
    if moment not in known:
        raise ConfigError(f"moment '{moment}' of a claim of HE-GP-UCB is none of {', '.join(known)}")
    return int(min(known[moment], runs["iteration"].max()))


def at_the_end(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last iteration."""
    return runs[runs["iteration"] == runs["iteration"].max()]


def absent(methods: Sequence[str], there: pd.Series, problem: str) -> list[Finding]:
    """Return a finding for each method that was not run on a problem."""
    return [untestable(f"{WORDS[m]} was not run on {problem}") for m in dict.fromkeys(methods) if m not in set(there)]


def by_seed(table: pd.DataFrame, values: str) -> pd.DataFrame:
    """Return one row per seed and one column per method."""
    return table.pivot(index="seed", columns="method", values=values)


def gap_of(wide: pd.DataFrame, a: str, b: str, key: list[int], level: float = 0.95) -> Estimate:
    """Return the mean of `a` minus `b` over seeds, paired."""
    pair = (wide[[name]].to_numpy(dtype=np.float64) for name in (a, b))
    return tuple(paired_difference(*pair, np.random.default_rng(key), "fixed", level=level))


def effect_of(wide: pd.DataFrame, other: str, measure: str) -> float:
    """Return the difference of regrets that power is stated for: MARGIN of the regret of `other`, or, of simple
    regrets, of that of random points where there are any. In cumulative regret these are no measure: they never stop
    exploring, and a tenth of theirs can be nearly all of a method's."""
    return MARGIN * float(wide[POINTS if POINTS in wide and measure == "simple" else other].mean())
