"""Benchmarks: tasks, search spaces, splits, and the facts that their loader states.

A `Benchmark` is stored as one ``.npz`` file (arrays plus a JSON header, never pickle).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np

from metabo.errors import DataError, MetaboError, unknown
from metabo.records.files import save_npz
from metabo.tasks.checks import faults
from metabo.tasks.facts import Count, Facts, FactsJson
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import SearchSpace, SpaceJson
from metabo.tasks.task import MatchedBlock, Task


@dataclass(frozen=True)
class Benchmark:
    """Tasks of one or more search spaces with matched blocks and named splits.

        import metabo

        benchmark = metabo.load_benchmark("mphd_s", domains=2, functions=5, points=40)
        for task in benchmark.tasks.values():
            print(task.name, "in space", task.space, task.x.shape, "best:", task.y.max())
        benchmark.save("toy.npz")
        again = metabo.Benchmark.load("toy.npz")
        print(again.spaces.keys() == benchmark.spaces.keys(), again.splits == benchmark.splits)

    `initial` maps a task to the indices (seeds, k) of candidates that are evaluated before BO starts; a task without an
    entry starts without observations. Raises DataError if the parts do not fit together (`metabo.tasks.checks`).
    """

    name: str
    spaces: dict[str, SearchSpace]
    tasks: dict[str, Task]
    matched: tuple[MatchedBlock, ...]
    splits: dict[str, tuple[Fold, ...]]
    initial: dict[str, np.ndarray] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)

    def __post_init__(self) -> None:
        for fault in faults(self.spaces, self.tasks, self.matched, self.splits, self.initial, self.facts):
            raise DataError(f"benchmark '{self.name}', {fault}")

    def split(self, name: str) -> tuple[Fold, ...]:
        """Return the folds of one split. Raises ConfigError, which lists the splits, for an unknown name."""
        if name not in self.splits:
            raise unknown(f"split of benchmark '{self.name}'", name, self.splits)
        return self.splits[name]

    @property
    def counts(self) -> tuple[Count, ...]:
        """The counts that the loader made. Raises DataError if it made none (an empty tuple counts as made)."""
        if self.facts.counts is None:
            raise DataError(
                f"benchmark '{self.name}': its facts have no field 'counts'; have its loader give Facts(counts=...), "
                "a line of metabo.data.counts.count for each number, and make its file again"
            )
        return self.facts.counts

    @property
    def width(self) -> int:
        """Number of input columns of the widest task."""
        return max((task.x.shape[1] for task in self.tasks.values()), default=0)

    def save(self, path: str | Path) -> None:
        """Write the benchmark as one ``.npz`` file, atomically."""
        tasks, blocks = list(self.tasks.values()), self.matched
        header: Header = {
            "name": self.name,
            "notes": self.facts.to_json(),
            "spaces": [space.to_json() for space in self.spaces.values()],
            "splits": {name: list(folds) for name, folds in self.splits.items()},
            "initial": list(self.initial),
            "tasks": [{"name": task.name, "space": task.space, "group": task.group} for task in tasks],
            "matched": [{"name": block.name, "space": block.space, "tasks": list(block.tasks)} for block in blocks],
        }
        arrays = {f"task{i}_{key}": getattr(task, key) for i, task in enumerate(tasks) for key in _TASK_ARRAYS}
        arrays |= {f"task{i}_noise": task.noise for i, task in enumerate(tasks) if task.noise is not None}
        for i, block in enumerate(blocks):
            arrays |= {f"matched{i}_x": block.x, f"matched{i}_y": block.y}
        arrays |= {f"initial{i}": indices for i, indices in enumerate(self.initial.values())}
        arrays["header"] = np.array(json.dumps(header, sort_keys=True))
        save_npz(path, arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Benchmark":
        """Read what `save` wrote. Raises DataError if the file is not a benchmark."""
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as data:
                header: Header = json.loads(str(data["header"]))
                arrays = {key: data[key] for key in data.files if key != "header"}
            return cls._of(header, arrays, where=str(path))
        except MetaboError:
            raise
        except Exception as error:
            raise DataError(f"{path}: not a readable benchmark file ({error!r}); delete it and run again") from error

    @classmethod
    def _of(cls, header: "Header", arrays: dict[str, np.ndarray], where: str) -> "Benchmark":
        tasks = {
            t["name"]: Task(
                **t, **{key: arrays[f"task{i}_{key}"] for key in _TASK_ARRAYS}, noise=arrays.get(f"task{i}_noise")
            )
            for i, t in enumerate(header["tasks"])
        }
        matched = tuple(
            MatchedBlock(b["name"], b["space"], tuple(b["tasks"]), arrays[f"matched{i}_x"], arrays[f"matched{i}_y"])
            for i, b in enumerate(header["matched"])
        )
        splits = {
            name: tuple(Fold(label, space, tuple(train), tuple(test)) for label, space, train, test in folds)
            for name, folds in header["splits"].items()
        }
        spaces = {s["name"]: SearchSpace.from_json(s) for s in header["spaces"]}
        initial = {name: arrays[f"initial{i}"] for i, name in enumerate(header["initial"])}
        facts = Facts.from_json(header["notes"], where)
        return cls(header["name"], spaces, tasks, matched, splits, initial, facts)


_TASK_ARRAYS = ("x", "y", "metric", "rows", "diverged")


class TaskJson(TypedDict):
    """A task in the header of a file; its arrays are stored next to the header."""

    name: str
    space: str
    group: str


class BlockJson(TypedDict):
    """A matched block in the header of a file; its arrays are stored next to the header."""

    name: str
    space: str
    tasks: list[str]


class Header(TypedDict):
    """The JSON header of a benchmark's file."""

    name: str
    notes: FactsJson
    tasks: list[TaskJson]
    matched: list[BlockJson]
    spaces: list[SpaceJson]
    splits: dict[str, Sequence[tuple[str, str, Sequence[str], Sequence[str]]]]
    initial: list[str]
