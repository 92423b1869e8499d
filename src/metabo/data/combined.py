"""Super-datasets of tables (mphd §4.1, App. E.2): the spaces of several benchmarks as one, read from their own files.

Inputs are the members' in the unit cube. Outputs are scaled to [0, 1] for each task by its own least and greatest value
(mphd §4.1); `metric` stays. A task with constant outputs has no such scale: it is left out and named in the flags (the
authors' code keeps it as zeros, which would teach a GP that functions do not vary).

One fold per space: the split that the member publishes (HPO-B, and collections in its format), else a fifth of the
tasks, drawn by key, is tested; of tasks that are variants of one data set (TaskSet) one of the member's folds, drawn by
key.

An archive without types (HPO-B's) tells by its values which inputs are discrete: those with exactly two in the training
tasks (the authors' code). They are described as discrete; the inputs themselves stay as they are.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

import jax
import numpy as np

from metabo.compute.keys import stream
from metabo.data import counts
from metabo.data.initial import POINTS, SEEDS, fifth, initial_points
from metabo.errors import DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Count, Facts
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task

BENCHMARKS = {
    "super": {
        "dataset": None,
        "members": ["hpob", "pd1"],
        "unseen": ["pd1"],  # members whose training tasks never feed what is learned across spaces (mphd §4.2)
        "dropped": ["imagenet_resnet50,imagenet,resnet,resnet50,1024"],  # mphd App. E.2: it has 100 points only
        "matched": False,
        "once": True,  # HPO-B's spaces; PD1 allows repeats
        "exceptions": ["pd1"],
        "default_split": "held_out",
        "package": None,
        "settings": ["seed"],
        "sizes": "mphd",
        "memory_mb": 12000,  # hpob's
        "model": {"features": [128, 128]},  # mphd App. E.3 for HPO-B; the authors' code has them for PD1 too
    },
    "super_mini": {
        "dataset": None,
        "members": ["hpob_mini", "tables", "pd1_mini"],
        "unseen": ["pd1_mini"],
        "dropped": [],
        "matched": False,
        "once": True,  # HPO-B's spaces; PD1 allows repeats
        "exceptions": ["pd1"],
        "default_split": "held_out",
        "package": None,
        "settings": ["seed"],
        "sizes": "mphd",
    },
    "super_real": {
        "dataset": None,
        "members": ["lcbench", "taskset", "tables", "pd1_mini"],
        "unseen": ["pd1_mini"],
        "dropped": [],
        "matched": False,
        "default_split": "held_out",
        "package": None,
        "settings": ["seed"],
        "sizes": "mphd",
        "memory_mb": 6000,
    },
}

Thing = TypeVar("Thing")


class Part(NamedTuple):
    """What one member gives: spaces, usable tasks, a fold for each space, initial points, counts and flags."""

    spaces: dict[str, SearchSpace]
    tasks: dict[str, Task]
    folds: list[Fold]
    initial: dict[str, np.ndarray]
    counts: list[Count]
    flags: list[str]


def load(name: str, settings: Mapping[str, object], members: list[Path] | None) -> Benchmark:
    """Join the benchmark files `members`, all those that are registered. Setting: `seed` of drawn splits and initial
    points.

    Raises DataError for a missing member or one that is not registered, inputs outside the unit cube, a name of a
    space that two members use, or a space that is left without a training or a test task.
    """
    entry = BENCHMARKS[name]
    chosen = counts.take(name, settings, {"seed": 0})
    seed = counts.whole_number(name, "seed", chosen["seed"], least=0)
    given: dict[str, Benchmark] = {}
    for path in members or []:
        member = Benchmark.load(path)
        if member.name not in entry["members"] or member.name in given:
            raise DataError(
                f"{path}: holds '{member.name}', but '{name}' is made of {', '.join(entry['members'])}; give each once"
            )
        given[member.name] = member
    if missing := [member for member in entry["members"] if member not in given]:
        raise DataError(
            f"benchmark '{name}': the file of its member '{missing[0]}' is missing; make data/{missing[0]}.npz first"
        )
    parts = {member.name: _part(member, entry["dropped"], seed) for member in apart(given.values())}
    _refuse_twins(name, {member: part.spaces for member, part in parts.items()})
    unseen = [space for member in entry["unseen"] for space in parts[member].spaces]
    folds = tuple(fold for part in parts.values() for fold in part.folds)
    facts = Facts(
        counts=(*_counts(name, folds, parts, unseen), *(line for part in parts.values() for line in part.counts)),
        flags=tuple(flag for part in parts.values() for flag in part.flags),
        unseen=tuple(unseen),
    )
    spaces, tasks = _joined(part.spaces for part in parts.values()), _joined(part.tasks for part in parts.values())
    initial = _joined(part.initial for part in parts.values())
    return Benchmark(name, spaces, tasks, (), {"held_out": folds}, initial, facts)


def apart(members: Iterable[Benchmark]) -> list[Benchmark]:
    """Return the members with tasks of one name in two of them called "name (member)" in both: several tables are about
    the same OpenML data sets."""
    members = list(members)
    seen = Counter(task for member in members for task in member.tasks)
    return [
        _renamed(member, {task: f"{task} ({member.name})" for task in member.tasks if seen[task] > 1})
        for member in members
    ]


def _renamed(member: Benchmark, names: Mapping[str, str]) -> Benchmark:
    def new(listed: Iterable[str]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in listed)

    return replace(
        member,
        tasks={names.get(key, key): replace(task, name=names.get(key, key)) for key, task in member.tasks.items()},
        matched=tuple(replace(block, tasks=new(block.tasks)) for block in member.matched),
        splits={
            split: tuple(fold._replace(train=new(fold.train), test=new(fold.test)) for fold in folds)
            for split, folds in member.splits.items()
        },
        initial={names.get(key, key): points for key, points in member.initial.items()},
    )


def _scaled(task: Task) -> Task:
    noise = None if task.noise is None else task.noise / np.ptp(task.y)
    return replace(task, y=unit_outputs(task.y), noise=noise)


def unit_outputs(y: np.ndarray) -> np.ndarray:
    """Scale (n,) outputs that are not all equal to [0, 1] by their least and greatest (mphd §4.1)."""
    low, high = y.min(), y.max()
    return (y - low) / (high - low)


def _joined(parts: Iterable[Mapping[str, Thing]]) -> dict[str, Thing]:
    return {key: value for part in parts for key, value in part.items()}


def _part(member: Benchmark, dropped: list[str], seed: int) -> Part:
    """Make a member's folds, and scale the outputs of the tasks in them."""
    _require_unit_cube(member)
    flags = [f"{member.name}: {flag}" for flag in member.facts.flags]
    flat = [task.name for task in member.tasks.values() if task.flat]
    absent = [task for task in dropped if task in member.tasks]
    flags += [f"{member.name}: left out here, constant outputs: {'; '.join(flat)}"] if flat else []
    flags += [f"{member.name}: left out here, as the paper does: {'; '.join(absent)}"] if absent else []
    folds = [_fold(member, space, {*flat, *absent}, seed) for space in member.spaces]
    flags += [
        f"{member.name}: space '{fold.space}' has one training task, {fold.train[0]}: its GP is that of one function"
        for fold in folds
        if len(fold.train) == 1
    ]
    used = [member.tasks[name] for fold in folds for name in (*fold.train, *fold.test)]
    tasks = {task.name: _scaled(task) for task in used}
    initial = {name: _initial(member, tasks[name], seed) for fold in folds for name in fold.test}
    lines = [line._replace(name=f"{member.name}: {line.name}") for line in member.counts]
    spaces = {f.space: described(member.spaces[f.space], [tasks[name].x for name in f.train]) for f in folds}
    return Part(spaces, tasks, folds, initial, lines, flags)


def described(space: SearchSpace, inputs: list[np.ndarray]) -> SearchSpace:
    """Describe numeric parameters with exactly two values in the (n, d) `inputs` as ordinal with these two levels."""
    parameters, start = [], 0
    for parameter in space.parameters:
        found: set[float] = set()
        for x in inputs if parameter.kind in ("linear", "log") else []:
            found |= set(np.unique(x[:, start]).tolist())
            if len(found) > 2:
                break
        if len(found) == 2:
            levels = parameter.decode(np.array(sorted(found))[:, None])
            parameter = Parameter(parameter.name, "ordinal", levels=tuple(levels.tolist()))
        parameters.append(parameter)
        start += parameter.width
    return SearchSpace(space.name, tuple(parameters))


def _require_unit_cube(member: Benchmark) -> None:
    inputs = member.facts.inputs
    if inputs != "unit":
        raise DataError(
            f"benchmark '{member.name}': its inputs are '{inputs}', but length-scales of several spaces are compared "
            f"only in the unit cube; set config key 'benchmarks.{member.name}.inputs' to unit"
        )
    for task in member.tasks.values():
        outside = (task.x < 0) | (task.x > 1)
        if outside.any():
            row, column = (int(i) for i in np.argwhere(outside)[0])
            raise DataError(
                f"benchmark '{member.name}', task '{task.name}', row {row}: input {column} is {task.x[row, column]}, "
                "outside [0, 1]; scale the inputs in its loader, or leave the space out"
            )


def _fold(member: Benchmark, space: str, absent: set[str], seed: int) -> Fold:
    """Return the one fold of a space: the member's, if it has only one; one of them, if all tasks are of one data set;
    else a drawn fifth of its tasks is tested.

    Raises DataError for a space that is left with one task, or without a training or a test task.
    """
    own = [fold for fold in member.split("held_out") if fold.space == space]
    names = {name for fold in own for name in (*fold.train, *fold.test)} - absent
    left = [name for name in member.tasks if name in names]
    if len(own) > 1 and len({member.tasks[name].group for name in left}) == 1:
        # Variants of one data set: the folds of the member keep kinds of tasks together, and one of them is drawn.
        own = [own[int(jax.random.randint(stream(seed, "test tasks", space), (), 0, len(own)))]]
    if len(own) == 1:
        train, test = ([n for n in side if n not in absent] for side in (own[0].train, own[0].test))
    else:
        tested = {name for fold in own for name in fold.test}  # some are for training only
        able = [n for n in left if n in tested]
        order = jax.random.permutation(stream(seed, "test tasks", space), len(able)) if able else []
        drawn = {able[int(i)] for i in order[: fifth(len(left))]}
        train, test = [n for n in left if n not in drawn], [n for n in left if n in drawn]
    if not train or not test:
        raise DataError(
            f"benchmark '{member.name}', space '{space}': {len(train)} training and {len(test)} test tasks are left "
            f"({'; '.join(left) or 'none'}); both are needed: leave the space out"
        )
    return Fold(space, space, tuple(train), tuple(test))


def _initial(member: Benchmark, task: Task, seed: int) -> np.ndarray:
    """Return the initial points that the member publishes, else drawn ones. Raises DataError for too few."""
    if task.name not in member.initial:
        return initial_points(task, seed)
    given = member.initial[task.name]
    if given.shape[0] < SEEDS or given.shape[1] != POINTS:
        raise DataError(
            f"benchmark '{member.name}', task '{task.name}': {given.shape[0]} sets of {given.shape[1]} initial points; "
            f"needs {SEEDS} sets of {POINTS}"
        )
    return given


def _refuse_twins(name: str, spaces: Mapping[str, Iterable[str]]) -> None:
    seen: dict[str, str] = {}
    for member, own in spaces.items():
        for space in own:
            if space in seen:
                raise DataError(
                    f"benchmark '{name}': spaces of '{seen[space]}' and '{member}' have the name '{space}'; rename one "
                    "in its loader"
                )
            seen[space] = member


def _counts(name: str, folds: tuple[Fold, ...], parts: dict[str, Part], unseen: list[str]) -> list[Count]:
    """Compare with what mphd §4.1 and App. E.2 state about HPO-B and PD1, if these are the members."""
    dims = {space.name: space.dim for part in parts.values() for space in part.spaces.values()}
    seen = [dim for space, dim in dims.items() if space not in unseen]
    new = [fold for fold in folds if fold.space in unseen]
    lines = [
        ("search spaces", len(dims), 17),
        ("fewest inputs of the seen spaces", min(seen), 2),
        ("most inputs of the seen spaces", max(seen), 18),
        ("test tasks of the seen spaces", sum(len(fold.test) for fold in folds if fold not in new), 86),
        ("inputs of the unseen spaces", sum(dims[space] for space in unseen), 4),
        ("training tasks of the unseen spaces", sum(len(fold.train) for fold in new), 19),
        ("test tasks of the unseen spaces", sum(len(fold.test) for fold in new), 4),
    ]
    return [counts.count(label, found, stated if name == "super" else None) for label, found, stated in lines]
