"""RFGP: a GP approximated by random Fourier features, trained on all tasks (Liu et al. 2020; hyperbo §7.2).

f(x, t) = φ(x, e_t)ᵀ β with φ(z) = sqrt(2/K) cos(Wᵀ z + b), W normal and b uniform, both fixed. This approximates a GP
with the squared exponential kernel of variance 1 on x, whose lengthscale is a setting (1 in `rfgp_printed`), and on the
embedding e_t of the task, whose lengthscale is 1. As in the implementation of Liu et al., weights β are learned by
gradient steps, and the variance is that of the Laplace approximation, with its default `ridge` 1, which is the noise
variance. With `weights: solved`, the mean uses the minimiser of that loss instead of the weights that the steps
reached, which is exact given the embeddings: (ridge I + Σ φ φᵀ)⁻¹ Σ φ y over all rows.

The precision ridge I + Σ φ φᵀ over all rows is exact at every iteration even though the embeddings move. A task's
embedding only shifts the phase, cos(A + c) = cos A cos c - sin A sin c, so sums of products of cos A and sin A suffice.
They are computed once, and so are the sums of cos A y and sin A y.
"""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Bool, Float, Key

from metabo.gp.fit import Log
from metabo.gp.linalg import cholesky
from metabo.methods.embedding.networks import (
    EmbeddingNetwork,
    MiniBatch,
    Outputs,
    new_embedding,
    pretrain_networks,
)
from metabo.methods.embedding.settings import FeaturesModel, FirstSchedule
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import TrainingSet


class LearnedWeights(NamedTuple):
    """The embedding of the training tasks and, last, of the test task, and the output weights."""

    embedding: Float[Array, "t e"]
    weights: Float[Array, " k"]


class Products(NamedTuple):
    """Per task, sums over its rows of cos A cos Aᵀ, cos A sin Aᵀ, sin A sin Aᵀ, cos A y and sin A y, with A the phases
    of x alone and y standardised."""

    cc: Float[Array, "tasks k k"]
    cs: Float[Array, "tasks k k"]
    ss: Float[Array, "tasks k k"]
    cy: Float[Array, "tasks k"]
    sy: Float[Array, "tasks k"]


class RandomFeatures(eqx.Module):
    """Bayesian linear regression on random Fourier features of input and task embedding.

    `frequencies` (d, k) act on x, `shifts` (e, k) on the embedding, `phases` (k,) are added. `ridge` is the noise
    variance of standardised outputs; the prior variance of a weight is 1. If `solved`, predictions use the closed form
    of the weights.
    """

    outputs: Outputs
    learned: LearnedWeights
    frequencies: Float[Array, "d k"]
    shifts: Float[Array, "e k"]
    phases: Float[Array, " k"]
    ridge: Float[Array, ""]
    solved: bool = eqx.field(static=True, default=False)

    draws = 1

    def features(self, x: Float[Array, "n d"], embedding: Float[Array, "n e"]) -> Float[Array, "n k"]:
        """Return φ(x, e), whose inner products approximate the squared exponential kernel."""
        phase = x @ self.frequencies + embedding @ self.shifts + self.phases
        return jnp.sqrt(2.0 / len(self.phases)) * jnp.cos(phase)

    def loss(self, batch: MiniBatch) -> Float[Array, ""]:
        """Half the mean squared error plus ridge/(2 rows) |β|². Over all rows with equal weight, its minimiser in β is
        the posterior mean."""
        x, y, task = (part[:, 0] for part in batch[:3])
        predicted = self.features(x, self.learned.embedding[task]) @ self.learned.weights
        penalty = self.ridge / batch.rows * jnp.sum(self.learned.weights**2)
        return 0.5 * (jnp.mean((self.outputs.standard(y) - predicted) ** 2) + penalty)

    def fresh(self, key: Key[Array, ""]) -> "RandomFeatures":
        """Return the network with new embeddings and weights 0 (the prior mean). The random features stay the same."""
        tasks, size = self.learned.embedding.shape
        untrained = LearnedWeights(new_embedding(tasks - 1, size, key), jnp.zeros_like(self.learned.weights))
        return eqx.tree_at(lambda network: network.learned, self, untrained)

    def prepare(self, past: Rows) -> Products:
        """Sum the products of the training tasks' features, one task after another."""

        def of_task(rows: Rows) -> Products:
            phase = rows.x @ self.frequencies + self.phases
            cos, sin = (jnp.where(rows.mask[:, None], part, 0.0) for part in (jnp.cos(phase), jnp.sin(phase)))
            y = jnp.where(rows.mask, self.outputs.standard(jnp.asarray(rows.y)), 0.0)
            return Products(cos.T @ cos, cos.T @ sin, sin.T @ sin, y @ cos, y @ sin)

        return jax.lax.map(of_task, past)

    def precision(self, products: Products, x: Float[Array, "b d"], mask: Bool[Array, " b"]) -> Float[Array, "k k"]:
        """Return ridge I + Σ φ φᵀ over the rows of all training tasks and the observations of the test task."""
        shift = self.learned.embedding[:-1] @ self.shifts

        def add(total: Float[Array, "k k"], task: tuple) -> tuple[Float[Array, "k k"], None]:
            cos, sin, (cc, cs, ss, *_) = task
            one = cos[:, None] * (cc * cos - cs * sin) + sin[:, None] * (ss * sin - cs.T * cos)
            return total + one, None

        size = len(self.phases)
        # Task by task: one contraction over all tasks is forty times slower on a CPU.
        past, _ = jax.lax.scan(add, jnp.zeros((size, size)), (jnp.cos(shift), jnp.sin(shift), products))
        phi = jnp.where(mask[:, None], self.of_test_task(x), 0.0)
        return self.ridge * jnp.eye(size) + 2.0 / size * past + phi.T @ phi

    def of_test_task(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """Return φ of n inputs of the test task."""
        embedding = self.learned.embedding[-1]
        return self.features(x, jnp.broadcast_to(embedding, (len(x), len(embedding))))

    def posterior(self, prepared: Products, data: Rows) -> "RFGPPosterior":
        """Return the prediction for the test task, with the learned or solved mean and the variance from the precision
        of all rows."""
        x, y, mask = map(jnp.asarray, data)
        factor, ok = cholesky(self.precision(prepared, x, mask))
        weights = self.learned.weights
        if self.solved:
            weights = cho_solve((factor, True), self.projection(prepared, x, y, mask))
        return RFGPPosterior(self, weights, factor, ok)

    def projection(
        self, products: Products, x: Float[Array, "b d"], y: Float[Array, " b"], mask: Bool[Array, " b"]
    ) -> Float[Array, " k"]:
        """Return Σ φ y over the rows of all training tasks and the observations of the test task."""
        shift = self.learned.embedding[:-1] @ self.shifts
        past = jnp.sum(jnp.cos(shift) * products.cy - jnp.sin(shift) * products.sy, axis=0)
        own = jnp.where(mask, self.outputs.standard(y), 0.0) @ self.of_test_task(x)
        return jnp.sqrt(2.0 / len(self.phases)) * past + own


class RFGPPosterior(NamedTuple):
    """The prediction of the random features for the test task with these weights. `factor` is the lower Cholesky factor
    of the precision."""

    network: RandomFeatures
    weights: Float[Array, " k"]
    factor: Float[Array, "k k"]
    ok: Bool[Array, ""]
    jitter: float = 0.0

    def predict(self, x: Float[Array, "n d"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of f (without noise, as in Liu et al.) at n inputs."""
        phi = self.network.of_test_task(x)
        whitened = solve_triangular(self.factor, phi.T, lower=True)
        variance = self.network.ridge * jnp.sum(whitened**2, axis=0)
        return self.network.outputs.moments(phi @ self.weights, variance)


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> RandomFeatures:
    """Return the untrained network. `model`: that of `FeaturesModel`."""
    settings = read(FeaturesModel, model, "model")
    count, size = settings.random_features, settings.embedding
    frequencies, shifts, phases, learned = jax.random.split(key, 4)
    empty = LearnedWeights(jnp.zeros((tasks + 1, size)), jnp.zeros(count))
    return RandomFeatures(
        outputs=Outputs(jnp.zeros(()), jnp.ones(())),
        learned=empty,
        frequencies=jax.random.normal(frequencies, (dim, count), jnp.float64) / settings.lengthscale,
        shifts=jax.random.normal(shifts, (size, count), jnp.float64),
        phases=jax.random.uniform(phases, (count,), jnp.float64, 0.0, 2 * jnp.pi),
        ridge=jnp.asarray(settings.ridge, jnp.float64),
        solved=settings.weights == "solved",
    ).fresh(learned)


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[EmbeddingNetwork, Log]:
    """Train one network per (fold, seed) on the past tasks (`metabo.methods.embedding.networks.pretrain_networks`)."""

    schedule = read(FirstSchedule, spec["pretrain"], "config", f"methods.{spec['method']}.pretrain")

    def begin(key: Key[Array, ""]) -> RandomFeatures:
        return start(spec["model"], training.dim, training.tasks, key)

    return pretrain_networks(begin, schedule, training, keys, accelerator)
