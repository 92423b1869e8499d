"""Check names that the configuration and the registrations take from each other, which no schema knows."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from metabo.errors import ConfigError, nearest, printable, unknown, without_passwords
from metabo.plan import promises, reference, registrations, registry, splits
from metabo.plan.runs import ACQUISITIONS, SCORED
from metabo.plan.schema import joined, required_mapping
from metabo.plan.sections.benchmarks import BenchmarkSections
from metabo.plan.sections.config import Config
from metabo.records.files import Json

TYPES = "src/metabo/plan/sections/benchmarks.py"
"""The file with the types of the settings of benchmarks."""
NEAREST = 5
"""The most targets that are proposed in place of an unknown one."""
CLOSE = 0.4
"""The similarity, from 0 to 1, from which on one part of a path may be a typo of another."""


def faults(config: Config, papers: list[str] | None) -> list[str]:
    """Return a line for each name that refers to nothing. `papers`: those of the catalogue; if None, they are not
    checked."""
    if broken := registrations.faults():  # of which all below would say something else
        return broken
    return [
        *_listed(config, papers), *_unread(), *_sections(config), *_settings(), *_described(), *_files(), *_methods(),
        *promises.loaders(), *_addresses(config),
    ]  # fmt: skip


def require_methods() -> None:
    """Raise ConfigError, which lists the faults of the entries of methods.yaml and of the code that they name, if there
    are any."""
    if found := _methods():
        raise ConfigError(*found)


def no_target(name: str, targets: Collection[str]) -> ConfigError:
    """Make the error for a target that does not exist, with the nearest ones and how to list all."""
    longer = sorted(one for one in targets if one.startswith(name))  # what was begun and not finished comes first
    close = difflib.get_close_matches(name, sorted(targets), n=NEAREST, cutoff=0.5)
    near = [*dict.fromkeys([*longer, *close])][:NEAREST]
    meant = f"nearest: {', '.join(near)}" if near else "nothing has a name like it"
    return ConfigError(
        f"unknown target '{name}'; {meant}. `metabo list artefacts` lists figures and tables, `snakemake "
        "--list-target-rules` all targets"
    )


def no_result(path: str, known: Iterable[str], out: str) -> ConfigError:
    """Make the error for a path that no rule makes, with the nearest of the `known` paths. These are compared folder by
    folder, so that a typo in one folder does not lead to an unrelated file. `out` is the folder of the results of the
    run's scale."""
    other = (
        "" if path.startswith(f"{out}/") else f". This run makes what lies in {out}; `--configfile` chooses the scale"
    )
    near, left = "", [one.split("/") for one in known]
    for part in path.split("/"):
        found = difflib.get_close_matches(part, sorted({parts[0] for parts in left}), n=1, cutoff=CLOSE)
        if not found and left:
            return ConfigError(
                f"no rule makes '{path}'; nothing below '{near[1:] or '.'}' has a name like '{part}'{other}"
            )
        for name in found:
            near, left = f"{near}/{name}", [parts[1:] for parts in left if parts[0] == name and parts[1:]]
    for more in min(left, default=[]):  # the path is a folder: name one of its files
        near = f"{near}/{more}"
    return ConfigError(f"no rule makes '{path}'; nearest: {near[1:]}{other}")


def undeclared(config: Mapping[str, Json]) -> list[str]:
    """Return a line for each section of `benchmarks`, or setting in one, that the schema does not know, which says
    where its types belong. A setting with a name similar to that of another one counts as a typo."""
    sections, known = config.get("benchmarks"), BenchmarkSections.model_fields
    sections = sections if isinstance(sections, Mapping) else {}
    place = f"{TYPES} (docs/new-data.md)"
    found = [
        f"config key '{joined('benchmarks', name)}': {_source(name)}; the types of its settings belong into {place}"
        for name in sections
        if name not in known
    ]
    for name, section in sections.items():
        own = getattr(known[name].annotation, "model_fields", {}) if name in known else {}
        new = [key for key in section if key not in own] if own and isinstance(section, Mapping) else []
        found += [
            f"config key '{joined(joined('benchmarks', name), key)}': the type of a new setting belongs into {place}"
            for key in new
            if not nearest(key, own)
        ]
    return found


def _source(benchmark: str) -> str:
    if benchmark in registry.benchmarks():
        return f"{registry.loader(benchmark)} registers '{benchmark}'"
    return f"no module in src/metabo/data registers '{printable(benchmark, 80)}'"


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


def _unread() -> list[str]:
    """Return the sections of `benchmarks` that no loader registers, because a table `BENCHMARKS` was forgotten."""
    return [
        f"{TYPES}: {_source(name)}; give its loader a table BENCHMARKS that names it, or delete the section"
        for name in BenchmarkSections.model_fields
        if name not in registry.benchmarks()
    ]


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
    """Refuse passwords in addresses, because they would appear in commands, logs and records."""
    return [
        f"config key 'benchmarks.{name}.mirrors': {shown} has a password, which logs and records would show; put "
        "it into ~/.netrc, which is read for https, or name a copy here (file:///...)"
        for name in BenchmarkSections.model_fields
        for address in getattr(getattr(config.benchmarks, name), "mirrors", ())
        if (shown := without_passwords(address)) != address
    ]


def _settings() -> list[str]:
    """Check that the settings that the loaders of benchmarks read are declared, except those whose values are in the
    registration. The schema requires values for the others."""
    sections = BenchmarkSections.model_fields
    declared = {name: getattr(field.annotation, "model_fields", {}) for name, field in sections.items()}
    found = []
    for name in registry.benchmarks():
        where, entry = registry.loader(name), registry.benchmark(name)
        known = {"seed", "online", *entry.fixed, *declared.get(name, {}), *declared.get(entry.archive_of or "", {})}
        for key in dict.fromkeys((*entry.settings, *entry.files)):
            meant = nearest(key, entry.fixed) if key not in entry.settings else ""
            if key not in known and meant:
                found.append(f"{where}: BENCHMARKS key '{name}.files' has '{key}', which is no setting.{meant}")
            elif key not in known:
                found.append(
                    f"{where}: setting '{key}' of benchmark '{name}' is not declared; add it to {TYPES} and "
                    f"'benchmarks.{name}.{key}' to config.yaml"
                )
        found += [
            f"{where}: BENCHMARKS key '{name}.fixed' has '{key}', which 'settings' lists too; leave it in one of them"
            for key in entry.fixed
            if key in entry.settings
        ]
    return found


def _described() -> list[str]:
    """Check that the type of each setting of a benchmark has a description, because config/README.md lists them."""
    return [
        f"{TYPES}: setting '{key}' of benchmark '{name}' has no description; write `= Field(description=...)`"
        for name, section in BenchmarkSections.model_fields.items()
        for key, field in getattr(section.annotation, "model_fields", {}).items()
        if not field.description
    ]


def _files() -> list[str]:
    """Check that every setting of free text names files that jobs depend on; other text must have a pattern or be a
    choice. Otherwise an edit of a file that a loader reads would silently re-run nothing."""
    found = []
    for name in registry.benchmarks():
        entry = registry.benchmark(name)
        types = {**_types(entry.archive_of or ""), **_types(name)}
        found += [
            f"{registry.loader(name)}: BENCHMARKS key '{name}.files' lacks '{key}', which is free text: add it there, "
            f"so that an edit of the files it names runs jobs again, or, if it names none, make its type in {TYPES} a "
            "Literal of the texts that it may be"
            for key in entry.settings
            if key not in entry.files and _free(types.get(key))
        ]
        found += [
            f"{registry.loader(name)}: BENCHMARKS key '{name}.files' lacks '{key}', which names the file {path}: add "
            "it there, so that an edit of the file runs jobs again"
            for key, value in entry.fixed.items()
            for path in (value if isinstance(value, tuple) else (value,))
            if key not in entry.files and isinstance(path, str) and Path(path).is_file()
        ]
    return found


def _types(benchmark: str) -> Mapping[str, Json]:
    """Return the JSON schema of each setting of a benchmark. It is empty for a benchmark without a section."""
    part: Json = reference.schema()
    for key in ("properties", "benchmarks", "properties", benchmark, "properties"):
        part = required_mapping(part, key).get(key, {})
    return required_mapping(part, benchmark)


def _free(schema: Json) -> bool:
    """Tell whether a value of a schema may contain arbitrary text."""
    if isinstance(schema, list):
        return any(map(_free, schema))
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type")
    if kind == "string" or (isinstance(kind, list) and "string" in kind):
        return not {"enum", "const", "pattern"} & schema.keys()
    return any(map(_free, schema.values()))


def _methods() -> list[str]:
    """Check what entries of methods.yaml name or share. Otherwise a figure or a run would stop, or show two methods as
    one."""
    found, colours, patterns, labels = [], dict[str, str](), dict[tuple[object, ...], str](), dict[str, str]()
    for name in registry.methods(ordered=True):  # of two that look alike, report the later one, which is newer
        entry, key = registry.method(name), f"{registry.METHODS.name} key '{name}"
        if not re.fullmatch(promises.SLUG, name):
            found.append(f"{key}': {promises.SLUGS}")
        if entry.acquisition not in ACQUISITIONS:
            found.append(
                f"{key}.acquisition': {unknown('acquisition', entry.acquisition, SCORED)}; a new one is added to "
                f"SCORED and to `make` in {promises.ACQUISITION}, or to OWN there if the policy computes it itself"
            )
        if entry.marker not in MARKERS:
            found.append(f"{key}.marker' is '{entry.marker}', which is no marker of matplotlib; {FREE}")
        if len(entry.dashes) % 2 or not all(length > 0 for length in entry.dashes):
            found.append(
                f"{key}.dashes' is {list(entry.dashes)}: write lengths of dash and gap in turn, all above 0; {FREE}"
            )
        if not re.fullmatch("#[0-9a-fA-F]{6}", entry.colour):
            found.append(f"{key}.colour' is '{entry.colour}': write it as \"#1f77b4\", six hexadecimal digits")
        twin = registry.method(labels.setdefault(entry.label, name))  # online tuning registers a method a second time
        if (twin.colour, twin.marker, twin.dashes) != (entry.colour, entry.marker, entry.dashes):
            found.append(f"{key}.label' is that of '{labels[entry.label]}', '{entry.label}'; give it another one")
        if not entry.variant_of:  # variants of a method are shown only with each other
            other = colours.setdefault(entry.colour.lower(), name)
            if registry.method(other).label != entry.label:
                found.append(f"{key}.colour' is that of '{other}', {entry.colour}; {FREE}")
            other = patterns.setdefault((entry.marker, entry.dashes), name)
            if registry.method(other).label != entry.label:
                shown = f"'{entry.marker}' with {list(entry.dashes)}"
                found.append(f"{key}.marker' and its dashes are those of '{other}', {shown}; {FREE}")
    return [*found, *promises.acquisitions(), *promises.parts(registry.methods()), *promises.settings(),
            *promises.ignored(registry.methods())]  # fmt: skip


FREE = "`metabo list looks` names free ones"
MARKERS = frozenset("o^v<>sPXDdph8H*.+x1234|_")
"""Matplotlib markers that can be told apart at the size of a figure's lines. The plan does not import matplotlib."""
