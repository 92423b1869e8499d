"""BO with a hierarchical GP: its parameters are fitted to the test task under their prior (MPHD §2.4, Algorithm 1).

L-BFGS minimises -log p(D | θ) - log p(θ) (Eq. 6) after every observation from number `fit_from` on, starting from the
previous θ̂ (the authors fit for the first time after the five initial points). The first fit starts where Step 1 does.

A Gamma density with shape below 1 grows without limit as a length-scale goes to 0, and with shape 1 nothing pushes
back. One observation does not determine the length-scale: a fit to it ends at 0, where softplus has no gradient to come
back. Hence the first fit is at five observations, and a fit that ends with a length-scale below `COLLAPSED` is
discarded in favour of the last θ̂. `coordinates: log` is another reading of Eq. 6: it maximises the density of log θ,
whose Jacobian θ makes it bounded for every shape.

Of an input with few values, such as a category in one-hot code, a length-scale of 0 says only that its values share
nothing, and a fit that says so is worth keeping. `short: bounded` (ours) keeps it: no length-scale gets below
`COLLAPSED`, and only a fit to which all observations are independent is discarded. Each fit has two starts, the last θ̂
and that of the run, and of what is not discarded keeps that with the lower loss: a length-scale at its bound, or a
noise variance at the floor of softplus, has no gradient to come back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from metabo.bo.acquisition import make
from metabo.bo.refit import Refit
from metabo.bo.settings import RefitSettings
from metabo.gp.constraints import inverse_positive
from metabo.gp.fit import lbfgs
from metabo.gp.model import GP
from metabo.methods.hierarchical.hyperprior import Hyperprior, Support, map_loss, of_gp
from metabo.methods.hierarchical.train import Hierarchical
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows

COLLAPSED = 1e-2
"""In units of the unit cube; below this length-scale, two points that differ by a tenth in the input are
independent."""
INDEPENDENT = 1e-2
"""Observations that correlate less than this count as independent."""
_RAW = attrgetter("kernel.raw_lengthscale")
INNER = 1e-4
"""A bounded fit begins no closer to `COLLAPSED` than this share of it, because at the bound its coordinate is -inf."""


@dataclass(frozen=True)
class MapSettings(RefitSettings):
    """Settings of MAP fits; in addition, the number of observations at the first fit, the coordinates whose density is
    maximised, and what becomes of length-scales below `COLLAPSED`."""

    fit_from: int = 5
    coordinates: Literal["plain", "log"] = "plain"
    short: Literal["discarded", "bounded"] = "discarded"


def collapsed(gp: GP, prior: Hyperprior) -> Bool[Array, ""]:
    """Return whether a length-scale that has a prior is below COLLAPSED."""
    return jnp.any((of_gp(gp).lengthscale < COLLAPSED) & (prior.lengthscale != 0.0).any(axis=-1))


def independent(gp: GP, data: Rows) -> Bool[Array, ""]:
    """Return whether no two different observations correlate by `INDEPENDENT` or more, although some differ."""
    x, seen = jnp.asarray(data.x), jnp.asarray(data.mask)
    pairs = seen[:, None] & seen & (x[:, None] != x).any(axis=-1)
    closest = jnp.max(jnp.where(pairs, gp.kernel.gram(x) / of_gp(gp).variance, 0.0))
    return pairs.any() & (closest < INDEPENDENT)


class Coordinates(NamedTuple):
    """Coordinates of a GP for one fit: from the GP, and back to it."""

    begin: Callable[[GP], PyTree]
    made: Callable[[PyTree], GP]


def coordinates_of(prior: Hyperprior, kernel: str, bounded: bool) -> Coordinates:
    """Return the coordinates in which a fit moves; if `bounded`, no length-scale gets below `COLLAPSED`."""
    if prior.kind == "uniform":
        low, high = prior.lengthscale.T
        raised = jnp.stack([jnp.where(high != 0.0, jnp.maximum(low, COLLAPSED), low), high], axis=-1)
        support = Support(eqx.tree_at(lambda p: p.lengthscale, prior, raised) if bounded else prior)
        return Coordinates(support.begin, lambda raw: support.to_gp(raw, kernel))
    if not bounded:
        return Coordinates(lambda gp: gp, lambda raw: raw)

    def begin(gp: GP) -> GP:
        above = jnp.maximum(of_gp(gp).lengthscale - COLLAPSED, INNER * COLLAPSED)
        return eqx.tree_at(_RAW, gp, inverse_positive(above))

    def made(raw: GP) -> GP:
        return eqx.tree_at(_RAW, raw, inverse_positive(COLLAPSED + of_gp(raw).lengthscale))

    return Coordinates(begin, made)


def gp_of(params: Hierarchical) -> GP:
    """Return the fitted GP."""
    return params.gp


def policy(
    params: Hierarchical, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Refit:
    """Return the BO policy of a hierarchical GP. `settings`: those of `MapSettings` (paper: 100 steps).

    With Normal and Gamma priors, the fit is over the unconstrained leaves of the GP; with uniform priors, it is over
    coordinates that cannot leave the support (`metabo.methods.hierarchical.hyperprior.Support`).
    """
    chosen = read(MapSettings, settings, "config", "policy")
    bounded = chosen.short == "bounded"

    def fit(last, data):
        prior = last.prior
        begin, made = coordinates_of(prior, last.gp.kernel.shape, bounded)

        def loss(raw):
            gp = made(raw)
            stretch = prior.log_jacobian(gp) if chosen.coordinates == "log" else 0.0
            return map_loss(gp, prior, *data) - stretch

        fitted, log = lbfgs(loss, begin(last.gp), steps=chosen.refit_steps)
        found = made(fitted)
        gone = independent(found, data) if bounded else collapsed(found, prior)
        if bounded:
            other, its_log = lbfgs(loss, begin(params.gp), steps=chosen.refit_steps)
            its_gone = independent(made(other), data)
            better = ~its_gone & (gone | (loss(other) < loss(fitted)))
            pair = (made(other), its_log, its_gone), (found, log, gone)
            found, log, gone = jax.tree.map(lambda its, own: jnp.where(better, its, own), *pair)
        kept = jax.tree.map(lambda new, old: jnp.where(gone, old, new), found, last.gp)
        return last._replace(gp=kept), log.stopped < 0

    return Refit(params, gp_of, fit, make(acquisition, chosen.pi_threshold), budget, first=chosen.fit_from)
