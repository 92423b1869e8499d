"""Lemma 1 (MPHD §3.1): the sub-datasets of a domain, shifted apart, as observations of a single function."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import Ruling, identity, inequality
from metabo.papers.mphd.theory.lengthscales import NOISE, POINTS, SPACING, gram, nearest, spaced, squares

CHECKS = {"lemma1": "Lemma 1: sub-datasets as one pseudo sub-dataset"}
SETS = 5
"""M, sub-datasets of the pseudo sub-dataset."""
DATA = 100
"""Data sets drawn in each setting."""
DIMS, SHAPES = (1, 3), ("matern12", "matern32", "matern52")
GAPS = (0.1, 1.0, 5.0, 20.0, 40.0)
"""Q in lengthscales (ℓ = 1)."""
TOLERANCE = 1e-9
"""Per observation: a gap below this is zero, the rest is rounding."""
DIFFERENT = 1e-3
"""A gap above this, in nats, is not rounding."""
ZERO = float(np.log(np.finfo(np.float64).tiny))
"""ln of the least positive normal number: a norm whose logarithm is below it is zero."""


def pseudo(x: np.ndarray, shift: float) -> np.ndarray:
    """Return the inputs of D̄, (..., M l, d): sub-dataset j of x (..., M, l, d) moved by `shift` · j in every dimension.

    The lemma's shift is Q + Q'.
    """
    moved = x + shift * np.arange(x.shape[-3])[:, None, None]
    return moved.reshape(*x.shape[:-3], -1, x.shape[-1])


def reach(dim: int) -> float:
    """Return Q' = sup ‖x' - x‖ + 1 of [0, 1]^d."""
    return float(np.sqrt(dim) + 1.0)


def nll(covariance: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the negative log densities of y (..., n) under N(0, covariance (..., n, n))."""
    quadratic = np.sum(y * np.linalg.solve(covariance, y[..., None])[..., 0], axis=-1)
    return 0.5 * (quadratic + np.linalg.slogdet(covariance)[1] + y.shape[-1] * np.log(2.0 * np.pi))


def covariance(x: np.ndarray, shape: str) -> np.ndarray:
    """Return k(x, x) + σ² I of inputs (..., n, d) with all lengthscales 1."""
    ones = jnp.ones((*x.shape[:-2], x.shape[-1]))
    return np.asarray(gram(jnp.asarray(squares(x)), ones, shape)) + NOISE * np.eye(x.shape[-2])


def draw(rng: np.random.Generator, dim: int, shape: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw data sets: inputs (count, M, l, d), at least SPACING apart within a sub-dataset, outputs (count, M, l)."""
    x = spaced(rng, count * SETS, POINTS, dim).reshape(count, SETS, POINTS, dim)
    roots = np.linalg.cholesky(covariance(x, shape))
    return x, (roots @ rng.standard_normal((count, SETS, POINTS, 1)))[..., 0]


def differences(x: np.ndarray, y: np.ndarray, shape: str, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Return NLL(D̄) and Σ_j NLL(D_j), each (count,), for sub-datasets moved apart by `shift`."""
    together = nll(covariance(pseudo(x, shift), shape), y.reshape(len(y), -1))
    return together, nll(covariance(x, shape), y).sum(axis=-1)


def dependence(x: np.ndarray, shape: str, shift: float) -> np.ndarray:
    """Return ‖L⁻¹ΔL⁻ᵀ‖ (count,), Δ = K(D̄) - LLᵀ, LLᵀ the block-diagonal covariance of x (count, M, l, d).

    The densities of D and D̄ are equal as functions of y if and only if it is 0. Unlike the gap of the likelihoods it
    has no cancellation: Δ consists of the covariances between different sub-datasets, as computed.
    """
    sets, points = x.shape[-3:-1]
    inverse = np.linalg.inv(np.linalg.cholesky(covariance(x, shape)))
    whole = covariance(pseudo(x, shift), shape).reshape(len(x), sets, points, sets, points)
    squared = np.zeros(len(x))
    for j in range(sets):
        for k in range(sets):
            if j != k:
                block = inverse[:, j] @ whole[:, j, :, k] @ inverse[:, k].swapaxes(-2, -1)
                squared += np.sum(block**2, axis=(-2, -1))
    return np.sqrt(squared)


def vanishes(norms: np.ndarray) -> Ruling:
    """Decide that norms (count,) are zero, by their logarithms: the least positive number is not zero."""
    with np.errstate(divide="ignore"):
        logs = np.log(norms)
    found = inequality(logs, ZERO)
    found.numbers.update({"smallest": norms.min(), "largest": norms.max()})
    return found


def lemma1(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the identity as printed, its limit (L1a), the distances of D̄ (L1b), and where D̄ lies.

    The lemma says that some D̄ has the density of D. The proof's has it at no finite Q: a Matérn covariance is positive
    at every distance.
    """
    rng, count = generator(key), runs(DATA, share)
    zero: dict[str, list[Cell]] = {"shifted": [], "not shifted": []}
    gaps: dict[tuple[int, str], np.ndarray] = {}
    for dim in DIMS:
        for shape in SHAPES:
            x, y = draw(rng, dim, shape, count)
            setting = {"dim": dim, "kernel": shape}
            found = []
            for gap in GAPS:
                left, right = differences(x, y, shape, gap + reach(dim))
                found.append(np.sqrt(np.mean((left - right) ** 2)))
                zero["shifted"].append(cell(vanishes(dependence(x, shape, gap + reach(dim))), **setting, Q=gap))
            zero["not shifted"].append(cell(vanishes(dependence(x, shape, 0.0)), **setting))
            gaps[dim, shape] = np.array(found)
    whole = part(
        "identity", "K(D̄) is block-diagonal in the construction of the proof: ‖L⁻¹(K(D̄) - LLᵀ)L⁻ᵀ‖ = 0 with "
        f"LLᵀ = ⊕K(D_j), for Q = {', '.join(f'{q:g}' for q in GAPS)} ℓ",
        "inequality", zero["shifted"], control("the same without any shift", zero["not shifted"]),
    )  # fmt: skip
    return [
        statement("Lemma 1", "Densities of D and D̄ are equal for a finite construction", "§3.1", [whole]),
        statement("Lemma 1, limit", "They become equal as Q → ∞", "§3.1", _limit(gaps), "repaired"),
        statement("Lemma 1, spacing", "D̄ satisfies Eq. 5", "§3.1", _distances(rng, count), "proof step"),
        statement(
            "Lemma 1, domain",
            "D̄ lies in X = [0, 1]^d, where the functions of the lemma live",
            "§3.1",
            [_domain(rng, count)],
            "reading",
        ),
    ]


def _limit(gaps: dict[tuple[int, str], np.ndarray]) -> list[StatementPart]:
    """L1a: the root mean square gap over the data sets falls with Q and vanishes; it does not at Q = 0.1 ℓ."""
    total = SETS * POINTS
    q = np.array(GAPS)

    def falling(power: float, upto: int) -> list[Cell]:
        return [
            cell(inequality((g * np.exp(power * q))[1:upto], (g * np.exp(power * q))[: upto - 1], Q=q[1:upto]), **at)
            for at, g in _settings(gaps)
        ]

    def below(chosen: tuple[float, ...]) -> list[Cell]:
        return [
            cell(inequality(g[GAPS.index(gap)], TOLERANCE * total), **at, Q=gap)
            for at, g in _settings(gaps)
            for gap in chosen
        ]

    def above(gap: float) -> list[Cell]:
        return [cell(inequality(DIFFERENT, g[GAPS.index(gap)]), **at, Q=gap) for at, g in _settings(gaps)]

    return [
        part("falls", "|NLL(D̄) - Σ NLL(D_j)| falls over Q = 0.1, 1, 5, 20 ℓ", "inequality", falling(0.0, 4),
             control("it falls faster than exp(-5Q/ℓ) over Q = 0.1, 1, 5 ℓ", falling(5.0, 3))),
        part("vanishes", "it is below 1e-9 per observation at Q = 20 and 40 ℓ", "inequality", below((20.0, 40.0)),
             control("it is so at Q = ℓ", below((1.0,)))),
        part("finite Q", "it is above 1e-3 at Q = 0.1 ℓ: a limit, no identity", "inequality", above(0.1),
             control("it is above 1e-3 at Q = 20 ℓ", above(20.0))),
    ]  # fmt: skip


def _settings(gaps: dict[tuple[int, str], np.ndarray]) -> list[tuple[dict[str, int | str], np.ndarray]]:
    return [({"dim": dim, "kernel": shape}, found) for (dim, shape), found in gaps.items()]


def _distances(rng: np.random.Generator, count: int) -> list[StatementPart]:
    """L1b: the least distance in D̄ is that within the sub-datasets, hence >= δ; between them it is more than Q."""
    least, between, wide = ([] for _ in range(3))
    plain: dict[str, list[Cell]] = {"least": [], "between": [], "wide": []}
    for dim in DIMS:
        x = spaced(rng, count * SETS, POINTS, dim).reshape(count, SETS, POINTS, dim)
        within = nearest(x).min(axis=-1)
        overlapping = nearest(pseudo(x, 0.0))
        for gap in (1.0, 20.0):
            at = {"dim": dim, "Q": gap}
            shifted, only_q = pseudo(x, gap + reach(dim)), pseudo(x, gap)
            smallest = np.minimum(within, _between(shifted))
            least.append(cell(identity(nearest(shifted), smallest), **at))
            wide.append(cell(inequality(SPACING, nearest(shifted)), **at))
            between.append(cell(inequality(gap, _between(shifted)), **at))
            plain["between"].append(cell(inequality(gap * np.sqrt(dim), _between(only_q)), **at))
        plain["least"].append(cell(identity(overlapping, within), dim=dim))
        plain["wide"].append(cell(inequality(SPACING, overlapping), dim=dim))
    return [
        part("least distance", "the smaller of the least distances within and between the sub-datasets", "identity",
             least, control("that within them, also if they are not shifted", plain["least"])),
        part("δ", "inputs of D̄ are at least δ apart", "inequality", wide,
             control("they are, also if not shifted", plain["wide"])),
        part("Q", "‖x - x'‖ > Q for inputs of different sub-datasets", "inequality", between,
             control("‖x - x'‖ > √d Q when they are shifted by Q instead of Q + Q'", plain["between"])),
    ]  # fmt: skip


def _between(x: np.ndarray) -> np.ndarray:
    """Return the least distance between inputs of different sub-datasets of D̄, (count, M l, d)."""
    squared = squares(x).sum(axis=-1)
    owner = np.arange(x.shape[-2]) // POINTS
    return np.sqrt(np.where(owner[:, None] == owner, np.inf, squared).min(axis=(-2, -1)))


def _domain(rng: np.random.Generator, count: int) -> StatementPart:
    """The inputs of D̄ leave [0, 1]^d, the domain of every function that the lemma speaks of."""
    cells, wider = [], []
    for dim in DIMS:
        x = spaced(rng, count * SETS, POINTS, dim).reshape(count, SETS, POINTS, dim)
        for gap in (0.1, 20.0):
            farthest = pseudo(x, gap + reach(dim)).max(axis=(-2, -1))
            cells.append(cell(inequality(farthest, 1.0), dim=dim, Q=gap))
            wider.append(cell(inequality(farthest, 2.0 + gap), dim=dim, Q=gap))
    return part("inputs", "all inputs of D̄ lie in [0, 1]^d", "inequality", cells,
                control("they lie in [0, 2 + Q]^d", wider))  # fmt: skip
