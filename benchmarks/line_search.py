"""Where L-BFGS ends after 100 iterations of H-EKL: ours, the line search of HyperBO's authors, and SciPy's.

    python benchmarks/line_search.py results/laptop/data/pd1_mini.npz

Every (fold, seed) of the split `held_out` is trained from the same start on the same moments. The authors' search, as
their code has it: backtracking, Armijo 1e-4 and curvature 0.9, step halved or times 2.1, at most 50 steps, first step
1/|g|, memory 10. Prints each final loss, and the mean difference with its standard error.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from metabo.compute import cores

cores.own_process()
cores.own_cores(threads=1, gpu=0)

import jax  # noqa: E402 (the cores must be pinned before)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.flatten_util import ravel_pytree  # noqa: E402
from jaxtyping import PyTree  # noqa: E402
from scipy.optimize import minimize  # noqa: E402

from metabo.gp.fit import lbfgs  # noqa: E402
from metabo.gp.objectives import ekl_training  # noqa: E402
from metabo.methods.pretrained.train import start  # noqa: E402
from metabo.plan import config  # noqa: E402
from metabo.plan.specs import training_spec  # noqa: E402
from metabo.tasks.benchmark import Benchmark  # noqa: E402
from metabo.tasks.rows import Moments  # noqa: E402
from metabo.tasks.training_set import moments, prior_keys, training_sets_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
STEPS, MEMORY, TRIES = 100, 10, 50
ValueAndGradient = Callable[[np.ndarray], tuple[float, np.ndarray]]


def direction(gradient: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return minus the two-loop recursion's estimate of the inverse Hessian times the gradient."""
    q, weights = gradient.copy(), []
    for s, y in reversed(pairs):
        weights.append((s @ q) / (s @ y))
        q -= weights[-1] * y
    if pairs:
        s, y = pairs[-1]
        q *= (s @ y) / (y @ y)
    for (s, y), weight in zip(pairs, reversed(weights), strict=True):
        q += s * (weight - (y @ q) / (s @ y))
    return -q


def authors(function: ValueAndGradient, x: np.ndarray) -> tuple[float, int]:
    """Return the loss at the end and the number of evaluations."""
    (loss, gradient), pairs, evaluations = function(x), [], 1
    for _ in range(STEPS):
        if gradient @ gradient <= 1e-6:
            break
        along = direction(gradient, pairs)
        if gradient @ along >= 0:
            along, pairs = -gradient, []
        step = 1.0 if pairs else 1.0 / np.linalg.norm(gradient)
        for _ in range(TRIES):
            new = x + step * along
            (later, slope), evaluations = function(new), evaluations + 1
            if not np.isfinite(later) or later > loss + 1e-4 * step * (gradient @ along):
                step *= 0.5
            elif slope @ along < 0.9 * (gradient @ along):
                step *= 2.1
            else:
                break
        if not later < loss:
            break
        s, y = new - x, slope - gradient
        pairs = [*pairs, (s, y)][-MEMORY:] if s @ y > 1e-12 else pairs
        x, loss, gradient = new, later, slope
    return float(loss), evaluations


def one(tree: PyTree, number: int) -> PyTree:
    """Return an entry of the leading axis."""
    return jax.tree.map(lambda leaf: leaf[number], tree)


def main(path: str) -> None:
    """Compare all fits of H-EKL on one benchmark's file."""
    benchmark = Benchmark.load(path)
    spec = training_spec(config.pretrain_spec(config.load(ROOT), benchmark.name, "held_out", "h_ekl"))
    (training,) = training_sets_of(benchmark, spec)
    keys = prior_keys(training, spec["seed"], spec["seeds"])
    starts = jax.vmap(lambda k: start(spec["model"], training.dim, training.tasks, jax.random.fold_in(k, 0)))(
        keys.reshape(-1)
    )
    draws = jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys.reshape(-1)).reshape(keys.shape)
    blocks = moments(training, draws, int(str(spec["pretrain"]["matched_points"])))
    _, unravel = ravel_pytree(one(starts, 0))
    fit = jax.jit(lambda gp, block: lbfgs(lambda g: ekl_training(g, block), gp, steps=STEPS)[0])
    value = jax.jit(jax.value_and_grad(lambda flat, block: ekl_training(unravel(flat), block)))
    ends = []
    for i in range(keys.size):
        gp, block = one(starts, i), one(blocks, i)

        def function(flat: np.ndarray, block: Moments = block) -> tuple[float, np.ndarray]:
            loss, gradient = value(jnp.asarray(flat), block)
            return float(loss), np.asarray(gradient)

        first = np.asarray(ravel_pytree(gp)[0])
        ours = function(np.asarray(ravel_pytree(fit(gp, block))[0]))[0]
        theirs, _ = authors(function, first)
        options = {"maxiter": STEPS, "maxcor": MEMORY, "maxfun": 100 * STEPS}
        scipy = minimize(function, first, jac=True, method="L-BFGS-B", options=options).fun
        ends.append((ours, theirs, scipy))
        print(f"fit {i}: ours {ours:.3f}, authors' search {theirs:.3f}, SciPy {scipy:.3f}", flush=True)
    table = np.asarray(ends)
    for column, name in ((1, "the authors' search"), (2, "SciPy")):
        apart = table[:, 0] - table[:, column]
        error = apart.std(ddof=1) / len(apart) ** 0.5
        print(f"ours less {name}: {apart.mean():.3f} +- {error:.3f}, lower in {(apart < 0).sum()} of {len(apart)}")


if __name__ == "__main__":
    main(sys.argv[1])
