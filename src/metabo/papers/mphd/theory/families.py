"""Families of priors of MPHD §3.1, Gamma and Normal: their laws, fits and Fisher information."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy import special, stats

from metabo.methods.hierarchical.hyperprior import fit_gamma, fit_normal
from metabo.papers.engine.theory.verdicts import Law

GAMMAS = ((10.0, 30.0), (1.0, 1.0), (15.0, 100.0))
"""(a*, b*); the first is the prior of the lengthscales in Super-dataset S."""
NORMAL = (1.0, 1.0)
"""(c*, d*)."""
NORMAL_LENGTHSCALE = (0.4, 0.07)
"""(c*, d*) of a Normal prior of lengthscales: both ends of C are more than five standard deviations away."""

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

    def deviations(self, n: int) -> np.ndarray:
        """Return the asymptotic standard deviations (2,) of the estimates from n samples."""
        return np.sqrt(np.diagonal(self.covariance) / n)


def gamma_information(a: float, b: float) -> np.ndarray:
    """Return Fisher's information of one sample from Γ(a, b): [[ψ'(a), -1/b], [-1/b, a/b²]]."""
    return np.array([[special.polygamma(1, a), -1.0 / b], [-1.0 / b, a / b**2]])


def gamma_family(a: float, b: float) -> Family:
    """Return the family of Γ(a, b), shape and rate."""
    law = stats.gamma(a, scale=1.0 / b)
    return Family(f"Γ({a:g}, {b:g})", (a, b), law, fit_gamma, np.linalg.inv(gamma_information(a, b)))


def normal_family(c: float, d: float) -> Family:
    """Return the family of the Normal law with mean c and standard deviation d: I⁻¹ = diag(d², d²/2)."""
    return Family("normal", (c, d), stats.norm(c, d), fit_normal, np.diag([d**2, d**2 / 2.0]))


def families() -> list[Family]:
    """Return the families that exact samples are drawn from."""
    return [*(gamma_family(a, b) for a, b in GAMMAS), normal_family(*NORMAL)]


def lengthscale_priors() -> list[Family]:
    """Return the two priors of lengthscales that are learned from estimated samples."""
    return [gamma_family(*GAMMAS[0]), normal_family(*NORMAL_LENGTHSCALE)]
