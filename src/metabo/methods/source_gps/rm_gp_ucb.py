"""RM-GP-UCB: upper confidence bounds of the source tasks combined with that of the target (Dai et al. 2022; sheet §3).

x_t maximises ν_t Σ_i ω_{i,t} [μ_i + τσ_i] + (1 - ν_t) [μ_{t-1} + βσ_{t-1}], with weights
ω_{i,t} ∝ exp(-η Σ_{s≤t} d_{i,s}) of the gaps between the source's outputs and the target's bounds, and
ν_{t+1} = ν_t min{r, (Σ_i ω_{i,t} d_{i,t})^-ε}.

The constants are those of the authors' public code (η = 0.1, ε = 0.5, gaps averaged over the source's inputs), except r
= 0.7, because with r = 1 ν need not decrease, and τ = β = 3 as in the other panels. Our choices: a candidate is queried
once, and the initial points move neither the weights nor ν.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.policy import Candidates, Info, argmax
from metabo.errors import ConfigError
from metabo.gp.model import Posterior
from metabo.methods.source_gps.rgpe import Sources
from metabo.methods.source_gps.rgpe_policy import source_moments
from metabo.methods.source_gps.target import TargetGP, begin, told
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows


@dataclass(frozen=True)
class WeightConstants:
    """β and τ of the two bounds, η of the weights, ε and r of ν, and the number of observations before weights and ν
    move."""

    beta: float
    tau: float
    eta: float
    epsilon: float
    r: float
    initial: int


class BoundedState(NamedTuple):
    """The target, the upper bounds of the m sources at the candidates (m, c), the sums of their gaps (m,), and ν."""

    target: TargetGP
    bounds: Float[Array, "m c"]
    present: Bool[Array, " m"]
    gaps: Float[Array, " m"]
    nu: Float[Array, ""]


class Bounded(eqx.Module):
    """BO with the bounds of the sources and of the target. `past` has the rows of the source tasks."""

    params: Sources
    past: Rows
    constants: WeightConstants = eqx.field(static=True)
    refit_steps: int = eqx.field(static=True)
    budget: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=False)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> BoundedState:
        """Evaluate the sources' bounds on the candidates, with ν = 1."""
        means, variances, _ = source_moments(self.params.sources, self.past, candidates.x)
        present = jnp.any(self.past.mask, axis=1)
        target = begin(self.params.target, candidates, self.budget, key)
        bounds = means + self.constants.tau * jnp.sqrt(variances)
        return BoundedState(target, bounds, present, jnp.zeros(len(present)), jnp.asarray(1.0))

    def select(self, state: BoundedState, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the mixture of the bounds."""
        target = state.target
        posterior = target.posterior()
        mean, variance = posterior.predict(target.candidates)
        std = jnp.sqrt(variance)
        share, _ = self.weights(state, posterior)
        own = mean + self.constants.beta * std
        scores = state.nu * (share @ state.bounds) + (1.0 - state.nu) * own
        index = argmax(scores, mask, target.priority)
        sound = target.ok & posterior.ok & jnp.isfinite(scores).all()
        return index, Info(mean[index], jnp.sqrt(variance[index] + target.gp.noise), jnp.sqrt(target.gp.noise), sound)

    def observe(self, state: BoundedState, index: Int[Array, ""], y: Float[Array, ""]) -> BoundedState:
        """Update the weights and ν by the bounds that chose the candidate, then append it and fit the target's GP."""
        share, gaps = self.weights(state, state.target.posterior())
        gap = jnp.maximum(share @ gaps, 1e-12)
        factor = jnp.minimum(self.constants.r, gap**-self.constants.epsilon)
        begun = state.target.observed >= self.constants.initial
        return state._replace(
            target=told(state.target, index, y, self.refit_steps),
            gaps=jnp.where(begun, state.gaps + gaps, state.gaps),
            nu=jnp.where(begun, state.nu * factor, state.nu),
        )

    def weights(self, state: BoundedState, posterior: Posterior) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Return ω_t of the sources and their gaps d_t, computed with the target's bounds of this iteration."""
        past = self.past
        tasks, rows, dim = past.x.shape
        x = jnp.pad(past.x.reshape(tasks * rows, dim), [(0, 0), (0, max(0, state.target.x.shape[1] - dim))])
        mean, variance = posterior.predict(x)
        reach = self.constants.beta * jnp.sqrt(variance)
        y = past.y.reshape(-1)
        widest = jnp.maximum(jnp.abs(mean + reach - y), jnp.abs(mean - reach - y)).reshape(tasks, rows)
        counts = jnp.maximum(past.mask.sum(axis=1), 1)
        gaps = jnp.sum(jnp.where(past.mask, widest, 0.0), axis=1) / counts
        exponents = jnp.where(state.present, -self.constants.eta * (state.gaps + gaps), -jnp.inf)
        return jax.nn.softmax(exponents), gaps


@dataclass(frozen=True)
class BoundedSettings(WeightConstants):
    """The constants, and the number of L-BFGS steps of the target's fits."""

    refit_steps: int


def policy(
    params: Sources, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Bounded:
    """Return the policy of RM-GP-UCB; `settings`: those of `BoundedSettings`.

    Raises ConfigError without the rows of the source tasks, or for an acquisition other than `ucb3`, which is its only
    one.
    """
    if past is None:
        raise ConfigError("RM-GP-UCB evaluates GPs of past tasks; say `uses_past=True` in its Method")
    if acquisition != "ucb3":
        raise ConfigError(f"RM-GP-UCB sums upper confidence bounds: its acquisition is 'ucb3', not '{acquisition}'")
    chosen = read(BoundedSettings, settings, "config", "policy")
    return Bounded(params, past, chosen, chosen.refit_steps, budget)
