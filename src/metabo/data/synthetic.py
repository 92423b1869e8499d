"""The synthetic super-datasets S and L (mphd §3.2, App. E.1): GPs whose parameters come from known priors.

Each domain has its own number of inputs and its own GP: constant mean, Matérn kernel with one length-scale per input,
noise. The inputs of every function are its own, uniform on the unit cube. Outputs are drawn jointly with their noise,
as in the authors' code; they are the outputs of the tasks, so regret is measured on them. Each function is factorised
by itself, and each domain and function has its own key: so none of them depends on how many there are.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from metabo.compute.keys import stream
from metabo.compute.memory import check_memory
from metabo.data import counts
from metabo.data.initial import POINTS, fifth, initial_points
from metabo.errors import NumericsError
from metabo.gp.kernels import RADIAL, self_squared_distances
from metabo.gp.linalg import JITTER, cholesky
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Count, Facts, TruePriors, Truth
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task

BENCHMARKS = {
    "mphd_s": {
        "dataset": None,
        "matched": False,
        "default_split": "held_out",
        "package": None,
        "settings": ["domains", "functions", "points", "seed"],
        "sizes": "mphd",
        "truth": True,
    },
    "mphd_l": {
        "dataset": None,
        "matched": False,
        "default_split": "held_out",
        "package": None,
        "settings": ["domains", "functions", "points", "seed"],
        "sizes": "mphd",
        "truth": True,
    },
}

Pair = tuple[float, float]


class Design(NamedTuple):
    """How the GPs of a super-dataset are drawn: `dims`, least and greatest number of inputs d; Normal(mean, std) of the
    constant; Gamma(a shape, b rate) of signal variance, noise variance and each length-scale, whose a and b are
    (slope, intercept) in d."""

    kernel: str
    dims: tuple[int, int]
    constant: Pair
    lengthscale: tuple[Pair, Pair]
    variance: Pair
    noise: Pair

    def prior(self, dim: int) -> TruePriors:
        """Return the priors of a domain of `dim` inputs: [mean, std] of the constant, [a, b] of the others."""
        shape, rate = (slope * dim + intercept for slope, intercept in self.lengthscale)
        return {
            "constant": list(self.constant),
            "lengthscale": [shape, rate],
            "variance": list(self.variance),
            "noise": list(self.noise),
        }


DESIGNS = {
    "mphd_s": Design(
        "matern32", (2, 5), (1.0, 1.0), ((0.0, 10.0), (0.0, 30.0)), variance=(1.0, 1.0), noise=(10.0, 100000.0)
    ),
    "mphd_l": Design(
        "matern52", (2, 14), (0.5, 0.2), ((0.07692, 0.8462), (-0.3539, 5.7077)), variance=(15.0, 100.0),
        noise=(1.0, 10000.0),
    ),
}  # fmt: skip
"""mphd App. E.1."""


class Domain(NamedTuple):
    """A domain with its GP: `prior` as `Design.prior` gives it, and the parameters drawn from it."""

    name: str
    prior: TruePriors
    constant: float
    lengthscale: Float[np.ndarray, " d"]
    variance: float
    noise: float

    @property
    def dim(self) -> int:
        """Number of inputs d."""
        return len(self.lengthscale)

    def truth(self) -> Truth:
        """Return what the benchmark's facts say of the domain: its parameters and their priors."""
        lengthscale = self.lengthscale.tolist()
        return {
            "parameters": {
                "constant": self.constant, "lengthscale": lengthscale, "variance": self.variance, "noise": self.noise,
            },
            "prior": self.prior,
        }  # fmt: skip


def domain(dataset: str, seed: int, number: int) -> Domain:
    """Draw domain `number` (from 1) of a super-dataset: its number of inputs, uniform, then its parameters."""
    design = DESIGNS[dataset]
    dim_key, key = jax.random.split(stream(seed, dataset, "domain", number))
    least, most = design.dims
    dim = int(jax.random.randint(dim_key, (), least, most + 1))
    prior = design.prior(dim)
    drawn = _parameters(key, {name: jnp.asarray(numbers) for name, numbers in prior.items()}, most)
    constant, variance, noise = (float(drawn[name]) for name in ("constant", "variance", "noise"))
    return Domain(f"d{number:02d}_{dim}", prior, constant, np.asarray(drawn["lengthscale"][:dim]), variance, noise)


@partial(jax.jit, static_argnums=2)
def _parameters(
    key: Key[Array, ""], prior: dict[str, Float[Array, " 2"]], inputs: int
) -> dict[str, Float[Array, "..."]]:
    """Draw the parameters of a domain from their priors, a length-scale for each of as many inputs as there may be: so
    one program serves domains of all sizes."""

    def gamma(key: Key[Array, ""], name: str, *size: int) -> Float[Array, "..."]:
        shape, rate = prior[name]
        return jax.random.gamma(key, shape, size) / rate

    keys = jax.random.split(key, 4)
    mean, std = prior["constant"]
    return {
        "constant": mean + std * jax.random.normal(keys[0]),
        "lengthscale": gamma(keys[1], "lengthscale", inputs),
        "variance": gamma(keys[2], "variance"),
        "noise": gamma(keys[3], "noise"),
    }


def function(
    dataset: str, seed: int, place: Domain, number: int, points: int
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    """Draw function `number` (from 1) of a domain: inputs and noisy outputs. Raises NumericsError, which names it."""
    key = stream(seed, dataset, "function", place.name, number)
    parameters = (place.constant, place.lengthscale, place.variance, place.noise)
    x, y, ok = _draw(key, *parameters, DESIGNS[dataset].kernel, points)
    if not ok:
        raise NumericsError(
            f"{dataset}, domain {place.name}, function {number}: the covariance of its {points} points cannot be "
            f"factorised (noise {place.noise:.2g}, length-scales {place.lengthscale.round(3).tolist()}); take another "
            "seed"
        )
    return np.asarray(x), np.asarray(y)


@partial(jax.jit, static_argnums=(5, 6))
def _draw(
    key: Key[Array, ""],
    constant: float | Float[Array, ""],
    lengthscale: Float[Array, " d"] | Float[np.ndarray, " d"],
    variance: float | Float[Array, ""],
    noise: float | Float[Array, ""],
    kernel: str,
    points: int,
) -> tuple[Float[Array, "n d"], Float[Array, " n"], Bool[Array, ""]]:
    where, values = jax.random.split(key)
    x = jax.random.uniform(where, (points, lengthscale.shape[0]))
    return x, *outputs(values, x, constant, lengthscale, variance, noise, kernel)


def outputs(
    key: Key[Array, ""],
    x: Float[Array, "n d"],
    constant: float | Float[Array, ""],
    lengthscale: Float[Array, " d"] | Float[np.ndarray, " d"],
    variance: float | Float[Array, ""],
    noise: float | Float[Array, ""],
    kernel: str,
) -> tuple[Float[Array, " n"], Bool[Array, ""]]:
    """Draw y ~ N(constant, K + (noise + 1e-6) I) at x (the authors' code), and say whether that could be factorised."""
    gram = variance * RADIAL[kernel](self_squared_distances(x / lengthscale))
    factor, ok = cholesky(gram + (noise + JITTER) * jnp.eye(len(x)))
    return constant + factor @ jax.random.normal(key, (len(x),)), ok


def load(name: str, settings: Mapping[str, object], archive: Path | None = None) -> Benchmark:
    """Draw a super-dataset. Settings: `domains`, `functions` of each, `points` of each function, `seed`.

    One space per domain, named "d01_4" for domain 1 with 4 inputs, and one fold per space: the last fifth of its
    functions are test tasks (mphd App. E.1). Raises ConfigError for sizes that are too small, or do not fit in memory.
    A domain needs two functions: with one there would be nothing to test, or to train on.
    """
    chosen = counts.take(name, settings, {"domains": 20, "functions": 10, "points": 300, "seed": 0})
    domains = counts.whole_number(name, "domains", chosen["domains"], least=2)
    functions = counts.whole_number(name, "functions", chosen["functions"], least=2)
    points = counts.whole_number(name, "points", chosen["points"], least=POINTS)
    seed = counts.whole_number(name, "seed", chosen["seed"], least=0)
    where = f"benchmark '{name}': the covariance of a function's {points} points"
    check_memory(4 * points**2 * 8, where, f"lower config key 'benchmarks.{name}.points'")
    spaces, tasks, folds, truth = {}, {}, [], {}
    for number in range(1, domains + 1):
        place = domain(name, seed, number)
        spaces[place.name] = _space(place)
        truth[place.name] = place.truth()
        own = [_task(place, i, *function(name, seed, place, i, points)) for i in range(1, functions + 1)]
        tasks |= {task.name: task for task in own}
        names = tuple(task.name for task in own)
        cut = functions - fifth(functions)
        folds.append(Fold(place.name, place.name, names[:cut], names[cut:]))
    initial = {test: initial_points(tasks[test], seed) for fold in folds for test in fold.test}
    facts = Facts(counts=_counts(spaces, functions, points), truth=truth)
    return Benchmark(name, spaces, tasks, (), {"held_out": tuple(folds)}, initial, facts)


def _space(place: Domain) -> SearchSpace:
    return SearchSpace(place.name, tuple(Parameter(f"x{i}", "linear", 0.0, 1.0) for i in range(1, place.dim + 1)))


def _task(place: Domain, number: int, x: np.ndarray, y: np.ndarray) -> Task:
    name = f"{place.name}/{number:02d}"
    return Task(name, place.name, name, x, y, y, np.arange(len(y)), np.zeros((0, place.dim)))


def _counts(spaces: dict[str, SearchSpace], functions: int, points: int) -> tuple[Count, ...]:
    dims = [space.dim for space in spaces.values()]
    found = {"domains": len(spaces), "functions of each": functions, "of these tested": fifth(functions)}
    found |= {"points of each function": points, "fewest inputs": min(dims), "most inputs": max(dims)}
    return tuple(counts.count(label, number) for label, number in found.items())
