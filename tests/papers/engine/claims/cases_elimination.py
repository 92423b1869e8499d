"""Cases of checks of HE-GP-UCB, as in `cases_bo`."""

import numpy as np
import pandas as pd

from metabo.papers.engine.claims.evidence import Evidence
from tests.papers.engine.claims.made import either, numbers


def with_runs(frame):
    return Evidence("synthetic", {"studies": lambda: {"hegpucb_runs": {"run": frame}}})


def queries(methods, problem="decomposition", seeds=10, iterations=(1, 2), truth=0, **columns):
    """Queries of every method, seed and iteration; a column is a number, or made by a function of (method, seed, t)."""
    rows = []
    for method in methods:
        for seed in range(seeds):
            for t in iterations:
                own = {"problem": problem, "profile": "figure", "method": method, "seed": seed, "iteration": t}
                made = {k: v(method, seed, t) if callable(v) else v for k, v in columns.items()}
                rows.append({**own, "truth": truth, **made})
    return pd.DataFrame(rows)


def study(good, problems=("mean",), gap=None, noise=0.0):
    """Runs of HE-GP-UCB (0.1) and MLE, `gap` above it, in every problem; `noise` is on and off MLE's in turn."""
    gap = either(good, 0.4, -0.05) if gap is None else gap
    keys = ["problem", "profile", "method", "seed", "iteration", "simple", "cumulative"]
    rows = [
        (problem, "figure", method, seed, t, level * (1 + 0.01 * seed), t * level * (1 + 0.01 * seed) + shift)
        for problem in problems
        for method, level in (("he_gp_ucb", 0.1), ("mle", 0.1 + gap))
        for seed in range(6)
        for shift in [noise * (-1) ** seed * (method == "mle")]
        for t in (1, 2)
    ]
    return with_runs(pd.DataFrame(rows, columns=keys))


def regrets(gap, methods=("he_gp_ucb", "mle", "uniform"), problem="decomposition", half=0.2, iterations=(15, 50)):
    """Runs of three methods at two iterations: the second is `gap` above the first, give or take `half`; random points
    have 3."""
    level = {methods[0]: 1.0, methods[1]: 1.0 + gap, methods[2]: 3.0}
    wide = half / 2.262 * np.sqrt(9)  # of ten seeds: Student's t, deviation with divisor n

    def regret(method, seed, t):
        return 0.0 if t < iterations[-1] else level[method] + wide * (-1) ** seed * (method == methods[1])

    return with_runs(queries(methods, problem, iterations=iterations, simple=regret, cumulative=regret))


def late(gap, half=0.2):
    """Regret of MLE above that of HE-GP-UCB at the later iteration of panel (c); random points have 3."""
    return regrets(gap, half=half)


def recovered(elsewhere=None, **right):
    """Runs of two problems, ten seeds each: `right` are the runs of each method that end with the true candidate.

    In problem "decomposition" `elsewhere` are, or all of them.
    """
    parts = [
        queries(right, problem, mle=lambda m, seed, t, ends=ends: int(t > 1 and seed >= ends[m]))
        for problem, ends in (("period", right), ("decomposition", elsewhere or dict.fromkeys(right, 10)))
    ]
    return with_runs(pd.concat(parts))


def lengthscales(ours):
    """Candidates of (a) are 0.3, 0.4, 0.5, 0.7 and 1: MLE follows 0.7 at first, HE-GP-UCB the one of this number."""
    scale = {"mle": 3, "he_gp_ucb": ours}
    return with_runs(
        queries(scale, "lengthscale", iterations=(1, 10, 40), truth=-1, u=lambda m, seed, t: scale[m] if t < 40 else 4)
    )


def ends(count, short=()):
    """Runs of (a) of MLE, of which `count` of ten end at the right end and miss the peak; all begin with the longest
    length-scale but those of the seeds `short`, which begin with the shortest."""
    return with_runs(
        queries(
            ["mle", "he_gp_ucb"],
            "lengthscale",
            truth=-1,
            x=lambda m, seed, t: 1.0 if m == "mle" and seed < count else 0.2,
            simple=lambda m, seed, t: 1.0 if m == "mle" and seed < count else 0.0,
            u=lambda m, seed, t: 0 if seed in short and t == 1 else 4,
        )
    )


def followed(good):
    """Candidate 0 is true: HE-GP-UCB follows it from the third query on, MLE from the ninth, or the other way round."""
    first, second = either(good, (3, 9), (9, 3))
    start = {"he_gp_ucb": first, "mle": second, "uniform": 20}
    return with_runs(
        queries(start, "period", iterations=range(1, 13), u=lambda m, seed, t: int(t < start[m] + seed % 2))
    )


def fits(good, step=0.001):
    """Fits of one piece and of the whole to five draws of points, `step` apart."""
    rows = [
        {"piece": piece, "seed": seed, "period": (middle if piece == 0 else 1.0) * (1 + step * seed)}
        for piece, middle in ((0, either(good, 0.25, 0.5)), (1, 1.0))
        for seed in range(5)
    ]
    return Evidence("synthetic", {"studies": lambda: {"hegpucb_fits": {"fit": pd.DataFrame(rows)}}})


def drops(good):
    row = {"problem": "mean", "profile": "figure", "dropped": 50, "likeliest": 2, "runs": 50}
    return numbers(drop=[{**row, "true": either(good, 0, 20)}])


def dropped(good, seeds=100, last=3, problem="decomposition"):
    """Runs that drop a wrong candidate at their second query, while it is the likeliest in one of them or in none: up
    to query `last`."""
    return with_runs(
        queries(
            ["he_gp_ucb"], problem, seeds=seeds, iterations=(1, 2, 3), u=1,
            mle=lambda m, seed, t: int(good and seed == 0 and t <= last), rejected=lambda m, seed, t: t == 2,
        )
    )  # fmt: skip


def rejecting(good, candidates=5, profile="figure"):
    """Runs that drop three of four wrong candidates, or one, the true one (0) among what is dropped in no run."""
    last = either(good, 3, 1)
    runs = queries(
        ["he_gp_ucb"], "mean", iterations=range(1, 7), u=lambda m, seed, t: min(t, candidates - 1),
        rejected=lambda m, seed, t: t <= last - (seed % 5 == 0),
    )  # fmt: skip
    listed = pd.DataFrame({"problem": "mean", "profile": profile, "u": range(candidates)})
    return Evidence("synthetic", {"studies": lambda: {"hegpucb_runs": {"run": runs, "candidate": listed}}})


PROBLEMS = ["period", "decomposition"]
APART = ("he_gp_ucb", "a_gp_ucb", "mle")
ELIMINATION = {
    "seeds_order": lambda good: (
        study(good),
        {"problem": "mean", "lower": ["he_gp_ucb"], "than": ["mle"], "measures": ["cumulative", "simple"]},
    ),
    "beats_somewhere": lambda good: (study(good, ("lengthscale", "mean")), {"other": "mle"}),
    "nearly_equal": lambda good: (regrets(either(good, 0.1, 1.0), APART, "lengthscale"), {}),
    "chosen_lengthscales": lambda good: (lengthscales(either(good, 0, 2)), {"until": 10, "mle": 0.5, "ours": 0.4}),
    "stuck": lambda good: (ends(either(good, 10, 0)), {"method": "mle", "long": 0.7}),
    "fewer_wrong": lambda good: (followed(good), {"problem": "period", "than": "mle"}),
    "settles_sooner": lambda good: (followed(good), {"problem": "period", "than": ["mle"]}),
    "recovers_less": lambda good: (
        recovered(
            mle=either(good, 0, 10), uniform=either(good, 9, 0), elsewhere=either(good, None, {"mle": 9, "uniform": 0})
        ),
        {"problems": PROBLEMS},
    ),
    "catch_up": lambda good: (late(either(good, 0.0, 1.0)), {"others": ["mle"]}),
    "fitted_periods": lambda good: (fits(good), {"whole": 1.0, "pieces": [0.25]}),
    "not_additive": lambda good: (
        numbers(fact=[{"place": "mode", "value": 1.0, "mixed": 3.0, "third": either(good, 0.0, 0.1)}]),
        {},
    ),
    "kept": lambda good: (drops(good), {"delta": 0.1}),
    "rejects_most": lambda good: (rejecting(good), {"problem": "mean"}),
    "likeliest_dropped": lambda good: (dropped(good), {}),
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
