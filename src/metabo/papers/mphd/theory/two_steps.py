"""Theorem 3 (MPHD §3.1): the prior that is learned from estimated lengthscales, as domains and sub-datasets grow."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from metabo.methods.hierarchical.hyperprior import fit_gamma
from metabo.papers.engine.theory.estimated import mean, rate, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.mphd.theory.lengthscales import (
    NOISE,
    POINTS,
    counts,
    estimate,
    gram,
    grid,
    scatters,
    spaced,
    squares,
    table,
)

CHECKS = {"theorem3": "Theorem 3: consistency of the learned prior"}
TRUTH = (10.0, 30.0)
"""(a*, b*) of the Gamma prior of the lengthscales (Super-dataset S)."""
SETS = np.array([1, 4, 16, 64])
"""M, sub-datasets of every domain."""
DOMAINS = 2 ** np.arange(4, 12)
"""N, domains: 16 to 2048."""
RUNS, LEAST = 100, 20
"""Super-datasets of 2048 domains; a super-dataset of N domains is a part of one."""
DESIGNS = 4
CHUNK = 2048
_gram = jax.jit(gram)
RATE, SHRINKS, LIMIT = (-0.65, -0.35), (-np.inf, -0.5), (-0.05, 0.05)


class Shapes(NamedTuple):
    """ln(â/a*) from estimated lengthscales, (r, N_max/N groups, sizes of M), and from the true ones, (r, groups)."""

    learned: np.ndarray
    oracle: np.ndarray


def lengthscale_fits(rng: np.random.Generator, replicates: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw ℓ (r, N) from the prior and return it with the estimates (r, N, k) from each number of SETS, N = 2048.

    Every domain has one input; the designs are the same in all domains.
    """
    x = spaced(rng, DESIGNS, POINTS, 1)
    known, have, squared = table(x, grid()), counts(SETS, DESIGNS), squares(x)
    truth = rng.gamma(TRUTH[0], 1.0 / TRUTH[1], (replicates, DOMAINS[-1]))
    found = np.empty((truth.size, len(SETS)))
    for begin in range(0, truth.size, CHUNK):
        own = truth.ravel()[begin : begin + CHUNK]
        k = _covariances(squared, own)
        scatter = scatters(rng, np.linalg.cholesky(k), SETS, len(own))
        for place, h in enumerate(have):
            found[begin : begin + CHUNK, place] = estimate(known, scatter[:, place], h, rng)
    return truth, found.reshape(*truth.shape, len(SETS))


def _covariances(squared: np.ndarray, lengthscale: np.ndarray) -> np.ndarray:
    """Return K of each domain's designs, (n, D, l, l)."""
    each = jnp.broadcast_to(jnp.asarray(squared), (len(lengthscale), *squared.shape))
    own = jnp.broadcast_to(jnp.asarray(lengthscale)[:, None, None], (*each.shape[:2], 1))
    return np.asarray(_gram(each, own)) + NOISE * np.eye(POINTS)


def shapes(truth: np.ndarray, found: np.ndarray, domains: int) -> Shapes:
    """Fit the Gamma prior to every group of `domains` domains, by the package."""

    def logs(values: np.ndarray) -> np.ndarray:
        groups = values.reshape(len(values), -1, domains)
        return np.log(fit_gamma(groups)[0] / TRUTH[0])

    return Shapes(np.stack([logs(found[..., k]) for k in range(len(SETS))], axis=-1), logs(truth))


def theorem3(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the two steps together: bias in M, rate in N with M = 64, and that N alone does not suffice."""
    replicates = max(LEAST, round(RUNS * share))
    truth, found = lengthscale_fits(generator(key), replicates)
    learned = {int(n): shapes(truth, found, int(n)) for n in DOMAINS}
    return [
        statement("Theorem 3", "α̂ → α* as N and all M_i → ∞, Gamma prior", "§3.1",
                  [_rate(learned, 64, 4), _limit(learned, 64, 4), _bias(learned)]),
        statement("Theorem 3, N alone", "α̂ → α* as N → ∞ with M = 4", "§3.1",
                  [_rate(learned, 4, 1), _limit(learned, 4, 1)], "reading"),
    ]  # fmt: skip


def _rate(learned: dict[int, Shapes], sets: int, fewer: int) -> StatementPart:
    def cells(m: int) -> list[Cell]:
        place = SETS.tolist().index(m)
        squared = np.stack([np.mean(s.learned[..., place] ** 2, axis=1) for s in learned.values()], axis=1)
        found = within(rate(squared, DOMAINS, 0.5), *RATE)
        found.numbers["errors"] = np.sqrt(squared.mean(axis=0))
        return [cell(found, M=m)]

    return part("rate", f"root mean square of ln(â/a*) ∝ N^s, s in {list(RATE)}, N = 16 to 2048, M = {sets}",
                "expectation", cells(sets), control(f"the same with M = {fewer}", cells(fewer)))  # fmt: skip


def _limit(learned: dict[int, Shapes], sets: int, fewer: int) -> StatementPart:
    def cells(m: int) -> list[Cell]:
        place = SETS.tolist().index(m)
        many = learned[int(DOMAINS[-1])].learned[:, 0, place]
        found = within(mean(many), *LIMIT)
        found.numbers["shape"] = TRUTH[0] * float(np.exp(many.mean()))
        return [cell(found, M=m, N=int(DOMAINS[-1]))]

    return part("limit", f"E ln(â/a*) in {list(LIMIT)} at N = 2048, M = {sets}", "expectation", cells(sets),
                control(f"the same with M = {fewer}", cells(fewer)))  # fmt: skip


def _bias(learned: dict[int, Shapes]) -> StatementPart:
    """The bias of step 1: ln â less that from the true lengthscales of the same domains, which has the bias of step 2.

    Reported beside it: E â itself, which also has step 2's bias, about 3a/N.
    """
    own = learned[64]
    lost = own.oracle[..., None] - own.learned
    in_sets = lost.mean(axis=1)[:, 1:]
    falls = within(rate(in_sets, SETS[1:]), *SHRINKS)
    falls.numbers.update({"lost": in_sets.mean(axis=0), "shapes": TRUTH[0] * np.exp(own.learned).mean(axis=(0, 1))[1:]})
    some = [n for n in learned if n >= 64]
    in_domains = np.stack([(learned[n].oracle - learned[n].learned[..., 1]).mean(axis=1) for n in some], axis=1)
    stays = within(rate(in_domains, np.array(some)), *SHRINKS)
    stays.numbers["lost"] = in_domains.mean(axis=0)
    return part("bias", "E[ln â(true ℓ) - ln â(ℓ̂)] ∝ M^s, s <= -0.5, over M = 4, 16, 64 at N = 64", "expectation",
                [cell(falls, N=64)],
                control("the same ∝ N^s over N = 64 to 2048 at M = 4", [cell(stays, M=4)]))  # fmt: skip
