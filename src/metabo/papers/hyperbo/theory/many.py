"""Theorem 5 (HyperBO §6.2.1) where Algorithm 1 chooses often, among many inputs.

Its proof takes the inputs for fixed. Each choice favours an input whose estimated mean is too high, and what is
observed there then looks low, at the input chosen and wherever that is correlated with it. The bias adds up over the
iterations, while the bound a grows like √t. The instance is made for this (a reader's, who knew the bias of `adaptive`
at iteration 5): x is correlated with every other input and never chosen itself, since its mean is far below theirs.
As printed, GP-UCB maximises over all inputs, and may query one again; "distinct" is without repeats, as in `adaptive`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import replicate, runs
from metabo.papers.engine.theory.verdicts import probability
from metabo.papers.hyperbo.theory.algorithm import noisy_ucb, predictions, run
from metabo.papers.hyperbo.theory.estimates import mean_factor, variance_slack
from metabo.papers.hyperbo.theory.memory import estimate, model, pretrained

CHECKS = {"theorem5_many": "Theorem 5 under Algorithm 1, many inputs and iterations"}
RUNS = 500
ARMS, FUNCTIONS, ITERATION = 150, 300, 50
"""Inputs that may be chosen, training functions (more than inputs), and t."""
SHARED, NOISE, LOW = 0.1, 1e-4, -20.0
"""Share of each input's variance that x explains, noise variance, and the mean of x (0 elsewhere)."""
ANY, DISTINCT, RANDOM = "any input", "not queried before", "at random"
"""How inputs are chosen."""
DELTAS = (0.2, 0.3, 0.5)
BETA = 4.0
"""With 2, queries repeat more and the bias is smaller (a reader's runs: 0.07 and 0.46 of 500 are outside at δ = 0.2
and 0.5), which decides nothing."""


def theorem5_many(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the probability part at iteration 50, for GP-UCB with and without repeated queries, and for inputs drawn
    without looking."""
    count, keys = runs(RUNS, share), jax.random.split(key, 3)
    title, many = "Theorem 5, many inputs", f"{ARMS} inputs, {ITERATION - 1} observations, N = {FUNCTIONS}"
    return [
        statement(title, f"Algorithm 1 chooses: {many}", "§6.2.1",
                  [_covered(*errors(keys[0], count, ANY)), _covered(*errors(keys[1], count, DISTINCT), ", distinct")]),
        statement(title, f"Drawn without looking at the data: {many}", "§6.2.1",
                  [_covered(*errors(keys[2], count, RANDOM))], "repaired"),
    ]  # fmt: skip


def _covered(bias: Float[np.ndarray, " n"], ratio: Float[np.ndarray, " n"], suffix: str = "") -> StatementPart:
    own: list[Cell] = []
    narrow: list[Cell] = []
    for delta in DELTAS:
        a, b = mean_factor(ITERATION, FUNCTIONS, delta), variance_slack(ITERATION, FUNCTIONS, delta)
        for cells, shrink in ((own, 1.0), (narrow, 400.0)):
            bad = outside(bias, ratio, a / np.sqrt(shrink), b)
            found = probability(int(bad.sum()), len(bad), delta)
            found.numbers.update(bias=float(bias.mean()), a=float(a), ratio=float(ratio.mean()))
            cells.append(cell(found, delta=delta, iteration=ITERATION))
    return part("coverage" + suffix, "P[mean or variance outside its bound] <= δ", "probability", own,
                control("the same with a²/400", narrow))  # fmt: skip


def outside(bias: Float[np.ndarray, " n"], ratio: Float[np.ndarray, " n"], a: float, b: float) -> np.ndarray:
    """Return where Theorem 5's event fails, at iteration ITERATION. `bias`: (μ̂-μ*)/√κ*; `ratio`: κ̂/κ*."""
    scaled = FUNCTIONS * ratio / (FUNCTIONS - ITERATION)
    inside = (scaled > 1 - 2 * np.sqrt(b)) & (scaled < 1 + 2 * np.sqrt(b) + 2 * b)
    return ~((np.abs(bias) < a) & inside)


def errors(key: Key[Array, ""], count: int, rule: str) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Simulate bias and ratio (count,) at x after ITERATION - 1 queries."""
    number, size = ITERATION - 1, ARMS + 1
    mean = jnp.zeros(size).at[0].set(LOW)

    def values(normals: Float[Array, "m ..."]) -> Float[Array, "m ..."]:
        """Return functions of the true GP: x, and a share of it in every other input."""
        rest = jnp.sqrt(SHARED) * normals[:1] + jnp.sqrt(1.0 - SHARED) * normals[1:]
        return jnp.concatenate([normals[:1] + LOW, rest])

    gram = jnp.full((size, size), SHARED).at[0].set(jnp.sqrt(SHARED)).at[:, 0].set(jnp.sqrt(SHARED))
    total = gram.at[jnp.arange(size), jnp.arange(size)].set(1.0) + NOISE * jnp.eye(size)
    truth, ties = model(mean, total, NOISE), jax.random.key(0)

    def compute(d: dict[str, Array]) -> tuple[Array, Array]:
        prior = pretrained(estimate(values(d["training"]) + d["errors"]), 0.5)
        f = values(d["test"])
        if rule == RANDOM:
            index = 1 + jnp.argsort(d["order"])[:number]
            y = f[index] + d["noise"]
        else:
            index, y, *_ = run(prior, truth, noisy_ucb(BETA), f, d["noise"], ties, repeats=rule == ANY)
        used, at = jnp.ones(number, bool), jnp.asarray(0)
        ours, true = (predictions(m, index, y, used, at) for m in (prior, truth))
        return (ours[0] - true[0]) / jnp.sqrt(true[1]), ours[1] / true[1]

    def draw(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
        deviation = np.sqrt(NOISE)
        return {
            "training": rng.standard_normal((n, size, FUNCTIONS)),
            "errors": deviation * rng.standard_normal((n, size, FUNCTIONS)),
            "test": rng.standard_normal((n, size)),
            "noise": deviation * rng.standard_normal((n, number)),
            "order": rng.random((n, ARMS)),
        }

    return replicate(compute, draw, key, count, chunk=50)
