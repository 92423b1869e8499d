"""Theorem 5 (HyperBO §6.2.1): pre-trained posterior against true posterior, inputs fixed or chosen by Algorithm 1."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.bo.acquisition import Acquisition
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import replicate, runs
from metabo.papers.engine.theory.verdicts import ENOUGH, Ruling, expectation, inequality, probability
from metabo.papers.hyperbo.theory.algorithm import noisy_ucb, predictions, run, target_pi
from metabo.papers.hyperbo.theory.memory import MemoryGP, estimate, kernel_matrix, model, pretrained

CHECKS = {
    "theorem5_fixed": "Theorem 5 with fixed, distinct inputs",
    "theorem5_adaptive": "Theorem 5 under Algorithm 1",
}
POINTS, FUNCTIONS, NOISE = 15, 20, 0.05
ITERATIONS = (1, 3, 5, 8)
DELTAS = (0.05, 0.2)
BETA = 2.0
TILT = -0.05
"""Bias, in predictive standard deviations, that the control claims where no formula for a nearby one is at hand."""
ORDER = np.array([2, 12, 7, 4, 10, 0, 14])
"""The fixed inputs of iterations 1 to 7; the posterior is compared at input QUERY."""
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
        # E[μ̂] = (N-t)/N μ*, in the same units
        tilted = expectation(bias + t / FUNCTIONS * got["level"][:, place], 0.0)
        _compare(cells, bias, ratio, t, where, tilted)
        _add(cells, "no factor", expectation(ratio, 1.0), where)
        _add(cells, "rescaled", expectation(ratio * FUNCTIONS / (FUNCTIONS - t), 1.0), where)
    observations = part(
        "ratio", "with t = the number of observations: E[k̂_{t-1}∘σ̂²] = (N-t)/N k*_{t-1}∘σ*² (§6.3.1)", "expectation",
        cells["off by one"], control("E[κ̂] = κ*, no factor", cells["no factor"]),
    )  # fmt: skip
    rescaled = part("rescaled", "E[N/(N-t) k̂_{t-1}∘σ̂²] = k*_{t-1}∘σ*²", "expectation", cells["rescaled"],
                    control("N/(N-t+1)", cells["off by one"]))  # fmt: skip
    return [
        statement("Theorem 5, fixed inputs", "Pre-trained posterior, inputs fixed and distinct", "§6.2.1",
                  [*_parts(cells, "E[μ̂_{t-1}(x)] = (N-t)/N μ*_{t-1}(x), shrunk as the variance is"), _monotone()],
                  "repaired"),
        statement("Rescaled variance", "N/(N-t) times the variance is unbiased, fixed inputs", "§6.2.1", [rescaled]),
        statement("N/(N-t) of §6.3.1", "t as the number of observations is off by one (I2)", "§6.3.1", [observations]),
        _repeated(keys[1], count),
    ]  # fmt: skip


def _compare(
    cells: dict[str, list[Cell]], bias: np.ndarray, ratio: np.ndarray, t: int, where: Where, tilted: Ruling
) -> None:
    """Add the cells of Theorem 5's three claims at iteration t, and of their controls; `tilted`: that of the bias."""
    _add(cells, "bias", expectation(bias, 0.0), where)
    _add(cells, "tilted", tilted, where)
    _add(cells, "ratio", expectation(ratio, (FUNCTIONS - t) / FUNCTIONS), where)
    _add(cells, "off by one", expectation(ratio, (FUNCTIONS - t + 1) / FUNCTIONS), where)
    for delta in DELTAS:
        own = {**where, "delta": delta}
        _add(cells, "coverage", probability(int(misses(bias, ratio, t, delta).sum()), len(bias), delta), own)
        for constant, shrink, narrow in (("a²/400", 400.0, 1.0), ("b/16", 1.0, 16.0)):
            bad = int(misses(bias, ratio, t, delta, shrink, narrow).sum())
            _add(cells, "narrowed", probability(bad, len(bias), delta), {**own, "constant": constant})


def _add(cells: dict[str, list[Cell]], name: str, ruling: Ruling, where: Where) -> None:
    cells.setdefault(name, []).append(cell(ruling, **where))


def _parts(cells: dict[str, list[Cell]], tilt: str) -> list[StatementPart]:
    """Return the three claims with their controls; `tilt`: what that of the bias claims."""
    return [
        part("bias", "E[μ̂_{t-1}(x)] = μ*_{t-1}(x), in predictive standard deviations", "expectation", cells["bias"],
             control(tilt, cells["tilted"])),
        part("ratio", "E[k̂_{t-1}∘σ̂²(x)] = (N-t)/N k*_{t-1}∘σ*²(x)", "expectation", cells["ratio"],
             control("E[κ̂] = (N-t+1)/N κ*", cells["off by one"])),
        part("coverage", "P[mean or variance outside its bound] <= δ", "probability", cells["coverage"],
             control("the same with a²/400, or with b/16", cells["narrowed"])),
    ]  # fmt: skip


def _fixed(key: Key[Array, ""], count: int) -> dict[str, np.ndarray]:
    """Simulate bias, variance ratio and true mean in units of √κ*, (count, iterations), at QUERY for inputs ORDER."""
    setting, number = TrueGP(height=1.0), len(ORDER)

    def compute(d: dict[str, Array]) -> dict[str, Array]:
        prior, f = setting.prior(d["training"]), setting.function(d["test"])
        y = f[ORDER] + d["noise"]

        def compare(t: Array) -> dict[str, Array]:
            used, at = jnp.arange(number) < t - 1, jnp.asarray(QUERY)
            ours = predictions(prior, jnp.asarray(ORDER), y, used, at)
            true = predictions(setting.truth, jnp.asarray(ORDER), y, used, at)
            unit = jnp.sqrt(true[1])
            return {"bias": (ours[0] - true[0]) / unit, "ratio": ours[1] / true[1], "level": true[0] / unit}

        return jax.vmap(compare)(jnp.array(ITERATIONS))

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


def theorem5_adaptive(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check (b): Theorem 5 at iteration 5 of Algorithm 1, at a random input not queried yet, for four rules."""
    count, t = runs(ENOUGH, share), 5
    setting = TrueGP(height=0.0)
    rules: dict[str, Callable[[Array], Acquisition] | None] = {
        "GP-UCB": lambda _f: noisy_ucb(BETA),
        "PI": lambda f: target_pi(f.max() + 0.1),
        "greedy mean": lambda _f: noisy_ucb(0.0),
        "random": None,
    }
    cells: dict[str, dict[str, list[Cell]]] = {}
    for place, (rule, acquisition) in enumerate(rules.items()):
        bias, ratio = _adaptive(jax.random.fold_in(key, place), setting, acquisition, t, count)
        own = cells.setdefault("chosen" if acquisition else "random", {})
        _compare(own, bias, ratio, t, {"rule": rule, "iteration": t}, expectation(bias, TILT))
    tilt = f"E[μ̂_{{t-1}}(x)] = μ*_{{t-1}}(x) - {-TILT} predictive standard deviations"
    random = statement(
        "Theorem 5, random inputs",
        "Inputs drawn without looking at the data",
        "§6.2.1",
        _parts(cells["random"], tilt),
        "repaired",
    )
    mean, ratio, coverage = _parts(cells["chosen"], tilt)
    return [
        statement("Theorem 5, expectations", "Algorithm 1 chooses the inputs (I3)", "§6.2.1", [mean, ratio]),
        statement("Theorem 5, probability", "Algorithm 1 chooses the inputs", "§6.2.1", [coverage]),
        random,
    ]


def _adaptive(
    key: Key[Array, ""], setting: TrueGP, acquisition: Callable[[Array], Acquisition] | None, t: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate bias and ratio (count,) after t-1 distinct queries; `acquisition` None: random queries."""
    ties = jax.random.key(0)

    def compute(d: dict[str, Array]) -> tuple[Array, Array]:
        prior, f = setting.prior(d["training"]), setting.function(d["test"])
        order = jnp.argsort(d["order"])
        if acquisition is None:
            index = order[: t - 1]
            y = f[index] + d["noise"]
        else:
            index, y, *_ = run(prior, setting.truth, acquisition(f), f, d["noise"], ties, repeats=False)
        queried = jnp.zeros(POINTS, bool).at[index].set(True)
        at = order[jnp.argmin(queried[order])]  # the first input in the random order that was not queried
        used = jnp.ones(t - 1, bool)
        ours, true = (predictions(m, index, y, used, at) for m in (prior, setting.truth))
        return (ours[0] - true[0]) / jnp.sqrt(true[1]), ours[1] / true[1]

    return replicate(compute, lambda rng, n: draws(rng, n, t - 1), key, count)
