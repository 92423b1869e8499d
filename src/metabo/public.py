"""What `import metabo` provides besides the tuner and the GP: benchmarks, methods, and BO, in NumPy and pandas.

Everything here computes in float64 and returns NumPy arrays and pandas tables, whatever the JAX settings of the
process.
"""

import importlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from metabo.bo import priors, soundness, trajectories
from metabo.collect import shipped
from metabo.compute.guest import float64
from metabo.compute.precision import accelerated
from metabo.errors import ConfigError, unknown
from metabo.gp import arguments
from metabo.plan import collectors, config, extras, reference, registry, splits
from metabo.plan.entries import BenchmarkEntry
from metabo.plan.runs import RunId, resolved
from metabo.plan.schema import Schema, required_mapping, violations
from metabo.plan.specs import BOSpec, TrainingSpec
from metabo.plan.typed import NOTHING, Values
from metabo.records.files import Json
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.training_set import prior_keys, training_sets_of
from metabo.tuner import learning


@float64
def load_benchmark(source: str | Path, *, archive: str | Path | None = None, **settings: object) -> Benchmark:
    """Return a benchmark by name, or the one stored in a file (.npz).

        import metabo

        benchmark = metabo.load_benchmark("mphd_s", domains=2, functions=5, points=40)
        (name, *others) = benchmark.tasks
        task = benchmark.tasks[name]
        print(f"{len(others) + 1} tasks, {name}: x {task.x.shape}, best y {task.y.max():.2f}")
        for fold in benchmark.split("held_out"):
            print(fold.space, "trains on", len(fold.train), "and tests", len(fold.test))

    `metabo list benchmarks` prints the names. `settings`: keys of the benchmark's section in config.yaml; by default
    the loader's own values, and the newest `version` in the package. `archive`: the downloaded file, for benchmarks
    that are read from one. Raises ConfigError for a name or setting that does not exist, for a missing `archive`, for
    settings given with a file, and for a package of the extra `replication` that is not installed. Raises DataError for
    a file that cannot be read.
    """
    if not isinstance(source, str | Path):
        raise ConfigError(f"source is {source!r}; give the name of a benchmark, or the path of a stored one")
    if isinstance(source, Path) or source.endswith(".npz"):
        if settings or archive:
            raise ConfigError(f"{source}: a stored benchmark takes no settings; leave them out, or load it by its name")
        return Benchmark.load(source)
    entry = registry.benchmark(source)
    if entry.dataset and archive is None:
        raise ConfigError(
            f"benchmark '{source}' is read from an archive; give it as archive=..., e.g. the one below .cache/archives "
            f"after `snakemake {source}`"
        )
    with extras.told(f"benchmark '{source}'"):
        return _loaded(entry, source, None if archive is None else Path(archive), settings)


def _loaded(entry: BenchmarkEntry, source: str, archive: Path | None, settings: dict[str, object]) -> Benchmark:
    loader = importlib.import_module(registry.loader(source))
    if archive is not None:
        return loader.load(source, settings, archive)
    with tempfile.TemporaryDirectory(prefix="metabo-benchmark-") as folder:
        if "version" in entry.settings:  # of its own collection, or of the one that it is read from
            settings = {"version": shipped.newest(entry.archive_of or source), **settings}
        return loader.load(source, settings, _files(entry, source, Path(folder), settings.get("version")))


def _files(entry: BenchmarkEntry, name: str, folder: Path, version: object = None) -> list[Path] | Path | None:
    """Make the files that a benchmark is read from and that need no download: its members, or its shipped table, of the
    given or the newest version, in the published format."""
    if entry.members:
        paths = [folder / f"{member}.npz" for member in entry.members]
        for path in paths:
            load_benchmark(path.stem).save(path)
        return paths
    collected = entry.archive_of or name
    made = registry.benchmark(collected)
    if made.writer is None or made.archive is None:
        return None
    path = folder / made.archive
    extras.require(("pyarrow",), f"benchmark '{name}'")  # the message of pandas has several lines
    chosen = version if isinstance(version, int) and 1 <= version <= made.versions else shipped.newest(collected)
    collectors.writer(collected).write_archive(shipped.read(collected, version=chosen), path)
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
    once: bool | None = None,
    sizes: Mapping[str, Json] | None = None,
) -> pd.DataFrame:
    """Train a method's priors on a benchmark, run BO on its test tasks, and return one row per observation.

        import metabo

        benchmark = metabo.load_benchmark("mphd_s", domains=2, functions=5, points=40)
        table = metabo.run_bo(benchmark, "h_nll", iterations=5, sizes={"pretrain.adam_steps": 50})
        random = metabo.run_bo(benchmark, "rand", iterations=5)
        last = table[table["iteration"] == 5]
        print(last[["task", "best_y", "simple_regret"]])
        print("random:", random.query("iteration == 5")["simple_regret"].mean())

    `split`: one of the benchmark's splits (default: its first); `acquisition`: one to use in place of the method's own;
    `iterations`: number of queries per run; `seeds`: number of runs of each task with each prior; `seed`: the seed of
    everything random; `once`: whether a candidate is queried once (None: as the benchmark's authors do); `sizes`:
    values that replace those of config.yaml, under their names there, such as "pretrain.seeds", the number of priors (1
    here). The columns are those of `metabo.records.results`; regrets are relative to the best of the task. Raises
    ConfigError for names that do not exist, for counts below 1, and for a package of the extra `replication` that is
    not installed; DataError for a benchmark that lacks what the method needs; and NumericsError if more than one step
    in twenty was not numerically sound.
    """
    with extras.told(f"method '{method}'"):
        return _played(benchmark, method, split, acquisition, iterations, seeds, seed, once, sizes)


def _played(
    benchmark: Benchmark | str | Path, method: str, split: str | None, acquisition: str | None, iterations: int,
    seeds: int, seed: int, once: bool | None, sizes: Mapping[str, Json] | None,
) -> pd.DataFrame:  # fmt: skip
    loaded = benchmark if isinstance(benchmark, Benchmark) else load_benchmark(benchmark)
    iterations, seeds = arguments.count("iterations", iterations), arguments.count("seeds", seeds)
    seed = arguments.seed(seed)
    split = split or next(iter(loaded.splits))
    chosen = _sized(sizes or {})
    registry.policy_module(method)  # refuses a method without runs on tables
    trained_from = _pretraining(method, split, seed, chosen)
    trained = _trained(loaded, trained_from)
    entry, parts = registry.method(method), registry.made_of(method)
    policy = Values(config.sized(chosen, entry.policy or NOTHING))
    own = resolved(RunId(method, acquisition or "")).acquisition
    known = loaded.name in registry.benchmarks() and split in splits.names()
    queries = splits.queries(loaded.name, split) if once is None and known else (bool(once), ())
    spec = BOSpec(loaded.name, split, method, own, seed, seeds, iterations, policy, "all", *queries)
    past = training_sets_of(loaded, trained_from) if parts.uses_past else [None] * len(trained)
    if parts.pads_inputs:
        trained = [priors.widened(prior, trained_from, loaded.width) for prior in trained]
        past = [of_space and of_space.widened() for of_space in past]
    pairs = zip(trained, past, strict=True)
    tables = [trajectories.optimise(loaded, prior, spec, "", 1, rows) for prior, rows in pairs]
    table = pd.concat(tables, ignore_index=True)
    soundness.unsound(table)
    return table


def _pretraining(method: str, split: str, seed: int, sizes: config.Sizes) -> TrainingSpec:
    entry = registry.method(method)
    made: TrainingSpec = {
        "method": method,
        "past": {"base": split},
        "seed": seed,
        "seeds": arguments.count("pretrain.seeds", sizes["pretrain"]["seeds"]),
        "model": config.sized(sizes, entry.model),
        "pretrain": config.sized(sizes, entry.pretrain),
    }
    return {**made, "fits": _pretraining(entry.fits, split, seed, sizes)} if entry.fits else made


def _trained(benchmark: Benchmark, spec: TrainingSpec) -> list[priors.SpacePrior]:
    """Train the priors of every space of a split."""
    module = registry.training_module(spec["method"])
    sets = training_sets_of(benchmark, spec)
    keys = [prior_keys(training, spec["seed"], spec["seeds"]) for training in sets]
    if registry.made_of(spec["method"]).across_spaces:
        first = spec.get("fits")
        fits = None if first is None or isinstance(first, str) else _trained(benchmark, first)
        results = module.pretrain_across(spec, sets, keys, fits, accelerated())
    else:
        results = [module.pretrain(spec, *pair, accelerated()) for pair in zip(sets, keys, strict=True)]
    return [priors.of_training(training, *result) for training, result in zip(sets, results, strict=True)]


def _sized(changed: Mapping[str, Json]) -> config.Sizes:
    """Return the sizes of the default scale with some changed, named "section.key". Raises ConfigError for an unknown
    name, and for a value that config.yaml could not have there."""
    sizes = {**learning.SIZES, "pretrain": {**learning.SIZES["pretrain"], "seeds": 1}}
    names = [f"{section}.{key}" for section, values in sizes.items() for key in values]
    given: dict[str, dict[str, Json]] = {section: {} for section in sizes}
    faults = []
    for name, value in changed.items():
        if name not in names:
            raise unknown("size", name, names)
        section, key = name.split(".", 1)
        given[section][key] = value.item() if isinstance(value, np.generic) else value
        faults += violations(given[section][key], _schema_of(section, key), "size", name)
    if faults:
        raise ConfigError(*faults)
    return {section: {**values, **given[section]} for section, values in sizes.items()}


def _schema_of(section: str, key: str) -> Schema:
    schema = reference.schema()
    for name in ("properties", section, "properties", key):
        schema = dict(required_mapping(schema[name], name))
    return schema


def list_methods() -> pd.DataFrame:
    """Return the methods, one per row, with the names that `run_bo` and `pretrain` take.

        import metabo

        methods = metabo.list_methods()
        print(methods.loc["h_nll"])
        print("on benchmarks:", list(methods.index[methods["run_bo"]]))
        print("in studies:", list(methods.index[methods["pretrain"]]))

    Columns: `label` (in figures), `acquisition` (the method's own), `run_bo` and `pretrain` (whether these functions
    take it), `variant_of` (the method that it is a variant of, or ""). The default of `pretrain`, "blend", is for
    studies alone and no row of the table.
    """
    entries = {name: registry.method(name) for name in registry.methods(ordered=True)}
    columns = {
        "label": [entry.label for entry in entries.values()],
        "acquisition": [entry.acquisition for entry in entries.values()],
        "run_bo": [name in registry.methods("policy") for name in entries],
        "pretrain": [name in learning.METHODS for name in entries],
        "variant_of": [entry.variant_of or "" for entry in entries.values()],
    }
    return pd.DataFrame(columns, index=pd.Index(entries, name="method"))
