"""The four test problems of HE-GP-UCB's paper (hegpucb §7), their variants, functions drawn from GPs and RKHS balls.

The paper's text of (a) and (b) cannot be what its figures show; the variants say what it may have been, the first of
each is the default:

- (a) `lengthscale`: Eq. 13. "code": 0.6x + N(x; 0.2, 0.08²)/8, the function of the authors' later code; "printed":
  0.8 in place of 1/8; "bump": 0.8 exp(-(x - 0.2)²/(2·0.08²)); "variance": 0.8 N(x; 0.2, 0.08), 0.08 as variance.
- (b) `period`: Eq. 14. "whole": every piece one full sine period, zero at both ends; "text": as printed, with an x in
  the second piece; "literal": as printed, the second piece constant.
- (c) `decomposition`: the function of Ziomek and Bou-Ammar (2023), App. C, in the authors' code; one variant.
- (d) `mean`: ten hills, one of them twice as high; heights, widths and length-scale are guesses.

Functions take points (n, d) and return (n,), in NumPy; kernels are correlations, k(x, x) = 1.
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from metabo.errors import ConfigError, unknown
from metabo.methods.elimination.problem import Problem

VARIANTS = {
    "lengthscale": ("code", "printed", "bump", "variance"),
    "period": ("whole", "text", "literal"),
    "decomposition": ("code",),
    "mean": ("hills",),
}
"""Problems and the variants of each, the default first."""
LENGTHSCALES = {"paper": (0.3, 0.4, 0.5, 0.7, 1.0), "code": (0.3314, 0.3920, 0.5399, 0.7625, 0.9955)}
"""Candidates of (a): §7 and the authors' later code. None is that of the function, whose bump has deviation 0.08."""
PERIODS = {"periods": (0.25, 3 / 14, 2 / 7, 1.0), "lengthscales": (2.0, 2.0, 2.0, 0.144)}
"""Candidates of (b): of fits to the pieces (two have period 1/4) and, last, to the whole (study hegpucb_fits)."""
GROUPS = (((0,), (1,), (2,)), ((0, 1), (2,)), ((0,), (1, 2)), ((1,), (0, 2)))
"""Candidates of (c): groups of inputs; the second is the truth."""
DECOMPOSITION_LENGTHSCALE = 0.15
HILLS = 10
"""Candidates of (d): which hill is tallest, and, last, none."""
MEAN_LENGTHSCALE = 0.1
JITTER = 1e-8
"""On the diagonal where functions are drawn from a GP; not part of the drawn function's noise."""


def lengthscale_function(x: Float[np.ndarray, "n 1"], variant: str = "code") -> Float[np.ndarray, " n"]:
    """Return function (a) on [0, 1] (Eq. 13). Raises ConfigError for another variant."""
    _require("lengthscale", variant)
    z = x[:, 0]
    spread = np.sqrt(0.08) if variant == "variance" else 0.08
    bump = np.exp(-0.5 * ((z - 0.2) / spread) ** 2)
    height = {"code": 0.125, "printed": 0.8, "bump": 0.8, "variance": 0.8}[variant]
    return 0.6 * z + height * bump / (1.0 if variant == "bump" else spread * np.sqrt(2.0 * np.pi))


def period_function(x: Float[np.ndarray, "n 1"], variant: str = "whole") -> Float[np.ndarray, " n"]:
    """Return function (b) on [0, 2], of period 1 (Eq. 14). Raises ConfigError for another variant."""
    _require("period", variant)
    z = x[:, 0] % 1.0
    whole = variant == "whole"
    second = {
        "whole": 1.5 * np.sin(8 * np.pi * (z - 3 / 8)),
        "text": 1.5 * np.sin(28 / 3 * np.pi * z),
        "literal": np.full_like(z, 1.5 * np.sin(28 / 3 * np.pi)),
    }[variant]
    third = 1.2 * np.sin((28 / 3 if whole else 8) * np.pi * (z - 11 / 28))
    fourth = 0.8 * np.sin((7 if whole else 8) * np.pi * (z - 5 / 7))
    return np.select([z < 0.25, z < 0.5, z < 5 / 7], [np.sin(8 * np.pi * (z - 1 / 8)), second, third], fourth)


PIECES = (0.0, 0.25, 0.5, 5 / 7, 1.0)
"""Ends of the pieces of function (b)."""


def decomposition_function(x: Float[np.ndarray, "n 3"], variant: str = "code") -> Float[np.ndarray, " n"]:
    """Return function (c) on [0, 1]³: additive in inputs 1 and 2 but for a correlated mode; input 3 is not used."""
    _require("decomposition", variant)
    u, v = (x[:, i] - 0.8 for i in (0, 1))
    rho, variance = 0.75, 0.02
    form = (u**2 - 2 * rho * u * v + v**2) / (variance * (1 - rho**2))
    mode = np.exp(-0.5 * form) / (2 * np.pi * variance * np.sqrt(1 - rho**2))
    # The factor of the additive part is that of the authors' code, not of a density in one dimension.
    single = np.exp(-((x[:, :2] - 0.3) ** 2) / (2 * 0.01)) / (2 * np.pi * 0.1)
    return mode / 3.5 + 2.5 / 3.5 * single.sum(axis=1)


def hill_means(x: Float[np.ndarray, "n 1"], height: float = 2.0, width: float = 0.04) -> Float[np.ndarray, "u n"]:
    """Return the prior means of (d) on [0, 1]: hill 1 to 10 twice as high as the others, and none (U = 11)."""
    centres = (np.arange(HILLS) + 0.5) / HILLS
    off = np.abs(x - centres)
    hills = height * np.where(off < width, 0.5 * (1.0 + np.cos(np.pi * off / width)), 0.0)
    tall = np.eye(HILLS + 1, HILLS) + 1.0
    return tall @ hills.T


def grid(counts: tuple[int, ...], upper: float = 1.0) -> Float[np.ndarray, "c d"]:
    """Return the points of a regular grid on [0, upper]^d, the last input fastest."""
    return np.array(list(product(*(np.linspace(0.0, upper, count) for count in counts))))


def rbf(x: Float[np.ndarray, "c d"], lengthscale: float) -> Float[np.ndarray, "c c"]:
    """Return exp(-|x - x'|²/(2ℓ²)); distances are taken input by input, exact for equal points."""
    squared = sum((x[:, None, i] - x[None, :, i]) ** 2 for i in range(x.shape[1]))
    return np.exp(-0.5 * squared / lengthscale**2)


def periodic(x: Float[np.ndarray, "c 1"], period: float, lengthscale: float) -> Float[np.ndarray, "c c"]:
    """Return exp(-2 sin²(π(x - x')/p)/ℓ²)."""
    return np.exp(-2.0 * np.sin(np.pi * (x - x.T) / period) ** 2 / lengthscale**2)


def additive(x: Float[np.ndarray, "c d"], groups: tuple[tuple[int, ...], ...], lengthscale: float) -> np.ndarray:
    """Return the mean over the groups of the RBF kernel on the group's inputs (c, c)."""
    total = rbf(x[:, list(groups[0])], lengthscale)
    for group in groups[1:]:
        total += rbf(x[:, list(group)], lengthscale)
    total /= len(groups)
    return total


def make(
    name: str,
    counts: tuple[int, ...],
    initial: int,
    noise_std: float,
    variant: str | None = None,
    lengthscales: str = "paper",
    height: float = 2.0,
    width: float = 0.04,
) -> Problem:
    """Return one of the paper's problems on a grid of `counts` points.

    `lengthscales`: candidates of (a) (`LENGTHSCALES`); height, width: of the hills of (d), whose f is to be drawn
    (`draw_means`; here it is the mean of candidate 0). Raises ConfigError for unknown names and numbers of points that
    do not fit.
    """
    variant = _require(name, variant or VARIANTS.get(name, ("",))[0])
    dims = 3 if name == "decomposition" else 1
    if len(counts) != dims or min(counts) < 2:
        raise ConfigError(f"problem '{name}': needs {dims} numbers of points, at least 2 each; got {list(counts)}")
    x = grid(counts, 2.0 if name == "period" else 1.0)
    means, scales, truth = None, None, -1
    if name == "lengthscale":
        if lengthscales not in LENGTHSCALES:
            raise unknown("set of length-scales", lengthscales, LENGTHSCALES)
        scales = np.array(LENGTHSCALES[lengthscales])
        f, kernels = lengthscale_function(x, variant), np.stack([rbf(x, scale) for scale in scales])
    elif name == "period":
        pairs = zip(*PERIODS.values(), strict=True)
        f, kernels, truth = period_function(x, variant), np.stack([periodic(x, *pair) for pair in pairs]), 3
    elif name == "decomposition":
        f, truth = decomposition_function(x, variant), 1
        kernels = np.stack([additive(x, groups, DECOMPOSITION_LENGTHSCALE) for groups in GROUPS])
    else:
        means, truth = hill_means(x, height, width), 0
        f, kernels = means[0], np.stack([rbf(x, MEAN_LENGTHSCALE)] * (HILLS + 1))
    means = np.zeros((len(kernels), len(x))) if means is None else means
    arrays = (jnp.asarray(array) for array in (x, kernels, means, f))
    return Problem(*arrays, initial, noise_std, truth, None if scales is None else jnp.asarray(scales))


def labels(name: str, lengthscales: str = "paper") -> list[str]:
    """Return what the candidates of a problem are called. Raises ConfigError, which lists the problems."""
    if name == "lengthscale":
        return [f"ℓ = {scale:.3g}" for scale in LENGTHSCALES[lengthscales]]
    if name == "period":
        return [f"p = {period:.3g}" for period in PERIODS["periods"]]
    if name == "decomposition":
        return [" ".join("{" + ",".join(str(i + 1) for i in group) + "}" for group in groups) for groups in GROUPS]
    if name == "mean":
        return [*(f"hill {i + 1}" for i in range(HILLS)), "none"]
    raise unknown("problem", name, VARIANTS)


def draw_means(problem: Problem, keys: Key[Array, " s"]) -> tuple[Float[Array, "s c"], Int[Array, " s"]]:
    """Draw, per key, the tallest hill u* uniformly from 1 to 10 and f ~ GP(m_u*, RBF): functions and u* of (d)."""
    pair = jax.vmap(jax.random.split)(keys)
    truth = jax.vmap(lambda key: jax.random.randint(key, (), 0, HILLS))(pair[:, 0])
    paths = draw_gp(problem.kernels[0], pair[:, 1])
    return problem.means[truth] + paths, truth


def draw_gp(gram: Float[Array, "c c"], keys: Key[Array, " s"]) -> Float[Array, "s c"]:
    """Draw one function of the zero-mean GP per key."""
    factor = jnp.linalg.cholesky(gram + JITTER * jnp.eye(len(gram)))
    return jax.vmap(lambda key: jax.random.normal(key, (len(gram),)))(keys) @ factor.T


def draw_rkhs(gram: Float[Array, "c c"], norm: float, centres: int, keys: Key[Array, " s"]) -> Float[Array, "s c"]:
    """Draw, per key, f = Σ a_i k(·, x_i) with `centres` random points of the pool and norm √(aᵀKa) = `norm` exactly."""

    def one(key):
        place, weight = jax.random.split(key)
        index = jax.random.choice(place, len(gram), (centres,), replace=False)
        a = jax.random.normal(weight, (centres,))
        size = jnp.sqrt(a @ gram[index][:, index] @ a)
        return norm / size * (a @ gram[index])

    return jax.vmap(one)(keys)


def within(x: Float[np.ndarray, "c d"], radius: float) -> Int[np.ndarray, "c m"]:
    """Return the points within Euclidean distance `radius` of every point, padded with the point itself (Δ_ε)."""
    distance = np.sqrt(sum((x[:, None, i] - x[None, :, i]) ** 2 for i in range(x.shape[1])))
    # A neighbour at exactly the radius must not be lost to rounding of the grid.
    near = distance <= radius * (1.0 + 1e-9)
    found = [np.flatnonzero(row) for row in near]
    most = max(map(len, found))
    return np.stack([np.pad(own, (0, most - len(own)), constant_values=i) for i, own in enumerate(found)])


def _require(name: str, variant: str) -> str:
    if name not in VARIANTS:
        raise unknown("problem", name, VARIANTS)
    if variant not in VARIANTS[name]:
        raise unknown(f"variant of problem '{name}'", variant, VARIANTS[name])
    return variant
