"""Small networks and past rows for the tests of MIMO and RFGP."""

import jax
import jax.numpy as jnp
import numpy as np

from metabo.methods.embedding import mimo, rfgp
from metabo.tasks.rows import Rows

MODULES = {"mimo": mimo, "rfgp": rfgp}
MODELS = {
    "mimo": {"members": 3, "embedding": 2, "shared": [5], "unshared": [4, 6]},
    "rfgp": {"random_features": 12, "embedding": 2, "ridge": 0.7},
}
TASKS, DIM = 3, 2


def network(name, seed=0, **model):
    """An untrained network of three tasks on the unit square, its learned parameters away from special values."""
    made = MODULES[name].start(MODELS[name] | model, DIM, TASKS, jax.random.key(seed))
    rng = np.random.default_rng(seed)
    moved = jax.tree.map(lambda leaf: leaf + 0.4 * rng.normal(size=leaf.shape), made.learned)
    return type(made)(**{**vars(made), "learned": moved, "outputs": mimo.Outputs(jnp.asarray(1.5), jnp.asarray(2.0))})


def past(seed=0, counts=(6, 0, 4)):
    """Rows of three tasks, the valid ones in no order; what is masked is far away."""
    rng = np.random.default_rng(seed)
    width = 7
    mask = np.stack([rng.permutation(np.arange(width) < count) for count in counts])
    x, noise = rng.uniform(size=(TASKS, width, DIM)), 0.1 * rng.normal(size=(TASKS, width))
    y = 1.0 + np.arange(TASKS)[:, None] + np.sin(4 * x[..., 0]) - x[..., 1] + noise
    return Rows(*map(jnp.asarray, (np.where(mask[..., None], x, 50.0), np.where(mask, y, -90.0), mask)))


def vector(tree):
    """All floating-point leaves, flat."""
    return np.concatenate(
        [np.ravel(leaf) for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    )
