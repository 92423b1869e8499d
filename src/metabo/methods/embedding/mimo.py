"""MIMO: an ensemble of small networks within one network, trained on all tasks (Havasi et al. 2021; hyperbo §7.2).

A multi-input multi-output network reads one input per member, side by side, through a shared dense layer, and predicts
every member's output through layers of the member's own. In training, the members' inputs are independent rows; for a
prediction, all members get the same input (Havasi et al. 2021). The paper leaves open, and we chose
(docs/replication-notes.md): four members, the task embedding concatenated to x, and standardised outputs.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from metabo.errors import ConfigError
from metabo.gp.fit import Log
from metabo.methods.embedding.networks import (
    EmbeddingNetwork,
    MiniBatch,
    Outputs,
    new_embedding,
    pretrain_networks,
)
from metabo.methods.embedding.settings import EnsembleModel, FirstSchedule
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet

STD_FLOOR, STD_SCALE = 1e-4, 1.0
"""The paper's softplus(1e-4, 1) for the standard deviation, which we read as 1e-4 + softplus(1 z)."""


class Weights(NamedTuple):
    """Embedding (tasks + 1, e) and layers of (weight, bias): shared ones (i, o), (o,), and the members' own (m, i, o),
    (m, o).

    The first shared layer reads m (d + e) numbers; the last own layer gives mean and raw standard deviation.
    """

    embedding: Float[Array, "t e"]
    shared: tuple[tuple[Array, Array], ...]
    own: tuple[tuple[Array, Array], ...]


class Ensemble(eqx.Module):
    """A MIMO network. Its prediction is the moments of the even mixture of its members' normal distributions.

    Acquisitions get the noise (hyperbo §6.2.2: it is "always included in the predicted variance"). Other than a GP's,
    it differs from input to input and stays when data are added, so that GP-UCB may keep asking where it is large;
    without `noise`, the variance is the spread of the members' means.
    """

    outputs: Outputs
    learned: Weights
    noise: bool = eqx.field(static=True, default=True)

    @property
    def draws(self) -> int:
        """The number of members, each of which reads a row of its own in training."""
        return self.learned.own[0][0].shape[0]

    def members(self, inputs: Float[Array, "b m i"]) -> tuple[Float[Array, "b m"], Float[Array, "b m"]]:
        """Return every member's mean and standard deviation of the standardised outputs; `inputs` hold x and
        embedding."""
        hidden = inputs.reshape(len(inputs), -1)
        for weight, bias in self.learned.shared:
            hidden = jnp.tanh(hidden @ weight + bias)
        hidden = jnp.broadcast_to(hidden, (self.draws, *hidden.shape))
        for weight, bias in self.learned.own[:-1]:
            hidden = jnp.tanh(hidden @ weight + bias[:, None])
        weight, bias = self.learned.own[-1]
        mean, raw = jnp.moveaxis(hidden @ weight + bias[:, None], 2, 0)
        return mean.T, STD_FLOOR + jax.nn.softplus(STD_SCALE * raw.T)

    def loss(self, batch: MiniBatch) -> Float[Array, ""]:
        """Mean negative log density of the rows, over examples and members."""
        mean, std = self.members(jnp.concatenate([batch.x, self.learned.embedding[batch.task]], axis=2))
        residual = (self.outputs.standard(batch.y) - mean) / std
        return jnp.mean(0.5 * residual**2 + jnp.log(std)) + 0.5 * jnp.log(2 * jnp.pi)

    def predict(self, x: Float[Array, "n d"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of the test task at n inputs."""
        known = jnp.broadcast_to(self.learned.embedding[-1], (len(x), self.learned.embedding.shape[1]))
        inputs = jnp.concatenate([x, known], axis=1)
        mean, std = self.members(jnp.repeat(inputs[:, None], self.draws, axis=1))
        centre = mean.mean(axis=1)
        spread = jnp.mean((mean - centre[:, None]) ** 2, axis=1)
        return self.outputs.moments(centre, spread + jnp.mean(std**2, axis=1) if self.noise else spread)

    def fresh(self, key: Key[Array, ""]) -> "Ensemble":
        """Return the network with untrained weights: LeCun-normal draws, and biases 0."""
        normal = jax.nn.initializers.lecun_normal()
        embedding, shared, own = jax.random.split(key, 3)

        def layers(like: tuple, key: Key[Array, ""], init) -> tuple:
            keys = jax.random.split(key, len(like))
            pairs = zip(keys, like, strict=True)
            return tuple((init(k, weight.shape), jnp.zeros(bias.shape)) for k, (weight, bias) in pairs)

        def each(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "m i o"]:
            return jax.vmap(lambda k: normal(k, shape[1:], jnp.float64))(jax.random.split(key, shape[0]))

        tasks, size = self.learned.embedding.shape
        weights = Weights(
            new_embedding(tasks - 1, size, embedding),
            layers(self.learned.shared, shared, lambda k, shape: normal(k, shape, jnp.float64)),
            layers(self.learned.own, own, each),
        )
        return Ensemble(self.outputs, weights, self.noise)

    def prepare(self, past: Rows) -> tuple[()]:
        """Return nothing, because predictions need only the weights."""
        return ()

    def posterior(self, prepared: tuple[()], data: Rows) -> "Prediction":
        """Return the prediction for the test task; the weights already account for its observations."""
        return Prediction(self, jnp.asarray(True))


class Prediction(NamedTuple):
    """The prediction of an ensemble for the test task."""

    ensemble: Ensemble
    ok: Bool[Array, ""]
    jitter: float = 0.0

    def predict(self, x: Float[Array, "n d"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance at n inputs."""
        return self.ensemble.predict(x)


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> Ensemble:
    """Return the untrained ensemble. `model`: that of `EnsembleModel`. Raises ConfigError for a single member without
    noise, whose variance would be 0."""
    sizes = read(EnsembleModel, model, "model")
    count = sizes.members
    if count < 2 and not sizes.noise:
        raise ConfigError("model key 'members': one member has no spread; give two or more, or `noise: true`")
    shared = [count * (dim + sizes.embedding), *sizes.shared]
    unshared = [shared[-1], *sizes.unshared, 2]
    empty = Weights(
        jnp.zeros((tasks + 1, sizes.embedding)),
        tuple((jnp.zeros((i, o)), jnp.zeros(o)) for i, o in pairwise(shared)),
        tuple((jnp.zeros((count, i, o)), jnp.zeros((count, o))) for i, o in pairwise(unshared)),
    )
    return Ensemble(Outputs(jnp.zeros(()), jnp.ones(())), empty, sizes.noise).fresh(key)


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[EmbeddingNetwork, Log]:
    """Train one ensemble per (fold, seed) on the past tasks (`metabo.methods.embedding.networks.pretrain_networks`)."""

    schedule = read(FirstSchedule, spec["pretrain"], "config", f"methods.{spec['method']}.pretrain")

    def begin(key: Key[Array, ""]) -> Ensemble:
        return start(spec["model"], training.dim, training.tasks, key)

    return pretrain_networks(begin, schedule, training, keys, accelerator)
