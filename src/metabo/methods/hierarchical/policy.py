"""BO with a hierarchical GP: its parameters are fitted to the test task under their prior (MPHD §2.4, Algorithm 1).

L-BFGS minimises -log p(D | θ) - log p(θ) (Eq. 6) after every observation from number `fit_from` on, starting from the
previous θ̂ (the authors fit for the first time after the five initial points). The first fit starts where Step 1 does.

A Gamma density with shape below 1 grows without limit as a length-scale goes to 0, and with shape 1 nothing pushes
back. One observation does not determine the length-scale: a fit to it ends at 0, where softplus has no gradient to come
back. Hence the first fit is at five observations, and a fit that ends with a length-scale below `COLLAPSED` is
discarded in favour of the last θ̂. `coordinates: log` is another reading of Eq. 6: it maximises the density of log θ,
whose Jacobian θ makes it bounded for every shape.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from metabo.bo.acquisition import make
from metabo.bo.refit import Refit
from metabo.bo.settings import RefitSettings
from metabo.gp.fit import lbfgs
from metabo.gp.model import GP
from metabo.methods.hierarchical.hyperprior import Hyperprior, Support, map_loss, of_gp
from metabo.methods.hierarchical.train import Hierarchical
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows

COLLAPSED = 1e-2
"""In units of the unit cube; below this length-scale, any two points of a pool are independent."""


@dataclass(frozen=True)
class MapSettings(RefitSettings):
    """Settings of MAP fits; in addition, the number of observations at the first fit, and the coordinates whose density
    is maximised."""

    fit_from: int = 5
    coordinates: Literal["plain", "log"] = "plain"


def collapsed(gp: GP, prior: Hyperprior) -> Bool[Array, ""]:
    """Return whether a length-scale that has a prior is below COLLAPSED."""
    return jnp.any((of_gp(gp).lengthscale < COLLAPSED) & (prior.lengthscale != 0.0).any(axis=-1))


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

    def fit(last, data):
        prior, kernel = last.prior, last.gp.kernel.shape
        support = Support(prior)
        bounded = prior.kind == "uniform"
        begin = support.begin(last.gp) if bounded else last.gp

        def made(raw):
            return support.to_gp(raw, kernel) if bounded else raw

        def loss(raw):
            gp = made(raw)
            stretch = prior.log_jacobian(gp) if chosen.coordinates == "log" else 0.0
            return map_loss(gp, prior, *data) - stretch

        fitted, log = lbfgs(loss, begin, steps=chosen.refit_steps)
        found = made(fitted)
        gone = collapsed(found, prior)
        kept = jax.tree.map(lambda new, old: jnp.where(gone, old, new), found, last.gp)
        return last._replace(gp=kept), log.stopped < 0

    return Refit(params, gp_of, fit, make(acquisition, chosen.pi_threshold), budget, first=chosen.fit_from)
