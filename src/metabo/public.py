"""What `import metabo` gives besides the tuner: Gaussian processes, benchmarks, and BO on them, in NumPy and pandas.

Everything here computes in float64 and returns NumPy arrays and pandas tables, whatever JAX does in the process.
"""

import importlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, PyTree
from numpy.typing import ArrayLike

from metabo.bo import priors, trajectories
from metabo.bo.acquisition import ACQUISITIONS
from metabo.collect import shipped
from metabo.compute.keys import stream
from metabo.compute.precision import accelerated, float64
from metabo.errors import ConfigError, DataError, NumericsError, unknown
from metabo.gp.fit import Log, lbfgs
from metabo.gp.model import GP, Posterior, build
from metabo.gp.objectives import nll
from metabo.plan import config, registry
from metabo.tasks.benchmark import Benchmark, stack
from metabo.tasks.training_set import prior_keys, training_sets_of
from metabo.tuner import learning

Points = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]
Kind = TypeVar("Kind", "GaussianProcess", "Predictor")


class GaussianProcess:
    """A Gaussian process (`metabo.GP`): fit it to past tasks, then condition it on the first points of a new one.

        import numpy as np
        import metabo

        rng = np.random.default_rng(0)
        past = [rng.uniform(size=(20, 1)) for _ in range(4)]
        values = [np.sin(6.0 * x[:, 0]) + 0.3 * rng.normal() for x in past]
        gp = metabo.GP(dim=1).fit(past, values)
        posterior = gp.posterior([[0.1], [0.6]], [0.5, -0.4])
        mean, deviation = posterior.predict([[0.2], [0.9]])
        print(mean.round(1), deviation < gp.predict([[0.2], [0.9]])[1])

    `dim`: columns of the inputs, which the unit cube should hold. `mean`: "zero", "constant" or "linear_mlp"; `kernel`:
    "matern12", "matern32", "matern52", "squared_exponential" or "dot_product"; `features`: sizes of the layers of the
    network that both share (hyperbo §7.2), () for the inputs themselves; `seed`: of its weights. Objects do not change:
    `fit` returns another one. Raises ConfigError for names that do not exist.
    """

    @float64
    def __init__(
        self, dim: int, *, mean: str = "constant", kernel: str = "matern52", features: Sequence[int] = (), seed: int = 0
    ) -> None:
        _require_whole("dim", dim)
        model = {"mean": mean, "kernel": kernel, "features": [_require_whole("features", size) for size in features]}
        self.dim, self._model = dim, build(model, dim, stream(seed, "gp"))

    @float64
    def fit(self, x: ArrayLike, y: ArrayLike, steps: int = 100) -> "GaussianProcess":
        """Return the GP of largest marginal likelihood (hyperbo Eq. 13), by at most `steps` steps of L-BFGS.

        One task: `x` (n, dim) and `y` (n,) to be maximised. Several: a list of such x and a list of such y. Raises
        DataError for what is not of these shapes or not finite, NumericsError if the likelihood is not finite.
        """
        _require_whole("steps", steps)
        if isinstance(x, list | tuple) and x and np.ndim(x[0]) == 2:
            tasks = [self._task(*pair, f"[{i}]") for i, pair in enumerate(_paired(x, y))]
        else:
            tasks = [self._task(x, y)]
        batch = stack([points for points, _ in tasks], [values for _, values in tasks])
        gp, log = _fitted(self._model, jnp.asarray(batch.x), jnp.asarray(batch.y), jnp.asarray(batch.mask), steps)
        if int(log.stopped) == 0:
            raise NumericsError("fit: the likelihood of the data is not finite; scale y to unit order")
        return _made(GaussianProcess, dim=self.dim, model=gp)

    @float64
    def posterior(self, x: ArrayLike, y: ArrayLike) -> "Predictor":
        """Condition on observations `x` (n, dim), `y` (n,). Raises DataError for other shapes or what is not finite."""
        points, values = self._task(x, y)
        posterior = self._model.posterior(jnp.asarray(points), jnp.asarray(values), jnp.ones(len(values), dtype=bool))
        if not bool(posterior.ok):
            raise NumericsError("posterior: the covariance of x cannot be factorised; fit the GP, or scale x to [0, 1]")
        return _made(Predictor, dim=self.dim, model=posterior)

    @float64
    def predict(self, x: ArrayLike) -> tuple[Values, Values]:
        """Return mean and standard deviation of the function at `x` (n, dim) before any observation."""
        phi = self._model.features(jnp.asarray(_points("x", x, self.dim)))
        return np.asarray(self._model.mean(phi)), np.sqrt(np.asarray(self._model.kernel.diagonal(phi)))

    @float64
    def log_likelihood(self, x: ArrayLike, y: ArrayLike) -> float:
        """Return the log marginal likelihood of one task, `x` (n, dim) and `y` (n,)."""
        points, values = self._task(x, y)
        return float(self._model.log_prob(jnp.asarray(points), jnp.asarray(values), jnp.ones(len(values), dtype=bool)))

    @property
    @float64
    def noise(self) -> float:
        """Variance of the observation noise."""
        return float(self._model.noise)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (GaussianProcess, self.dim, _as_numpy(self._model))

    def _task(self, x: ArrayLike, y: ArrayLike, which: str = "") -> tuple[Points, Values]:
        points, values = _points(f"x{which}", x, self.dim), _numbers(f"y{which}", y)
        if values.shape != (len(points),) or not len(values):
            shapes = f"y{which} has shape {values.shape}, x{which} {points.shape}"
            raise DataError(f"{shapes}; give one value for each point, and one point at least")
        return points, values


class Predictor:
    """A Gaussian process after observations: what `GaussianProcess.posterior` returns."""

    dim: int
    _model: Posterior

    @float64
    def predict(self, x: ArrayLike) -> tuple[Values, Values]:
        """Return mean and standard deviation of the function, without noise, at `x` (n, dim)."""
        mean, variance = self._model.predict(jnp.asarray(_points("x", x, self.dim)))
        return np.asarray(mean), np.sqrt(np.asarray(variance))

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (Predictor, self.dim, _as_numpy(self._model))


def _made(kind: type[Kind], dim: int, model: GP | Posterior) -> Kind:
    made = object.__new__(kind)
    made.__dict__.update(dim=dim, _model=model)
    return made


def _as_numpy(model: PyTree) -> PyTree:
    """Return the arrays of a model as NumPy's: unpickled as they are, JAX's would be float32."""
    return jax.tree.map(np.asarray, model)


@float64
def _restored(kind: type[Kind], dim: int, model: PyTree) -> Kind:
    return _made(kind, dim, jax.tree.map(jnp.asarray, model))


@eqx.filter_jit
def _fitted(
    gp: GP, x: Float[Array, "tasks n d"], y: Float[Array, "tasks n"], mask: Bool[Array, "tasks n"], steps: int
) -> tuple[GP, Log]:
    def loss(candidate: GP) -> Float[Array, ""]:
        return nll(candidate, x, y, mask)

    return lbfgs(loss, gp, steps=steps)


@float64
def load_benchmark(source: str | Path, *, archive: str | Path | None = None, **settings: object) -> Benchmark:
    """Return a benchmark by its name, or the one stored in a file (.npz).

        import metabo

        benchmark = metabo.load_benchmark("mphd_s", domains=2, functions=5, points=40)
        (name, *others) = benchmark.tasks
        task = benchmark.tasks[name]
        print(f"{len(others) + 1} tasks, {name}: x {task.x.shape}, best y {task.y.max():.2f}")
        for fold in benchmark.split("held_out"):
            print(fold.space, "trains on", len(fold.train), "and tests", len(fold.test))

    `metabo list benchmarks` prints the names. `settings`: of its section in config.yaml, the loader's defaults
    otherwise. `archive`: the downloaded file, for benchmarks that are read from one. Raises ConfigError for a name or
    setting that does not exist, DataError for a file that cannot be read.
    """
    if isinstance(source, Path) or source.endswith(".npz"):
        if settings or archive:
            raise ConfigError(f"{source}: a stored benchmark takes no settings; leave them out, or load it by its name")
        return Benchmark.load(source)
    entry = registry.benchmark(source)
    if entry["dataset"] and archive is None:
        raise ConfigError(
            f"benchmark '{source}' is read from an archive; give it as archive=..., e.g. the one below .cache/archives "
            f"after `snakemake {source}`"
        )
    loader = importlib.import_module(registry.loader(source))
    with tempfile.TemporaryDirectory(prefix="metabo-benchmark-") as folder:
        return loader.load(
            source, settings, _files(entry, source, Path(folder)) or (Path(archive) if archive else None)
        )


def _files(entry: registry.Entry, name: str, folder: Path) -> list[Path] | Path | None:
    """Make the files that a benchmark is read from and that need no download: its members, or its shipped table in the
    published format."""
    if "members" in entry:
        paths = [folder / f"{member}.npz" for member in entry["members"]]
        for path in paths:
            load_benchmark(path.stem).save(path)
        return paths
    collected = entry.get("archive_of", name)
    if "writer" not in registry.benchmark(collected):
        return None
    path = folder / registry.benchmark(collected)["archive"]
    registry.writer(collected).write_archive(shipped.read(collected, shipped.table_path(collected)), path)
    return path


@float64
def run_bo(
    benchmark: Benchmark | str | Path,
    method: str = "h_nll",
    *,
    split: str | None = None,
    acquisition: str | None = None,
    iterations: int = 20,
    seeds: int = 1,
    seed: int = 0,
    sizes: Mapping[str, object] | None = None,
) -> pd.DataFrame:
    """Train a method's priors on a benchmark, run BO on its test tasks, and return one row per observation.

        import metabo

        benchmark = metabo.load_benchmark("mphd_s", domains=2, functions=5, points=40)
        table = metabo.run_bo(benchmark, "h_nll", iterations=5, sizes={"pretrain.adam_steps": 50})
        random = metabo.run_bo(benchmark, "rand", iterations=5)
        last = table[table["iteration"] == 5]
        print(last[["task", "best_y", "simple_regret"]])
        print("random:", random.query("iteration == 5")["simple_regret"].mean())

    `split`: one of the benchmark's (default: its first); `acquisition`: in place of the method's own; `seeds`: runs of
    each task with each prior; `seed`: of everything random. `sizes`: values in place of those of config.yaml, under
    their names there, such as "pretrain.seeds", the number of priors (1 here).
    The columns are those of `metabo.records.results`; regrets are against the best of the task. Raises ConfigError for
    names that do not exist, DataError for a benchmark that lacks what the method needs, NumericsError if more than one
    step in twenty was not finite.
    """
    loaded = benchmark if isinstance(benchmark, Benchmark) else load_benchmark(benchmark)
    for name, number in (("iterations", iterations), ("seeds", seeds)):
        _require_whole(name, number)
    if acquisition is not None and acquisition not in ACQUISITIONS:
        raise unknown("acquisition", acquisition, ACQUISITIONS)
    split = split or next(iter(loaded.splits))
    chosen = _sized(sizes or {})
    module = registry.policy_module(method)
    trained_from = _pretraining(method, split, seed, chosen)
    trained = _trained(loaded, trained_from)
    entry = registry.method(method)
    spec = {
        "split": split,
        "method": method,
        "acquisition": acquisition or entry["acquisition"],
        "seed": seed,
        "seeds": seeds,
        "iterations": iterations,
        "policy": config.sized(chosen, entry["policy"]),
        "data": "",
    }
    past = training_sets_of(loaded, trained_from) if entry.get("uses_past") else [None] * len(trained)
    if getattr(module, "WIDENS", False):
        trained = [priors.widened(prior, trained_from, loaded.width) for prior in trained]
        past = [of_space and of_space.widened() for of_space in past]
    pairs = zip(trained, past, strict=True)
    table = pd.concat([trajectories.optimise(loaded, prior, spec, 1, rows) for prior, rows in pairs], ignore_index=True)
    trajectories.unsound(table)
    return table


def _pretraining(method: str, split: str, seed: int, sizes: config.Config) -> config.Config:
    entry = registry.method(method)
    return {
        "method": method,
        "past": {"base": split},
        "seed": seed,
        "seeds": sizes["pretrain"]["seeds"],
        "model": config.sized(sizes, entry["model"]),
        "pretrain": config.sized(sizes, entry["pretrain"]),
    } | ({"fits": _pretraining(entry["fits"], split, seed, sizes)} if "fits" in entry else {})


def _trained(benchmark: Benchmark, spec: config.Config) -> list[priors.SpacePrior]:
    """Train the priors of every space of a split."""
    module = registry.training_module(spec["method"])
    sets = training_sets_of(benchmark, spec)
    keys = [prior_keys(training, spec["seed"], spec["seeds"]) for training in sets]
    if registry.method(spec["method"]).get("across_spaces"):
        fits = _trained(benchmark, spec["fits"]) if "fits" in spec else None
        results = module.pretrain_across(spec, sets, keys, fits, accelerated())
    else:
        results = [module.pretrain(spec, *pair, accelerated()) for pair in zip(sets, keys, strict=True)]
    return [priors.of_training(training, *result) for training, result in zip(sets, results, strict=True)]


def _sized(changed: Mapping[str, object]) -> config.Config:
    """Return the sizes of the default scale with some changed, named "section.key". Raises ConfigError."""
    sizes = {**learning.SIZES, "pretrain": {**learning.SIZES["pretrain"], "seeds": 1}}
    names = [f"{section}.{key}" for section, values in sizes.items() for key in values]
    for name in changed:
        if name not in names:
            raise unknown("size", name, names)
    return {
        section: {key: changed.get(f"{section}.{key}", value) for key, value in values.items()}
        for section, values in sizes.items()
    }


def list_methods() -> pd.DataFrame:
    """Return the methods, one row each, named as `run_bo` and `pretrain` take them.

        import metabo

        methods = metabo.list_methods()
        print(methods.loc["h_nll"])
        print("on benchmarks:", list(methods.index[methods["run_bo"]]))
        print("in studies:", list(methods.index[methods["pretrain"]]))

    Columns: `label` (in figures), `acquisition` (its own), `run_bo` and `pretrain` (which of the functions take it),
    `variant_of` (the method that it is a variant of, or "").
    """
    entries = {name: registry.method(name) for name in registry.methods(ordered=True)}
    columns = {
        "label": [entry["label"] for entry in entries.values()],
        "acquisition": [entry["acquisition"] for entry in entries.values()],
        "run_bo": [bool(entry.get("policy_module")) for entry in entries.values()],
        "pretrain": [name in learning.METHODS for name in entries],
        "variant_of": [entry.get("variant_of", "") for entry in entries.values()],
    }
    return pd.DataFrame(columns, index=pd.Index(entries, name="method"))


def _paired(x: Sequence[ArrayLike], y: ArrayLike) -> list[tuple[ArrayLike, ArrayLike]]:
    if not isinstance(y, (list, tuple, np.ndarray)) or len(y) != len(x):
        given = f"has {len(y)}" if isinstance(y, (list, tuple, np.ndarray)) else "is no list"
        raise DataError(f"x has {len(x)} tasks, y {given}; give one array of values for each task")
    return list(zip(x, y, strict=True))


def _points(name: str, x: ArrayLike, dim: int) -> Points:
    points = _numbers(name, x)
    if points.ndim != 2 or points.shape[1] != dim:
        hint = f"; write {name}[:, None] for one column" if points.ndim == 1 and dim == 1 else ""
        raise DataError(f"{name} has shape {points.shape}, needs (n, {dim}): one row for each point{hint}")
    return points


def _numbers(name: str, values: ArrayLike) -> Float[np.ndarray, "..."]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not an array of numbers ({error}); give rows of equal length") from error
    if not np.isfinite(array).all():
        place = ", ".join(map(str, np.argwhere(~np.isfinite(array))[0]))
        raise DataError(f"{name}[{place}] is not finite; leave that point out, or give it the worst value")
    return array


def _require_whole(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name} is {value!r}; must be a whole number of at least 1")
    return value
