"""Theorem 5 (HyperBO §6.2.1) under Algorithm 1, which chooses the inputs by what it has seen."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from metabo.bo.acquisition import Acquisition
from metabo.papers.engine.theory.records import Cell, Statement, statement
from metabo.papers.engine.theory.replicates import replicate, runs
from metabo.papers.engine.theory.verdicts import ENOUGH, expectation
from metabo.papers.hyperbo.theory.algorithm import noisy_ucb, predictions, run, target_pi
from metabo.papers.hyperbo.theory.estimates import POINTS, TrueGP, compare, draws, parts_of, rescaled

CHECKS = {"theorem5_adaptive": "Theorem 5 under Algorithm 1"}
ITERATION = 5
BETA = 2.0
TILT = 0.05
"""Bias, in predictive standard deviations, that the control claims: no formula for a nearby one is at hand."""

Rule = Callable[[Array], Acquisition]
"""The acquisition of a test function f; PI's target needs max f."""
RULES: dict[str, Rule] = {
    "GP-UCB": lambda _f: noisy_ucb(BETA),
    "PI": lambda f: target_pi(f.max() + 0.1),
    "greedy mean": lambda _f: noisy_ucb(0.0),
}


def theorem5_adaptive(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check (b): Theorem 5 and its remedy, N/(N-t), at iteration 5 of Algorithm 1, for three rules.

    As printed: the rules maximise over all inputs, and x is any input, here a random one. The parts "distinct" show
    what choosing alone does, without repeated inputs, which the proof does not cover (e): no input is queried twice,
    and x has not been queried. Beside them, random queries.
    """
    count, setting = runs(ENOUGH, share), TrueGP(height=0.0)
    printed: dict[str, list[Cell]] = {}
    distinct: dict[str, list[Cell]] = {}
    random: dict[str, list[Cell]] = {}
    cases: list[tuple[str, Rule | None, bool, dict[str, list[Cell]]]] = [
        *((name, rule, False, distinct) for name, rule in RULES.items()),
        ("random", None, False, random),
        *((name, rule, True, printed) for name, rule in RULES.items()),
    ]
    for place, (name, rule, repeats, cells) in enumerate(cases):
        bias, ratio = _adaptive(jax.random.fold_in(key, place), setting, rule, repeats, count)
        compare(cells, bias, ratio, ITERATION, {"rule": name, "iteration": ITERATION}, expectation(bias, TILT))
    tilt = f"E[μ̂_{{t-1}}(x)] = μ*_{{t-1}}(x) + {TILT} predictive standard deviations"
    mean, ratio, coverage = parts_of(printed, tilt)
    own_mean, own_ratio, own_coverage = parts_of(distinct, tilt, ", distinct")
    chosen, drawn = "Algorithm 1 chooses the inputs", "inputs drawn without looking at the data"
    remedy = "N/(N-t) times the variance is unbiased, "
    return [
        statement("Theorem 5, expectations", f"{chosen} (I3)", "§6.2.1", [mean, ratio, own_mean, own_ratio]),
        statement("Theorem 5, probability", chosen, "§6.2.1", [coverage, own_coverage]),
        statement("Rescaled variance", f"{remedy}{chosen} (I3)", "§6.2.1",
                  [rescaled(printed), rescaled(distinct, "rescaled, distinct")]),
        statement("Theorem 5, random inputs", drawn.capitalize(), "§6.2.1", parts_of(random, tilt), "repaired"),
        statement("Rescaled variance, random inputs", remedy + drawn, "§6.2.1", [rescaled(random)], "repaired"),
    ]  # fmt: skip


def _adaptive(
    key: Key[Array, ""], setting: TrueGP, rule: Rule | None, repeats: bool, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate bias and ratio (count,) after the queries of ITERATION - 1 iterations; `rule` None: random queries.

    `repeats`: an input may be queried twice and x is any input, else x is one that was not queried.
    """
    ties, number = jax.random.key(0), ITERATION - 1

    def compute(d: dict[str, Array]) -> tuple[Array, Array]:
        prior, f = setting.prior(d["training"]), setting.function(d["test"])
        order = jnp.argsort(d["order"])
        if rule is None:
            index = order[:number]
            y = f[index] + d["noise"]
        else:
            index, y, *_ = run(prior, setting.truth, rule(f), f, d["noise"], ties, repeats)
        queried = jnp.zeros(POINTS, bool) if repeats else jnp.zeros(POINTS, bool).at[index].set(True)
        at = order[jnp.argmin(queried[order])]  # the first input in the random order, or the first not queried
        ours, true = (predictions(m, index, y, jnp.ones(number, bool), at) for m in (prior, setting.truth))
        return (ours[0] - true[0]) / jnp.sqrt(true[1]), ours[1] / true[1]

    return replicate(compute, lambda rng, n: draws(rng, n, number), key, count)
