"""Names that the configuration and the registrations take from each other, which no schema knows."""

from collections.abc import Mapping

from metabo.errors import unknown
from metabo.plan import registry, splits
from metabo.plan.sections.benchmarks import BenchmarkSections
from metabo.plan.sections.config import Config
from metabo.records.files import Json


def faults(config: Config, papers: list[str] | None) -> list[str]:
    """Describe, one line each, names without what they name. `papers`: those of the catalogue, not checked if None."""
    return [*_listed(config, papers), *_sections(config), *_settings()]


def undeclared(config: Mapping[str, Json]) -> list[str]:
    """Say, one line each, where the types of a section of `benchmarks` belong that the schema does not know."""
    sections = config.get("benchmarks")
    named = list(sections) if isinstance(sections, Mapping) else []
    return [
        f"config key 'benchmarks.{name}': {_source(name)}; the types of its settings belong into "
        "src/metabo/plan/sections/benchmarks.py (docs/new-data.md)"
        for name in named
        if name not in BenchmarkSections.model_fields
    ]


def _source(benchmark: str) -> str:
    if benchmark in registry.benchmarks():
        return f"{registry.loader(benchmark)} registers '{benchmark}'"
    return f"no module in src/metabo/data registers '{benchmark}'"


def _listed(config: Config, papers: list[str] | None) -> list[str]:
    """Check names that the schema does not know: benchmarks and papers."""
    found = []
    benchmarks = registry.benchmarks()
    for name in config.run.benchmarks:
        if name not in benchmarks:
            found.append(f"config key 'run.benchmarks': {unknown('benchmark', name, benchmarks)}")
    for paper in config.run.papers:
        if papers is not None and paper not in papers:
            found.append(f"config key 'run.papers': {unknown('paper', paper, papers)}")
    return found


def _sections(config: Config) -> list[str]:
    """Check the sections of sizes that the splits and the benchmarks name."""
    sections: list[tuple[str, str | None]] = [
        (f"splits.yaml: 'sizes' of split '{name}'", section)
        for name in splits.names()
        for section in splits.entry(name).sizes
    ]
    sections += [(f"'sizes' of benchmark '{name}'", registry.benchmark(name).sizes) for name in registry.benchmarks()]
    return [
        f"{where}: {unknown('section of config.yaml', section, config.sizes)}"
        for where, section in sections
        if section and section not in config.sizes
    ]


def _settings() -> list[str]:
    """Check that the settings which the loaders of benchmarks read are declared; the schema asks for their values."""
    declared = {
        name: getattr(field.annotation, "model_fields", {}) for name, field in BenchmarkSections.model_fields.items()
    }
    return [
        f"{registry.loader(name)}: setting '{key}' of benchmark '{name}' is not declared; add it to "
        f"src/metabo/plan/sections/benchmarks.py and 'benchmarks.{name}.{key}' to config.yaml"
        for name in registry.benchmarks()
        for key in dict.fromkeys((*registry.benchmark(name).settings, *registry.benchmark(name).files))
        if key not in {"seed", "online", *declared.get(name, {})}
    ]
