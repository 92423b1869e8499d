"""What is registered, one line each: `metabo list`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from metabo.data import download
from metabo.errors import ConfigError, DataError
from metabo.plan import catalogue, registry
from metabo.plan import config as settings
from metabo.plan.config import Config
from metabo.records.checksums import read_sidecar

CONFIG = Path("config.yaml")
DATASETS = Path("workflow/datasets.csv")
TABLES = Path("data")
"""Where committed tables are."""


def lines(what: str) -> list[str]:
    """List "methods", "benchmarks", "artefacts" or "looks". Raises ConfigError for a fault in what is registered."""
    return {"methods": methods, "benchmarks": benchmarks, "artefacts": artefacts, "looks": _looks}[what]()


def methods() -> list[str]:
    """List the methods, each with its label and the module that trains its priors."""
    entries = {name: registry.method(name) for name in registry.methods()}
    return [f"{name:16} {entry.label:10} metabo.{registry.made_of(name).pretrain}" for name, entry in entries.items()]


def artefacts() -> list[str]:
    """List the entries of the catalogue, each with its benchmarks and title."""
    return [
        f"{id:16} {', '.join(entry.benchmarks or ['-']):40} {entry.title}" for id, entry in catalogue.load().items()
    ]


def _looks() -> list[str]:
    from metabo.report import looks  # draws, so it imports what draws: seconds that the other lists need not wait

    return looks.lines()


def benchmarks() -> list[str]:
    """List the benchmarks: what kind it is, whether the default run has it, its size as far as that is known without
    loading it, and where it comes from. In a folder without a project, the kind and the origin alone."""
    here = CONFIG.is_file()
    config = settings.load() if here else None
    licences = {row["name"]: row["licence"] for row in _archives().values()} if here else {}
    return [
        f"{name:16} {kind(name, committed(name, config)):10} {_chosen(name, config):12} {_size(name, config):32} "
        f"{origin(name, licences, committed(name, config))}"
        for name in registry.benchmarks()
    ]


def kind(benchmark: str, files: Sequence[str] = ()) -> str:
    """Return what kind of data a benchmark is: synthetic, embedded, package, download, combined, a table of
    `files` that are committed with the project, or the user's."""
    entry = registry.benchmark(benchmark)
    kinds = {
        "embedded": entry.collector or entry.archive_of,
        "download": entry.dataset,
        "package": entry.package,
        "combined": entry.members,
        "table": files,
        "yours": entry.files,
    }
    return next((name for name, given in kinds.items() if given), "synthetic")


def origin(benchmark: str, licences: Mapping[str, str] | None = None, files: Sequence[str] = ()) -> str:
    """Return where a benchmark comes from, with the licence of an archive that is downloaded, if `licences` has it, or
    the `files` that are committed with the project."""
    entry = registry.benchmark(benchmark)
    if entry.collector:
        return f"collected by this project (metabo.{entry.collector}), table in the package"
    if entry.archive_of:
        return f"made of the collection of {entry.archive_of} by {registry.loader(benchmark)}"
    if entry.dataset:
        licence = (licences or {}).get(entry.dataset)
        return f"archive {entry.dataset} (downloaded on request)" + (f", {licence}" if licence else "")
    if entry.package:
        return f"package {entry.package}"
    if entry.members:
        return f"made of {', '.join(entry.members)} by {registry.loader(benchmark)}"
    if files:
        return ", ".join(files)
    if entry.files and entry.files[0] in entry.fixed:
        return f"files that {registry.loader(benchmark)} names"
    if entry.files:
        return f"your files, benchmarks.{benchmark}.{entry.files[0]} in config.yaml"
    return f"made by {registry.loader(benchmark)}"


def committed(benchmark: str, config: Config | None) -> list[str]:
    """Return the files that the settings of a benchmark name, if all are there in the project's folder of tables."""
    with suppress(ConfigError):
        named = settings.named_files(config, benchmark) if config else []
        return named if all(TABLES in Path(path).parents for path in named) else []
    return []


def _archives() -> dict[str, dict[str, str]]:
    return download.archives(DATASETS, Path("workflow/schemas/datasets.yaml"))


def _chosen(benchmark: str, config: Config | None) -> str:
    if config is None:
        return "-"
    return "default run" if benchmark in config.run.benchmarks else "on request"


def _size(benchmark: str, config: Config | None) -> str:
    """Return the counts that the settings of a benchmark name, and those in its record, if it was loaded here."""
    if config is None:
        return "-"
    given = settings.data_spec(config, benchmark).settings
    spaces, domains, functions = given.get("spaces"), given.get("domains"), given.get("functions")
    known = [f"{len(spaces)} spaces"] if isinstance(spaces, tuple) else []
    if isinstance(domains, int) and isinstance(functions, int):
        known = [f"{domains} spaces", f"{domains * functions} tasks"]
    record = Path(f"results/{config.scale}/data/{benchmark}.json")
    with suppress(DataError):
        loaded = {**read_sidecar(record)} if record.is_file() else {}
        counted = [f"{loaded[key]:,} {key}" for key in ("tasks", "points") if isinstance(loaded.get(key), int)]
        known = [*known[:1], *counted] if counted else known
    return ", ".join(known) or "-"
