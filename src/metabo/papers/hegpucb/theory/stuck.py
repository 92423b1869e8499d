"""Maximum likelihood on function (a) (HE-GP-UCB §7, appendix J.1): a long length-scale keeps querying the right end."""

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from metabo.methods.elimination.problem import EliminationSettings
from metabo.methods.elimination.simulate import run_all, traced
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import runs
from metabo.papers.engine.theory.verdicts import inequality, probability
from metabo.papers.hegpucb import problems

CHECKS = {"stuck": "Appendix J.1: maximum likelihood that never finds the peak"}
RUNS = 200
POINTS, INITIAL, ITERATIONS, EARLY = 501, 3, 50, 20
"""Protocol of §7(a); outputs without noise, B = 1, R = 0.1."""
LINEAR = 0.8
"""Share of the gap between the peak and the right end that each late iteration costs at least."""


def missed(f: Float[np.ndarray, " c"], visited: np.ndarray) -> Bool[np.ndarray, " n"]:
    """Tell in which runs no query (n, t) is higher than f at the right end: the peak was not found."""
    return (f[visited] <= f[-1] + 1e-9).all(axis=1)


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

        def linear(into: str, values: np.ndarray, name: str = name, **where: str) -> None:
            found = inequality(LINEAR * gap, values)
            numbers = found.numbers | {"average": float(values.mean()), "gap": gap, "runs": len(values)}
            cells[into].append(cell(found._replace(numbers=numbers), case=name, **where))

        def lost(into: str, bad: np.ndarray, method: str, values: np.ndarray, name: str = name) -> None:
            found = probability(int(bad.sum()), count, 0.1)
            numbers = found.numbers | {"average": float(values.mean())}
            cells[into].append(cell(found._replace(numbers=numbers), case=name, method=method))

        linear("linear", late[0][mle], method="MLE, missed")
        linear("not linear", late[1], method="HE-GP-UCB")
        lost("found", own, "HE-GP-UCB", late[1])
        lost("not found", mle, "MLE", late[0])
    return [
        statement("MLE stuck", "Where MLE misses the peak, its regret grows linearly", "App. J.1", [
            part("linear", f"an iteration after {EARLY} costs at least {LINEAR} times the gap, {gap:.3f}", "inequality",
                 cells["linear"], control("also in every run of HE-GP-UCB", cells["not linear"])),
            part("found", "HE-GP-UCB misses the peak in at most a tenth of the runs", "probability",
                 cells["found"], control("so does MLE", cells["not found"]))]),
    ]  # fmt: skip
