"""Runs of the benchmark and where they are kept.

A run that was just made is a file of the cache. `results/runs.csv` has the runs that are reported, each outcome in its
order, and `results/references.csv` what regret is measured by: from these two, the report follows without any data set
or training.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import worlds
from worlds import CACHE, HERE, PLAN

ALONE = ("random", "tpe", "tpe_early", "gpsampler", "gpsampler_early", "plain_gp")
"""Methods that learn nothing from the past: run once for all histories."""
RUNS, REFERENCES = HERE / "results" / "runs.csv", HERE / "results" / "references.csv"


class Run(NamedTuple):
    """One study: a method on a data set, with a history ("": none) and a seed."""

    space: str
    task: str
    method: str
    history: str
    seed: int

    @property
    def path(self) -> Path:
        return (
            CACHE / "runs" / "-".join([self.space, self.task, self.method, self.history or "none", f"{self.seed}.json"])
        )


class Played(NamedTuple):
    """The outcomes of a run in their order (NaN: failed) and the CPU seconds of a suggestion, trainings left out."""

    outcomes: list[float]
    cpu_s: float


class References(NamedTuple):
    """What regret is measured by, on the scale of the outcome: 0 at the least one known, 1 at the median of random
    configurations. A run that found less than `least` lowers it."""

    scale: str
    least: float
    median: float


def planned(part: str, methods: list[str], histories: list[str], seeds: list[int]) -> Iterator[Run]:
    """List runs, all problems of a seed before the next seed."""
    for seed in seeds:
        for name, entry in PLAN[part]["spaces"].items():
            for history in ["", *histories]:
                for task in entry["targets"]:
                    for method in methods:
                        if (method in ALONE) == (history == ""):
                            yield Run(name, task, method, history, seed)


def recorded(path: Path | None = None) -> dict[Run, Played]:
    """Read the runs that are reported; none where there is no file yet."""
    path = path or RUNS
    if not path.exists():
        return {}
    with path.open(newline="") as stream:
        return {
            Run(row["space"], row["task"], row["method"], row["history"], int(row["seed"])): Played(
                [float(row[f"outcome_{k}"]) for k in range(1, PLAN["budget"] + 1)], float(row["cpu_ms"]) / 1e3
            )
            for row in csv.DictReader(stream)
        }


def cached(runs: Iterable[Run]) -> dict[Run, Played]:
    """Read those of some runs that the cache has."""
    found = {run: json.loads(run.path.read_text()) for run in runs if run.path.exists()}
    return {run: Played(content["outcomes"], content["cpu_s"]) for run, content in found.items()}


def record(played: Mapping[Run, Played], path: Path = RUNS) -> None:
    """Write runs in the order of their names."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*Run._fields, "cpu_ms", *(f"outcome_{k}" for k in range(1, PLAN["budget"] + 1))])
        for run, found in sorted(played.items()):
            writer.writerow([*run, f"{1e3 * found.cpu_s:.1f}", *(f"{value:.9g}" for value in found.outcomes)])


def references(part: str, path: Path = REFERENCES) -> dict[tuple[str, str], References]:
    """Return the references of all problems of a part; those that the file does not have are computed."""
    found: dict[tuple[str, str], References] = {}
    if path.exists():
        with path.open(newline="") as stream:
            for row in csv.DictReader(stream):
                one = References(row["scale"], float(row["least"]), float(row["median"]))
                found[row["space"], row["task"]] = one
    problems = [(space, task) for space, entry in PLAN[part]["spaces"].items() for task in entry["targets"]]
    return {problem: found.get(problem) or _computed(*problem) for problem in problems}


def _computed(space: str, task: str) -> References:
    one = worlds.world(space)
    return References("log" if one.description.log else "linear", *worlds.references(one, task))


def record_references(found: Mapping[tuple[str, str], References], path: Path = REFERENCES) -> None:
    """Write references in the order of their problems."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["space", "task", *References._fields])
        for problem, one in sorted(found.items()):
            writer.writerow([*problem, one.scale, f"{one.least:.9g}", f"{one.median:.9g}"])
