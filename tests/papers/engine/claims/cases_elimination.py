"""Cases of checks of HE-GP-UCB, as in `cases_bo`."""

import pandas as pd

from metabo.papers.engine.claims.evidence import Evidence
from tests.papers.engine.claims.made import either, numbers, over


def with_runs(frame):
    return Evidence("synthetic", {"studies": lambda: {"hegpucb_runs": {"run": frame}}})


def study(good, problems=("mean",), gap=None, noise=0.0):
    """Runs of HE-GP-UCB (0.1) and MLE, `gap` above it, in every problem; `noise` is on and off MLE's in turn."""
    gap = either(good, 0.4, -0.05) if gap is None else gap
    keys = ["problem", "profile", "method", "seed", "iteration", "simple", "cumulative"]
    rows = [
        (problem, "plain", method, seed, t, level * (1 + 0.01 * seed), t * level * (1 + 0.01 * seed) + shift)
        for problem in problems
        for method, level in (("he_gp_ucb", 0.1), ("mle", 0.1 + gap))
        for seed in range(6)
        for shift in [noise * (-1) ** seed * (method == "mle")]
        for t in (1, 2)
    ]
    return with_runs(pd.DataFrame(rows, columns=keys))


def recovered(**right):
    """Runs of two problems, ten seeds each: `right` are the runs of each method that end with the true candidate.

    In problem "decomposition", they all do.
    """
    rows = [
        (problem, "plain", method, seed, t, 0, 0 if t == 1 or problem == "decomposition" or seed < count else 1)
        for problem in ("period", "decomposition")
        for method, count in right.items()
        for seed in range(10)
        for t in (1, 2)
    ]
    return with_runs(pd.DataFrame(rows, columns=["problem", "profile", "method", "seed", "iteration", "truth", "mle"]))


def late(gap, half=0.2):
    """The difference of MLE at the later iteration of panel (c), where random points have a regret of 3."""
    row = {
        "problem": "decomposition",
        "profile": "plain",
        "reference": "he_gp_ucb",
        "method": "mle",
        "measure": "simple",
    }
    rows = [
        {**row, "iteration": t, "difference": g, "low": g - half, "high": g + half} for t, g in ((15, -9), (50, gap))
    ]
    ends = [{"problem": "decomposition", "measure": "simple", "method": "uniform", "iteration": 50, "mean": 3.0}]
    return numbers(keys=["iteration"], phase=rows, ending=ends)


def wrong(good):
    row = {"problem": "period", "profile": "plain"}
    settled = {"he_gp_ucb": 5.0, "mle": either(good, 20.0, 2.0), "uniform": 9.0}
    return [
        {
            **row,
            "method": m,
            "wrong": either(good, 0.1, 0.6) if m == "he_gp_ucb" else 0.5,
            "settled": s,
        }
        for m, s in settled.items()
    ]


def fits(good):
    rows = over("piece", piece=[0, 1], period=[either(good, 0.25, 0.5), 1.0], one=[0.0, 1.0])
    return numbers(keys=["piece"], fit=[{**row, "scale": 0.1 * (2 - row["piece"])} for row in rows])


def drops(good):
    row = {"problem": "mean", "profile": "plain", "dropped": 50, "likeliest": either(good, 2, 0), "runs": 50}
    return numbers(drop=[{**row, "true": either(good, 5, 6)}])


PROBLEMS = ["period", "decomposition"]
ELIMINATION = {
    "seeds_order": lambda good: (
        study(good),
        {"problem": "mean", "lower": ["he_gp_ucb"], "than": ["mle"], "measures": ["cumulative", "simple"]},
    ),
    "beats_somewhere": lambda good: (study(good, ("lengthscale", "mean")), {"other": "mle"}),
    "nearly_equal": lambda good: (
        numbers(
            equal=[
                {"measure": "simple", "he_gp_ucb": 0.1, "a_gp_ucb": 0.1, "mle": 0.5, "apart": either(good, 0.1, 0.3)}
            ]
        ),
        {},
    ),
    "chosen_lengthscales": lambda good: (
        numbers(
            keys=["iteration"],
            scale=over(
                "method",
                method=["mle", "he_gp_ucb", "he_gp_ucb"],
                iteration=[1, 1, 40],
                median=[0.7, either(good, 0.3, 0.5), 1.0],
            ),
        ),
        {"until": 10, "mle": 0.5, "ours": 0.4},
    ),
    "stuck": lambda good: (
        numbers(stuck=over("method", method=["mle", "he_gp_ucb"], fraction=[either(good, 0.7, 0.2), 0.0])),
        {"method": "mle"},
    ),
    "fewer_wrong": lambda good: (numbers(wrong=wrong(good)), {"problem": "period", "than": "mle"}),
    "settles_sooner": lambda good: (numbers(wrong=wrong(good)), {"problem": "period", "than": ["mle", "expected_ucb"]}),
    "recovers_less": lambda good: (recovered(mle=0, uniform=either(good, 9, 0)), {"problems": PROBLEMS}),
    "catch_up": lambda good: (late(either(good, 0.0, -0.4)), {"others": ["mle"]}),
    "fitted_periods": lambda good: (fits(good), {"pieces": [0.25], "whole": 1.0}),
    "not_additive": lambda good: (
        numbers(fact=[{"place": "mode", "value": 1.0, "mixed": 3.0, "third": either(good, 0.0, 0.1)}]),
        {},
    ),
    "kept": lambda good: (drops(good), {"delta": 0.1}),
    "likeliest_dropped": lambda good: (drops(good), {}),
    "protocol": lambda good: (
        numbers(
            keys=["iteration"],
            ending=[
                {"problem": "mean", "method": "mle", "measure": "simple", "iteration": 100, "runs": either(good, 50, 5)}
            ],
        ),
        {"runs": {"mean": 50}, "iterations": {"mean": 100}},
    ),
}
