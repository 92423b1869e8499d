"""Theorem 5 (HyperBO §6.2.1): pre-trained posterior against true posterior at fixed inputs.

Inputs that Algorithm 1 chooses are in `metabo.papers.hyperbo.theory.adaptive`.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import replicate, runs
from metabo.papers.engine.theory.verdicts import ENOUGH, Ruling, expectation, inequality, probability
from metabo.papers.hyperbo.theory.algorithm import predictions
from metabo.papers.hyperbo.theory.memory import MemoryGP, estimate, kernel_matrix, model, pretrained

CHECKS = {"theorem5_fixed": "Theorem 5 with fixed, distinct inputs"}
POINTS, FUNCTIONS, NOISE = 15, 20, 0.05
ITERATIONS = (1, 3, 5, 8)
DELTAS = (0.05, 0.2)
ORDER = np.array([4, 12, 7, 2, 10, 0, 14])
"""The fixed inputs of iterations 1 to 7; the posterior is compared at input QUERY, beside the first of them."""
QUERY = 5

Values = np.ndarray | float
Where = Mapping[str, str | float]
"""The setting of a cell."""


def mean_factor(t: Values, number: int, delta: float) -> Values:
    """Return a of Theorem 5: |μ̂_{t-1} - μ*_{t-1}|² < a² k*_{t-1}∘σ*², at iteration t with N = `number` functions."""
    log = np.log(4.0 / delta)
    above = 4.0 * (t + 2.0 * np.sqrt((t - 1) * log) + 2.0 * log - 2.0 / number)
    return np.sqrt(above / ((number - t - 1) * delta))


def variance_slack(t: Values, number: int, delta: float) -> Values:
    """Return b = ln(4/δ)/(N-t) of Theorem 5; the variance ratio is in (1-2√b, 1+2√b+2b)."""
    return np.log(4.0 / delta) / (number - t)


def misses(
    bias: np.ndarray, ratio: np.ndarray, t: int, delta: float, shrink: float = 1.0, narrow: float = 1.0
) -> np.ndarray:
    """Return where Theorem 5's event fails; what is not a number fails. `bias`: (μ̂-μ*)/√κ*; `ratio`: κ̂/κ*.

    `shrink` divides a², `narrow` b (controls).
    """
    a, b = mean_factor(t, FUNCTIONS, delta), variance_slack(t, FUNCTIONS, delta) / narrow
    scaled = FUNCTIONS * ratio / (FUNCTIONS - t)
    inside = (scaled > 1 - 2 * np.sqrt(b)) & (scaled < 1 + 2 * np.sqrt(b) + 2 * b)
    return ~((bias**2 < a**2 / shrink) & inside)


class TrueGP:
    """The true GP of the checks on 15 points one lengthscale apart, and Cholesky factors of its covariances.

    `height`: μ*(x) = height sin x.
    """

    def __init__(self, height: float):
        points = jnp.arange(float(POINTS))[:, None]
        gram = kernel_matrix(points, 1.0)
        self.mean = height * jnp.sin(points[:, 0])
        total = gram + NOISE * jnp.eye(POINTS)
        self.truth = model(self.mean, total, NOISE)
        self.root, self.values = jnp.linalg.cholesky(total), jnp.linalg.cholesky(gram)

    def prior(self, normals: Float[Array, "m n"], share: float = 0.5) -> MemoryGP:
        """Return the pre-trained model of functions observed at every input."""
        return pretrained(estimate(self.mean[:, None] + self.root @ normals), share)

    def function(self, normals: Float[Array, " m"]) -> Float[Array, " m"]:
        """Return the test function."""
        return self.mean + self.values @ normals


def draws(rng: np.random.Generator, count: int, queries: int) -> dict[str, np.ndarray]:
    """Draw training functions, test function, noise of the queries, and an order of the inputs."""
    return {
        "training": rng.standard_normal((count, POINTS, FUNCTIONS)),
        "test": rng.standard_normal((count, POINTS)),
        "noise": np.sqrt(NOISE) * rng.standard_normal((count, queries)),
        "order": rng.random((count, POINTS)),
    }


def theorem5_fixed(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check (a) expectations and coverage for fixed distinct inputs, (c) monotonicity, (d) rescaling, (e) a repeat."""
    keys, count = jax.random.split(key, 2), runs(ENOUGH, share)
    got = _fixed(keys[0], count)
    cells: dict[str, list[Cell]] = {}
    for place, t in enumerate(ITERATIONS):
        bias, ratio, where = got["bias"][:, place], got["ratio"][:, place], {"iteration": t}
        tilted = expectation(bias, -t / FUNCTIONS * float(got["moved"][0, place])) if t > 1 else None
        compare(cells, bias, ratio, t, where, tilted, got["given f"][:, place])
        _add(cells, "no factor", expectation(ratio, 1.0), where)
    observations = part(
        "ratio", "with t = the number of observations: E[k̂_{t-1}∘σ̂²] = (N-t)/N k*_{t-1}∘σ*² (§6.3.1)", "expectation",
        cells["off by one"], control("E[κ̂] = κ*, no factor", cells["no factor"]),
    )  # fmt: skip
    shrunk = "E[μ̂_{t-1}(x)] = μ*(x) + (N-t)/N (μ*_{t-1}(x) - μ*(x)), shrunk as the variance is, t > 1"
    return [
        statement("Theorem 5, fixed inputs", "Pre-trained posterior, inputs fixed and distinct", "§6.2.1",
                  parts_of(cells, shrunk), "repaired"),
        statement("Theorem 5, loosening", "The bounds on mean and variance loosen as t grows", "§6.2.1", [_monotone()]),
        statement("Rescaled variance", "N/(N-t) times the variance is unbiased, inputs fixed and distinct", "§6.2.1",
                  [rescaled(cells)], "repaired"),
        statement("N/(N-t) of §6.3.1", "t as the number of observations is off by one (I2)", "§6.3.1", [observations]),
        _repeated(keys[1], count),
    ]  # fmt: skip


def compare(
    cells: dict[str, list[Cell]],
    bias: np.ndarray,
    ratio: np.ndarray,
    t: int,
    where: Where,
    tilted: Ruling | None,
    covered: np.ndarray | None = None,
) -> None:
    """Add the cells of Theorem 5's claims at iteration t, and of their controls.

    `tilted`: the control of the bias, if any; `covered`: the bias whose bound is checked, if it is another one.
    """
    covered = bias if covered is None else covered
    _add(cells, "bias", expectation(bias, 0.0), where)
    if tilted:
        _add(cells, "tilted", tilted, where)
    _add(cells, "ratio", expectation(ratio, (FUNCTIONS - t) / FUNCTIONS), where)
    _add(cells, "off by one", expectation(ratio, (FUNCTIONS - t + 1) / FUNCTIONS), where)
    _add(cells, "rescaled", expectation(ratio * FUNCTIONS / (FUNCTIONS - t), 1.0), where)
    _add(cells, "rescaled off by one", expectation(ratio * FUNCTIONS / (FUNCTIONS - t + 1), 1.0), where)
    for delta in DELTAS:
        own = {**where, "delta": delta}
        _add(cells, "coverage", probability(int(misses(covered, ratio, t, delta).sum()), len(covered), delta), own)
        for constant, shrink, narrow in (("a²/400", 400.0, 1.0), ("b/16", 1.0, 16.0)):
            bad = int(misses(covered, ratio, t, delta, shrink, narrow).sum())
            _add(cells, "narrowed", probability(bad, len(covered), delta), {**own, "constant": constant})


def _add(cells: dict[str, list[Cell]], name: str, ruling: Ruling, where: Where) -> None:
    cells.setdefault(name, []).append(cell(ruling, **where))


def parts_of(cells: dict[str, list[Cell]], tilt: str, suffix: str = "") -> list[StatementPart]:
    """Return the three claims with their controls; `tilt`: what that of the bias claims, `suffix`: of the names."""
    return [
        part("bias" + suffix, "E[μ̂_{t-1}(x)] = μ*_{t-1}(x), in predictive standard deviations", "expectation",
             cells["bias"], control(tilt, cells["tilted"])),
        part("ratio" + suffix, "E[k̂_{t-1}∘σ̂²(x)] = (N-t)/N k*_{t-1}∘σ*²(x)", "expectation", cells["ratio"],
             control("E[κ̂] = (N-t+1)/N κ*", cells["off by one"])),
        part("coverage" + suffix, "P[mean or variance outside its bound] <= δ", "probability", cells["coverage"],
             control("the same with a²/400, or with b/16", cells["narrowed"])),
    ]  # fmt: skip


def rescaled(cells: dict[str, list[Cell]], name: str = "rescaled") -> StatementPart:
    """Return the part on the remedy of §6.2.1, the factor N/(N-t), with its control."""
    return part(name, "E[N/(N-t) k̂_{t-1}∘σ̂²(x)] = k*_{t-1}∘σ*²(x)", "expectation", cells["rescaled"],
                control("the same with N/(N-t+1)", cells["rescaled off by one"]))  # fmt: skip


def _fixed(key: Key[Array, ""], count: int) -> dict[str, np.ndarray]:
    """Simulate bias, variance ratio and μ*_{t-1} - μ* in units of √κ*, (count, iterations), at QUERY for inputs ORDER.

    All replicates have the same observations, one standard deviation from μ* in every whitened coordinate: over random
    ones an error that is odd in y - μ* would cancel. "given f": the bias with observations of a random function, as in
    the theorem, for whose size its bound has two terms.
    """
    setting, number = TrueGP(height=1.0), len(ORDER)
    total = (setting.root @ setting.root.T)[ORDER][:, ORDER]
    y = setting.mean[ORDER] + jnp.linalg.cholesky(total) @ jnp.ones(number)

    def compute(d: dict[str, Array]) -> dict[str, Array]:
        prior, observed = setting.prior(d["training"]), setting.function(d["test"])[ORDER] + d["noise"]

        def moments(t: Array) -> dict[str, Array]:
            used, at = jnp.arange(number) < t - 1, jnp.asarray(QUERY)
            ours = predictions(prior, jnp.asarray(ORDER), y, used, at)
            true = predictions(setting.truth, jnp.asarray(ORDER), y, used, at)
            unit = jnp.sqrt(true[1])
            drawn = [predictions(p, jnp.asarray(ORDER), observed, used, at)[0] for p in (prior, setting.truth)]
            moved, given = true[0] - setting.mean[QUERY], drawn[0] - drawn[1]
            return {"bias": (ours[0] - true[0]) / unit, "ratio": ours[1] / true[1], "moved": moved / unit,
                    "given f": given / unit}  # fmt: skip

        return jax.vmap(moments)(jnp.array(ITERATIONS))

    return replicate(compute, lambda rng, n: draws(rng, n, number), key, count)


def _monotone() -> StatementPart:
    """(c): a² and b increase with t, (N-t)/N decreases."""
    t = np.arange(1, FUNCTIONS - 2)

    def cells(power: int) -> list[Cell]:
        """Compare a t^-power, b t^-power and t^power (N-t)/N at successive t."""
        found = []
        for delta in DELTAS:
            growing = {"a": mean_factor(t, FUNCTIONS, delta), "b": variance_slack(t, FUNCTIONS, delta)}
            for name, values in (growing | {"(N-t)/N": FUNCTIONS / (FUNCTIONS - t)}).items():
                scaled = values / t**power
                found.append(cell(inequality(scaled[:-1], scaled[1:], t=t[:-1]), delta=delta, quantity=name))
        return found

    return part(
        "monotone", "a² and b increase with t, (N-t)/N decreases", "inequality", cells(0),
        control("a/t and b/t increase with t, t (N-t)/N decreases", cells(1)),
    )  # fmt: skip


def _repeated(key: Key[Array, ""], count: int) -> Statement:
    """(e): the ratio at iteration 3 when input 2 repeats input 1, for three splits of k̂∘σ̂² on a domain of two."""
    total = jnp.array([[1.0 + NOISE, 0.6], [0.6, 1.0 + NOISE]])
    root, truth = jnp.linalg.cholesky(total), model(jnp.zeros(2), total, NOISE)
    # not 0: the covariance of a repeated input would be singular
    shares = jnp.array([0.01, 0.5, 0.9])

    def compute(normals: Float[Array, "m n"]) -> Float[Array, " s"]:
        fitted = estimate(root @ normals)

        def ratio(prior: MemoryGP) -> Float[Array, ""]:
            return predictions(prior, jnp.zeros(2, int), jnp.zeros(2), jnp.ones(2, bool), jnp.asarray(1))[1]

        return jax.vmap(lambda share: ratio(pretrained(fitted, share)))(shares) / ratio(truth)

    ratios = replicate(compute, lambda rng, n: rng.standard_normal((n, 2, FUNCTIONS)), key, count)
    cells = [cell(expectation(ratios[:, i], 0.85), noise_share=float(s)) for i, s in enumerate(shares)]
    none = [cell(expectation(ratios[:, i], 0.95), noise_share=float(s)) for i, s in enumerate(shares)]
    repeats = part(
        "ratio", "E[k̂_2∘σ̂²(x)] = (N-3)/N k*_2∘σ*²(x) when x_2 = x_1, σ̂² a share of λ_min", "expectation", cells,
        control("the factor (N-1)/N, that of iteration 1", none),
    )  # fmt: skip
    return statement("Theorem 5, repeated input", "Not covered by the proof (I3)", "§6.2.1", [repeats])
