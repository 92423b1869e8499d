"""Algorithm 1 of HyperBO on a finite domain, with the package's policy, beside the true posterior of the same data."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from metabo.bo.acquisition import Acquisition, probability_of_improvement, upper_confidence_bound
from metabo.bo.fixed_prior import FixedPrior, FixedState
from metabo.bo.loop import Given, begin, play
from metabo.bo.policy import Candidates
from metabo.gp.linalg import JITTER
from metabo.papers.hyperbo.theory.memory import MemoryGP, inputs


def noisy_ucb(beta: Float[Array, ""] | float) -> Acquisition:
    """Return GP-UCB with the noise in the predicted variance (Eq. 21, 31)."""

    def scores(mean, std, best, count):
        return upper_confidence_bound(mean, beta * std, best, count, beta=1.0)

    return scores


def noiseless_ucb(beta: Float[Array, ""] | float, prior: MemoryGP) -> Acquisition:
    """Return GP-UCB without the noise, μ̂ + β √k̂ (Eq. 33). The package's policy scores s² = k̂ + σ²."""

    def scores(mean, std, best, count):
        return mean + beta * jnp.sqrt(jnp.maximum(std**2 - prior.noise, 0.0))

    return scores


def target_pi(target: Float[Array, ""]) -> Acquisition:
    """Return PI with a given target value f̂* (Eq. 22, 32)."""

    def scores(mean, std, best, count):
        return probability_of_improvement(mean, std, target, jnp.asarray(1), threshold=0.0)

    return scores


class Path(NamedTuple):
    """One run of T queries: their indices and observations, and the true posterior (μ*, k*) before each, (T, M)."""

    index: Int[Array, " t"]
    y: Float[Array, " t"]
    mean: Float[Array, "t m"]
    variance: Float[Array, "t m"]


class Watched(eqx.Module):
    """The package's policy, which chooses, beside the true posterior of the same observations, which is watched."""

    policy: FixedPrior
    true: FixedPrior
    repeats: bool = eqx.field(static=True)

    def init(self, candidates: Candidates, key: Array) -> tuple[FixedState, FixedState]:
        """Begin with both priors."""
        return self.policy.init(candidates, key), self.true.init(candidates, key)

    def select(
        self, state: tuple[FixedState, FixedState], mask: Bool[Array, " m"], key: Array
    ) -> tuple[Int[Array, ""], tuple[Float[Array, " m"], Float[Array, " m"]]]:
        """Choose by the policy; the record is the true mean and variance of the whole domain."""
        own, true = state
        return self.policy.select(own, mask, key)[0], (true.mean, true.variance)

    def observe(
        self, state: tuple[FixedState, FixedState], index: Int[Array, ""], y: Float[Array, ""]
    ) -> tuple[FixedState, FixedState]:
        """Condition both on the observation."""
        own, true = state
        return self.policy.observe(own, index, y), self.true.observe(true, index, y)


def run(
    prior: MemoryGP,
    truth: MemoryGP,
    acquisition: Acquisition,
    f: Float[Array, " m"],
    noise: Float[Array, " t"],
    key: Array,
    repeats: bool = True,
) -> Path:
    """Run Algorithm 1 on f with the observation noise `noise` (drawn anew at a repeated query, Assumption 2).

    `key` orders candidates with equal scores; `repeats`: whether an input may be queried again.
    """
    budget, size = noise.shape[0], f.shape[0]
    pool = Candidates(inputs(jnp.arange(size)), jnp.ones(size, bool))
    both = Watched(FixedPrior(prior, acquisition, budget), FixedPrior(truth, acquisition, budget), repeats)
    now = begin(both, pool, budget, key)
    nothing = Given(jnp.zeros(0, jnp.int64), 0, 0)
    steps = play(both, now, pool.mask, nothing, 0, budget, lambda t, i, _: f[i] + noise[t], key, repeats).steps
    return Path(steps.candidate, steps.y, *steps.info)


def predictions(
    model: MemoryGP, index: Int[Array, " t"], y: Float[Array, " t"], used: Bool[Array, " t"], at: Int[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return μ_{t-1}(x) and k_{t-1}∘σ²(x) at the domain index `at`, given the `used` observations (Eq. 15-18)."""
    mean, variance = model.posterior(inputs(index), y, used).predict(inputs(at[None]))
    return mean[0], variance[0] + noise_variance(model)


def noise_variance(model: MemoryGP) -> Float[Array, ""]:
    """Return σ², with the jitter that the package adds in every covariance (`memory.model` counts it in)."""
    return model.noise + JITTER
