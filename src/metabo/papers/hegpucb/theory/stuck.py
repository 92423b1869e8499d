"""Maximum likelihood on function (a) (HE-GP-UCB §7, appendix J.1): a long length-scale keeps querying the right end.

Runs are chosen by what they saw until iteration EARLY, and judged by what they lose after it: a run that is chosen by
all of its queries has the regret of the right end at each of them, whatever the method.
"""

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from metabo.methods.elimination.problem import EliminationSettings
from metabo.methods.elimination.simulate import run_all, traced
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import runs
from metabo.papers.engine.theory.verdicts import Ruling, probability
from metabo.papers.hegpucb import problems

CHECKS = {"stuck": "Appendix J.1: maximum likelihood that never finds the peak"}
RUNS = 200
POINTS, INITIAL, ITERATIONS, EARLY = 501, 3, 50, 20
"""Protocol of §7(a); outputs without noise, B = 1, R = 0.1."""
LINEAR = 0.8
"""Share of the gap between the peak and the right end that late iterations cost at least, on average over a run."""
ESCAPE = 0.1
"""Share of the runs that may find the peak later than EARLY."""


def missed(f: Float[np.ndarray, " c"], visited: np.ndarray) -> Bool[np.ndarray, " n"]:
    """Tell in which runs no query (n, t) is higher than f at the right end: the peak was not found."""
    return (f[visited] <= f[-1] + 1e-9).all(axis=1)


def missed_early(f: Float[np.ndarray, " c"], visited: np.ndarray) -> Bool[np.ndarray, " n"]:
    """Tell the same of the initial points and the first EARLY queries; `visited` (n, INITIAL + t) has all of them."""
    return missed(f, visited[:, : INITIAL + EARLY])


def escaped(late: Float[np.ndarray, " n"], gap: float) -> Ruling:
    """Decide P(an iteration after EARLY costs less than LINEAR times the gap, on average over the run) <= ESCAPE."""
    found = probability(int((late < LINEAR * gap).sum()), len(late), ESCAPE)
    return Ruling(found.verdict, found.numbers | {"average": float(late.mean()), "gap": gap})


def slopes(regret: Float[np.ndarray, "n t"]) -> Float[np.ndarray, " n"]:
    """Return the average regret of an iteration after EARLY."""
    return regret[:, EARLY:].mean(axis=1)


def stuck(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check that regret grows linearly in the runs of MLE that miss the peak, and how many HE-GP-UCB and MLE miss.

    The paper does not say whether the deviations in UCB are those of f or of an observation (with the noise): both.
    """
    count, problem = runs(RUNS, share), problems.make("lengthscale", (POINTS,), INITIAL, 0.0)
    keys, f = jax.random.split(key, count), np.asarray(problem.f)
    gap = float(f.max() - f[-1])
    cells: dict[str, list[Cell]] = {name: [] for name in ("linear", "not linear", "found", "not found")}
    for predictive, name in ((False, "deviations of f"), (True, "deviations with the noise")):
        settings = traced(EliminationSettings(ITERATIONS, xi="corrected", predictive=predictive))
        trace = run_all(problem, ("mle", "he_gp_ucb"), settings, keys)
        late = [slopes(regret) for regret in np.asarray(trace.regret)]
        visited = np.concatenate([np.asarray(trace.initial), np.asarray(trace.point)], axis=2)
        mle, own = missed(f, visited[0]), missed(f, visited[1])
        early = missed_early(f, visited[0])

        def lost(into: str, bad: np.ndarray, method: str, values: np.ndarray, name: str = name) -> None:
            found = probability(int(bad.sum()), count, 0.1)
            numbers = found.numbers | {"average": float(values.mean())}
            cells[into].append(cell(found._replace(numbers=numbers), case=name, method=method))

        cells["linear"].append(cell(escaped(late[0][early], gap), case=name, method="MLE, missed"))
        cells["not linear"].append(cell(escaped(late[0][~early], gap), case=name, method="MLE, found"))
        lost("found", own, "HE-GP-UCB", late[1])
        lost("not found", mle, "MLE", late[0])
    return [
        statement("MLE stuck", "Where MLE misses the peak, its regret grows linearly", "App. J.1", [
            part("linear", f"P[iterations after {EARLY} cost less than {LINEAR} times the gap, {gap:.3f}, on average "
                 f"| no peak by {EARLY}] <= {ESCAPE}", "probability", cells["linear"],
                 control(f"the same where the peak was found by {EARLY}", cells["not linear"])),
            part("found", "HE-GP-UCB misses the peak in at most a tenth of the runs", "probability",
                 cells["found"], control("so does MLE", cells["not found"]))]),
    ]  # fmt: skip
