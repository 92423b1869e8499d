"""Study x04, ours: on one matched block the H-EKL training loss is NLL plus a constant (sheet §2.6, check K2).

Both losses are evaluated at every step of one training run. Two controls vary along it: Eq. 6, which projects on the
range of the singular Σ̃, and two blocks with different numbers of functions, which EKL weighs by block (Eq. 8) and NLL
by function (Eq. 13).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from jaxtyping import Array, Float, Key

from metabo.compute.keys import stream
from metabo.gp.model import GP, build
from metabo.gp.objectives import degenerate_ekl, ekl_training, nll
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.tasks.rows import Moments, sample_moments

STUDIES = {"training_losses": {}}

POINTS, DIM = 24, 2
FUNCTIONS = (5, 2)
"""Functions of the trained block and of the second block: fewer than its points, so that Σ̃ is singular."""
MODEL = {"mean": "linear_mlp", "kernel": "matern52", "features": [8]}
TRUTH = {"mean": "constant", "kernel": "matern52", "features": []}
LEARNING_RATE = 0.02
DIFFERENCES = {
    "one_block": ("ekl_one_block", "nll_one_block"),
    "eq6": ("ekl_eq6", "nll_one_block"),
    "two_blocks": ("ekl_two_blocks", "nll_two_blocks"),
}
"""EKL and NLL that are compared; the first pair is on one block, the others are the controls."""


def constant(points: int) -> float:
    """Return EKL training loss minus NLL on one matched block of m points: -(m/2) ln 2π."""
    return -0.5 * points * float(np.log(2.0 * np.pi))


def sample(key: Key[Array, ""]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw two matched blocks (x (m, d), y (m, n)) from one GP."""
    truth, blocks = build(TRUTH, DIM, key), []
    for number, functions in enumerate(FUNCTIONS):
        input_key, value_key = jax.random.split(jax.random.fold_in(key, number))
        x = jax.random.uniform(input_key, (POINTS, DIM))
        factor = jnp.linalg.cholesky(truth.covariance(x, jnp.ones(POINTS, bool)))
        blocks.append((np.asarray(x), np.asarray(factor @ jax.random.normal(value_key, (POINTS, functions)))))
    return blocks


def moments(blocks: list[tuple[np.ndarray, np.ndarray]]) -> Moments:
    """Return the sample moments of matched blocks with equal numbers of points, padded to the most functions."""
    widest = max(y.shape[1] for _, y in blocks)
    parts = [(x, *sample_moments(y)) for x, y in blocks]
    padded = [(x, mean, np.pad(root, ((0, 0), (0, widest - root.shape[1])))) for x, mean, root in parts]
    x, mean, root = (jnp.asarray(np.stack(part)) for part in zip(*padded, strict=True))
    return Moments(x, mean, root, jnp.ones(mean.shape, bool))


def rows(blocks: list[tuple[np.ndarray, np.ndarray]]) -> tuple[Array, Array, Array]:
    """Return the same functions as tasks, for NLL: x (tasks, m, d), y (tasks, m), mask."""
    x = jnp.concatenate([jnp.broadcast_to(jnp.asarray(x), (y.shape[1], *x.shape)) for x, y in blocks])
    y = jnp.concatenate([jnp.asarray(y).T for _, y in blocks])
    return x, y, jnp.ones(y.shape, bool)


@eqx.filter_jit
def train(start: GP, block: Moments, steps: int) -> GP:
    """Minimise the EKL training loss by full-batch Adam; return the GPs of all steps along a leading axis.

    `fit.adam` and `fit.lbfgs` keep the last parameters only.
    """
    optimiser = optax.adam(LEARNING_RATE)

    def step(carry, _):
        gp, state = carry
        gradient = jax.grad(lambda gp: ekl_training(gp, block))(gp)
        updates, state = optimiser.update(gradient, state)
        return (optax.apply_updates(gp, updates), state), gp

    return jax.lax.scan(step, (start, optimiser.init(start)), length=steps + 1)[1]


@eqx.filter_jit
def losses(
    gp: GP, data: dict[str, Moments], tasks: dict[str, tuple[Array, Array, Array]]
) -> dict[str, Float[Array, ""]]:
    """Return EKL training loss and NLL of one GP on each set of blocks."""
    ekls = {f"ekl_{name}": ekl_training(gp, blocks) for name, blocks in data.items()}
    return ekls | {f"nll_{name}": nll(gp, *task) for name, task in tasks.items()}


class TrainingLossSpec(StudySpec):
    """Steps of Adam."""

    steps: int


def run(spec: TrainingLossSpec) -> Frames:
    """Return "loss" (step, metric, value) and "difference" (step, kind, value, expected) along one run.

    `expected` is the constant of `one_block`, and the controls' value at step 0.
    """
    key = stream(spec["seed"], "training_losses")
    blocks = sample(key)
    sets = {"one_block": blocks[:1], "two_blocks": blocks}
    data = {name: moments(chosen) for name, chosen in sets.items()}
    tasks = {name: rows(chosen) for name, chosen in sets.items()}
    path = train(build(MODEL, DIM, jax.random.fold_in(key, 2)), data["one_block"], spec["steps"])
    values = {name: np.asarray(v) for name, v in jax.lax.map(lambda gp: losses(gp, data, tasks), path).items()}
    values["ekl_eq6"] = _projected(path, blocks[0])
    steps = np.arange(spec["steps"] + 1)
    loss = [pd.DataFrame({"step": steps, "metric": name, "value": value}) for name, value in values.items()]
    gaps = {kind: values[ekl] - values[likelihood] for kind, (ekl, likelihood) in DIFFERENCES.items()}
    known = {kind: constant(POINTS) if kind == "one_block" else gap[0] for kind, gap in gaps.items()}
    difference = [
        pd.DataFrame({"step": steps, "kind": kind, "value": gap, "expected": known[kind]}) for kind, gap in gaps.items()
    ]
    return {"loss": pd.concat(loss, ignore_index=True), "difference": pd.concat(difference, ignore_index=True)}


def _projected(path: GP, block: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return Eq. 6 of every GP of the path."""
    x, estimate = jnp.asarray(block[0]), sample_moments(block[1])

    def gaussian(gp):
        phi = gp.features(x)
        return gp.mean(phi), gp.covariance(phi, jnp.ones(POINTS, bool))

    means, covariances = map(np.asarray, jax.lax.map(gaussian, path))
    return np.array([degenerate_ekl(m, c, *estimate) for m, c in zip(means, covariances, strict=True)])
