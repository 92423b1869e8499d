"""The configuration: load it, overlay it, check it, and extract the settings that each job reads (its spec).

Jobs never see the whole configuration. A key that a job does not read cannot change its spec, so changing that key
does not re-run the job.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from metabo.errors import ConfigError
from metabo.plan import costs, names, overrides, reference, registry, splits
from metabo.plan.entries import collection
from metabo.plan.schema import required_mapping, violations
from metabo.plan.sections.config import Config
from metabo.plan.specs import (
    BOSpec,
    CollectSpec,
    DataSpec,
    DownloadSpec,
    EvaluateSpec,
    OnlineSpec,
    PackSpec,
    PretrainSpec,
    TheorySpec,
)
from metabo.plan.typed import NOTHING, Values, plain, written
from metabo.plan.yaml_files import read_yaml
from metabo.records.files import Json

Raw = Mapping[str, Json]
"""The contents of a configuration file before it is checked."""
Sizes = Mapping[str, Mapping[str, Json]]


def merge(base: Raw, overlay: Raw) -> dict[str, Json]:
    """Return `base` with the values of `overlay`: mappings merge key by key, everything else is replaced."""
    merged = dict(base)
    for key, value in overlay.items():
        below = merged.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = merge(below, value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def read(root: Path = Path(), overlays: tuple[Path, ...] = ()) -> dict[str, Json]:
    """Read config.yaml in the project folder `root` and apply overlays in order. Raises ConfigError for a file that
    cannot be read as a mapping."""
    config: dict[str, Json] = {}
    for path in (root / "config.yaml", *overlays):
        config = merge(config, required_mapping(read_yaml(path), str(path)))
    return config


def load(root: Path = Path(), overlays: tuple[Path, ...] = ()) -> Config:
    """Read the configuration in the project folder `root`, apply overlays, and check it. Raises ConfigError as `read`
    and `check` do."""
    return check(read(root, overlays))


def check(config: Raw, papers: list[str] | None = None) -> Config:
    """Return the configuration as a record. Raises ConfigError, which lists every fault with its full key path, the
    allowed values and the nearest match.

    `papers`: names that `run.papers` may use (from the catalogue); if None, they are not checked.
    """
    schema = reference.schema()
    if faults := violations(config, schema, "config"):
        raise ConfigError(*faults, *names.undeclared(config))
    made = Config.model_validate_json(json.dumps(config))
    if faults := overrides.registered_faults(made.sizes):  # the following checks read these settings
        raise ConfigError(*faults)
    if faults := [*names.faults(made, papers), *overrides.faults(made.methods, schema), *costs.faults(config)]:
        raise ConfigError(*faults)
    return made


def check_scale(scale: str, used: list[str], root: Path = Path()) -> None:
    """Raise ConfigError if `scale` has an overlay that is not among the `used` config files.

    Results would otherwise carry the name of one scale and the sizes of another.
    """
    overlay = f"{scale}.yaml"
    if (root / "config" / overlay).exists() and overlay not in used:
        raise ConfigError(
            f"config key 'scale' is '{scale}', but its sizes are in config/{overlay}; "
            f"say `snakemake --configfile config/{overlay}` and leave 'scale' alone"
        )


def data_spec(config: Config, benchmark: str) -> DataSpec:
    """Return what the job that loads a benchmark reads: only the settings that its loader registers, with values from
    config.yaml or the registration.

    A benchmark that is read from the collection of another one inherits that one's settings where it has none itself,
    because there is one collection of one version.
    """
    entry = registry.benchmark(benchmark)
    collected = _of_benchmark(config, entry.archive_of) if entry.archive_of else {}
    values: dict[str, Json] = {"seed": config.seed, **collected, **_of_benchmark(config, benchmark)}
    if "online" in entry.settings and entry.collector:  # the tasks for which its collector can evaluate new points
        values["online"] = list(registry.literal(entry.collector, "ONLINE"))
    return DataSpec(benchmark, Values({key: values[key] for key in entry.settings}) | entry.fixed)


def named_files(config: Config, benchmark: str) -> list[str]:
    """Return the files that the settings of a benchmark name. Raises ConfigError for a file that does not exist, and
    for a folder, because no job depends on its contents."""
    entry, own = registry.benchmark(benchmark), _of_benchmark(config, benchmark)
    fixed = _mapping(plain(entry.fixed))
    values = {**own, **fixed}
    named = [(key, path) for key in entry.files for path in _texts(values[key])]
    wrong = ("does not exist; correct the path, or put the file there", "is a folder; name the files in it")
    lost = [(key, Path(path)) for key, path in named if not Path(path).is_file()]
    if lost:
        here = f"{registry.loader(benchmark)}: BENCHMARKS key '{benchmark}.fixed"
        where = {key: here if key in fixed else f"config key 'benchmarks.{benchmark}" for key, _ in lost}
        raise ConfigError(*(f"{where[key]}.{key}': {path} {wrong[path.is_dir()]}" for key, path in lost))
    return [path for _, path in named]


def collect_spec(config: Config, benchmark: str, unit: str, version: int = 1) -> CollectSpec:
    """Return what the job that collects one unit (a task or a data set) of an embedded benchmark reads."""
    return CollectSpec(benchmark, config.seed, _collected_sizes(config, benchmark, version), unit, version)


def pack_spec(config: Config, benchmark: str, version: int = 1) -> PackSpec:
    """Return the settings of the units that the job that joins a re-collection records."""
    return PackSpec(benchmark, config.seed, _collected_sizes(config, benchmark, version), version)


def _collected_sizes(config: Config, benchmark: str, version: int) -> Values:
    return Values(_mapping(config.sizes["collect"][collection(benchmark, version)]))


def download_spec(config: Config, row: dict[str, str]) -> DownloadSpec:
    """Return what the download of one archive reads: a row of workflow/datasets.csv, with the user's mirrors first."""
    users = [b for b in registry.benchmarks() if registry.benchmark(b).dataset == row["name"]]
    mirrors = [address for b in users for address in _texts(_of_benchmark(config, b).get("mirrors", []))]
    size = int(row["bytes"]) if row.get("bytes") else None
    urls = (*mirrors, *row["urls"].split())
    return DownloadSpec(row["name"], urls, row["checksum"], size, members=row.get("members") or None)


def pretrain_spec(config: Config, benchmark: str, split: str, method: str) -> PretrainSpec:
    """Return what one pre-training job reads: the method's registered settings with the sizes of the scale, benchmark
    or split. Only for methods that train across spaces does this say which spaces, and only for methods that start from
    stored `fits` whose fits."""
    entry = registry.method(method)
    sizes = config.sizes | {"pretrain": pretrain_sizes(config, benchmark, split)}
    past = splits.past(split) if registry.made_of(method).across_spaces else replace(splits.past(split), spaces="all")
    model = sized(sizes, entry.model)
    if model.get("features") and not entry.own_features:
        model |= written(registry.benchmark(benchmark).model or NOTHING)
        model |= {key: sizes["pretrain"][key] for key in ("features",) if key in sizes["pretrain"]}
    return PretrainSpec(
        benchmark,
        split,
        past,
        method,
        config.seed,
        _count(sized(sizes, {"seeds": entry.prior_seeds})["seeds"]),
        Values(model | _overrides(config, method, "model")),
        Values(sized(sizes, entry.pretrain) | _overrides(config, method, "pretrain")),
        entry.fits,
    )


def pretrain_sizes(config: Config, benchmark: str, split: str) -> dict[str, Json]:
    """Return the sizes of pre-training on a split: section `pretrain`, overridden by the benchmark's own section, and
    both overridden by the sections of the split. Where a section of a member of the benchmark has hidden layers, the
    benchmark has them too (mphd §4.2: layers follow the data)."""
    sizes: dict[str, Json] = {**config.sizes["pretrain"]}
    of_benchmark = registry.benchmark(benchmark).sizes
    of_members = (registry.benchmark(member).sizes for member in registry.benchmark(benchmark).members)
    for own in (config.sizes[section] for section in of_members if section):
        sizes |= {key: own[key] for key in ("features",) if own.get(key) is not None}
    for section in (*([of_benchmark] if of_benchmark else []), *splits.entry(splits.prior_split(split)).sizes):
        sizes |= {key: value for key, value in config.sizes[section].items() if value is not None}
    return sizes


def sized(sizes: Sizes, settings: Mapping[str, Json]) -> dict[str, Json]:
    """Replace every size, written "@section.key" in a registration, by its value in the configuration."""

    def value(setting: Json) -> Json:
        if not (isinstance(setting, str) and setting.startswith("@")):
            return setting
        section, _, key = setting[1:].partition(".")
        if key not in sizes.get(section, {}):
            raise ConfigError(f"methods.yaml: '{setting}' names no key of config.yaml")
        return sizes[section][key]

    return {name: value(plain(setting)) for name, setting in settings.items()}


def study_spec(config: Config, study: str) -> Values:
    """Return what one synthetic study reads: its name, the seed and its own sizes."""
    return Values({"study": study, "seed": config.seed, **_mapping(config.sizes["studies"][study])})


def theory_spec(config: Config, paper: str, check: str) -> TheorySpec:
    """Return what one theory check reads: its name, the seed and the share of its replicates."""
    return TheorySpec(paper, check, config.seed, config.theory.share)


def evaluate_spec(config: Config, benchmark: str, split: str, method: str) -> EvaluateSpec:
    """Return what one evaluation job reads besides its input files."""
    return EvaluateSpec(benchmark, split, method)


def bo_spec(config: Config, benchmark: str, split: str, method: str, acquisition: str) -> BOSpec:
    """Return what one Bayesian-optimisation job reads besides its input files."""
    entry = registry.method(method)
    policy = sized(config.sizes, entry.policy or NOTHING)
    sizes = pretrain_sizes(config, benchmark, split)
    return BOSpec(
        benchmark,
        split,
        method,
        acquisition,
        config.seed,
        _count(sizes.get("bo_seeds", sized(config.sizes, {"seeds": entry.bo_seeds})["seeds"])),
        _count(sizes.get("bo_iterations", config.bo.iterations)),
        Values(policy | _overrides(config, method, "policy")),
        splits.entry(split).candidates,
        *splits.queries(benchmark, split),
    )


def online_spec(config: Config, benchmark: str, split: str, method: str) -> OnlineSpec:
    """Return what one online-tuning job reads besides its input files. The files of priors include their training
    settings."""
    entry, sizes = registry.method(method), config.online
    return OnlineSpec(
        benchmark,
        split,
        method,
        entry.acquisition,
        config.seed,
        sizes.seeds,
        sizes.iterations,
        Values(sized(config.sizes, entry.online or NOTHING) | _overrides(config, method, "online")),
    )


def _of_benchmark(config: Config, benchmark: str) -> Mapping[str, Json]:
    """Return a benchmark's own section, which is empty for benchmarks that are made of others."""
    return _mapping(config.sizes["benchmarks"].get(benchmark, {}))


def _overrides(config: Config, method: str, section: str) -> dict[str, Json]:
    """Return the settings of a method with which the user replaces the registered ones."""
    return dict(_mapping(config.methods.get(method, {}).get(section, {})))


def _count(value: Json) -> int:
    assert isinstance(value, int), f"{value!r} is no count: the types of the sections say so"
    return value


def _texts(value: Json) -> list[str]:
    """Return the texts of a setting that is a list of texts or a single text."""
    listed = [value] if isinstance(value, str) else value
    return [str(entry) for entry in listed] if isinstance(listed, list) else []


def _mapping(value: Json) -> Mapping[str, Json]:
    return required_mapping(value, "a section of the configuration")
