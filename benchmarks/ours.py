"""metabo's own code on the common work."""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from case import Case
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular
from problem import Parameters, Sizes, candidates, fit_rows, matched_rows, observed, parameters, training_rows

import metabo.gp.model
from metabo.bo.acquisition import make
from metabo.bo.fixed_prior import FixedPrior
from metabo.bo.loop import RunBatch, Steps, run_all
from metabo.gp.features import MLP
from metabo.gp.fit import Log, batches_per_shuffle, over_pairs
from metabo.gp.fit import adam as train_adam
from metabo.gp.fit import lbfgs as train_lbfgs
from metabo.gp.kernels import Stationary
from metabo.gp.means import Linear
from metabo.gp.model import GP
from metabo.gp.objectives import ekl_training
from metabo.methods.single_task import policy as single_task
from metabo.tasks.rows import Moments, Rows, sample_moments


def to_gp(params: Parameters, dtype: str = "float64") -> GP:
    """Return the common parameters as metabo's GP."""
    p = {name: jnp.asarray(value, dtype) for name, value in params.items()}
    layers = range(sum(name.startswith("weight") for name in p))
    features = MLP(tuple(p[f"weight{i}"] for i in layers), tuple(p[f"bias{i}"] for i in layers))
    kernel = Stationary(p["lengthscale"], p["variance"], "matern52")
    return GP(features, Linear(p["mean_weight"], p["mean_bias"]), kernel, p["noise"])


def compiled_case(function: Callable, arguments: Any, units: int | Callable[[Any], int], times: int = 1) -> Case:
    """Trace and compile `function`; the compiled program on `arguments`, `times` in a row, is what is measured.

    `units` is how many steps that is, or a function of the program's result that says it.
    """
    start = time.perf_counter()
    lowered = (function if hasattr(function, "lower") else jax.jit(function)).lower(*arguments)
    traced = time.perf_counter()
    program = lowered.compile()
    compiled = time.perf_counter()

    number = units(program(*arguments)) if callable(units) else units

    def repeat() -> int:
        for _ in range(times):
            jax.block_until_ready(eqx.filter(program(*arguments), eqx.is_array))
        return number

    return Case(repeat, traced - start, compiled - traced)


def autodiff_half_quadratic_logdet(covariance: jax.Array, residuals: jax.Array) -> jax.Array:
    """`metabo.gp.linalg.half_quadratic_logdet` without its closed-form gradient."""
    factor = jnp.linalg.cholesky(covariance, symmetrize_input=False)
    whitened = solve_triangular(factor, residuals, lower=True)
    return 0.5 * jnp.sum(whitened**2) + jnp.sum(jnp.log(jnp.diagonal(factor)))


def use_autodiff() -> None:
    """Make metabo differentiate through the Cholesky factor, in this process and from here on."""
    for module in (metabo.gp.model, metabo.gp.objectives):
        module.half_quadratic_logdet = autodiff_half_quadratic_logdet


def trainer(sizes: Sizes, steps: int, dtype: str = "float64") -> Callable:
    """Return Adam on the common tasks, as a function of (start, key)."""
    x, y = training_rows(sizes)
    rows = Rows(jnp.asarray(x, dtype), jnp.asarray(y, dtype), jnp.ones(y.shape, bool))
    members, present = jnp.arange(sizes.tasks), jnp.ones(sizes.tasks, bool)
    per_shuffle = batches_per_shuffle([sizes.rows] * sizes.tasks, sizes.batch)

    def train(gp, key):
        return train_adam(
            gp, rows, members, present, key, steps=steps, learning_rate=1e-3, batch=sizes.batch, per_shuffle=per_shuffle
        )

    return train


def adam(sizes: Sizes, dtype: str = "float64") -> Case:
    train = trainer(sizes, sizes.adam_steps, dtype)
    return compiled_case(train, (to_gp(parameters(sizes), dtype), jax.random.key(0)), sizes.adam_steps)


def adam_autodiff(sizes: Sizes) -> Case:
    use_autodiff()
    return adam(sizes)


def adam_pairs(sizes: Sizes, pairs: int, accelerator: bool) -> Case:
    """Adam for several (fold, seed) pairs in one program, through `over_pairs`."""
    train = trainer(sizes, sizes.pair_steps)
    starts = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(to_gp(parameters(sizes, s)) for s in range(pairs)))
    keys = jax.random.split(jax.random.key(0), pairs)
    run = jax.jit(lambda entries: over_pairs(lambda pair: train(*pair), entries, accelerator))
    return compiled_case(run, ((starts, keys),), pairs * sizes.pair_steps)


def moments(sizes: Sizes) -> Moments:
    x, y = matched_rows(sizes)
    mean, root = sample_moments(y)
    return Moments(*(jnp.asarray(part)[None] for part in (x, mean, root, np.ones(len(x), bool))))


def lbfgs(sizes: Sizes) -> Case:
    def train(gp, data):
        return train_lbfgs(lambda g: ekl_training(g, data), gp, steps=sizes.lbfgs_steps)

    return compiled_case(train, (to_gp(parameters(sizes)), moments(sizes)), lambda result: moves(result[1]))


def moves(log: Log) -> int:
    """Return how many iterations L-BFGS made: it may stop before its limit, and then repeats the last loss."""
    loss = np.asarray(log.loss)
    return 1 + int(np.sum(loss[:-1] != loss[-1]))


def lbfgs_autodiff(sizes: Sizes) -> Case:
    use_autodiff()
    return lbfgs(sizes)


def run_arguments(sizes: Sizes, policy: Any, runs: int, chunk: int) -> tuple:
    """Return what `run_all` takes: `runs` runs of one policy on the common pool, all from one given candidate."""
    x, y = candidates(sizes)
    policies = jax.tree.map(lambda leaf: leaf[None] if eqx.is_array(leaf) else leaf, policy)
    zeros = jnp.zeros(runs, int)
    initial = jnp.tile(jnp.asarray(observed(sizes, 1)), (runs, 1))
    listed = RunBatch(zeros, zeros, initial, jax.random.split(jax.random.key(0), runs))
    pool = (jnp.asarray(x)[None], jnp.asarray(y)[None], jnp.ones((1, sizes.pool), bool))
    return policies, *pool, listed, sizes.budget, chunk


def fixed_prior(sizes: Sizes, acquisition: str) -> FixedPrior:
    return FixedPrior(to_gp(parameters(sizes)), make(acquisition), sizes.budget + 1)


def run_bo(sizes: Sizes, acquisition: str = "pi") -> Steps:
    """Do the BO that `bo` measures, for a comparison of what was chosen."""
    return run_all(*run_arguments(sizes, fixed_prior(sizes, acquisition), 1, 1))


def bo(sizes: Sizes, acquisition: str = "pi") -> Case:
    given = run_arguments(sizes, fixed_prior(sizes, acquisition), sizes.runs, 1)
    return compiled_case(eqx.filter_jit(run_all), given, sizes.runs * sizes.budget)


def bo_accelerator(sizes: Sizes) -> Case:
    runs = sizes.accelerator_runs
    return compiled_case(
        eqx.filter_jit(run_all), run_arguments(sizes, fixed_prior(sizes, "pi"), runs, runs), runs * sizes.budget
    )


def refit(sizes: Sizes, features: list[int], mean: str, acquisition: str, runs: int, chunk: int = 1) -> Case:
    model = {"mean": mean, "kernel": "matern52", "features": features}
    start = single_task.start(model, sizes.dim, 1, jax.random.key(0))
    policy = single_task.policy(start, {"refit_steps": sizes.refit_steps}, acquisition, sizes.budget + 1)
    given = run_arguments(sizes, policy, runs, chunk)
    return compiled_case(eqx.filter_jit(run_all), given, runs * sizes.budget)


def refit_evaluation(sizes: Sizes) -> tuple[Callable, tuple]:
    """Return loss and gradient of STBOH's fit to `fit_points` observations as one function, and its arguments."""
    x, y, _ = map(jnp.asarray, fit_rows(sizes, sizes.fit_points))
    flat, unravel = ravel_pytree(
        single_task.start({"mean": "constant", "kernel": "matern52", "features": []}, sizes.dim, 1, jax.random.key(0))
    )

    def loss(vector, *data):
        raw = unravel(vector)
        return -single_task.hand_tuned_gp(raw).log_prob(*data) - single_task.hand_tuned_log_prior(raw)

    return jax.value_and_grad(loss), (flat, x, y, jnp.ones(len(y), bool))


def refit_loss(sizes: Sizes) -> Case:
    """Evaluate loss and gradient many times in one program, each at a point that the last one moved."""
    evaluate, arguments = refit_evaluation(sizes)

    def many(vector, *data):
        return jax.lax.fori_loop(0, sizes.evaluations, lambda _, v: v - 1e-9 * evaluate(v, *data)[1], vector)

    made = compiled_case(many, arguments, sizes.evaluations)
    return Case(made.repeat, made.trace_s, made.compile_s, {"evaluations_per_step": evaluations_per_step(sizes)})


def refit_loss_autodiff(sizes: Sizes) -> Case:
    use_autodiff()
    return refit_loss(sizes)


def evaluations_per_step(sizes: Sizes) -> float:
    """Return how often L-BFGS evaluates the loss for each of its steps: once, or more if its line search goes on."""
    evaluate, (flat, *data) = refit_evaluation(sizes)
    asked = []

    @jax.custom_vjp
    def loss(vector):
        return evaluate(vector, *data)[0]

    def forward(vector):
        jax.debug.callback(lambda: asked.append(1))
        return evaluate(vector, *data)

    loss.defvjp(forward, lambda gradient, by: (by * gradient,))
    _, log = jax.block_until_ready(train_lbfgs(loss, flat, steps=sizes.refit_steps))
    jax.effects_barrier()
    return len(asked) / moves(log)


def refit_stboh(sizes: Sizes, runs: int, chunk: int = 1) -> Case:
    return refit(sizes, [], "constant", "ucb18", runs, chunk)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "adam": {
        "metabo": adam,
        "metabo_float32": lambda sizes: adam(sizes, "float32"),
        "metabo_autodiff": adam_autodiff,
        "metabo_pairs_map": lambda sizes: adam_pairs(sizes, sizes.pairs, False),
        "metabo_pairs_vmap": lambda sizes: adam_pairs(sizes, sizes.pairs, True),
        "metabo_gpu": lambda sizes: adam_pairs(sizes, sizes.accelerator_pairs, True),
    },
    "lbfgs": {"metabo": lbfgs, "metabo_autodiff": lbfgs_autodiff, "metabo_gpu": lbfgs},
    "bo": {"metabo": bo, "metabo_ei": lambda sizes: bo(sizes, "ei"), "metabo_gpu": bo_accelerator},
    "refit": {
        "metabo_stboh": lambda sizes: refit_stboh(sizes, sizes.refit_runs),
        "metabo_stbo": lambda sizes: refit(sizes, list(sizes.layers), "linear_mlp", "pi", sizes.refit_runs),
        "metabo_gpu": lambda sizes: refit_stboh(sizes, sizes.accelerator_refits, sizes.accelerator_refits),
    },
    "refit_loss": {"metabo": refit_loss, "metabo_autodiff": refit_loss_autodiff},
}
