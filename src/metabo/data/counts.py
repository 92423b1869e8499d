"""Counts that a loader reports: what the papers state beside what was found, flagged where they differ.

A flag never stops loading; it is shown in the log and kept in `metabo.tasks.facts.Facts`.
"""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from metabo.errors import ConfigError, unknown
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Count
from metabo.tasks.task import Task

Name = TypeVar("Name", bound=str)


def count(name: str, found: float, expected: float | None = None, within: float = 0.0) -> Count:
    """Return one line of the report; `within` is the relative tolerance of a number given as "about"."""
    differs = expected is not None and abs(found - expected) > within * abs(expected)
    return Count(name, expected, found, bool(differs))


def counts(benchmark: Benchmark) -> str:
    """Return the counts of a benchmark as a text table (name, expected, found, differs) followed by its flags.

    Raises DataError for a benchmark without counts.
    """
    lines = benchmark.counts
    cells = [("count", "expected", "found", "")]
    for line in lines:
        expected = "-" if line.expected is None else f"{line.expected:,}"
        cells.append((line.name, expected, f"{line.found:,}", "DIFFERS" if line.differs else ""))
    widths = [max(len(row[i]) for row in cells) for i in range(4)]
    text = [f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in cells]
    flags = [f"note: {flag}" for flag in benchmark.facts.flags]
    flagged = sum(line.differs for line in lines)
    summary = f"{benchmark.name}: {len(benchmark.tasks)} tasks; {flagged} of {len(lines)} counts differ"
    return "\n".join([*text, *flags, summary])


def flat_tasks(tasks: Mapping[str, Task]) -> list[str]:
    """Return a flag that names the tasks with constant outputs (kept, but they carry no signal), or an empty list."""
    flat = [name for name, task in tasks.items() if task.flat]
    return [f"constant outputs in {len(flat)} task(s), kept: {', '.join(flat)}"] if flat else []


def repeated_inputs(tasks: Mapping[str, Task]) -> int:
    """Count the evaluations whose inputs repeat an earlier one of the same task (kept: repeats are real data)."""
    return int(sum(len(task.x) - len(np.unique(task.x, axis=0)) for task in tasks.values()))


def take(benchmark: str, settings: Mapping[str, object], defaults: Mapping[str, object]) -> dict[str, object]:
    """Fill in the defaults of a loader's settings. Raises ConfigError on a key that the loader does not have."""
    for key in settings:
        if key not in defaults:
            raise unknown(f"setting of benchmark '{benchmark}'", key, defaults)
    return {**defaults, **settings}


def one_of(benchmark: str, key: str, value: object, valid: tuple[Name, ...]) -> Name:
    """Return the one of the valid names that `value` is, else raise a ConfigError that lists them."""
    for name in valid:
        if name == value:
            return name
    raise unknown(f"benchmarks.{benchmark}.{key}", str(value), valid)


def listed(benchmark: str, key: str, value: object) -> list[str]:
    """Return the names in a list, else raise a ConfigError."""
    if not isinstance(value, list | tuple):
        raise ConfigError(f"benchmarks.{benchmark}.{key}: {value!r} must be a list, even of one name")
    return [str(name) for name in value]


def version(benchmark: str, value: object, newest: int) -> int:
    """Return `value` if it is the number of a version of a collection, else raise a ConfigError."""
    number = whole_number(benchmark, "version", value, least=1)
    if number > newest:
        raise ConfigError(f"benchmarks.{benchmark}.version: there is no version {number}; the newest is {newest}")
    return number


def whole_number(benchmark: str, key: str, value: object, least: int) -> int:
    """Return `value` if it is a whole number of at least `least`, else raise a ConfigError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"benchmarks.{benchmark}.{key}: {value!r} must be a whole number of at least {least}")
    return value
