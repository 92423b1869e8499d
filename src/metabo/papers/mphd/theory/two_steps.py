"""Theorem 3 (MPHD §3.1): the prior that is learned from estimated lengthscales, as domains and sub-datasets grow."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key

from metabo.papers.engine.theory.estimated import mean, rate, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import probability
from metabo.papers.mphd.theory.families import Family, lengthscale_priors
from metabo.papers.mphd.theory.step1 import lengthscale_fits

CHECKS = {"theorem3": "Theorem 3: consistency of the learned prior"}
SETS = np.array([1, 4, 16, 64])
"""M, sub-datasets of every domain."""
DOMAINS = 2 ** np.arange(4, 12)
"""N, domains: 16 to 2048."""
PATH = ((16, 1), (128, 4), (512, 16), (2048, 64))
"""(N, M) that grow together: M faster than √N, since the bias of step 1 falls like 1/M."""
RUNS, LEAST = 100, 20
"""Super-datasets of 2048 domains; a super-dataset of N domains is a part of one."""
RATE, SHRINKS, LIMIT = (-0.65, -0.35), (-np.inf, -0.5), (-0.05, 0.05)
FALLS = (-np.inf, -0.4)
"""Rate in N along PATH."""
RADIUS, ALLOWED = 3.5, 0.1
"""P(|ln(α̂/α*)| > RADIUS) < ALLOWED at the end of PATH, the radius in asymptotic standard deviations there."""


class Learned(NamedTuple):
    """ln(α̂/α*) for one family, N -> (r, N_max/N groups, sizes of M, 2), and the same from the true lengthscales,
    N -> (r, groups, 2)."""

    family: Family
    estimated: dict[int, np.ndarray]
    oracle: dict[int, np.ndarray]


def ratios(family: Family, samples: np.ndarray, domains: int) -> np.ndarray:
    """Return ln(α̂/α*) (r, N_max/N, 2) of every group of N = `domains` samples (r, N_max), by the package's fit."""
    fitted = family.fit(samples.reshape(len(samples), -1, domains))
    return np.log(np.stack(fitted, axis=-1) / np.array(family.truth))


def learn(family: Family, truth: np.ndarray, found: np.ndarray) -> Learned:
    """Fit the prior to the lengthscales `truth` (r, N_max) and to their estimates (r, N_max, sizes of M)."""
    numbers = [int(n) for n in DOMAINS]
    each = {n: np.stack([ratios(family, values, n) for values in np.moveaxis(found, -1, 0)], axis=2) for n in numbers}
    return Learned(family, each, {n: ratios(family, truth, n) for n in numbers})


def theorem3(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the two steps together as N and M grow, the bias in M, and that N alone does not suffice."""
    rng, replicates = generator(key), max(LEAST, round(RUNS * share))
    learned = [
        learn(family, *lengthscale_fits(rng, family, SETS, int(DOMAINS[-1]), replicates))
        for family in lengthscale_priors()
    ]
    gamma = learned[:1]
    return [
        statement("Theorem 3", "α̂ → α* as N and all M_i → ∞: (a, b) of a Gamma prior, (c, d) of a Normal one", "§3.1",
                  [_path(learned), _end(learned), _bias(gamma[0])]),
        statement("Theorem 3, N alone", "α̂ → α* as N → ∞ with M = 4, Gamma prior", "§3.1",
                  [_rate(gamma, 4, 1), _limit(gamma, 4, 1)], "reading"),
    ]  # fmt: skip


def _place(sets: int) -> int:
    return SETS.tolist().index(sets)


def _squares(own: Learned, steps: tuple[tuple[int, int], ...]) -> np.ndarray:
    """Return the mean square of ln(α̂/α*) over the groups of each replicate, (r, steps, 2), at each step (N, M)."""
    return np.stack([np.mean(own.estimated[n][:, :, _place(m)] ** 2, axis=1) for n, m in steps], axis=1)


def _slopes(learned: list[Learned], steps: tuple[tuple[int, int], ...], allowed: tuple[float, float]) -> list[Cell]:
    """Decide the rate in N of the root mean square, for every hyperparameter."""
    cells, sizes = [], sorted({m for _, m in steps})
    for own in learned:
        squared = _squares(own, steps)
        for i, letter in enumerate(own.family.parameters):
            found = within(rate(squared[..., i], np.array([n for n, _ in steps]), 0.5), *allowed)
            found.numbers["errors"] = np.sqrt(squared[..., i].mean(axis=0))
            cells.append(cell(found, law=own.family.name, parameter=letter, M=sizes if len(sizes) > 1 else sizes[0]))
    return cells


def _path(learned: list[Learned]) -> StatementPart:
    alone = tuple((n, 1) for n, _ in PATH)
    return part("path", f"root mean square of ln(α̂/α*) ∝ N^s, s <= {FALLS[1]}, along (N, M) = "
                + ", ".join(map(str, PATH)), "expectation", _slopes(learned, PATH, FALLS),
                control("the same with M = 1 all along", _slopes(learned, alone, FALLS)))  # fmt: skip


def _end(learned: list[Learned]) -> StatementPart:
    domains, sets = PATH[-1]

    def cells(m: int) -> list[Cell]:
        made = []
        for own in learned:
            error = own.estimated[domains][:, 0, _place(m)]
            unit = own.family.deviations(domains) / np.array(own.family.truth)
            for i, letter in enumerate(own.family.parameters):
                found = probability(int((~(np.abs(error[:, i]) <= RADIUS * unit[i])).sum()), len(error), ALLOWED)
                found.numbers.update({"shift": error[:, i].mean() / unit[i], "error": error[:, i].mean()})
                made.append(cell(found, law=own.family.name, parameter=letter, N=domains, M=m))
        return made

    return part("end", f"P(|ln(α̂/α*)| > r) < {ALLOWED} at (N, M) = {PATH[-1]}, r = {RADIUS} asymptotic standard "
                "deviations", "probability", cells(sets), control("the same with M = 1", cells(1)))  # fmt: skip


def _rate(learned: list[Learned], sets: int, fewer: int) -> StatementPart:
    def cells(m: int) -> list[Cell]:
        return _slopes(learned, tuple((int(n), m) for n in DOMAINS), RATE)

    return part("rate", f"root mean square of ln(α̂/α*) ∝ N^s, s in {list(RATE)}, N = 16 to 2048, M = {sets}",
                "expectation", cells(sets), control(f"the same with M = {fewer}", cells(fewer)))  # fmt: skip


def _limit(learned: list[Learned], sets: int, fewer: int) -> StatementPart:
    domains = int(DOMAINS[-1])

    def cells(m: int) -> list[Cell]:
        made = []
        for own in learned:
            many = own.estimated[domains][:, 0, _place(m)]
            for i, letter in enumerate(own.family.parameters):
                found = within(mean(many[:, i]), *LIMIT)
                found.numbers["value"] = own.family.truth[i] * float(np.exp(many[:, i].mean()))
                made.append(cell(found, law=own.family.name, parameter=letter, M=m, N=domains))
        return made

    return part("limit", f"E ln(α̂/α*) in {list(LIMIT)} at N = {domains}, M = {sets}", "expectation", cells(sets),
                control(f"the same with M = {fewer}", cells(fewer)))  # fmt: skip


def _bias(own: Learned) -> StatementPart:
    """The bias of step 1: ln α̂ less that from the true lengthscales of the same domains, which has the bias of step 2.

    Reported beside it: E α̂ itself, which also has step 2's bias, about 3α/N.
    """
    lost = own.oracle[64][:, :, None] - own.estimated[64]
    in_sets = lost.mean(axis=1)[:, 1:]
    some = [n for n in own.estimated if n >= 64]
    in_domains = np.stack([(own.oracle[n] - own.estimated[n][:, :, 1]).mean(axis=1) for n in some], axis=1)
    falling, staying = [], []
    for i, letter in enumerate(own.family.parameters):
        falls = within(rate(in_sets[..., i], SETS[1:]), *SHRINKS)
        values = own.family.truth[i] * np.exp(own.estimated[64][..., i]).mean(axis=(0, 1))[1:]
        falls.numbers.update({"lost": in_sets[..., i].mean(axis=0), "values": values})
        stays = within(rate(in_domains[..., i], np.array(some)), *SHRINKS)
        stays.numbers["lost"] = in_domains[..., i].mean(axis=0)
        falling.append(cell(falls, parameter=letter, N=64))
        staying.append(cell(stays, parameter=letter, M=4))
    return part("bias", "E[ln α̂(true ℓ) - ln α̂(ℓ̂)] ∝ M^s, s <= -0.5, over M = 4, 16, 64 at N = 64, Gamma prior",
                "expectation", falling, control("the same ∝ N^s over N = 64 to 2048 at M = 4", staying))  # fmt: skip
