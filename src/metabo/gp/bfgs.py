"""Fits of GPs with few parameters: BFGS with a dense matrix that starts from the average information.

For a GP with a zero or constant mean and a stationary kernel (or a product of them) on the inputs, one factorisation
gives the likelihood, its gradient in closed form, and the average information: the mean of observed and expected
information of variance parameters, which needs no product of n x n matrices (Gilmour, Thompson and Cullis 1995,
Biometrics 51). As a first Hessian it makes unit steps good ones; BFGS with Powell's damping (Powell 1978; Nocedal and
Wright 2006, §18.3) improves on it.

It serves fits that a prior keeps in bounds. By maximum likelihood alone, a noise or a lengthscale may run to where
softplus is flat; a search with steps this long gets there sooner than L-BFGS, and later fits that start there stay.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PyTree

from metabo.gp.features import Identity
from metabo.gp.fit import Log
from metabo.gp.kernels import (
    KINKED,
    RADIAL,
    Product,
    Stationary,
    exact_squared_distances,
    squared_distances,
)
from metabo.gp.linalg import gram_lower, invert_lower, masked_covariance
from metabo.gp.means import Constant, Zero
from metabo.gp.model import GP
from metabo.tasks.rows import Rows

DAMPING = 1e-2
"""Share of its diagonal that is added to the first Hessian: with few observations the information may be singular."""
FLOOR = 1e-8
"""Share of the largest curvature (of 1, if that is smaller) that is added to all: some coordinates may have none."""
LONGEST = 2.0
"""The most by which a step changes an unconstrained coordinate: softplus and logarithms are not near linear further."""
DECREASE = 1e-4
"""The share of the predicted decrease that a step must reach (Armijo)."""
SHORTER, SHORTEST = 0.35, 1e-4
"""The factor that shortens a failed step, and the share of the first try below which the search ends."""
STALL = 1e-9
"""A step that lowers the loss by no more than this share of it (of 1, for smaller losses) is the last."""


class Expansion(NamedTuple):
    """A loss of p coordinates: its value, its gradient (p,), and a positive semi-definite stand-in for its Hessian."""

    value: Float[Array, ""]
    gradient: Float[Array, " p"]
    curvature: Float[Array, "p p"]


class Search(NamedTuple):
    """The best coordinates so far, their loss and gradient, the estimate of the Hessian, and the next step to try:
    `share` of `direction`. `taken`: number of steps that lowered the loss; `losses` (steps,): the loss before each."""

    at: Float[Array, " p"]
    value: Float[Array, ""]
    gradient: Float[Array, " p"]
    hessian: Float[Array, "p p"]
    direction: Float[Array, " p"]
    share: Float[Array, ""]
    taken: Int[Array, ""]
    losses: Float[Array, " steps"]
    done: Bool[Array, ""]


class _Factor(NamedTuple):
    """One stationary factor: its lengthscales (p,), and ∂K/∂r² (n, n), which is zero where rows are masked."""

    scale: Float[Array, " p"]
    slope: Float[Array, "n n"]


def supported(gp: GP) -> bool:
    """Tell whether `nll_information` is defined for a GP of this kind."""
    return (
        isinstance(gp.features, Identity)
        and isinstance(gp.mean, Zero | Constant)
        and isinstance(gp.kernel, Stationary | Product)
    )


def constrained(gp: GP) -> Float[Array, " p"]:
    """Return the parameters of a GP in the order of its leaves: constant mean (if it has one), lengthscales (row by row
    for a product), signal variance, noise variance."""
    assert isinstance(gp.kernel, Stationary | Product), "`supported` says which GPs"
    mean = [gp.mean.value[None]] if isinstance(gp.mean, Constant) else []
    return jnp.concatenate([*mean, gp.kernel.lengthscale.reshape(-1), gp.kernel.variance[None], gp.noise[None]])


def _factors(
    kernel: Stationary | Product, x: Float[Array, "n d"], valid: Bool[Array, "n n"]
) -> tuple[Float[Array, "n n"], list[_Factor], Callable[[Float[Array, "n n"]], Float[Array, " d"]]]:
    """Return K / s_v, the factors, and a function of a symmetric M that gives Σ_ab M_ab (x_aj - x_bj)² for every
    input j."""
    if isinstance(kernel, Product):
        apart = (x.T[:, :, None] - x.T[:, None, :]) ** 2
        shapes, scales = kernel.shapes, list(kernel.lengthscale)
        squared = [jnp.tensordot(scale**-2.0, apart, axes=1) for scale in scales]

        def of_differences(weights):
            return jnp.tensordot(apart, weights, axes=[[1, 2], [0, 1]])

        weighted = of_differences
    else:
        shapes, scales = (kernel.shape,), [kernel.lengthscale]
        distances = exact_squared_distances if kernel.shape in KINKED else squared_distances
        scaled = x / kernel.lengthscale
        squared = [distances(scaled, scaled)]

        def of_products(weights):
            return 2.0 * (weights.sum(axis=1) @ x**2 - jnp.sum(x * (weights @ x), axis=0))

        weighted = of_products

    values, slopes = zip(
        *(
            jax.jvp(RADIAL[shape], (distance,), (jnp.ones_like(distance),))
            for shape, distance in zip(shapes, squared, strict=True)
        ),
        strict=True,
    )
    unit = jnp.where(valid, jnp.prod(jnp.stack(values), axis=0), 0.0)
    factors = []
    for i, (scale, slope) in enumerate(zip(scales, slopes, strict=True)):
        others = [value for j, value in enumerate(values) if j != i]
        product = kernel.variance * slope
        for value in others:
            product = product * value
        factors.append(_Factor(scale, jnp.where(valid, product, 0.0)))
    return unit, factors, weighted


def nll_information(gp: GP, data: Rows) -> Expansion:
    """Return -log p(y) of the valid rows (hyperbo Eq. 14), its gradient and the average information.

    Both are with respect to the constrained parameters, in the order of `constrained`. With α = Σ⁻¹(y - μ) and
    D_i = ∂Σ/∂θ_i, the gradient is ½⟨Σ⁻¹ - ααᵀ, D_i⟩ and the information is ½ αᵀD_i Σ⁻¹ D_j α. For a constant mean they
    are -1ᵀα and 1ᵀΣ⁻¹1; the information between it and the others is 0. The derivative of the jitter by the signal
    variance, at most 1e-10, is left out. Cost O(n³ + n² p).
    """
    assert isinstance(gp.kernel, Stationary | Product), "`supported` says which GPs"
    x, y, mask = map(jnp.asarray, data)
    x = jnp.where(mask[:, None], x, 0.0)
    unit, factors, weighted = _factors(gp.kernel, x, mask[:, None] & mask[None, :])
    covariance = masked_covariance(gp.kernel.variance * unit, gp.noise, mask)
    lower = jnp.linalg.cholesky(covariance, symmetrize_input=False)
    inverse_lower = invert_lower(lower)
    precision = gram_lower(inverse_lower)
    residual = jnp.where(mask, y - gp.mean(x), 0.0)
    white = inverse_lower @ residual
    alpha = inverse_lower.T @ white
    value = 0.5 * white @ white + jnp.sum(jnp.log(jnp.diagonal(lower))) + 0.5 * mask.sum() * jnp.log(2.0 * jnp.pi)

    outer = precision - alpha[:, None] * alpha
    slopes = [-(factor.scale**-3.0) * weighted(outer * factor.slope) for factor in factors]
    of_variance = 0.5 * jnp.sum(outer * unit)
    of_noise = 0.5 * jnp.sum(jnp.where(mask, jnp.diagonal(outer), 0.0))
    gradient = jnp.concatenate([*slopes, of_variance[None], of_noise[None]])

    squares = x**2
    columns = []  # D_i α
    for factor in factors:
        parts = (alpha[:, None], alpha[:, None] * squares, alpha[:, None] * x)
        far, near, cross = (factor.slope @ part for part in parts)
        columns.append(-2.0 * factor.scale**-3.0 * (squares * far + near - 2.0 * x * cross))
    columns += [(unit @ alpha)[:, None], jnp.where(mask, alpha, 0.0)[:, None]]
    whitened = inverse_lower @ jnp.concatenate(columns, axis=1)
    information = 0.5 * whitened.T @ whitened
    if isinstance(gp.mean, Constant):
        ones = mask.astype(y.dtype)
        own = inverse_lower @ ones
        gradient = jnp.concatenate([-jnp.sum(ones * alpha)[None], gradient])
        information = jnp.pad(information, [(1, 0), (1, 0)]).at[0, 0].set(own @ own)
    return Expansion(value, gradient, information)


def fit(
    made: Callable[[PyTree], GP],
    penalty: Callable[[PyTree], Float[Array, ""]],
    begin: PyTree,
    data: Rows,
    *,
    steps: int,
    tolerance: float = 1e-3,
) -> tuple[PyTree, Log]:
    """Minimise -log p(y) + `penalty` over the coordinates `begin`.

    `made` gives the GP of some coordinates: each parameter in the order of `constrained` is a function of one
    coordinate, in the same order, and `penalty` is a sum of functions of one coordinate each. At most `steps` steps
    lower the loss. The search ends before that when the norm of the gradient is at most `tolerance`, when a step lowers
    the loss by no more than `STALL` of it, or when no step along the direction lowers it. A loss that is not finite is
    never accepted; if the first one is not, `begin` is returned and `Log.stopped` is 0.
    """
    start, unravel = ravel_pytree(begin)

    def parameters(at):
        return constrained(made(unravel(at)))

    def charge(at):
        return penalty(unravel(at))

    # Each function acts on one coordinate at a time, so the gradient of the sum holds all derivatives.
    slope_of = jax.grad(lambda at: jnp.sum(parameters(at)))
    charge_slope = jax.grad(charge)
    charge_curvature = jax.grad(lambda at: jnp.sum(charge_slope(at)))

    def local(at):
        found, slope = nll_information(made(unravel(at)), data), slope_of(at)
        curvature = slope[:, None] * found.curvature * slope + jnp.diag(jnp.maximum(charge_curvature(at), 0.0))
        return Expansion(found.value + charge(at), slope * found.gradient + charge_slope(at), curvature)

    def toward(hessian, gradient):
        direction = -jnp.linalg.solve(hessian, gradient)
        return direction * jnp.minimum(1.0, LONGEST / jnp.max(jnp.abs(direction)))

    def step(state):
        at = state.at + state.share * state.direction
        value, gradient, _ = local(at)
        expected = DECREASE * state.share * (state.gradient @ state.direction)
        better = jnp.isfinite(value) & jnp.isfinite(gradient).all() & (value <= state.value + expected)
        hessian = _updated(state.hessian, at - state.at, gradient - state.gradient)
        little = state.value - value <= STALL * jnp.maximum(1.0, jnp.abs(value))
        ended = jnp.where(better, little | _flat(gradient), state.share < SHORTEST)
        losses = jnp.where(jnp.arange(steps) > state.taken, value, state.losses)
        direction, whole = toward(hessian, gradient), jnp.ones(())
        new = Search(at, value, gradient, hessian, direction, whole, state.taken + 1, losses, ended)
        kept = state._replace(share=SHORTER * state.share, done=ended)
        return jax.tree.map(lambda a, b: jnp.where(better, a, b), new, kept)

    def _flat(gradient):
        return jnp.linalg.norm(gradient) <= tolerance

    first = local(start)
    diagonal = jnp.diagonal(first.curvature)
    hessian = first.curvature + jnp.diag(DAMPING * diagonal + FLOOR * jnp.maximum(jnp.max(diagonal), 1.0))
    finite = jnp.isfinite(first.value) & jnp.isfinite(first.gradient).all()
    begun = Search(
        start, *first[:2], hessian, toward(hessian, first.gradient), jnp.ones(()), jnp.asarray(0),
        jnp.full(steps, first.value), ~finite | _flat(first.gradient),
    )  # fmt: skip
    ended = jax.lax.while_loop(lambda state: (state.taken < steps) & ~state.done, step, begun)
    return unravel(ended.at), Log(ended.losses, jnp.where(finite, -1, 0))


def _updated(
    hessian: Float[Array, "p p"], moved: Float[Array, " p"], change: Float[Array, " p"]
) -> Float[Array, "p p"]:
    """Return the BFGS update for a step `moved` and the `change` of the gradient, damped so that it stays positive."""
    product = hessian @ moved
    own, curved = moved @ product, moved @ change
    share = jnp.where(curved >= 0.2 * own, 1.0, 0.8 * own / (own - curved))
    damped = share * change + (1.0 - share) * product
    return hessian - jnp.outer(product, product) / own + jnp.outer(damped, damped) / (moved @ damped)
