"""Gaussian processes of any size, spacing and noise against long doubles, and the tuner with outcomes of any size."""

import atexit
import math
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from metabo.errors import NumericsWarning
from tests.adversary.judge import Attempt
from tests.adversary.long_doubles import Exact, Inputs, Moments, differing, exact
from tests.tuner.conftest import HEADER, SPACE, rows, write

VARIANCES = (1e10, 1e-10, 1.0)
NOISES = (1e-9, 1e-6, 1e-3, 0.1)
"""Of the noise, as shares of the variance."""
KERNELS = ("matern12", "matern32", "matern52", "squared_exponential")
SPACINGS = ("random", "repeated", "near", "all equal", "line")
SIZES = (1e10, 1e-10, 1e300, -1e300, 1.0)


def attempt(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """Make a try: the posterior, `metabo.GP` after a fit, and the tuner, in turn."""
    return (_posterior, _public, _tuned)[number % 3](number // 3, rng, place)


# --- the posterior ----------------------------------------------------------------------------------------------------


def _points(spacing: str, count: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    x = rng.uniform(size=(count, dim))
    if spacing == "repeated":
        x[count // 2 :] = x[: count - count // 2]
    elif spacing == "near":
        x[count // 2 :] = x[: count - count // 2] + 1e-9 * rng.uniform(size=(count - count // 2, dim))
    elif spacing == "all equal":
        x[:] = x[0]
    elif spacing == "line":
        x[:] = np.linspace(0, 1, count)[:, None]
    return x


def _posterior(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """The posterior and the likelihood of a model whose parameters are set."""
    del place
    variance, noise = VARIANCES[number % 3], float(rng.choice(NOISES)) * VARIANCES[number % 3]
    kernel, spacing = str(rng.choice(KERNELS)), str(rng.choice(SPACINGS))
    dim, count, lengthscale = 2, 12, 10.0 ** rng.uniform(-1.5, 1, size=2)
    x = _points(spacing, count, dim, rng)
    inputs = Inputs(x, math.sqrt(variance) * rng.normal(size=count), np.vstack([rng.uniform(size=(4, dim)), x[:2]]))

    def act() -> tuple[Moments, bool, float, tuple]:
        from metabo.compute.precision import float64

        return float64(lambda: _moments_of(kernel, lengthscale, variance, noise, inputs))()

    def right(found: tuple[Moments, bool, float, tuple]) -> str:
        moments, ok, jitter, (length, size, least) = found
        if not ok or jitter:
            return f"ok is {ok} and the jitter {jitter}, although the documented one makes the covariance positive"
        if not (np.allclose(length, lengthscale, rtol=1e-6) and math.isclose(size, variance, rel_tol=0.01)):
            return f"the parameters that were set are {length}, {size}"
        return differing(moments, exact(kernel, length, size, least, 0.0, inputs))

    return Attempt(
        f"posterior of {kernel}, variance {variance:g}, noise {noise:g}, {spacing} inputs", act, right, "value"
    )


def _moments_of(
    kernel: str, lengthscale: np.ndarray, variance: float, noise: float, inputs: Inputs
) -> tuple[Moments, bool, float, tuple]:
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from metabo.gp.constraints import inverse_positive
    from metabo.gp.model import build

    gp = build({"mean": "zero", "kernel": kernel, "features": []}, inputs.x.shape[1], jax.random.key(0))
    raw = [inverse_positive(jnp.asarray(one)) for one in (lengthscale, max(variance, 1.001e-10), max(noise, 1.001e-10))]
    gp = eqx.tree_at(lambda one: (one.kernel.raw_lengthscale, one.kernel.raw_variance, one.raw_noise), gp, raw)
    x, y, seen = jnp.asarray(inputs.x), jnp.asarray(inputs.y), jnp.ones(len(inputs.y), dtype=bool)
    posterior = gp.posterior(x, y, seen)
    mean, spread = posterior.predict(jnp.asarray(inputs.new))
    moments = Moments(np.asarray(mean), np.asarray(spread), float(gp.log_prob(x, y, seen)))
    given = np.asarray(gp.kernel.lengthscale), float(gp.kernel.variance), float(gp.noise)
    return moments, bool(posterior.ok), float(posterior.jitter), given


def _parameters(gp: Any) -> tuple[np.ndarray, float, float, float]:
    """Return lengthscales, variance, noise and the mean of a GP, inside float64's scope."""
    kernel = gp.kernel
    return np.asarray(kernel.lengthscale), float(kernel.variance), float(gp.noise), float(gp.mean.value)


def _public(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """`metabo.GP`, fitted to outputs of any size, against long doubles in its own units."""
    del place
    kinds = (
        "size 1e10",
        "size 1e-10",
        "size 1e300",
        "all equal",
        "an outlier",
        "repeated inputs",
        "offset",
        "size 1e150",
    )
    kind, kernel = kinds[number % len(kinds)], str(rng.choice(KERNELS))
    x = _points("repeated" if kind == "repeated inputs" else "random", 10, 2, rng)
    y = np.sin(5 * x[:, 0]) + 0.1 * rng.normal(size=10)
    if kind.startswith("size"):
        y *= float(kind.split()[1])
    elif kind == "all equal":
        y[:] = float(rng.choice(SIZES[:2]))
    elif kind == "an outlier":
        y[0] = 1e10
    elif kind == "offset":
        y += 1e6
    inputs = Inputs(x, y, np.vstack([rng.uniform(size=(4, 2)), x[:2]]))

    def act() -> tuple:
        import metabo
        from metabo.compute.precision import float64

        gp = metabo.GP(dim=2, kernel=kernel).fit(x, y, steps=5)
        after = gp.posterior(x, y)
        mean, deviation = after.predict(inputs.new)
        return (
            float64(lambda: _parameters(gp._model))(),
            gp._units,
            after.jitter,
            mean,
            deviation,
            gp.log_likelihood(x, y),
        )

    def right(found: tuple) -> str:
        (*numbers, constant), (centre, spread), jitter, mean, deviation, evidence = found
        if jitter:
            return f"the jitter is {jitter}, although the documented one makes the covariance positive"
        wanted = Inputs(x, (y - centre) / spread, inputs.new)
        seen = Moments((mean - centre) / spread, (deviation / spread) ** 2, evidence + len(y) * math.log(spread))
        reference = exact(kernel, *numbers, constant, wanted)
        units = 1e-14 * abs(centre) / spread  # rounding of the outputs themselves
        bounds = reference.bounds._replace(mean=reference.bounds.mean + units)
        return differing(seen, Exact(reference.moments, bounds))

    return Attempt(
        f"GP of outputs with {kind}, {kernel}", act, right, "refusal" if kind == "size 1e300" else "value", ("y has",)
    )


# --- the tuner --------------------------------------------------------------------------------------------------------


@cache
def _learned(method: str, goal: str) -> Path:
    """Return a folder with a prior of a small history, made once in a process."""
    from metabo.tuner.study import pretrain

    folder = Path(tempfile.mkdtemp(prefix="learned"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "space.yaml").write_text(SPACE.replace("goal: minimise, scale: log", goal))
    history = write(folder / "history.csv", HEADER, rows())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericsWarning)
        return pretrain(history, folder / "space.yaml", folder / "prior", method=method, steps=30).folder


OUTCOMES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "size 1e10": lambda rng, n: 1e10 * rng.uniform(0.5, 2, n),
    "size 1e-10": lambda rng, n: 1e-10 * rng.uniform(0.5, 2, n),
    "size 1e300": lambda rng, n: 1e300 * rng.uniform(0.5, 1, n),
    "size 1e300 of both signs": lambda rng, n: 1e300 * rng.choice([-1.0, 1.0], n) * rng.uniform(0.5, 1, n),
    "size 1e308": lambda rng, n: 1e308 * rng.uniform(0.5, 1, n),
    "all equal": lambda rng, n: np.full(n, 10.0 ** rng.uniform(-300, 300)),
    "one outlier": lambda rng, n: np.append(rng.uniform(size=n - 1), 1e300),
    "one small one": lambda rng, n: np.append(rng.uniform(0.5, 1, n - 1), 1e-300),
    "all failed but one": lambda rng, n: np.append(np.full(n - 1, np.nan), 1.0),
    "alike to the last digit": lambda rng, n: 1.0 + np.finfo(float).eps * rng.integers(0, 3, n),
}


def _tuned(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """Suggestions after outcomes of any size, of the default method and of a GP that is pre-trained."""
    kind = list(OUTCOMES)[int(rng.integers(len(OUTCOMES)))]
    method = "h_nll" if number % 4 == 3 else "blend"
    goal = str(rng.choice(["goal: minimise", "goal: maximise", "goal: minimise, scale: log"]))
    if "signs" in kind:
        goal = "goal: minimise"  # no logarithms
    before = _learned(method, goal)
    folder, count = place / "study", int(rng.integers(3, 12))
    shutil.copytree(before, folder)
    tried = [
        {"learning_rate": float(10 ** rng.uniform(-4, 0)), "layers": int(rng.integers(1, 7)), "batch": 32,
         "optimiser": "adam", "momentum": None} for _ in range(count)
    ]  # fmt: skip
    outcomes = rng.permutation(OUTCOMES[kind](rng, count)).tolist()

    def act() -> tuple:
        import metabo

        study = metabo.Study(folder)
        study.tell_all(list(zip(tried, [None if math.isnan(one) else one for one in outcomes], strict=True)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", NumericsWarning)
            warnings.filterwarnings("error", category=RuntimeWarning)
            found = study.suggest(2)
        return study, found, [str(one.message) for one in caught if issubclass(one.category, NumericsWarning)]

    def right(told: tuple) -> str:
        study, found, said = told
        seen = [one["outcome"] for one in study.trials]
        if seen != [None if math.isnan(one) else one for one in outcomes]:
            return f"told outcomes became {seen}"
        known = [study.description.read(one) for one in tried]
        for one in found:
            if study.description.read(one.configuration) != one.configuration:
                return f"{one.configuration} is not in the space"
            if one.configuration in known:
                return f"{one.configuration} was tried"
            numbers = [one.low, one.median, one.high]
            if all(map(math.isnan, numbers)):
                if method == "blend" or not any("guess" in line for line in said):
                    return f"no prediction, and no warning says so: {said}"
            elif not all(map(math.isfinite, numbers)) or numbers != sorted(numbers):
                return f"low, median and high are {numbers}"
            known.append(one.configuration)
        return ""

    wide = kind == "size 1e308" and "log" not in goal
    return Attempt(
        f"{method}, {goal}, {count} outcomes: {kind}", act, right, "refusal" if wide else "value", ("outcome",)
    )
