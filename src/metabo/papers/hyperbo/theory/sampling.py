"""Sample moments of Gaussian vectors (HyperBO C.1): Lemma 8, their law; Lemma 10, conditional mean and variance."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy import stats

from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import replicate, runs
from metabo.papers.engine.theory.verdicts import ENOUGH, correlation, distribution, expectation, probability
from metabo.papers.hyperbo.theory.memory import estimate, kernel_matrix

CHECKS = {
    "lemma8": "Lemma 8: law of the sample moments",
    "lemma10": "Lemma 10: conditional mean and variance from sample moments",
}


ENTRIES, VECTORS = 4, 10
"""t and N of the checks of Lemma 8."""
DIRECTION = np.array([1.0, -1.0, 2.0, 1.0])
DEGREES = 9
"""Of the t law of a control."""


def conditional(
    mean: Float[Array, " t"], covariance: Float[Array, "t t"], y: Float[Array, " k"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return mean and variance of the last entry given that the k = t - 1 before it are `y` (Lemma 10's ω and κ)."""
    k = y.shape[0]
    weights = jnp.linalg.solve(covariance[:k, :k], covariance[:k, k])
    return mean[k] + weights @ (y - mean[:k]), covariance[k, k] - weights @ covariance[:k, k]


def mean_factor(t: int, number: int, delta: float) -> float:
    """Return a of Lemma 10, Eq. 29, for t entries, N = `number` vectors and δ1 = `delta`."""
    log = np.log(2.0 / delta)
    return float(np.sqrt((2 * t + 4 * np.sqrt((t - 1) * log) + 4 * log - 4 / number) / ((number - t - 1) * delta)))


def variance_range(t: int, number: int, delta: float, narrow: float = 1.0) -> tuple[float, float]:
    """Return the range (1-2√b, 1+2√b+2b) of Nκ̂/((N-t)κ), b = ln(2/δ2)/(N-t) (Lemma 10, Eq. 30).

    `narrow` divides b (controls).
    """
    b = np.log(2.0 / delta) / (number - t) / narrow
    return float(1 - 2 * np.sqrt(b)), float(1 + 2 * np.sqrt(b) + 2 * b)


def mean_variance(t: int, number: int, q: float) -> float:
    """Return Var[ω̂ | y]/κ = (1 + q - 2/N)/(N - t - 1), q = (y - u)ᵀ V⁻¹ (y - u) (proof of Lemma 10)."""
    return (1.0 + q - 2.0 / number) / (number - t - 1)


def covariance(t: int) -> Float[Array, "t t"]:
    """Return V of the checks: a squared-exponential Gram matrix of unit spacing plus 0.1 I."""
    return kernel_matrix(jnp.arange(float(t))[:, None], 1.0) + 0.1 * jnp.eye(t)


def lemma8(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Lemma 8 for t = 4, N = 10 on observed vectors."""
    got, other = _sample_moments(key, runs(ENOUGH, share))
    v, directions = np.asarray(covariance(ENTRIES)), np.vstack([np.eye(ENTRIES), DIRECTION])
    ratios = {
        name: VECTORS * np.einsum("j,rjk,k->r", a, got["covariance"], a) / (a @ v @ a)
        for name, a in zip(("0", "1", "2", "3", "all"), directions, strict=True)
    }
    shrunk = (VECTORS - 1) / VECTORS * v

    def normal(values: np.ndarray) -> list[Cell]:
        return [cell(distribution(values[:, j], stats.norm()), entry=j) for j in range(ENTRIES)]

    def spreads(degrees: int) -> list[Cell]:
        return [cell(distribution(values, stats.chi2(degrees)), entry=name) for name, values in ratios.items()]

    parts = [
        part("mean", "√N(û_j - u_j)/√V_jj ~ N(0, 1)", "distribution", normal(got["standard"]),
             control("the same with V̂_jj in place of V_jj", normal(got["studentised"]))),
        part("distance", "N(û - u)ᵀ V⁻¹ (û - u) ~ χ² with t degrees of freedom", "distribution",
             [cell(distribution(got["distance"], stats.chi2(ENTRIES)))],
             control("χ² with t-1 degrees of freedom", [cell(distribution(got["distance"], stats.chi2(ENTRIES - 1)))])),
        part("variance", "N aᵀV̂a/aᵀVa ~ χ² with N-1 degrees of freedom, a an axis or (1, -1, 2, 1)", "distribution",
             spreads(VECTORS - 1), control("χ² with N degrees of freedom", spreads(VECTORS))),
        part("expectation", "E[V̂] = (N-1)/N V", "expectation",
             [cell(expectation(got["covariance"][:, j, k], shrunk[j, k]), entry=f"{j},{k}")
              for j in range(ENTRIES) for k in range(j, ENTRIES)],
             control("E[V̂] = V", [cell(expectation(got["covariance"][:, j, j], float(v[j, j])), entry=f"{j},{j}")
                                  for j in range(ENTRIES)])),
        part("independence", "û_i and V̂_jk are uncorrelated", "expectation",
             [_largest_correlation(got["mean"], got["covariance"])],
             control("û_i and YYᵀ/N, not centred, are uncorrelated",
                     [_largest_correlation(got["mean"], got["second"])])),
        part("independence of squares", "N(û - u)ᵀ V⁻¹ (û - u) is uncorrelated with tr(V⁻¹V̂) and with V̂_jk",
             "expectation", _squares(got), control("the same for entries with Student's t law, 9 degrees",
                                                   _squares(other))),
    ]  # fmt: skip
    return [statement("Lemma 8", "û ~ N(u, V/N), V̂ ~ W(V/N, N-1), independent", "C.1", parts)]


def _sample_moments(key: Key[Array, ""], count: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Simulate û and V̂ of N vectors, and functions of them, each (count, ...); beside, with entries of a t law.

    For any symmetric law û is uncorrelated with V̂; the size of û is so only for the normal one.
    """
    u, v = jnp.arange(float(ENTRIES)), covariance(ENTRIES)
    root = jnp.linalg.cholesky(v)

    def compute(entries: Float[Array, "t n"]) -> dict[str, Array]:
        mean, sample = estimate(u[:, None] + root @ entries)
        scaled = jnp.sqrt(VECTORS) * (mean - u)
        whitened = jnp.linalg.solve(root, scaled)
        return {
            "standard": scaled / jnp.sqrt(jnp.diagonal(v)),
            "studentised": scaled / jnp.sqrt(jnp.diagonal(sample)),
            "distance": whitened @ whitened,
            "mean": mean,
            "covariance": sample,
            "second": sample + jnp.outer(mean, mean),
            "trace": jnp.trace(jnp.linalg.solve(v, sample)),
        }

    shape = (ENTRIES, VECTORS)
    unit = np.sqrt((DEGREES - 2.0) / DEGREES)
    got = replicate(compute, lambda rng, n: rng.standard_normal((n, *shape)), key, count)
    again = jax.random.fold_in(key, 1)
    return got, replicate(compute, lambda rng, n: unit * rng.standard_t(DEGREES, (n, *shape)), again, count)


def _squares(got: dict[str, np.ndarray]) -> list[Cell]:
    related = float(np.corrcoef(got["distance"], got["trace"])[0, 1])
    cells = [cell(correlation(related, len(got["trace"])), of="trace")]
    return [*cells, _largest_correlation(got["distance"][:, None], got["covariance"])]


def _largest_correlation(mean: np.ndarray, matrix: np.ndarray) -> Cell:
    """Decide on the largest correlation of an entry of the vectors (r, t) with one of the matrices (r, t, t)."""
    upper = matrix[:, *np.triu_indices(matrix.shape[1])]
    related = np.corrcoef(mean, upper, rowvar=False)[: mean.shape[1], mean.shape[1] :].ravel()
    largest = related[np.argmax(np.abs(related))]  # not a number, if one is not
    return cell(correlation(largest, len(mean)), pairs=len(related))


SETTINGS = ((20, 1), (20, 5), (50, 5), (200, 10))
"""(N, t) of the checks of Lemma 10."""
SCALES = (1.0, 1e-2, 1e-4)
DELTA = 0.2


def lemma10(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Lemma 10: coverage of the statement (aκ) and of the proof (a√κ) at three scales of V, and its moments."""
    tables: dict[str, list[Cell]] = {
        n: []
        for n in (
            "aκ",
            "aκ/10",
            "a√κ",
            "a√κ/10",
            "range",
            "b/16",
            "ω",
            "ω/N",
            "κ",
            "κ/N",
            "variance",
            "spread/N",
            "law of κ̂",
            "χ²",
            "law of ω̂",
            "ω1",
        )
    }
    for place, (number, t) in enumerate(SETTINGS):
        here = jax.random.fold_in(key, place)
        _coverage(jax.random.fold_in(here, 0), number, t, runs(4000, share), tables)
        _moments(jax.random.fold_in(here, 1), number, t, runs(ENOUGH, share), tables)
    return _lemma10_statements(tables)


def _coverage(key: Key[Array, ""], number: int, t: int, count: int, tables: dict[str, list[Cell]]) -> None:
    """Add the cells of Eq. 29 (both forms) and Eq. 30, at every scale, for new vectors y."""
    a = mean_factor(t, number, DELTA)
    got = _draw(key, t, number, SCALES, count)
    for place, scale in enumerate(SCALES):
        setting = {"functions": number, "t": t, "scale": scale}
        error, kappa = got["error"][:, place], got["kappa"][:, place]
        ratio = got["ratio"][:, place] * number / (number - t)
        for name, bound in (("aκ", a * kappa), ("a√κ", a * np.sqrt(kappa))):
            for suffix, part_of in (("", bound), ("/10", 0.1 * bound)):
                bad = int((~(np.abs(error) < part_of)).sum())  # what is not a number is a miss
                tables[name + suffix].append(cell(probability(bad, count, DELTA), **setting))
        for name, narrow in (("range", 1.0), ("b/16", 16.0)):
            low, high = variance_range(t, number, DELTA, narrow)
            bad = int((~((ratio > low) & (ratio < high))).sum())
            tables[name].append(cell(probability(bad, count, DELTA), **setting))


def _moments(key: Key[Array, ""], number: int, t: int, count: int, tables: dict[str, list[Cell]]) -> None:
    """Add the cells of Eq. 28 and of the variance of ω̂, given one vector y."""
    got = {name: values[:, 0] for name, values in _draw(key, t, number, (1.0,), count, fixed=True).items()}
    setting, standard = {"functions": number, "t": t}, got["error"] / np.sqrt(got["kappa"])
    q = float(got["q"][0])
    tables["ω"].append(cell(expectation(standard, 0.0), **setting))
    spread = mean_variance(t, number, q)
    tables["variance"].append(cell(expectation(standard**2, spread), **setting, q=q))
    tables["κ"].append(cell(expectation(got["ratio"], (number - t) / number), **setting))
    square, own = number * got["ratio"], np.sqrt(number) * standard
    tables["law of κ̂"].append(cell(distribution(square, stats.chi2(number - t)), **setting))
    tables["law of ω̂"].append(cell(distribution(own / np.sqrt(1.0 + got["form"]), stats.norm()), **setting))
    if t > 1:  # with t = 1 nothing is conditioned on, and these controls are true
        tables["χ²"].append(cell(distribution(square, stats.chi2(number - 1)), **setting))
        tables["ω1"].append(cell(distribution(own, stats.norm()), **setting))
        tables["ω/N"].append(cell(expectation(standard, -t / number * float(got["shift"][0])), **setting))
        tables["κ/N"].append(cell(expectation(got["ratio"], (number - 1) / number), **setting))
    if number <= 50:  # the two formulas differ by t + 1 in N
        own = spread * (number - t - 1) / number
        tables["spread/N"].append(cell(expectation(standard**2, own), **setting, q=q))


def _draw(
    key: Key[Array, ""], t: int, number: int, scales: tuple[float, ...], count: int, fixed: bool = False
) -> dict[str, np.ndarray]:
    """Simulate ω̂ - ω, κ, κ̂/κ, (ω - u_t)/√κ, q and ȳᵀV̂⁻¹ȳ with ȳ = y - û, each (count, scales).

    `fixed`: the same y in all replicates, one standard deviation from u in every whitened coordinate.
    """
    base, u = jnp.linalg.cholesky(covariance(t)), jnp.sin(jnp.arange(float(t)))

    def compute(normals: Float[Array, "t n"], scale: Float[Array, ""]) -> dict[str, Array]:
        root = jnp.sqrt(scale) * base
        own = jnp.ones(t - 1) if fixed else normals[: t - 1, -1]
        y = u[: t - 1] + root[: t - 1, : t - 1] @ own
        fitted = estimate(u[:, None] + root @ normals[:, :-1])
        (omega, kappa), (ours, spread) = conditional(u, root @ root.T, y), conditional(*fitted, y)
        shift = (omega - u[t - 1]) / jnp.sqrt(kappa)
        apart = y - fitted.mean[: t - 1]
        form = apart @ jnp.linalg.solve(fitted.covariance[: t - 1, : t - 1], apart)
        return {
            "error": ours - omega, "kappa": kappa, "ratio": spread / kappa, "shift": shift, "q": own @ own,
            "form": form,
        }  # fmt: skip

    every = jax.vmap(compute, in_axes=(0, 0))
    shape = (len(scales), t, number + 1)
    values = jnp.array(scales)
    return replicate(lambda z: every(z, values), lambda rng, n: rng.standard_normal((n, *shape)), key, count, chunk=500)


def _lemma10_statements(tables: dict[str, list[Cell]]) -> list[Statement]:
    printed, proved = (
        part("mean", f"P[|ω̂ - ω| >= {bound}] <= δ1", "probability", tables[bound],
             control(f"the same with {bound}/10", tables[f"{bound}/10"]))
        for bound in ("aκ", "a√κ")
    )  # fmt: skip
    other = [
        part("variance range", "P[Nκ̂/((N-t)κ) outside (1-2√b, 1+2√b+2b)] <= δ2", "probability", tables["range"],
             control("the same with b/16", tables["b/16"])),
        part("E[mean]", "E[ω̂ | y] = ω (Eq. 28), in units of √κ", "expectation", tables["ω"],
             control("E[ω̂ | y] = u_t + (N-t)/N (ω - u_t), shrunk as κ̂ is, t > 1", tables["ω/N"])),
        part("E[variance]", "E[κ̂] = (N-t)/N κ (Eq. 28)", "expectation", tables["κ"],
             control("E[κ̂] = (N-1)/N κ, t > 1", tables["κ/N"])),
    ]  # fmt: skip
    spread = part(
        "Var[mean]", "Var[ω̂ | y] = κ(1 + q - 2/N)/(N-t-1)", "expectation", tables["variance"],
        control("κ(1 + q - 2/N)/N, N <= 50", tables["spread/N"]),
    )  # fmt: skip
    laws = [
        part("κ̂", "N κ̂/κ ~ χ² with N-t degrees of freedom", "distribution", tables["law of κ̂"],
             control("χ² with N-1 degrees of freedom, t > 1", tables["χ²"])),
        part("ω̂", "(ω̂ - ω)/√(κ(1 + ȳᵀV̂⁻¹ȳ)/N) ~ N(0, 1), ȳ = y - û", "distribution", tables["law of ω̂"],
             control("the same with κ/N, the variance of ω1 alone, t > 1", tables["ω1"])),
    ]  # fmt: skip
    return [
        statement("Lemma 10", "Conditional moments, |ω̂ - ω| < aκ as stated (I1)", "C.1", [printed, *other]),
        statement(
            "Lemma 10", "Conditional moments, |ω̂ - ω| < a√κ as in the proof", "C.1", [proved, *other], "repaired"
        ),
        statement("Lemma 10, variance", "Variance of ω̂ in the proof", "C.1", [spread], "proof step"),
        statement("Lemma 10, laws", "Laws of κ̂ and ω̂ behind the proof and its Remarks", "C.1", laws, "proof step"),
    ]
