"""Theorem 17 beyond its coverage (HyperBO C.2): the chain of inequalities of its proof (I14), and long runs of PI."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, replicate, runs
from metabo.papers.engine.theory.verdicts import Ruling, inequality, least_ratio, probability
from metabo.papers.hyperbo.theory import bounds
from metabo.papers.hyperbo.theory.algorithm import run, target_pi
from metabo.papers.hyperbo.theory.bounds import TheoremConstants
from metabo.papers.hyperbo.theory.memory import LawDraws, from_law, law_draws, model, pretrained
from metabo.papers.hyperbo.theory.regret import MARGIN, simulate, simulation

FUNCTIONS, ITERATIONS, DELTA = 10_000, 4, 0.1
NOISES = (0.1, 1.0)
RUNS = 10_000

ARMS, QUERIES, MANY = 120, 100, 1_000_000
"""Long runs: independent arms, T and N."""
SPREADS = (0.01, 0.1, 1.0)
"""Variances k* of the arms there, with σ*² = 1: the noise decides which observation is the best."""
LONG_RUNS = 1000
DELTAS = (0.1, 0.5)
SHRINK = 30.0
"""The control of the long runs divides the bound by this."""


def chain(n: np.ndarray, reach: np.ndarray, ratio: np.ndarray, k: TheoremConstants) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of the proof's chain, f̂* - μ*_{τ-1}(x_τ) and its bound, where Theorem 5 and PI's choice hold.

    Everything in units of λ_τ. `n`: (f̂* - μ*_{τ-1}(x*))/λ + a, PI's numerator over λ (negative: I14); `reach` in
    (-1, 1): the error of μ̂_{τ-1} at x* and at x_τ, as a share of aλ that makes the left end larger; `ratio` in
    (1/s², 1): (λ̂_τ/λ_τ)/(λ̂/λ) over s. PI chooses x_τ, so (f̂* - μ̂(x_τ))/λ̂_τ <= (f̂* - μ̂(x*))/λ̂, here an equality.
    """
    score = n - k.a + reach * k.a  # (f̂* - μ̂(x*))/λ
    return score * k.s * ratio + reach * k.a, k.s * n + k.a


def sign(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the chain as algebra, where it needs a positive numerator, and as often as it says, 1 - δ/3."""
    rng, k = generator(key), bounds.printed(ITERATIONS, FUNCTIONS, DELTA)
    # half of the errors are random, half as large as they may be
    reach = np.concatenate([rng.uniform(-1.0, 1.0, 1000), 1.0 - 1e-6 * rng.random(1000)])
    ratio = rng.uniform(k.s**-2, 1.0, 2000)
    negative, positive = rng.uniform(-1.0, -0.01, 2000), rng.uniform(0.0, 3.0, 2000)
    where = {"functions": FUNCTIONS, "iterations": ITERATIONS, "delta": DELTA}

    def follows(n: np.ndarray, kept: float = 1.0) -> list[Cell]:
        left, right = chain(n, reach, ratio, k)
        return [cell(inequality(left, kept * right, numerator=n, reach=reach, ratio=ratio), **where)]

    claim = "f̂* - μ*_{τ-1}(x_τ) <= (s n + a)λ_τ if Theorem 5 holds and PI chooses x_τ, n = (f̂* - μ*_{τ-1}(x*))/λ + a"
    against = control("at most half of it, n >= 0", follows(positive, 0.5))
    every = part("chain", claim + ", n < 0", "inequality", follows(negative), against)
    only = part("chain", claim + ", n >= 0", "inequality", follows(positive), against)
    often, reversed_signs = _frequencies(key, share, k)
    frequency = part(
        "frequency", "P[f̂* - μ*_{τ-1}(x_τ) >= (s n + a)λ_τ] <= δ/3 on random functions", "probability", often,
        control("the same with -a in place of a", reversed_signs),
    )  # fmt: skip
    return [
        statement("Theorem 17, sign", "The chain follows also if PI's numerator is negative (I14)", "C.2", [every],
                  "proof step"),
        statement("Theorem 17, sign", "The chain follows if PI's numerator is not negative", "C.2", [only], "repaired"),
        statement("Theorem 17, chain", "The chain holds as often as it says (I14)", "C.2", [frequency], "proof step"),
    ]  # fmt: skip


def _frequencies(key: Key[Array, ""], share: float, k: TheoremConstants) -> tuple[list[Cell], list[Cell]]:
    """Count how often the chain's last inequality fails, and that with -a, in runs on random functions.

    Beside them: the share of runs with a negative numerator, and of those that never queried x*. In the others the
    regret of the best queried point is 0 and the chain is not needed.
    """
    cells, reversed_signs = [], []
    compute = simulation("pi", ITERATIONS)
    for place, noise in enumerate(NOISES):
        got = simulate(
            compute, jax.random.fold_in(key, place), runs(RUNS, share), iterations=ITERATIONS, functions=FUNCTIONS,
            noise=noise, beta=0.0,
        )  # fmt: skip
        negative, open_runs = got["gap"] + k.a < 0, ~got["found"]
        numbers = {
            "negative": float(negative.mean()), "unqueried": float(open_runs.mean()),
            "negative_unqueried": float((negative & open_runs).mean()), "least": float((got["gap"] + k.a).min()),
        }  # fmt: skip
        for found, a in ((cells, k.a), (reversed_signs, -k.a)):
            bad = int((~(got["lead"] < k.s * (got["gap"] + a) + a)).sum())
            decided = probability(bad, len(negative), DELTA / 3.0)
            where = {"functions": FUNCTIONS, "noise": noise, "delta": DELTA}
            found.append(cell(Ruling(decided.verdict, decided.numbers | numbers), **where))
    return cells, reversed_signs


def long_runs(key: Key[Array, ""], share: float) -> StatementPart:
    """Check Theorem 17 over 100 queries of independent arms that differ by less than the noise, inputs may repeat.

    Here the proof is weakest (I5, I6, I8, I13), and the bound is not one that one query cannot exceed. ρ_T is
    T/2 ln(1 + k*/σ*²) over sets of 100 of the 120 arms, so that 2cρ_T/(T ln(1 + c/σ*²)) is k*.
    """
    cells, shrunk = [], []
    for place, spread in enumerate(SPREADS):
        got = _long(jax.random.fold_in(key, place), spread, runs(LONG_RUNS, share))
        rho = 0.5 * QUERIES * np.log1p(spread)
        for delta in DELTAS:
            k = bounds.printed(QUERIES, MANY, delta)
            bound = np.asarray(bounds.theorem17(k, spread, rho, QUERIES, 1.0, got["gap"]))
            where = {"arms": ARMS, "functions": MANY, "iterations": QUERIES, "spread": spread, "delta": delta}
            for found, limit in ((cells, bound), (shrunk, bound / SHRINK)):
                bad = int((~(got["regret"] <= limit)).sum())
                found.append(cell(probability(bad, len(limit), delta, least_ratio(limit, got["regret"])), **where))
    return part(
        "long runs", f"P[r_T > bound] <= δ on {ARMS} independent arms, T = {QUERIES}, σ*² = 1, k* = 0.01 to 1",
        "probability", cells, control(f"bound/{SHRINK:.0f}", shrunk),
    )  # fmt: skip


def _long(key: Key[Array, ""], spread: float, count: int) -> dict[str, np.ndarray]:
    """Simulate regret and gap (of η), each (count,), of PI on the arms."""
    ties = jax.random.key(0)
    total = spread + 1.0
    root, truth = jnp.sqrt(total) * jnp.eye(ARMS), model(jnp.zeros(ARMS), total * jnp.eye(ARMS), 1.0)

    def compute(d: tuple[LawDraws, Float[Array, " m"], Float[Array, " t"]]) -> dict[str, Array]:
        law, normals, errors = d
        f = jnp.sqrt(spread) * normals
        prior = pretrained(from_law(jnp.zeros(ARMS), root, float(MANY), law))
        path = run(prior, truth, target_pi(f.max() + MARGIN), f, errors, ties)
        step, best = jnp.argmin(path.variance[jnp.arange(QUERIES), path.index]), jnp.argmax(f)
        gap = (f[best] + MARGIN - path.mean[step, best]) / jnp.sqrt(path.variance[step, best] + 1.0)
        return {"regret": f.max() - f[path.index[jnp.argmax(path.y)]], "gap": gap}

    def draw(rng: np.random.Generator, n: int) -> tuple[LawDraws, np.ndarray, np.ndarray]:
        return law_draws(rng, n, ARMS, MANY), rng.standard_normal((n, ARMS)), rng.standard_normal((n, QUERIES))

    return replicate(compute, draw, key, count, chunk=200)
