"""The length-scale prior of MPHD Standard: a network from a lengthscale's context to its Gamma prior (§2.3, App. E.2).

It has two hidden layers of 16 units with tanh and the output (shape, rate). The paper says no more about the output;
the authors' code also applies tanh there, before the softplus, so that both numbers stay in (0.313, 1.313). `output`
selects one: "linear" (ours) or "squashed" (theirs).
"""

from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Key

from metabo.errors import ConfigError, unknown
from metabo.gp.constraints import positive
from metabo.gp.features import MLP, make_mlp
from metabo.gp.fit import Log
from metabo.methods.hierarchical import contexts
from metabo.methods.hierarchical.hyperprior import gamma_log_density

OUTPUTS = ("linear", "squashed")
Carry: TypeAlias = tuple[Array, Array, optax.OptState, Array]
"""The current parameters, those before the last step, the moments of Adam, and the step at which training stopped (-1:
none)."""


class PriorNetwork(eqx.Module):
    """φ for lengthscales: maps contexts (n, 4) to the shapes and rates (n, 2) of their Gamma priors, all positive."""

    hidden: MLP
    weight: Float[Array, "h 2"]
    bias: Float[Array, "2"]
    output: str = eqx.field(static=True)

    def __call__(self, context: Float[Array, "n 4"]) -> Float[Array, "n 2"]:
        """Return shape and rate of each context."""
        out = self.hidden(context) @ self.weight + self.bias
        return positive(jnp.tanh(out) if self.output == "squashed" else out)


def make(key: Key[Array, ""], hidden: tuple[int, ...] = (16, 16), output: str = "linear") -> PriorNetwork:
    """Return an untrained network: LeCun-normal weights, zero biases. Raises ConfigError for an unknown `output` or
    hidden layers without units."""
    if output not in OUTPUTS:
        raise unknown("output of the prior network", output, OUTPUTS)
    if not hidden or min(hidden) < 1:
        raise ConfigError(f"the prior network has hidden layers {list(hidden)}; give at least one unit in each of them")
    below, last = jax.random.split(key)
    weight = jax.nn.initializers.lecun_normal()(last, (hidden[-1], 2), jnp.float64)
    return PriorNetwork(make_mlp(contexts.WIDTH, hidden, below), weight, jnp.zeros(2), output)


def loss(
    network: PriorNetwork, context: Float[Array, "n 4"], lengthscale: Float[Array, " n"], mask: Bool[Array, " n"]
) -> Float[Array, ""]:
    """-Σ log Γ(ℓ̂; a, b) over the lengthscales where `mask` is True (the negative of Eq. 4)."""
    shape, rate = network(context).T
    densities = gamma_log_density(jnp.where(mask, lengthscale, 1.0), shape, rate)
    return -jnp.sum(jnp.where(mask, densities, 0.0))


def train(
    network: PriorNetwork,
    context: Float[Array, "n 4"],
    lengthscale: Float[Array, " n"],
    mask: Bool[Array, " n"],
    *,
    steps: int,
    learning_rate: float,
) -> tuple[PriorNetwork, Log]:
    """Minimise `loss` by Adam on all lengthscales at once (App. E.2: rate 1e-3, 10000 steps).

    Training ends before a step whose loss or gradient is not finite, and the log says so; the last parameters with a
    finite loss are then kept.
    """
    flat, unravel = ravel_pytree(network)
    optimiser = optax.adam(learning_rate)

    def value(vector: Float[Array, " p"]) -> Float[Array, ""]:
        return loss(unravel(vector), context, lengthscale, mask)

    def step(carry: Carry, number: Array) -> tuple[Carry, Array]:
        params, before, moments, stopped = carry
        now, gradient = jax.value_and_grad(value)(params)
        updates, later = optimiser.update(gradient, moments)
        sound = jnp.isfinite(now) & (jnp.isfinite(gradient).all() | (number == steps))
        stopped = jnp.where((stopped < 0) & ~sound, number, stopped)
        before = jnp.where(jnp.isfinite(now), params, before)
        go = (stopped < 0) & (number < steps)
        new = (optax.apply_updates(params, updates), before, later)
        kept = jax.tree.map(lambda a, b: jnp.where(go, a, b), new, (before, before, moments))
        params, before, moments = kept
        return (params, before, moments, stopped), now

    # Compute one more loss than steps, to check the parameters that the last step gave.
    begin = (flat, flat, optimiser.init(flat), jnp.asarray(-1))
    (flat, _, _, stopped), losses = jax.lax.scan(step, begin, jnp.arange(steps + 1))
    return unravel(flat), Log(losses[:steps], stopped)
