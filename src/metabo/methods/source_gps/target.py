"""The target task's own GP in methods that fit one in addition to those of the sources, and BO with that GP alone: the
standard GP of cm-BO (§4.1; sheet §3), a Matérn 3/2 with one lengthscale per input, fitted before every query.
"""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.acquisition import Acquisition
from metabo.bo.acquisition import make as chosen
from metabo.bo.policy import Candidates, Info, argmax, tie_breakers
from metabo.bo.settings import RefitSettings
from metabo.gp.model import GP, Posterior
from metabo.methods.source_gps.settings import SourceModel
from metabo.methods.source_gps.sources import fit, make, repeated
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet


class TargetGP(NamedTuple):
    """The observations of the target so far, padded to the budget b, and the GP fitted to them."""

    candidates: Float[Array, "c d"]
    priority: Float[Array, " c"]
    gp: GP
    queried: Int[Array, " b"]
    y: Float[Array, " b"]
    observed: Int[Array, ""]
    ok: Bool[Array, ""]

    @property
    def seen(self) -> Bool[Array, " b"]:
        """The mask of the rows that are observations."""
        return jnp.arange(len(self.y)) < self.observed

    @property
    def x(self) -> Float[Array, "b d"]:
        """Inputs of the observations."""
        return self.candidates[self.queried]

    @property
    def best(self) -> Float[Array, ""]:
        """The largest observation, or -inf without one."""
        return jnp.max(jnp.where(self.seen, self.y, -jnp.inf))

    def posterior(self) -> Posterior:
        """Condition the GP on the observations."""
        return self.gp.posterior(self.x, self.y, self.seen)


def begin(gp: GP, candidates: Candidates, budget: int, key: Key[Array, ""]) -> TargetGP:
    """Return the target before any observation."""
    priority = tie_breakers(key, candidates.x.shape[0])
    index, y = jnp.zeros(budget, jnp.int64), jnp.zeros(budget)
    return TargetGP(candidates.x, priority, gp, index, y, jnp.asarray(0), jnp.asarray(True))


def told(target: TargetGP, index: Int[Array, ""], y: Float[Array, ""], steps: int) -> TargetGP:
    """Append an observation and fit the GP again, starting from its last fit."""
    at = jax.lax.dynamic_update_index_in_dim(target.queried, index.astype(jnp.int64), target.observed, 0)
    ys = jax.lax.dynamic_update_index_in_dim(target.y, y, target.observed, 0)
    new = target._replace(queried=at, y=ys, observed=target.observed + 1)
    gp, log = fit(new.gp, new.x, new.y, new.seen, steps)
    return new._replace(gp=gp, ok=log.stopped < 0)


class Alone(eqx.Module):
    """BO with the target's own GP, which is fitted after every observation. A candidate is queried once, as in
    cm-BO."""

    gp: GP
    acquisition: Acquisition = eqx.field(static=True)
    refit_steps: int = eqx.field(static=True)
    budget: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=False)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> TargetGP:
        """Start from the unfitted GP."""
        return begin(self.gp, candidates, self.budget, key)

    def select(self, state: TargetGP, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition under the fitted GP over the candidates that may be queried."""
        posterior = state.posterior()
        mean, variance = posterior.predict(state.candidates)
        scores = self.acquisition(mean, jnp.sqrt(variance), state.best, state.observed)
        index = argmax(scores, mask, state.priority)
        return index, Info(
            mean[index],
            jnp.sqrt(variance[index] + state.gp.noise),
            jnp.sqrt(state.gp.noise),
            state.ok & posterior.ok,
            posterior.jitter,
        )

    def observe(self, state: TargetGP, index: Int[Array, ""], y: Float[Array, ""]) -> TargetGP:
        """Append the observation and fit again."""
        return told(state, index, y, self.refit_steps)


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> GP:
    """Return the unfitted GP of the target."""
    return make([read(SourceModel, model, "model").kernel], dim)


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[GP, None]:
    """Return the unfitted GP, once per (fold, seed): nothing is learned from past tasks."""
    return repeated(start(spec["model"], training.dim, training.tasks, keys.reshape(-1)[0]), keys.size), None


def policy(params: GP, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None) -> Alone:
    """Return the policy with a GP fitted to the target by maximum likelihood, by `refit_steps` steps of L-BFGS from the
    last fit."""
    fits = read(RefitSettings, settings, "config", "policy")
    return Alone(params, chosen(acquisition, fits.pi_threshold), fits.refit_steps, budget)
