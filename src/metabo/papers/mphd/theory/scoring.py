"""Fisher scoring for several lengthscales (MPHD Eq. 3 in the setting of §3.1), from the scatter matrices; Matérn 5/2.

In NumPy: many small matrices at once, of which ever fewer are left as the fits converge.
"""

from typing import NamedTuple

import numpy as np

from metabo.papers.mphd.theory.lengthscales import HIGH, LOW, NOISE, POINTS, TIE, grid, losses, squares, table

COARSE = 7
"""Nodes per lengthscale of the grid on which every fit starts from the best one."""
STEPS, TOLERANCE = 200, 1e-6
"""A fit ends when no ln ℓ would move by TOLERANCE, after STEPS steps at the latest."""
DAMPING = 1e-3


class Local(NamedTuple):
    """NLL (n,) of n data sets without its constant, its gradient (n, p) and Fisher information (n, p, p) in ln ℓ."""

    value: np.ndarray
    gradient: np.ndarray
    information: np.ndarray


def matern52(r2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the unit-variance kernel of squared distances and its derivative in them."""
    r = np.sqrt(5.0 * r2)
    decay = np.exp(-r)
    return (1.0 + r + r**2 / 3.0) * decay, -5.0 / 6.0 * (1.0 + r) * decay


def local(logs: np.ndarray, squared: np.ndarray, scatter: np.ndarray, have: np.ndarray) -> Local:
    """Return the likelihoods of n data sets around `logs` (n, p), in closed form.

    `squared` (D, l, l, p): `squares` of the designs; `scatter` (n, D, l, l); `have` (D,): sub-datasets of each design.
    """
    scaled = squared * np.exp(-2.0 * logs)[:, None, None, None, :]
    value, slope = matern52(scaled.sum(axis=-1))
    covariance = value + NOISE * np.eye(value.shape[-1])
    inverse = np.linalg.inv(covariance)
    turned = inverse[:, None] @ np.moveaxis(-2.0 * slope[..., None] * scaled, -1, 1)  # K⁻¹ ∂K, (n, p, D, l, l)
    pull = np.sum(turned * (inverse @ scatter).swapaxes(-2, -1)[:, None], axis=(2, 3, 4))
    weighted = (turned * have[:, None, None]).reshape(*turned.shape[:2], -1)
    other = turned.swapaxes(-2, -1).reshape(weighted.shape)
    return Local(
        0.5 * (np.sum(inverse * scatter, axis=(1, 2, 3)) + np.linalg.slogdet(covariance)[1] @ have),
        0.5 * (np.trace(turned, axis1=-2, axis2=-1) @ have - pull),
        0.5 * (weighted @ other.swapaxes(-2, -1)),
    )


def information(x: np.ndarray, lengthscale: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Return the Fisher information (p, p) of ℓ itself in `have` (D,) sub-datasets with the designs x (D, l, p).

    ½ Σ_d M_d tr[K_d⁻¹ ∂K_d K_d⁻¹ ∂K_d] (I_1 of the sheet is that of one sub-dataset).
    """
    squared = squares(x)
    found = local(np.log(lengthscale)[None], squared, np.zeros((1, *squared.shape[:-1])), have)
    return found.information[0] / np.outer(lengthscale, lengthscale)


def fit(starts: np.ndarray, squared: np.ndarray, scatter: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Minimise the NLL of n data sets over C by damped scoring, from `starts` (n, p): return ln ℓ̂ (n, p).

    A step that does not lower the NLL is taken back and damped more; what is pushed out of C stays on its edge.
    """
    low, high = np.log(LOW), np.log(HIGH)
    result, active = starts.copy(), np.arange(len(starts))
    at, here, damping = starts, local(starts, squared, scatter, have), np.full(len(starts), DAMPING)
    for _ in range(STEPS):
        free = ~(((at <= low) & (here.gradient > 0)) | ((at >= high) & (here.gradient < 0)))
        new = np.clip(at - _step(here, free, damping), low, high)
        there = local(new, squared, scatter[active], have)
        better = there.value <= here.value
        proposed = np.abs(new - at).max(axis=1)
        at = np.where(better[:, None], new, at)
        kept = [better.reshape(-1, *[1] * (b.ndim - 1)) for b in here]
        here = Local(*map(np.where, kept, there, here))
        damping = np.maximum(np.where(better, damping / 8.0, damping * 8.0), 1e-6)
        result[active] = at
        left = proposed > TOLERANCE
        active, at, damping, here = active[left], at[left], damping[left], Local(*(a[left] for a in here))
        if not len(active):
            break
    return result


def _step(here: Local, free: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Return the damped scoring steps (n, p) in the free lengthscales, 0 in the others."""
    identity = np.eye(free.shape[1])
    matrix = here.information * (1.0 + damping[:, None, None] * identity) + 1e-12 * identity
    matrix = np.where(free[:, :, None] & free[:, None, :], matrix, identity)
    return np.linalg.solve(matrix, np.where(free, here.gradient, 0.0)[..., None])[..., 0]


def estimate(x: np.ndarray, scatter: np.ndarray, have: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the lengthscales ℓ̂ (n, p) of maximum likelihood in C of n data sets with the designs x (D, l, p).

    `scatter` (n, D, l, l), `have` (D,): sub-datasets of each design. Where the likelihood is flat, ℓ̂ is a random
    node of the grid that the fits start from.
    """
    coarse = table(x, grid(COARSE, x.shape[-1]))
    values = losses(coarse, scatter, have)
    best = np.argmin(values + TIE * POINTS * have.sum() * rng.random(values.shape), axis=1)
    return np.exp(fit(np.log(coarse.nodes)[best], squares(x), scatter, have))
