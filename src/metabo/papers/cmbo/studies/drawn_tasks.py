"""Synthetic source tasks of cm-BO's study of times: GPs of three inputs with outputs drawn from them."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from metabo.gp.model import GP
from metabo.methods.source_gps.sources import make, repeated
from metabo.tasks.rows import Rows

DIM, OBSERVATIONS = 3, 50
FACTORS = ("matern32", "matern12")


@partial(jax.jit, static_argnames=("count", "factors"))
def sources(count: int, key: Key[Array, ""], factors: tuple[str, ...] = FACTORS) -> tuple[GP, Rows]:
    """Return GPs of `count` source tasks with random lengthscales, and observations drawn from each."""
    where, scale, noise = jax.random.split(key, 3)
    x = jax.random.uniform(where, (count, OBSERVATIONS, DIM))
    gps = repeated(make(factors, DIM), count)
    raw = gps.kernel.raw_lengthscale + 0.5 * jax.random.normal(scale, gps.kernel.raw_lengthscale.shape)
    gps = eqx.tree_at(lambda g: g.kernel.raw_lengthscale, gps, raw)

    def drawn(gp, x, z):
        factor = jnp.linalg.cholesky(gp.kernel.gram(x) + 1e-6 * jnp.eye(len(x)))
        return factor @ z

    y = jax.vmap(drawn)(gps, x, jax.random.normal(noise, (count, OBSERVATIONS)))
    return gps, Rows(x, y, jnp.ones(y.shape, bool))


def locations(rows: Rows, count: int, key: Key[Array, ""]) -> Array:
    """Return `count` inputs, as many as possible of the source tasks' own."""
    own = rows.x.reshape(-1, DIM)
    spare = jax.random.uniform(key, (max(0, count - len(own)), DIM))
    return jnp.concatenate([jax.random.permutation(key, own)[:count], spare])
