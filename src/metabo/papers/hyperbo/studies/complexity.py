"""Study CPLX: measured cost of EKL and NLL against points M, functions N, steps K and batch size B (hyperbo Table 1).

Times are CPU times, the lowest of several repeats on one core (waiting for a core does not count). Memory is what the
compiled program reserves for intermediate results: exact, without a clock. `metabo.papers.hyperbo.studies.scaling` fits
the exponents.
"""

from collections.abc import Callable, Iterator
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, PyTree
from threadpoolctl import threadpool_limits

from metabo.compute import progress
from metabo.compute.keys import stream
from metabo.gp.model import GP, build
from metabo.gp.objectives import ekl_training, nll
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.clock import seconds
from metabo.papers.engine.studies.files import Frames
from metabo.tasks.rows import Moments, sample_moments

STUDIES = {"complexity": {"alone": True}}
"""`alone`: it measures time, so the workflow runs no other job beside it."""

MODEL = {"mean": "constant", "kernel": "squared_exponential", "features": []}
STEP = 1e-9
"""Length of a gradient step: the work does not depend on it."""


def data(points: int, functions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (m, 1) and random outputs (m, n)."""
    y = jax.random.normal(stream(seed, "complexity", points, functions), (points, functions))
    return np.linspace(0.0, 0.1 * points, points)[:, None], np.asarray(y)


Loss = Callable[..., Array]
"""(GP, arrays of its data) -> loss."""


def overhead(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return μ̃ and Σ̃ of matched outputs (m, n): what EKL needs once."""
    mean, root = sample_moments(y)
    return mean, root @ root.T


def square_root(root: np.ndarray) -> np.ndarray:
    """Return R (m, m) with R Rᵀ = root rootᵀ: Σ̃ without a trace of the number of functions."""
    m, n = root.shape
    return np.pad(root, ((0, 0), (0, m - n))) if n <= m else np.linalg.qr(root.T, mode="r").T


def block(points: int, functions: int, seed: int) -> Moments:
    """Return the moments of one matched block, the covariance by its square root."""
    x, y = data(points, functions, seed)
    mean, root = sample_moments(y)
    mask = jnp.ones((1, points), bool)
    return Moments(jnp.asarray(x)[None], jnp.asarray(mean)[None], jnp.asarray(square_root(root))[None], mask)


def tasks(points: int, functions: int, seed: int) -> tuple[Array, Array, Array]:
    """Return the functions with inputs of their own, so that none shares a Cholesky factor."""
    x, y = data(points, functions, seed)
    own = jnp.asarray(x) + 1e-3 * jnp.arange(functions)[:, None, None]
    return own, jnp.asarray(y).T, jnp.ones((functions, points), bool)


def sequential(gp: GP, x: Array, y: Array, mask: Array) -> Array:
    """NLL (Eq. 13) one function after another: the memory of one."""
    return -jnp.mean(jax.lax.map(lambda task: gp.log_prob(*task), (x, y, mask)))


def parallel(gp: GP, x: Array, y: Array, mask: Array) -> Array:
    """NLL (Eq. 13) of all functions side by side: the memory of all."""
    return nll(gp, x, y, mask)


def ekl(gp: GP, moments: Moments) -> Array:
    """The EKL training loss."""
    return ekl_training(gp, moments)


def descend(loss: Loss, gp: GP, arguments: PyTree, steps: Array) -> GP:
    """Take gradient steps on the full data; their number may be traced."""

    def step(_, gp):
        return jax.tree.map(lambda p, g: p - STEP * g, gp, jax.grad(loss)(gp, *arguments))

    return jax.lax.fori_loop(0, steps, step, gp)


def epoch(loss: Loss, gp: GP, batches: PyTree) -> GP:
    """Take one gradient step on each batch (leading axis): one pass over the points."""

    def step(gp, batch):
        return jax.tree.map(lambda p, g: p - STEP * g, gp, jax.grad(loss)(gp, *batch)), None

    return jax.lax.scan(step, gp, batches)[0]


def memory(function: Loss, *arguments: PyTree) -> float:
    """Return the bytes that the compiled function reserves besides arguments and result."""
    return float(jax.jit(function).lower(*arguments).compile().memory_analysis().temp_size_in_bytes)


class ComplexitySpec(StudySpec):
    """Repeats of each timing, and the grids.

    `points`: M; `functions`: N, the first one where M varies; `small`: M where N varies; `multiples`: N of the
    overhead, times `small`, the last one where M varies; `steps`: K; `batches`: B, the last one is the number of points
    of an epoch, which each size must divide.
    """

    repeats: int
    points: list[int]
    functions: list[int]
    small: int
    multiples: list[int]
    steps: list[int]
    batches: list[int]


def timed_losses(gp: GP, spec: ComplexitySpec) -> Iterator[tuple[str, str, str, str, int, float]]:
    """Time and memory of the overhead and of the losses, in M and in N."""
    seed, repeats, few = spec["seed"], spec["repeats"], spec["functions"][0]
    grid = [("M", m, m, few) for m in spec["points"]] + [("N", n, spec["small"], n) for n in spec["functions"]]
    for axis, size, m, n in progress.loop(grid, "sizes"):
        for objective, row, loss, make in (("ekl", "loss", ekl, block), ("nll", "loss", sequential, tasks)):
            arguments = make(m, n, seed)
            arguments = (arguments,) if isinstance(arguments, Moments) else arguments
            compiled = jax.jit(loss).lower(gp, *arguments).compile()
            yield objective, row, "time", axis, size, seconds(partial(compiled, gp, *arguments), repeats)
            yield objective, row, "memory", axis, size, float(compiled.memory_analysis().temp_size_in_bytes)
        shapes = jax.eval_shape(partial(_shapes, m, n))
        yield "nll", "parallel", "memory", axis, size, memory(parallel, gp, *shapes)
    many = spec["small"] * np.asarray(spec["multiples"])
    for axis, m, n in [("M", m, int(many[-1])) for m in spec["points"]] + [("N", spec["small"], int(n)) for n in many]:
        _, y = data(m, n, seed)
        yield "ekl", "overhead", "time", axis, m if axis == "M" else n, seconds(partial(overhead, y), repeats)


def _shapes(m: int, n: int) -> tuple[Array, Array, Array]:
    return jnp.zeros((n, m, 1)), jnp.zeros((n, m)), jnp.zeros((n, m), bool)


def timed_descent(gp: GP, spec: ComplexitySpec) -> Iterator[tuple[str, str, str, str, int, float]]:
    """Time of gradient descent in K, time and memory of one epoch of mini-batches in B."""
    seed, repeats, n = spec["seed"], spec["repeats"], spec["functions"][0]
    for objective, loss in (("ekl", ekl), ("nll", sequential)):
        arguments = _descent_data(objective, spec["batches"][-2], n, seed)
        full = eqx.filter_jit(descend)
        for steps in spec["steps"]:
            cost = seconds(partial(full, loss, gp, arguments, jnp.asarray(steps)), repeats)
            yield objective, "GD", "time", "K", steps, cost
        points = spec["batches"][-1]
        for size in spec["batches"]:
            one = _descent_data(objective, size, n, seed)
            batches = jax.tree.map(partial(_repeat, points // size), one)
            compiled = jax.jit(partial(epoch, loss)).lower(gp, batches).compile()
            cost = seconds(partial(compiled, gp, batches), repeats)
            yield objective, "SGD", "time", "B", size, cost
            yield objective, "SGD", "memory", "B", size, float(compiled.memory_analysis().temp_size_in_bytes)


def _repeat(times: int, leaf: Array) -> Array:
    return jnp.broadcast_to(leaf, (times, *leaf.shape))


def _descent_data(
    objective: str, points: int, functions: int, seed: int
) -> tuple[Moments] | tuple[Array, Array, Array]:
    return (block(points, functions, seed),) if objective == "ekl" else tasks(points, functions, seed)


def run(spec: ComplexitySpec) -> Frames:
    """Return "measure": objective, row, resource (time: CPU seconds, memory: bytes), axis, size, value."""
    gp = build(MODEL, 1, jax.random.key(0))
    with threadpool_limits(1):  # NumPy's threads would share the one core and count as work
        rows = [*timed_losses(gp, spec), *timed_descent(gp, spec)]
    return {"measure": pd.DataFrame(rows, columns=["objective", "row", "resource", "axis", "size", "value"])}
