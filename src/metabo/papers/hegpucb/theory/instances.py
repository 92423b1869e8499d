"""The instances on which the theorems are checked: domains, candidates, the truth, and functions drawn from it."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from metabo.methods.elimination.problem import Problem
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.theory.kernels import hills

R = 0.1
"""Standard deviation of the noise where nothing else is said; the GPs have its variance."""
CENTRES = 8
"""Kernel sections that an RKHS function is a sum of."""
TALL = 12.0
"""Height of a hill that one or two observations show to be absent; §7(d)'s 4 is within the intervals for long."""

HIGH = 30.0
"""Height of a hill that makes the worst regret of an iteration large beside the bounds, which B enters only by 2|U|B.
"""


class Instance(NamedTuple):
    """A domain of c points with |U| candidates: kernels (U, c, c), means (U, c), and which of them f is of."""

    x: Float[np.ndarray, "c d"]
    kernels: Float[np.ndarray, "u c c"]
    means: Float[np.ndarray, "u c"]
    truth: int

    @property
    def many(self) -> int:
        """|U|."""
        return len(self.kernels)

    def problem(self, noise: float = R) -> Problem:
        """Return it as a problem of the package, without initial points."""
        x, kernels, means = (jnp.asarray(v, jnp.float64) for v in (self.x, self.kernels, self.means))
        return Problem(x, kernels, means, jnp.zeros(len(self.x)), 0, jnp.asarray(noise), self.truth)


def line(count: int, length: float = 1.0) -> Float[np.ndarray, " c"]:
    """Return `count` equally spaced points of [0, length]."""
    return np.linspace(0.0, length, count)


def lengthscales(values: tuple[float, ...], truth: int, points: int = 101) -> Instance:
    """Return candidates that are the length-scales of an RBF kernel on [0, 1]."""
    x = line(points)[:, None]
    kernels = np.stack([problems.rbf(x, v) for v in values])
    return Instance(x, kernels, np.zeros((len(values), points)), truth)


def means(truth: int, height: float = 4.0, count: int = 10, candidates: int | None = None) -> Instance:
    """Return candidates that are prior means (§7(d)) on 101 points of [0, 1], RBF kernel with ℓ = 0.1.

    Of `count` hills of height 2 candidate u raises hill u to `height`, the last candidate none. `candidates`: how many
    there are (count + 1 if not given).
    """
    x = line(101)
    raised = [*range(count if candidates is None else candidates - 1), None]
    own = np.stack([hills(x, tallest, count, height) for tallest in raised])
    kernel = problems.rbf(x[:, None], 0.1)
    return Instance(x[:, None], np.broadcast_to(kernel, (len(own), *kernel.shape)), own, truth % len(own))


def one_hill(points: int = 101) -> Instance:
    """Return three means on [0, 1], RBF kernel with ℓ = 0.1: a hill of height HIGH at 1/4, one at 3/4, none; f has the
    first. On it the regret bounds are below T (max f - min f), which no policy exceeds, from T of about 50 on."""
    x = line(points)
    own = np.stack([hills(x, tallest, 2, HIGH) for tallest in (0, 1, None)])
    kernel = problems.rbf(x[:, None], 0.1)
    return Instance(x[:, None], np.broadcast_to(kernel, (len(own), *kernel.shape)), own, 0)


def periods(truth: int, points: int = 101) -> Instance:
    """Return candidates that are the periods (§7(b)) of a periodic kernel on [0, 2], ℓ = 0.5."""
    x = line(points, 2.0)[:, None]
    kernels = np.stack([problems.periodic(x, p, 0.5) for p in problems.PERIODS["periods"]])
    return Instance(x, kernels, np.zeros(kernels.shape[:2]), truth)


def decompositions(truth: int, side: int = 5) -> Instance:
    """Return candidates that are the decompositions of three inputs (§7(c)) on a grid of side³ points, ℓ = 0.3."""
    x = problems.grid((side, side, side))
    kernels = np.stack([problems.additive(x, groups, 0.3) for groups in problems.GROUPS])
    return Instance(x, kernels, np.zeros(kernels.shape[:2]), truth)


def alone(instance: Instance) -> Instance:
    """Return the same instance with the truth as its only candidate."""
    own = slice(instance.truth, instance.truth + 1)
    return instance._replace(kernels=instance.kernels[own], means=instance.means[own], truth=0)


def gp_draws(rng: np.random.Generator, instance: Instance, count: int) -> Float[np.ndarray, "n c"]:
    """Draw f ~ GP(μ_0^{u*}, k^{u*}) on the domain."""
    values, vectors = np.linalg.eigh(instance.kernels[instance.truth])
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return instance.means[instance.truth] + rng.standard_normal((count, len(values))) @ root.T


def rkhs_draws(rng: np.random.Generator, instance: Instance, count: int, norm: float) -> Float[np.ndarray, "n c"]:
    """Draw f = Σ_i a_i k^{u*}(·, c_i) with norm exactly `norm`, c_i uniform on the domain."""
    gram = instance.kernels[instance.truth]
    places = rng.integers(0, len(gram), (count, CENTRES))
    weights = rng.standard_normal((count, CENTRES))
    squared = np.einsum("ni,nij,nj->n", weights, gram[places[:, :, None], places[:, None, :]], weights)
    return np.einsum("ni,nic->nc", weights * (norm / np.sqrt(squared))[:, None], gram[places])
