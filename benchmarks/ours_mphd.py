"""metabo's own code for the steps of MPHD."""

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from case import Case
from ours import compiled_case
from problem import HYPERPRIOR, THETA, Sizes, domain_pool, domain_rows, estimates, observed

from metabo.bo.loop import RunBatch, run_all
from metabo.gp.features import Identity
from metabo.gp.fit import adam, batches_per_shuffle
from metabo.gp.kernels import Stationary
from metabo.gp.means import Constant
from metabo.gp.model import GP
from metabo.methods.hierarchical import network as prior_network
from metabo.methods.hierarchical import policy as hierarchical_policy
from metabo.methods.hierarchical.hyperprior import Parameters
from metabo.methods.hierarchical.train import Hierarchical, make_prior
from metabo.tasks.padding import columns
from metabo.tasks.rows import Rows


def start(width: int) -> GP:
    """Return the GP that every fit of a domain starts from."""
    raw = {name: jnp.asarray(value) for name, value in THETA.items()}
    kernel = Stationary(jnp.full(width, raw["lengthscale"]), raw["variance"], "matern52")
    return GP(Identity(), Constant(raw["constant"]), kernel, raw["noise"])


def step1(sizes: Sizes, width: int) -> Case:
    """Adam on the functions of one domain, its inputs padded to `width`."""
    x, y = domain_rows(sizes)
    rows = Rows(jnp.asarray(columns(x, width)), jnp.asarray(y), jnp.ones(y.shape, bool))
    members, present = jnp.arange(sizes.functions), jnp.ones(sizes.functions, bool)
    batch = min(sizes.batch, sizes.points)
    per_shuffle = batches_per_shuffle([sizes.points] * sizes.functions, batch)

    def train(gp, rows, key):
        return adam(
            gp, rows, members, present, key,
            steps=sizes.step1_steps, learning_rate=1e-3, batch=batch, per_shuffle=per_shuffle,
        )  # fmt: skip

    return compiled_case(train, (start(width), rows, jax.random.key(0)), sizes.step1_steps)


def step2(sizes: Sizes) -> Case:
    """Train the prior network on the estimates of all domains."""
    context, values = map(jnp.asarray, estimates(sizes))
    mask = jnp.ones(len(values), bool)

    def train(network):
        return prior_network.train(network, context, values, mask, steps=sizes.network_steps, learning_rate=1e-3)

    return compiled_case(train, (prior_network.make(jax.random.key(0)),), sizes.network_steps)


def params(sizes: Sizes) -> Hierarchical:
    """Return the hierarchical GP of the common problem."""
    return Hierarchical(start(sizes.inputs), make_prior(Parameters(**HYPERPRIOR), sizes.inputs))


def mapped(sizes: Sizes, runs: int) -> Case:
    """BO with a MAP fit after each observation, `runs` runs side by side."""
    x, y = domain_pool(sizes)
    policy = hierarchical_policy.policy(params(sizes), {"refit_steps": sizes.map_steps, "pi_threshold": 0.1}, "pi",
                                        sizes.budget + 1)  # fmt: skip
    policies = jax.tree.map(lambda leaf: leaf[None] if isinstance(leaf, jax.Array) else leaf, policy)
    zeros = jnp.zeros(runs, int)
    first = jnp.asarray(observed(replace(sizes, pool=sizes.points), 1))
    listed = RunBatch(zeros, zeros, jnp.tile(first, (runs, 1)), jax.random.split(jax.random.key(0), runs))
    pool = (jnp.asarray(x)[None], jnp.asarray(y)[None], jnp.ones((1, sizes.points), bool))
    return compiled_case(eqx.filter_jit(run_all), (policies, *pool, listed, sizes.budget, runs), runs * sizes.budget)


def of_domains(sizes: Sizes) -> np.ndarray:
    """Return the gradient of Step 1 at its start, for a comparison: constant, lengthscales, variance, noise."""
    x, y = domain_rows(sizes)

    def loss(gp):
        logs = jax.vmap(gp.log_prob)(jnp.asarray(x), jnp.asarray(y), jnp.ones(y.shape, bool))
        return -jnp.mean(logs)

    g = jax.grad(loss)(start(sizes.inputs))
    return np.concatenate([[g.mean.value], g.kernel.raw_lengthscale, [g.kernel.raw_variance], [g.raw_noise]])


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "mphd_step1": {
        "metabo": lambda sizes: step1(sizes, sizes.inputs),
        "metabo_widened": lambda sizes: step1(sizes, sizes.widest),
    },
    "mphd_step2": {"metabo": step2},
    "mphd_map": {
        "metabo": lambda sizes: mapped(sizes, sizes.map_runs),
        "metabo_single": lambda sizes: mapped(sizes, 1),
        "metabo_gpu": lambda sizes: mapped(sizes, sizes.accelerator_maps),
    },
}
