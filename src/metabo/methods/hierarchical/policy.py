"""BO with a hierarchical GP: its parameters are fitted to the test task under their prior (MPHD §2.4, Algorithm 1).

θ̂ minimises -log p(D | θ) - log p(θ) (Eq. 6) by L-BFGS, after every observation, from the θ̂ before; the first fit starts
where Step 1 does. So the query after the initial points has seen one fit for each of them; the authors' code fits once
before it.
"""

from collections.abc import Mapping

from metabo.bo.acquisition import make
from metabo.bo.refit import Refit
from metabo.bo.settings import RefitSettings
from metabo.gp.fit import lbfgs
from metabo.gp.model import GP
from metabo.methods.hierarchical.hyperprior import Support, map_loss
from metabo.methods.hierarchical.train import Hierarchical
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows


def gp_of(params: Hierarchical) -> GP:
    """Return the fitted GP."""
    return params.gp


def policy(
    params: Hierarchical, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Refit:
    """Return the BO policy of a hierarchical GP. `settings`: those of `RefitSettings` (paper: 100 steps).

    Normal and Gamma priors: the fit is over the unconstrained leaves of the GP. Uniform ones: over coordinates that
    cannot leave the support (`metabo.methods.hierarchical.hyperprior.Support`).
    """
    chosen = read(RefitSettings, settings, "config", "policy")

    def fit(last, data):
        prior, kernel = last.prior, last.gp.kernel.shape
        support = Support(prior)
        bounded = prior.kind == "uniform"
        begin = support.begin(last.gp) if bounded else last.gp

        def made(raw):
            return support.to_gp(raw, kernel) if bounded else raw

        fitted, log = lbfgs(lambda raw: map_loss(made(raw), prior, *data), begin, steps=chosen.refit_steps)
        return last._replace(gp=made(fitted)), log.stopped < 0

    return Refit(params, gp_of, fit, make(acquisition, chosen.pi_threshold), budget)
