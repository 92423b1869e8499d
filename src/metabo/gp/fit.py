"""Pre-training of GPs: Adam on mini-batched NLL and full-batch L-BFGS on EKL, many (fold, seed) pairs in one program.

Each routine trains one pair; `over_pairs` runs them all inside one compiled program, one after another on a CPU (so
that the working set of one pair stays in cache) or side by side on an accelerator.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from metabo.compute.mapping import one_by_one
from metabo.gp.model import GP
from metabo.gp.objectives import nll
from metabo.tasks.rows import Rows

STALL = 1e-9
"""An L-BFGS step that lowers the loss by no more than this share of it (of 1, for smaller losses) makes no progress."""


class Log(NamedTuple):
    """What happened in one run. `loss` (steps,) is the loss at each step. `stopped` is the step whose loss or gradient
    (with Adam, also its square) was not finite, `steps` if only the loss of the result was not, and -1 if all were
    finite. From that step on, the last parameters with a finite loss are kept."""

    loss: Float[Array, " steps"]
    stopped: Int[Array, ""]


def _finite(*trees: PyTree) -> Bool[Array, ""]:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(trees)]).all()


def _select(condition: Bool[Array, ""], new: PyTree, old: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def batches_per_shuffle(counts: Sequence[int], batch: int) -> int:
    """Return how many disjoint batches one shuffle can serve; the smallest task with at least `batch` rows limits
    it."""
    return max(1, min((count // batch for count in counts if count >= batch), default=1))


def adam(
    gp: GP,
    rows: Rows,
    members: Int[Array, " m"],
    present: Bool[Array, " m"],
    key: Key[Array, ""],
    *,
    steps: int,
    learning_rate: float,
    batch: int,
    per_shuffle: int,
    decay: float = 1.0,
) -> tuple[GP, Log]:
    """Minimise the NLL (hyperbo Eq. 13) over the tasks `members` (where `present`) by Adam (hyperbo §7.2).

    The rate falls by half a cosine (Loshchilov and Hutter 2017) from `learning_rate` at the first step to `decay` times
    that after the last; 1 keeps it constant, as published. At every step each task contributes `batch` rows drawn
    uniformly without replacement, or all its rows if it has fewer. One shuffle serves `per_shuffle` consecutive
    disjoint batches: every batch alone is a uniform draw, at a fraction of the cost of shuffling at every step.
    Non-finite steps are recorded in the log and raise no error.
    """
    mask = rows.mask[members] & present[:, None]
    n = mask.shape[1]
    width = min(batch, n)
    counts = mask.sum(axis=1)
    rate = learning_rate if decay == 1 else optax.cosine_decay_schedule(learning_rate, steps, decay)
    optimiser = optax.adam(rate)

    def shuffle(block_key):
        # Valid rows come first, in random order: sort random bits with the row number packed below them (on CPU a
        # plain sort is seven times faster than an argsort).
        bits = jax.random.bits(block_key, mask.shape, "uint32").astype("uint64") >> 1
        bits = jnp.where(mask, bits, jnp.uint64(0xFFFFFFFF))
        order = (jnp.sort((bits << 32) | jnp.arange(n, dtype="uint64"), axis=1) & 0xFFFFFFFF).astype("int64")
        window = jnp.arange(per_shuffle)[:, None] * width + jnp.arange(width)
        large = (counts >= width)[:, None, None]
        position = jnp.minimum(jnp.where(large, window, jnp.arange(width)), n - 1)
        index = jnp.take_along_axis(order[:, None, :], position, axis=2)
        tasks = members[:, None, None]
        valid = jnp.take_along_axis(mask[:, None, :], index, axis=2)
        return jax.tree.map(lambda a: jnp.moveaxis(a, 1, 0), (rows.x[tasks, index], rows.y[tasks, index], valid))

    def step(carry, inputs):
        params, before, moments, stopped = carry
        number, batch_rows = inputs
        loss, gradient = jax.value_and_grad(lambda flat: nll(unravel(flat), *batch_rows))(params)
        updates, new_moments = optimiser.update(gradient, moments)
        # The moments hold the squared gradient: if that overflows, Adam silently stops moving. After the last step, one
        # more loss is computed to check the parameters that it gave.
        usable = jnp.isfinite(loss)
        sound = usable & (_finite(new_moments) | (number == steps))
        stopped = jnp.where((stopped < 0) & ~sound & (number <= steps), number, stopped)
        go = (stopped < 0) & (number < steps)
        before = jnp.where(usable, params, before)
        new = (optax.apply_updates(params, updates), before, new_moments)
        return (*_select(go, new, (before, before, moments)), stopped), loss

    def block(carry, number):
        batch_rows = shuffle(jax.random.fold_in(key, number))
        return jax.lax.scan(step, carry, (number * per_shuffle + jnp.arange(per_shuffle), batch_rows))

    # One flat vector of parameters: Adam and the guard are then a few operations instead of dozens of tiny ones.
    flat, unravel = ravel_pytree(gp)
    start = (flat, flat, optimiser.init(flat), jnp.asarray(-1))
    (flat, _, _, stopped), losses = jax.lax.scan(block, start, jnp.arange(steps // per_shuffle + 1))
    return unravel(flat), Log(losses.reshape(-1)[:steps], stopped)


def lbfgs(
    objective: Callable[[PyTree], Float[Array, ""]],
    gp: PyTree,
    *,
    steps: int,
    memory: int = 10,
    line_search_steps: int = 50,
    tolerance: float = 1e-3,
) -> tuple[PyTree, Log]:
    """Minimise `objective` from `gp` (any pytree) by L-BFGS with a zoom line search (limits of the authors' code).

    It stops when the gradient norm is at most `tolerance` (its square 1e-6, sheet §3), when neither a quasi-Newton step
    nor one along the gradient lowers the loss by more than the share `STALL`, or after a non-finite step. It then keeps
    the last parameters whose loss was finite, and `Log.loss` repeats the last value. A failed line search may end where
    the loss is higher: such a step is never taken, and the next one goes along the gradient.
    """
    search = optax.scale_by_zoom_linesearch(line_search_steps, initial_guess_strategy="one")
    optimiser = optax.lbfgs(memory_size=memory, linesearch=search)
    flat, unravel = ravel_pytree(gp)

    def value(vector):
        return objective(unravel(vector))

    value_and_grad = optax.value_and_grad_from_state(value)

    def step(carry):
        params, before, state, number, losses, stopped, _, fresh = carry
        loss, gradient = value_and_grad(params, state=state)
        updates, new_state = optimiser.update(gradient, state, params, value=loss, grad=gradient, value_fn=value)
        new = optax.apply_updates(params, updates)
        finite = _finite(loss, gradient, new)
        later = optax.tree.get(new_state, "value")
        stalled = finite & jnp.isfinite(later) & (loss - later <= STALL * jnp.maximum(1.0, jnp.abs(loss)))
        done = ~finite | (jnp.linalg.norm(gradient) <= tolerance) | (stalled & fresh)
        # Once finished, every later entry of the trace repeats the last loss.
        losses = jnp.where(jnp.arange(steps) >= number, loss, losses)
        stopped = jnp.where(finite, stopped, number)
        last = jnp.where(jnp.isfinite(loss), params, before)  # a line search may step to where the loss is -inf
        new, state = _select(~stalled, (new, new_state), (params, optimiser.init(params)))
        new, state = _select(~done, (new, state), (last, state))
        return new, last, state, number + 1, losses, stopped, done, stalled

    def unfinished(carry):
        return (carry[3] < steps) & ~carry[6]

    no = jnp.asarray(False)
    start = (flat, flat, optimiser.init(flat), jnp.asarray(0), jnp.zeros(steps), jnp.asarray(-1), no, ~no)
    flat, last, state, _, losses, stopped, done, fresh = jax.lax.while_loop(unfinished, step, start)
    # At the step limit only the line search that found the last point has evaluated it.
    unsound = ~done & ~fresh & ~jnp.isfinite(optax.tree.get(state, "value"))
    return unravel(jnp.where(unsound, last, flat)), Log(losses, jnp.where(unsound, steps, stopped))


def over_pairs(run: Callable, pairs: PyTree, accelerator: bool, *shared: PyTree) -> PyTree:
    """Apply `run(pair, *shared)` to every leading-axis entry of `pairs` in one compiled program.

    On an accelerator all pairs run side by side (vmap); on a CPU one after another (measured faster: one pair's
    matrices stay in cache, and no pair waits for another one's line search), with progress reported. Pass data in
    `shared`: arrays that `run` closes over become constants of the program, which then serves no other data.
    """
    if not accelerator:
        return one_by_one(run, pairs, shared, "fits")

    def all_pairs(pairs: PyTree, *shared: PyTree) -> PyTree:
        return jax.vmap(lambda pair: run(pair, *shared))(pairs)

    return eqx.filter_jit(all_pairs)(pairs, *shared)
