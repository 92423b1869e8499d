"""The remark after Theorem 3 (MPHD §3.1): maximum likelihood of Gamma and Normal priors from n samples."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Array, Key
from scipy import special, stats

from metabo.methods.hierarchical.hyperprior import fit_gamma, fit_normal
from metabo.papers.engine.theory.estimated import QUANTILE, Estimate, product, rate, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import ALPHA, ENOUGH, Law, identity

CHECKS = {"remark": "Remark after Theorem 3: estimates of Gamma and Normal priors"}
GAMMAS = ((10.0, 30.0), (1.0, 1.0), (15.0, 100.0))
"""(a*, b*)."""
NORMAL = (1.0, 1.0)
"""(c*, d*)."""
SIZES = np.array([20, 50, 100, 200, 500, 1000, 2000])
"""n. The rate is fitted from 100 on, the covariance is that at 2000."""
RATE, COVARIANCE, DISTANCE = (-0.55, -0.45), (0.9, 1.1), 0.05
DISTURBED = 0.3
"""Standard deviation of the errors of ln θ̂ in the control: estimates that do not become exact."""
CHUNK = 2_000_000
"""Samples drawn at a time."""

Fit = Callable[[np.ndarray], tuple[np.ndarray | np.floating, np.ndarray | np.floating]]


class SampledLaw(Law, Protocol):
    """A law that samples can be drawn from."""

    def rvs(self, size: tuple[int, ...], random_state: np.random.Generator) -> np.ndarray:
        """Draw an array of samples."""
        ...


class Family(NamedTuple):
    """A prior family: its name and truth, its law, the package's fit, and the covariance I⁻¹ of √n(α̂ - α*)."""

    name: str
    truth: tuple[float, float]
    law: SampledLaw
    fit: Fit
    covariance: np.ndarray

    @property
    def parameters(self) -> str:
        """The letters of the two hyperparameters."""
        return "cd" if self.name == "normal" else "ab"

    @property
    def separate(self) -> np.ndarray:
        """What the variances were if the other hyperparameter were known (normal: those of the other one)."""
        if self.name == "normal":
            return np.diagonal(self.covariance)[::-1]
        return 1.0 / np.diagonal(np.linalg.inv(self.covariance))


def gamma_information(a: float, b: float) -> np.ndarray:
    """Return Fisher's information of one sample from Γ(a, b): [[ψ'(a), -1/b], [-1/b, a/b²]]."""
    return np.array([[special.polygamma(1, a), -1.0 / b], [-1.0 / b, a / b**2]])


def families() -> list[Family]:
    """Return the families of the check. Normal: I⁻¹ = diag(d², d²/2)."""
    gammas = [
        Family(
            f"Γ({a:g}, {b:g})", (a, b), stats.gamma(a, scale=1.0 / b), fit_gamma, np.linalg.inv(gamma_information(a, b))
        )
        for a, b in GAMMAS
    ]
    c, d = NORMAL
    return [*gammas, Family("normal", NORMAL, stats.norm(c, d), fit_normal, np.diag([d**2, d**2 / 2.0]))]


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


def remark(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check rate, asymptotic covariance and normality of the fits, and that they solve the likelihood equations."""
    rng, count = generator(key), runs(ENOUGH, share)
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
        statement("Remark (1)", "Gamma: (â, b̂) consistent, asymptotically N((a*, b*), I⁻¹/n)", "§3.1",
                  [*gamma, _equations(rng)]),
        statement("Remark (2)", "Normal: (ĉ, d̂) consistent, with similar results", "§3.1", normal),
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
