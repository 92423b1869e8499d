"""The remark after Theorem 3 (MPHD §3.1): maximum likelihood of Gamma and Normal priors from n samples.

The paper speaks of n estimated samples θ̂_i and does not say from how many sub-datasets M; that the remark holds for
samples of θ itself is a fact of the textbooks that it cites.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key
from scipy import special, stats

from metabo.methods.hierarchical.hyperprior import fit_gamma
from metabo.papers.engine.theory.estimated import QUANTILE, Estimate, product, rate, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import ALPHA, ENOUGH, identity
from metabo.papers.mphd.theory.families import Family, families, lengthscale_priors
from metabo.papers.mphd.theory.step1 import lengthscale_fits

CHECKS = {"remark": "Remark after Theorem 3: estimates of Gamma and Normal priors"}
SIZES = np.array([20, 50, 100, 200, 500, 1000, 2000])
"""n. The rate is fitted from 100 on, the covariance is that at 2000."""
RATE, COVARIANCE, DISTANCE = (-0.55, -0.45), (0.9, 1.1), 0.05
DISTURBED = 0.3
"""Standard deviation of the errors of ln θ̂ in the control: estimates that do not become exact."""
CHUNK = 2_000_000
"""Samples drawn at a time."""
SETS = np.array([4, 16, 64])
"""M, sub-datasets from which each sample is estimated."""
RUNS, LEAST = 100, 20
"""Replicates of n = 2000 estimated samples."""
GROUPS = np.array([125, 250, 500, 1000, 2000])
"""n of the control of the repaired remark; each divides 2000."""
AGREES = (-np.inf, -0.9)
"""Rate in M at which the fits from estimated samples come to those from the samples themselves."""


def estimates(rng: np.random.Generator, family: Family, size: int, count: int, disturbed: float = 0.0) -> np.ndarray:
    """Return (â, b̂) or (ĉ, d̂), (count, 2), each from `size` samples; `disturbed`: error of every ln θ (control)."""
    done: list[np.ndarray] = []
    chunk = max(1, min(count, CHUNK // size))
    for begin in range(0, count, chunk):
        samples = family.law.rvs((min(chunk, count - begin), size), random_state=rng)
        if disturbed:
            samples = samples * np.exp(disturbed * rng.standard_normal(samples.shape))
        done.append(np.stack(family.fit(samples), axis=1))
    return np.concatenate(done)


class EstimatedSamples(NamedTuple):
    """n samples of a family (r, n), and their estimates from each number of SETS, (r, n, k)."""

    family: Family
    truth: np.ndarray
    found: np.ndarray

    def fits(self, size: int, place: int | None = None) -> np.ndarray:
        """Return α̂ (r, n/size, 2) of every group of `size` samples: exact, or estimated from SETS[place]."""
        samples = self.truth if place is None else self.found[..., place]
        return np.stack(self.family.fit(samples.reshape(len(samples), -1, size)), axis=-1)

    def moved(self, size: int, place: int) -> np.ndarray:
        """Return |α̂(θ̂) - α̂(θ)| in asymptotic standard deviations, the mean over groups of `size`, (r, 2)."""
        change = np.abs(self.fits(size, place) - self.fits(size))
        return change.mean(axis=1) / self.family.deviations(size)


def remark(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the remark for estimated samples, its repaired form, and that it holds for samples of θ itself."""
    rng = generator(key)
    exact, size = _exact(rng, runs(ENOUGH, share)), int(SIZES[-1])
    drawn = [
        EstimatedSamples(family, *lengthscale_fits(rng, family, SETS, size, max(LEAST, round(RUNS * share))))
        for family in lengthscale_priors()
    ]
    return [
        statement("Remark (1)", "Gamma, n samples estimated from M sub-datasets each, M fixed: (â, b̂) asymptotically "
                  "N((a*, b*), I⁻¹/n)", "§3.1", estimated_parts(drawn[0]), "reading"),
        statement("Remark (2)", "Normal, n samples estimated from M sub-datasets each, M fixed: (ĉ, d̂) with similar "
                  "results", "§3.1", estimated_parts(drawn[1]), "reading"),
        statement("Remark, M² ≫ n", "As M → ∞, fits from estimated samples come to those from θ itself like 1/M",
                  "§3.1", [agreement(drawn)], "repaired"),
        *exact,
    ]  # fmt: skip


def estimated_parts(own: EstimatedSamples) -> list[StatementPart]:
    """Decide covariance and law of α̂ from estimated samples, for each M.

    Controls: the exact samples of the same domains, of which it is known by how much they violate the false variant.
    """
    family, size = own.family, int(SIZES[-1])
    exact = own.fits(size)[:, 0]
    covariance, law = [], []
    for place, m in enumerate(SETS):
        found = own.fits(size, place)[:, 0]
        for cells, made in ((covariance, _variances(family, found, False)), (law, _normality(family, found, False))):
            cells.extend({**c, "setting": {**c["setting"], "M": int(m)}} for c in made)
    wider = family._replace(covariance=4.0 * family.covariance)
    aside = exact + family.deviations(size)
    return [
        part("covariance", f"n Cov/I⁻¹ in {list(COVARIANCE)} at n = {size}, samples estimated from M = 4, 16, 64",
             "expectation", covariance,
             control("the same for exact samples and a covariance four times as large",
                     _variances(wider, exact, False))),
        part("normality", f"Kolmogorov's distance from the asymptotic law is at most {DISTANCE} at n = {size}",
             "expectation", law,
             control("the same for exact samples and the law one standard deviation aside",
                     _normality(family, aside, False))),
    ]  # fmt: skip


def agreement(drawn: list[EstimatedSamples]) -> StatementPart:
    """Decide that √n(α̂(θ̂) - α̂(θ)) vanishes as M grows: then both have one asymptotic law (Slutsky)."""
    size = int(SIZES[-1])
    vanishing, staying = [], []
    for own in drawn:
        in_sets = np.stack([own.moved(size, place) for place in range(len(SETS))], axis=1)
        in_samples = np.stack([own.moved(int(n), 0) for n in GROUPS], axis=1)
        for i, letter in enumerate(own.family.parameters):
            for cells, values, sizes in ((vanishing, in_sets, SETS), (staying, in_samples, GROUPS)):
                found = within(rate(values[..., i], sizes), *AGREES)
                found.numbers["moved"] = values[..., i].mean(axis=0)
                cells.append(cell(found, law=own.family.name, parameter=letter))
    return part("agreement", f"√n E|α̂(θ̂) - α̂(θ)|/sd ∝ M^s, s <= {AGREES[1]}, over M = 4, 16, 64 at n = {size}",
                "expectation", vanishing,
                control("the same ∝ n^s over n = 125 to 2000 at M = 4", staying))  # fmt: skip


def _exact(rng: np.random.Generator, count: int) -> list[Statement]:
    """Check rate, asymptotic covariance and normality of the fits, and that they solve the likelihood equations."""
    cells: dict[str, dict[str, list[Cell]]] = {"gamma": {}, "normal": {}}
    for family in families():
        own = cells["normal" if family.name == "normal" else "gamma"]
        found = np.stack([estimates(rng, family, int(n), count) for n in SIZES], axis=1)
        few = max(100, count // 20)
        false = np.stack([estimates(rng, family, int(n), few, DISTURBED) for n in SIZES], axis=1)
        for name, made in (("rate", found), ("disturbed", false)):
            own.setdefault(name, []).extend(_rates(family, made))
        for known in (False, True):
            own.setdefault("separate" if known else "covariance", []).extend(_variances(family, found[:, -1], known))
            own.setdefault("other law" if known else "law", []).extend(_normality(family, found[:, -1], known))
        own["covariance"] += [_correlation(family, found[:, -1], "covariance")] if family.name != "normal" else []
    gamma, normal = (_parts(cells[name], name) for name in ("gamma", "normal"))
    return [
        statement("Remark (1), exact samples", "Gamma, samples of θ: (â, b̂) consistent, asymptotically "
                  "N((a*, b*), I⁻¹/n)", "§3.1", [*gamma, _equations(rng)], "reading"),
        statement("Remark (2), exact samples", "Normal, samples of θ: (ĉ, d̂) consistent, with similar results", "§3.1",
                  normal, "reading"),
    ]  # fmt: skip


def _parts(cells: dict[str, list[Cell]], name: str) -> list[StatementPart]:
    known = "known" if name == "gamma" else "exchanged"
    return [
        part("rate", f"root mean square error ∝ n^s, s in {list(RATE)}, n = 100 to 2000", "expectation", cells["rate"],
             control("the same from samples with errors of 30 % that do not shrink", cells["disturbed"])),
        part("covariance", f"n Cov/I⁻¹ in {list(COVARIANCE)} at n = 2000", "expectation", cells["covariance"],
             control(f"the variances with the other hyperparameter {known}", cells["separate"])),
        part("normality", f"Kolmogorov's distance from the asymptotic law is at most {DISTANCE} at n = 2000",
             "expectation", cells["law"],
             control(f"from the law with the other hyperparameter {known}", cells["other law"])),
    ]  # fmt: skip


def _rates(family: Family, found: np.ndarray) -> list[Cell]:
    late = SIZES >= 100
    squared = (found[:, late] - np.array(family.truth)) ** 2
    return [
        cell(within(rate(squared[..., i], SIZES[late], 0.5), *RATE), law=family.name, parameter=letter)
        for i, letter in enumerate(family.parameters)
    ]


def _variances(family: Family, found: np.ndarray, separate: bool) -> list[Cell]:
    unit = (family.separate if separate else np.diagonal(family.covariance)) / SIZES[-1]
    return [
        cell(within(product(found[:, i], found[:, i], unit[i]), *COVARIANCE), law=family.name, parameter=letter)
        for i, letter in enumerate(family.parameters)
    ]


def _correlation(family: Family, found: np.ndarray, letter: str) -> Cell:
    ratio = product(found[:, 0], found[:, 1], family.covariance[0, 1] / SIZES[-1])
    return cell(within(ratio, *COVARIANCE), law=family.name, parameter=letter)


def _normality(family: Family, found: np.ndarray, separate: bool) -> list[Cell]:
    """The distance with the interval of Dvoretzky, Kiefer, Wolfowitz and Massart, each side at level ALPHA."""
    unit = np.sqrt((family.separate if separate else np.diagonal(family.covariance)) / SIZES[-1])
    half = np.sqrt(np.log(2.0 / ALPHA) / (2.0 * len(found))) / QUANTILE
    cells = []
    for i, letter in enumerate(family.parameters):
        distance = stats.kstest((found[:, i] - family.truth[i]) / unit[i], stats.norm().cdf).statistic
        decided = within(Estimate(float(distance), half), -np.inf, DISTANCE)
        cells.append(cell(decided, law=family.name, parameter=letter))
    return cells


def _equations(rng: np.random.Generator) -> StatementPart:
    """The package's fit solves log a - ψ(a) = log(mean) - mean(log), b = a/mean; the moments' does not."""
    right, wrong = [], []
    for family in families()[:-1]:
        samples = family.law.rvs((100, 20), random_state=rng)
        average, logs = samples.mean(axis=1), np.log(samples).mean(axis=1)
        shape, rate_ = fit_gamma(samples)
        moments = average**2 / samples.var(axis=1)
        for cells, a in ((right, shape), (wrong, moments)):
            cells.append(cell(identity(np.log(a) - special.digamma(a), np.log(average) - logs), law=family.name))
        right.append(cell(identity(rate_ * average, shape), law=family.name, parameter="b"))
    return part("likelihood equations", "log â - ψ(â) = log(mean) - mean(log) and b̂ = â/mean", "identity", right,
                control("the first for the estimate from mean and variance", wrong))  # fmt: skip
