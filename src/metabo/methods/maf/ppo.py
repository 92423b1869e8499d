"""Proximal policy optimisation (Schulman et al. 2017) of an acquisition function, as in Volpp et al. (2020, MetaBO).

An episode is BO on one pool: the state is the features of all candidates, the action is the candidate to query, and the
reward is -log10(simple regret + `min_regret`) after each query. Episodes end after `horizon` queries, so nothing is
bootstrapped. Advantages are generalised (GAE, λ = `smoothing`) and normalised per mini-batch; the value network sees
only the clock.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.gp.model import GP
from metabo.methods.maf.network import AcquisitionNetwork, clock, features, observe, prior_belief
from metabo.methods.maf.settings import MafSettings

Number = float | Float[Array, ""]
"""A setting: a plain or a traced number."""


class Agent(eqx.Module):
    """The policy network (features of a candidate to its logit) and the value network (clock to value)."""

    policy: AcquisitionNetwork
    value: AcquisitionNetwork


class Game(NamedTuple):
    """One pool to play on: a task's GP and c of its points, x (c, d), standardised y (c,), mask (c,)."""

    gp: GP
    x: Float[Array, "*n c d"]
    y: Float[Array, "*n c"]
    mask: Bool[Array, "*n c"]


class Moves(NamedTuple):
    """One episode of t queries: the features (t, c, p) and logits (t, c) seen, the candidate chosen, and the simple
    regret after it."""

    features: Float[Array, "*n t c p"]
    logits: Float[Array, "*n t c"]
    action: Int[Array, "*n t"]
    regret: Float[Array, "*n t"]


Choose = Callable[[Float[Array, " c"], Key[Array, ""]], Int[Array, ""]]
"""Chooses a query from the logits, which are -inf for masked candidates."""


def sample(logits: Float[Array, " c"], key: Key[Array, ""]) -> Int[Array, ""]:
    """Draw a candidate, as episodes do in training."""
    return jax.random.categorical(key, logits)


def greedy(logits: Float[Array, " c"], key: Key[Array, ""]) -> Int[Array, ""]:
    """Take the candidate with the largest logit, as the trained acquisition function is used (in the authors'
    evaluation)."""
    return jnp.argmax(logits)


def play(policy: AcquisitionNetwork, game: Game, horizon: int, choose: Choose, key: Key[Array, ""]) -> Moves:
    """Run one episode of BO on a pool. Candidates may be queried again."""
    top = jnp.max(jnp.where(game.mask, game.y, -jnp.inf))

    def step(carry, step_key):
        belief, best = carry
        seen = features(belief, game.x, horizon)
        logits = jnp.where(game.mask, policy(seen), -jnp.inf)
        action = choose(logits, step_key)
        best = jnp.maximum(best, game.y[action])
        return (observe(game.gp, belief, action, game.y[action]), best), Moves(seen, logits, action, top - best)

    start = (prior_belief(game.gp, game.x, horizon), jnp.asarray(-jnp.inf))
    return jax.lax.scan(step, start, jax.random.split(key, horizon))[1]


def rewards(regret: Float[Array, "*n"], min_regret: Number) -> Float[Array, "*n"]:
    """-log10(simple regret + `min_regret`), the reward of the authors' experiments on hyperparameter tables."""
    return -jnp.log10(regret + min_regret)


def advantages(
    reward: Float[Array, " t"], value: Float[Array, " t"], discount: Number, smoothing: Number
) -> Float[Array, " t"]:
    """GAE of one episode: Â_t = δ_t + γλ Â_{t+1} with δ_t = r_t + γ V_{t+1} - V_t; after the last reward both are 0."""

    def back(after, now):
        advantage, next_value = after
        r, v = now
        advantage = r + discount * next_value - v + discount * smoothing * advantage
        return (advantage, v), advantage

    return jax.lax.scan(back, (jnp.zeros(()), jnp.zeros(())), (reward, value), reverse=True)[1]


def normalised(advantage: Float[Array, " n"]) -> Float[Array, " n"]:
    """Shift and scale advantages to mean 0 and (biased) standard deviation 1; constant ones are left as they are."""
    spread = jnp.std(advantage)
    return jnp.where(spread > 0, (advantage - jnp.mean(advantage)) / jnp.where(spread > 0, spread, 1.0), advantage)


def clipped_objective(ratio: Float[Array, " n"], advantage: Float[Array, " n"], clip: Number) -> Float[Array, ""]:
    """Mean of min(ρ Â, clip(ρ, 1 - ε, 1 + ε) Â), to be maximised (Schulman et al. 2017, Eq. 7)."""
    return jnp.mean(jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * advantage))


class Rollout(NamedTuple):
    """n transitions: features, mask, action, its log probability when it was taken, clock, advantage, and return
    (`target`)."""

    features: Float[Array, "n c p"]
    mask: Bool[Array, "n c"]
    action: Int[Array, " n"]
    log_prob: Float[Array, " n"]
    clock: Float[Array, "n 2"]
    advantage: Float[Array, " n"]
    target: Float[Array, " n"]


def log_softmax(logits: Float[Array, "*n c"], mask: Bool[Array, "*n c"]) -> Float[Array, "*n c"]:
    """Log probabilities of the valid candidates, and 0 for the others, so that they vanish from sums and gradients."""
    safe = jnp.where(mask, logits, -jnp.inf)
    return jnp.where(mask, jnp.where(mask, logits, 0.0) - jax.nn.logsumexp(safe, axis=-1, keepdims=True), 0.0)


def loss(agent: Agent, batch: Rollout, settings: MafSettings) -> Float[Array, ""]:
    """-clipped objective + `value_weight` x squared error of the values - `entropy_weight` x entropy of the policy."""
    log_prob = log_softmax(agent.policy(batch.features), batch.mask)
    taken = jnp.take_along_axis(log_prob, batch.action[:, None], axis=1)[:, 0]
    entropy = -jnp.sum(jnp.where(batch.mask, jnp.exp(log_prob) * log_prob, 0.0), axis=1)
    objective = clipped_objective(jnp.exp(taken - batch.log_prob), normalised(batch.advantage), settings.clip)
    error = jnp.mean((agent.value(batch.clock) - batch.target) ** 2)
    return -objective + settings.value_weight * error - settings.entropy_weight * jnp.mean(entropy)


def collect(agent: Agent, games: Game, settings: MafSettings, key: Key[Array, ""]) -> tuple[Rollout, Float[Array, ""]]:
    """Play one episode on each of e games; return their e x horizon transitions and the mean reward."""
    episodes, horizon = games.y.shape[0], settings.horizon
    keys = jax.random.split(key, episodes)
    moves = jax.vmap(lambda game, k: play(agent.policy, game, horizon, sample, k))(games, keys)
    times = clock(jnp.arange(horizon), horizon)
    reward, value = rewards(moves.regret, settings.min_regret), agent.value(times)
    advantage = jax.vmap(lambda r: advantages(r, value, settings.discount, settings.smoothing))(reward)
    mask = jnp.broadcast_to(games.mask[:, None], moves.logits.shape)
    log_prob = jnp.take_along_axis(log_softmax(moves.logits, mask), moves.action[..., None], axis=2)[..., 0]
    clocks = jnp.broadcast_to(times, (episodes, *times.shape))
    parts = (moves.features, mask, moves.action, log_prob, clocks, advantage, advantage + value)
    return Rollout(*(part.reshape(-1, *part.shape[2:]) for part in parts)), jnp.mean(reward)


class Learner(NamedTuple):
    """The agent as one flat vector, and the optimiser's state."""

    params: Float[Array, " w"]
    moments: optax.OptState


def learner(agent: Agent, learning_rate: Number) -> tuple[Learner, Callable[[Float[Array, " w"]], Agent]]:
    """Return the initial learner and the function that turns its vector into an agent."""
    flat, unravel = ravel_pytree(agent)
    return Learner(flat, optax.adam(learning_rate).init(flat)), unravel


def improve(
    state: Learner,
    unravel: Callable[[Float[Array, " w"]], Agent],
    batch: Rollout,
    settings: MafSettings,
    key: Key[Array, ""],
) -> Learner:
    """Pass `epochs` times over the batch in `minibatches` shuffled parts, with one Adam step each; a remainder is left
    out."""
    optimiser = optax.adam(settings.learning_rate)
    count, parts = batch.action.shape[0], settings.minibatches
    size = count // parts
    keys = jax.random.split(key, settings.epochs)
    order = jax.vmap(lambda k: jax.random.permutation(k, count)[: size * parts].reshape(parts, size))(keys)

    def step(state, chosen):
        part = jax.tree.map(lambda leaf: leaf[chosen], batch)
        gradient = jax.grad(lambda flat: loss(unravel(flat), part, settings))(state.params)
        updates, new = optimiser.update(gradient, state.moments)
        return Learner(state.params + updates, new), None

    return jax.lax.scan(step, state, order.reshape(-1, size))[0]
