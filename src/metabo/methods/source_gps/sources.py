"""One GP per source task: a product of Matérn kernels on the inputs, zero mean, type-II maximum likelihood
(cm-BO §3.1; sheet §2.2).

The paper leaves open, and we chose: one lengthscale per input and factor, of at least 0.01
(`metabo.gp.kernels.Product`); a noise variance of at least 1e-6 (the jitter of every covariance here); inputs in the
unit cube; outputs standardised by the benchmark. cm-BO, RGPE and RM-GP-UCB share this and differ in the kernel.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from metabo.errors import ConfigError, unknown
from metabo.gp.features import Identity
from metabo.gp.fit import Log, lbfgs, over_pairs
from metabo.gp.kernels import RADIAL, Product
from metabo.gp.means import Zero
from metabo.gp.model import GP
from metabo.gp.settings import DEFAULT
from metabo.tasks.padding import columns
from metabo.tasks.rows import Rows


def make(shapes: tuple[str, ...] | list[str], dim: int) -> GP:
    """Return an untrained GP for `dim` inputs, with the initial values of all GPs here. Raises ConfigError for an
    unknown factor or no factor."""
    for shape in shapes:
        if shape not in RADIAL:
            raise unknown("factor of a source kernel", shape, RADIAL)
    if not shapes:
        raise ConfigError("a source kernel needs at least one factor, e.g. [matern32, matern12]")
    scale = jnp.full((len(shapes), dim), DEFAULT.lengthscale)
    kernel = Product(scale, jnp.asarray(DEFAULT.variance), tuple(shapes))
    return GP(Identity(), Zero(), kernel, jnp.asarray(DEFAULT.noise))


def repeated(gp: GP, count: int) -> GP:
    """Return `count` copies along a new leading axis."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), gp)


def fit(gp: GP, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"], steps: int) -> tuple[GP, Log]:
    """Maximise the marginal likelihood by L-BFGS from `gp`."""
    return lbfgs(lambda candidate: -candidate.log_prob(x, y, mask), gp, steps=steps)


def fit_all(shapes: list[str], rows: Rows, width: int, steps: int, accelerator: bool) -> tuple[GP, Log]:
    """Fit one GP to every task of `rows`, all in one program, and return GPs with a leading axis of tasks.

    Inputs get columns of zeros up to `width`, so that spaces share the program; these do not affect the fits.
    """
    dim, tasks = rows.x.shape[2], len(rows.y)
    data = Rows(jnp.asarray(columns(rows.x, width)), jnp.asarray(rows.y), jnp.asarray(rows.mask))
    starts = repeated(make(shapes, width), tasks)
    fitted, log = over_pairs(lambda pair: fit(pair[0], *pair[1], steps=steps), (starts, data), accelerator)
    return eqx.tree_at(lambda gp: gp.kernel.raw_lengthscale, fitted, fitted.kernel.raw_lengthscale[..., :dim]), log


def taken(gps: GP, index: Array | np.ndarray | int) -> GP:
    """Return the GPs at these positions of the leading axis."""
    return jax.tree.map(lambda leaf: leaf[index], gps)


def posteriors_at(
    gps: GP, rows: Rows, x: Float[Array, "v d"]
) -> tuple[Float[Array, "m v"], Float[Array, "m v v"], Bool[Array, " m"]]:
    """Return the posterior means (m, v) and covariances (m, v, v) of m source tasks at shared inputs, and whether each
    was sound. Rows narrower than `x` get columns of zeros."""
    spare = x.shape[1] - rows.x.shape[2]
    own = jnp.pad(jnp.asarray(rows.x), [(0, 0), (0, 0), (0, max(0, spare))])

    def one(gp, x_own, y, mask):
        posterior = gp.posterior(x_own, y, mask)
        return (*posterior.joint(x), posterior.ok)

    return jax.vmap(one)(gps, own, jnp.asarray(rows.y), jnp.asarray(rows.mask))
