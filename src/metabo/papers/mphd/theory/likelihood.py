"""Eq. 3 (MPHD §2.3), the log likelihood of a sub-dataset, as printed and corrected, against SciPy's density."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key
from scipy import optimize, stats

from metabo.gp.linalg import JITTER
from metabo.methods.hierarchical.hyperprior import Parameters, to_gp
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import identity

CHECKS = {"equation3": "Eq. 3: log likelihood of a sub-dataset"}
CASES, MOST, DIM = 100, 12, 3
"""Random cases; the most rows of one; input dimensions."""
KERNEL = "matern52"


class Cases(NamedTuple):
    """Random sub-datasets, padded to MOST rows: x (n, MOST, DIM), y, mask (n, MOST), and their parameters."""

    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray
    theta: Parameters


class DensityTerms(NamedTuple):
    """Of one density: yᵀK⁻¹y and ln|K|, y less its mean, and the number of rows."""

    quadratic: float
    logdet: float
    rows: int

    @property
    def printed(self) -> float:
        """Eq. 3 as printed: -(yᵀK⁻¹y + ½ ln|K| + L/2 ln 2π)."""
        return -(self.quadratic + 0.5 * self.logdet + 0.5 * self.rows * np.log(2.0 * np.pi))

    @property
    def corrected(self) -> float:
        """Eq. 3 with ½ on the quadratic form."""
        return self.printed + 0.5 * self.quadratic


def cases(rng: np.random.Generator) -> Cases:
    """Draw cases with 2 to MOST rows; the outputs are of the order of the prior."""
    rows = rng.integers(2, MOST + 1, CASES)
    theta = Parameters(
        rng.standard_normal(CASES), 0.1 + rng.gamma(2.0, 0.5, (CASES, DIM)), rng.gamma(2.0, 0.5, CASES) + 0.1,
        10.0 ** rng.uniform(-4.0, -1.0, CASES),
    )  # fmt: skip
    y = theta.constant[:, None] + np.sqrt(theta.variance)[:, None] * rng.standard_normal((CASES, MOST))
    return Cases(rng.random((CASES, MOST, DIM)), y, np.arange(MOST) < rows[:, None], theta)


def of_package(drawn: Cases) -> np.ndarray:
    """Return the package's log likelihoods (n,)."""

    def one(
        x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"], theta: Parameters
    ) -> Float[Array, ""]:
        return to_gp(theta, KERNEL).log_prob(x, y, mask)

    return np.asarray(jax.jit(jax.vmap(one))(*map(jnp.asarray, drawn[:3]), jax.tree.map(jnp.asarray, drawn.theta)))


def shuffled(rng: np.random.Generator, drawn: Cases, inputs_only: bool = False) -> Cases:
    """Return the cases with the rows of each in another order; `inputs_only`: the outputs stay where they were."""
    x, y = drawn.x.copy(), drawn.y.copy()
    for own_x, own_y, mask in zip(x, y, drawn.mask, strict=True):
        order = rng.permutation(mask.sum())
        own_x[mask] = own_x[mask][order]
        if not inputs_only:
            own_y[mask] = own_y[mask][order]
    return drawn._replace(x=x, y=y)


def covariances(drawn: Cases, noise: float = 1.0) -> list[np.ndarray]:
    """Return k(X, X) + noise · σ² I + 1e-6 I of every case, by the textbook formula of Matérn 5/2."""
    found = []
    for x, mask, lengthscale, variance, own in zip(drawn.x, drawn.mask, *drawn.theta[1:], strict=True):
        scaled = x[mask] / lengthscale
        r = np.sqrt(5.0) * np.linalg.norm(scaled[:, None] - scaled, axis=-1)
        k = variance * (1.0 + r + r**2 / 3.0) * np.exp(-r)
        found.append(k + (noise * own + JITTER) * np.eye(mask.sum()))
    return found


def terms(drawn: Cases, noise: float = 1.0) -> list[DensityTerms]:
    """Return the terms of Eq. 3 of every case; `noise`: share of σ² in K."""
    found = []
    for y, mask, constant, k in zip(drawn.y, drawn.mask, drawn.theta.constant, covariances(drawn, noise), strict=True):
        residual = y[mask] - constant
        found.append(
            DensityTerms(float(residual @ np.linalg.solve(k, residual)), float(np.linalg.slogdet(k)[1]), len(k))
        )
    return found


def densities(drawn: Cases) -> np.ndarray:
    """Return SciPy's log densities (n,) of y under N(μ, K), K with noise."""
    return np.array(
        [
            stats.multivariate_normal(np.full(mask.sum(), constant), k).logpdf(y[mask])
            for y, mask, constant, k in zip(drawn.y, drawn.mask, drawn.theta.constant, covariances(drawn), strict=True)
        ]
    )


def best_scale(own: DensityTerms, quadratic: float) -> float:
    """Return the c that maximises -(`quadratic` · yᵀ(cK)⁻¹y + ½ ln|cK|): a root of its derivative in ln c."""
    return float(
        np.exp(optimize.brentq(lambda s: quadratic * own.quadratic * np.exp(-s) - own.rows / 2.0, -30.0, 30.0))
    )


def equation3(key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check Eq. 3 as printed and corrected, the size of the difference, what it does to the estimates, and that the
    likelihood knows no order of the evaluations (§5)."""
    rng = generator(key)
    drawn = cases(rng)
    mixed, torn = shuffled(rng, drawn), shuffled(rng, drawn, inputs_only=True)
    exact, found, bare = densities(drawn), terms(drawn), terms(drawn, 0.0)
    printed, half = (np.array([getattr(t, name) for t in found]) for name in ("printed", "corrected"))
    without = np.array([t.corrected for t in bare])
    quadratic, logdet = (np.array([getattr(t, name) for t in found]) for name in ("quadratic", "logdet"))
    scales = np.array([[best_scale(t, 1.0), best_scale(t, 0.5)] for t in found])

    def same(left: np.ndarray, right: np.ndarray) -> list[Cell]:
        return [cell(identity(left, right))]

    return [
        statement("Eq. 3", "log p(D | θ) without ½ on the quadratic form", "§2.3", [
            part("density", "-(yᵀK⁻¹y + ½ ln|K| + L/2 ln 2π) = log N(y; 0, K)", "identity", same(printed, exact),
                 control("the same without ½ on ln|K| too", same(printed - 0.5 * logdet, exact)))]),
        statement("Eq. 3", "with ½, and the noise in K: the package's likelihood", "§2.3", [
            part("package", "log_prob = log N(y; μ, K)", "identity", same(of_package(drawn), exact),
                 control("Eq. 3 as printed is", same(printed, exact))),
            part("formula", "-(½ yᵀK⁻¹y + ½ ln|K| + L/2 ln 2π) = log N(y; μ, K)", "identity", same(half, exact),
                 control("the same less ½ ln 2π", same(half - 0.5 * np.log(2.0 * np.pi), exact)))], "repaired"),
        statement("Eq. 3, difference", "What the missing ½ changes", "§2.3", [
            part("value", "log N(y; 0, K) less Eq. 3 as printed = ½ yᵀK⁻¹y", "identity",
                 same(exact - printed, 0.5 * quadratic), control("= yᵀK⁻¹y", same(exact - printed, quadratic))),
            part("scale", "the c that maximises Eq. 3 as printed at cK is twice that of maximum likelihood", "identity",
                 same(scales[:, 0], 2.0 * scales[:, 1]), control("they are the same", same(*scales.T)))], "ours"),
        statement("Eq. 3, K", "K = k(X, X) without the noise that θ includes", "§2.3", [
            part("density", "log N(y; 0, k(X, X)) = log p(D | θ)", "identity", same(without, exact),
                 control("with 2σ² in K", same(np.array([t.corrected for t in terms(drawn, 2.0)]), exact)))]),
        statement("Order of evaluations", "Step 1 reads the evaluations in any order, hence no BO trajectories", "§5", [
            part("rows", "log_prob of a sub-dataset with its rows in another order is the same", "identity",
                 same(of_package(mixed), of_package(drawn)),
                 control("so it is if only the inputs change places", same(of_package(torn), of_package(drawn))))]),
    ]  # fmt: skip
