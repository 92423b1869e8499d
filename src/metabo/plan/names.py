"""Names that the configuration and the registrations take from each other, which no schema knows."""

import re
from collections.abc import Mapping

from metabo.errors import nearest, unknown, without_passwords
from metabo.plan import registry, splits
from metabo.plan.runs import ACQUISITIONS
from metabo.plan.sections.benchmarks import BenchmarkSections
from metabo.plan.sections.config import Config
from metabo.records.files import Json


def faults(config: Config, papers: list[str] | None) -> list[str]:
    """Describe, one line each, names without what they name. `papers`: those of the catalogue, not checked if None."""
    return [*_listed(config, papers), *_sections(config), *_settings(), *_methods(), *_addresses(config)]


def undeclared(config: Mapping[str, Json]) -> list[str]:
    """Say, one line each, where the types of a section of `benchmarks`, or of a setting in one, belong that the schema
    does not know. A setting with a name like that of another one is taken for a slip."""
    sections, known = config.get("benchmarks"), BenchmarkSections.model_fields
    sections = sections if isinstance(sections, Mapping) else {}
    place = "src/metabo/plan/sections/benchmarks.py (docs/new-data.md)"
    found = [
        f"config key 'benchmarks.{name}': {_source(name)}; the types of its settings belong into {place}"
        for name in sections
        if name not in known
    ]
    for name, section in sections.items():
        own = getattr(known[name].annotation, "model_fields", {}) if name in known else {}
        new = [key for key in section if key not in own] if own and isinstance(section, Mapping) else []
        found += [
            f"config key 'benchmarks.{name}.{key}': the type of a new setting belongs into {place}"
            for key in new
            if not nearest(key, own)
        ]
    return found


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


def _addresses(config: Config) -> list[str]:
    """Refuse passwords in addresses: they would stand in commands, logs and records."""
    return [
        f"config key 'benchmarks.{name}.mirrors': {shown} has a password, which logs and records would show; put "
        "it into ~/.netrc, which is read for https, or name a copy here (file:///...)"
        for name in BenchmarkSections.model_fields
        for address in getattr(getattr(config.benchmarks, name), "mirrors", ())
        if (shown := without_passwords(address)) != address
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
        if key
        not in {"seed", "online", *declared.get(name, {}), *declared.get(registry.benchmark(name).archive_of or "", {})}
    ]


def _methods() -> list[str]:
    """Check what entries of methods.yaml name or share: a figure or a run would stop on it, or show two as one."""
    found, colours = [], dict[str, str]()
    for name in registry.methods():
        entry, key = registry.method(name), f"{registry.METHODS.name} key '{name}"
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            found.append(f"{key}': a name has lower-case letters, digits and underscores only")
        if entry.acquisition not in ACQUISITIONS:
            found.append(f"{key}.acquisition': {unknown('acquisition', entry.acquisition, ACQUISITIONS)}")
        if not re.fullmatch("#[0-9a-fA-F]{6}", entry.colour):
            found.append(f"{key}.colour' is '{entry.colour}': write it as \"#1f77b4\", six hexadecimal digits")
        if not entry.variant_of:  # variants of a method are shown with each other only
            other = colours.setdefault(entry.colour.lower(), name)
            if registry.method(other).label != entry.label:  # online tuning registers a method a second time
                found.append(f"{key}.colour' is that of '{other}', {entry.colour}: give one of the two another colour")
    return found
