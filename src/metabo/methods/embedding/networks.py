"""What MIMO and RFGP share: one network for all tasks, which a learned embedding distinguishes (hyperbo §7.2).

Each training task and the test task have a row of the embedding, which is fed to the network together with x. The paper
trains for epochs of mini-batches, but does not say how they are drawn. Our choice (docs/replication-notes.md): draw a
task uniformly among those with rows, then draw one of its rows uniformly, with replacement. A few observations of the
test task are then seen as often as thousands of rows of another task. An epoch has as many batches as it takes to hold
all rows.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Key, PyTree

from metabo.bo.ask_tell import Predictive
from metabo.gp.fit import Log, over_pairs
from metabo.methods.embedding.settings import Schedule
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet, pair_indices

EMBEDDING_RANGE = 0.05
"""Embeddings start uniform within ± this value (the usual default of such layers), so a new task is close to an average
one."""


class TrainingPool(NamedTuple):
    """The rows of all tasks in one list: x (r, d), y (r,). Task t's `counts[t]` valid rows begin at row `first[t]`.

    The last task is the test task, with room for all its observations.
    """

    x: Float[Array, "r d"]
    y: Float[Array, " r"]
    first: Int[Array, " tasks"]
    counts: Int[Array, " tasks"]


class MiniBatch(NamedTuple):
    """Drawn rows: inputs, outputs and the tasks that they come from, as b examples of m independent rows. `rows` is the
    number of rows of all tasks together."""

    x: Float[Array, "b m d"]
    y: Float[Array, "b m"]
    task: Int[Array, "b m"]
    rows: Int[Array, ""]


class Outputs(NamedTuple):
    """Networks are trained on outputs (y - location) / scale; the paper is silent on scaling
    (docs/replication-notes.md)."""

    location: Float[Array, ""]
    scale: Float[Array, ""]

    def standard(self, y: Float[Array, "..."]) -> Float[Array, "..."]:
        """Map outputs to the scale of the network."""
        return (y - self.location) / self.scale

    def moments(
        self, mean: Float[Array, " n"], variance: Float[Array, " n"]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Map predicted moments back to the scale of the outputs."""
        return self.location + self.scale * mean, self.scale**2 * variance


@runtime_checkable
class EmbeddingNetwork(Protocol):
    """A network for all tasks."""

    @property
    def outputs(self) -> Outputs:
        """The location and scale of the outputs that it is trained on."""
        ...

    @property
    def learned(self) -> PyTree:
        """The parameters that training changes."""
        ...

    @property
    def draws(self) -> int:
        """The number of independent rows in one training example."""
        ...

    def loss(self, batch: MiniBatch) -> Float[Array, ""]:
        """Return the training loss of one mini-batch."""
        ...

    def fresh(self, key: Key[Array, ""]) -> "EmbeddingNetwork":
        """Return the same network with untrained `learned`."""
        ...

    def prepare(self, past: Rows) -> PyTree:
        """Return what predictions need from the rows of the training tasks; it stays valid when `learned` changes."""
        ...

    def posterior(self, prepared: PyTree, data: Rows) -> Predictive:
        """Return the prediction for the test task from its observations."""
        ...


def new_embedding(tasks: int, size: int, key: Key[Array, ""]) -> Float[Array, "t e"]:
    """Draw the untrained embeddings of the training tasks and, last, of the test task."""
    return jax.random.uniform(key, (tasks + 1, size), jnp.float64, -EMBEDDING_RANGE, EMBEDDING_RANGE)


def pooled(past: Rows, budget: int) -> TrainingPool:
    """Put the rows of past tasks into one list, with room for `budget` observations of the test task."""
    tasks, length, dim = past.x.shape
    order = jnp.argsort(~past.mask, axis=1, stable=True)  # valid rows first, in their order
    x = jnp.take_along_axis(past.x, order[..., None], axis=1).reshape(-1, dim)
    y = jnp.take_along_axis(past.y, order, axis=1).reshape(-1)
    return TrainingPool(
        x=jnp.concatenate([x, jnp.zeros((budget, dim))]),
        y=jnp.concatenate([y, jnp.zeros(budget)]),
        first=jnp.arange(tasks + 1) * length,
        counts=jnp.append(past.mask.sum(axis=1), 0),
    )


def tell(pool: TrainingPool, x: Float[Array, " d"], y: Float[Array, ""]) -> TrainingPool:
    """Append one observation of the test task."""
    row = pool.first[-1] + pool.counts[-1]
    return pool._replace(x=pool.x.at[row].set(x), y=pool.y.at[row].set(y), counts=pool.counts.at[-1].add(1))


def with_own(pool: TrainingPool, data: Rows) -> TrainingPool:
    """Replace all observations of the test task, padded to the budget; the valid ones come first."""
    size = len(data.y)
    counts = pool.counts.at[-1].set(data.mask.sum())
    return pool._replace(x=pool.x.at[-size:].set(data.x), y=pool.y.at[-size:].set(data.y), counts=counts)


def own(pool: TrainingPool, budget: int) -> Rows:
    """Return the observations of the test task, padded to the budget."""
    return Rows(pool.x[-budget:], pool.y[-budget:], jnp.arange(budget) < pool.counts[-1])


def standard_outputs(past: Rows) -> Outputs:
    """Return location and scale of the outputs, where every task has the same weight; (0, 1) without rows, and scale 1
    if all outputs are equal."""
    weight = past.mask / jnp.maximum(past.mask.sum(axis=1, keepdims=True), 1)
    weight = weight / jnp.maximum(weight.sum(), 1e-300)
    location = jnp.sum(weight * past.y)
    scale = jnp.sqrt(jnp.sum(weight * (past.y - location) ** 2))
    return Outputs(location, jnp.where(scale > 0, scale, 1.0))


def draw(pool: TrainingPool, key: Key[Array, ""], batch: int, draws: int) -> MiniBatch:
    """Draw `batch` examples of `draws` independent rows: each is a uniform row of a task drawn uniformly from those
    with rows."""
    bits = jax.random.bits(key, (2, batch, draws), "uint32").astype("uint64")

    def below(bits: Array, count: Array) -> Int[Array, "b m"]:
        return ((bits * count.astype("uint64")) >> 32).astype("int64")

    there = pool.counts > 0
    task = jnp.argsort(~there, stable=True)[below(bits[0], there.sum())]
    row = pool.first[task] + below(bits[1], pool.counts[task])
    return MiniBatch(pool.x[row], pool.y[row], task, pool.counts.sum())


def batches(schedule: Schedule, rows: Int[Array, ""]) -> Int[Array, ""]:
    """Return the number of mini-batches that a schedule trains for, with this many rows."""
    count = jnp.ceil(schedule.epochs * rows / schedule.batch).astype(int)
    return jnp.minimum(count, schedule.steps) if schedule.steps else count


class Trained(NamedTuple):
    """A trained network, the moments of Adam, the mean loss of each of `points` stretches of steps of about equal
    length, and the first step that was not finite (-1: none), before which training stopped."""

    network: EmbeddingNetwork
    moments: PyTree
    loss: Float[Array, " points"]
    stopped: Int[Array, ""]


def no_moments(network: EmbeddingNetwork) -> PyTree:
    """Return Adam's moments before the first step."""
    return optax.adam(0.0).init(ravel_pytree(network.learned)[0])


def train(
    network: EmbeddingNetwork,
    moments: PyTree,
    pool: TrainingPool,
    key: Key[Array, ""],
    count: Int[Array, ""],
    schedule: Schedule,
    points: int = 1,
) -> Trained:
    """Train for `count` mini-batches. A step whose loss, gradient or result is not finite ends the training, and the
    last parameters with a finite loss are kept.

    If there are fewer steps than points, a stretch without a step repeats the loss before it.
    """
    flat, unravel = ravel_pytree(network.learned)
    optimiser = optax.adam(schedule.learning_rate)

    def with_learned(vector: Float[Array, " p"]) -> EmbeddingNetwork:
        return eqx.tree_at(lambda n: n.learned, network, unravel(vector))

    def step(number, carry):
        params, safe, moments, stopped, total = carry
        batch = draw(pool, jax.random.fold_in(key, number), schedule.batch, network.draws)
        loss, gradient = jax.value_and_grad(lambda vector: with_learned(vector).loss(batch))(params)
        updates, new_moments = optimiser.update(gradient, moments)
        new = params + updates
        usable = (stopped < 0) & jnp.isfinite(loss)
        safe = jnp.where(usable, params, safe)
        sound = usable & jnp.stack([jnp.isfinite(a).all() for a in jax.tree.leaves((new, new_moments))]).all()
        moments = jax.tree.map(lambda a, b: jnp.where(sound, a, b), new_moments, moments)
        stopped = jnp.where((stopped < 0) & ~sound, number, stopped)
        return jnp.where(sound, new, safe), safe, moments, stopped, total + loss

    def stretch(carry, point):
        carry, before = carry
        begin, end = ((p * count + points - 1) // points for p in (point, point + 1))  # the first one has a step
        *carry, total = jax.lax.fori_loop(begin, end, step, (*carry, jnp.zeros(())))
        loss = jnp.where(end > begin, total / jnp.maximum(end - begin, 1), before)
        return (tuple(carry), loss), loss

    start = (flat, flat, moments, jnp.asarray(-1))
    ((flat, _, moments, stopped), _), losses = jax.lax.scan(stretch, (start, jnp.zeros(())), jnp.arange(points))
    return Trained(with_learned(flat), moments, losses, stopped)


TRACE_POINTS = 500
"""The most points of a pre-training's loss trace."""


def pretrain_networks(
    start: Callable[[Key[Array, ""]], EmbeddingNetwork],
    schedule: Schedule,
    training: TrainingSet,
    keys: Key[Array, "folds seeds"],
    accelerator: bool,
) -> tuple[EmbeddingNetwork, Log]:
    """Train one network per (fold, seed) on the past tasks, and return pytrees with a leading axis of folds x seeds,
    fold-major.

    `start(key)` makes the untrained network. The test task's embedding stays untrained.
    """
    limit = min(TRACE_POINTS, schedule.steps or TRACE_POINTS)

    def fit(pair):
        fold, seed, key = pair
        past = training.past(fold, seed)
        network = eqx.tree_at(lambda n: n.outputs, start(jax.random.fold_in(key, 0)), standard_outputs(past))
        pool = pooled(past, 0)
        count = batches(schedule, pool.counts.sum())
        trained = train(network, no_moments(network), pool, jax.random.fold_in(key, 1), count, schedule, limit)
        return trained.network, Log(trained.loss, trained.stopped)

    return over_pairs(fit, (*pair_indices(*keys.shape), keys.reshape(-1)), accelerator)
