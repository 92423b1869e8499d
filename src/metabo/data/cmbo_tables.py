"""cm-BO's protocol (§4.1) on the public tables `lcbench` and `taskset`, each read from its own benchmark file.

Outputs are standardised over all evaluations of a task and eight sets of five initial points are drawn, as cm-BO's
models and runs need (`metabo.data.cmbo`); `metric` stays. Targets are 15 % of the tasks in each of five draws without a
target in common. Where all tasks are of one data set (TaskSet), the member's own folds hold out kinds of tasks instead,
or a target would have its twins among the sources. Tasks that the member never tests are sources only; constant ones
are left out.
"""

from collections.abc import Mapping
from pathlib import Path

from metabo.data import counts
from metabo.data.cmbo import draws, initial_points, standardised
from metabo.errors import DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import Fold

BENCHMARKS = {
    "cmbo_lcbench": {
        "dataset": None,
        "members": ["lcbench"],
        "matched": False,
        "once": True,
        "default_split": "held_out",
        "splits": ["held_out", "first"],
        "settings": ["seed"],
        "sizes": "cmbo",
        "memory_mb": 4000,
    },
    "cmbo_taskset": {
        "dataset": None,
        "members": ["taskset"],
        "matched": False,
        "once": True,
        "default_split": "held_out",
        "splits": ["held_out", "first"],
        "settings": ["seed"],
        "sizes": "cmbo",
        "one_data_set": True,
    },
}

DRAWS = 5
"""Draws of targets (§4.1)."""


def load(name: str, settings: Mapping[str, object], members: list[Path] | None) -> Benchmark:
    """Read the benchmark file of the one member. Setting: `seed` of the draws.

    Split `first`: the first draw. Raises DataError for a missing file or that of another benchmark, and for too few
    tasks for the draws.
    """
    (expected,) = BENCHMARKS[name]["members"]
    chosen = counts.take(name, settings, {"seed": 0})
    seed = counts.whole_number(name, "seed", chosen["seed"], least=0)
    if not members:
        raise DataError(f"benchmark '{name}': the file of its member is missing; make data/{expected}.npz first")
    member = Benchmark.load(members[0])
    if member.name != expected or len(members) > 1:
        raise DataError(f"{members[0]}: holds '{member.name}', but '{name}' is made of {expected} alone")
    tasks = {key: standardised(task) for key, task in member.tasks.items() if not task.flat}
    held_out = tuple(fold for space in member.spaces for fold in _folds(member, space, list(tasks), seed))
    flat = [key for key, task in member.tasks.items() if task.flat]
    flags = [f"left out here, constant outputs: {'; '.join(flat)}"] if flat else []
    facts = Facts(
        counts=(*member.counts, counts.count("pairs of split and target", sum(len(fold.test) for fold in held_out))),
        flags=(*member.facts.flags, *flags),
        divergence=member.facts.divergence,
    )
    initial = {key: initial_points(task, seed) for key, task in tasks.items()}
    splits = {"held_out": held_out, "first": held_out[:1]}
    return Benchmark(name, member.spaces, tasks, (), splits, initial, facts)


def _folds(member: Benchmark, space: str, names: list[str], seed: int) -> list[Fold]:
    own = [fold for fold in member.split("held_out") if fold.space == space]
    if len({member.tasks[name].group for name in names}) == 1:
        kept = [(fold, *(tuple(n for n in side if n in names) for side in (fold.train, fold.test))) for fold in own]
        return [fold._replace(train=train, test=test) for fold, train, test in kept if train and test]
    tested = {name for fold in own for name in fold.test}
    return draws(space, names, DRAWS, seed, [name for name in names if name in tested])
