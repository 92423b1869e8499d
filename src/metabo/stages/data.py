"""Stage `data`: build one benchmark from its source and report the counts that its papers state."""

import inspect
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from metabo.errors import ConfigError, DataError
from metabo.plan.specs import DataSpec
from metabo.stages.common import Outcome, main

if TYPE_CHECKING:  # it is imported once the cores are pinned
    from metabo.tasks.benchmark import Benchmark


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs of this stage."""
    parser.add_argument("--in-archive", help="the downloaded archive, for sources that have one")
    parser.add_argument("--in-files", nargs="*", default=[], help="files that the settings name, for the sidecar")
    parser.add_argument("--in-members", nargs="*", default=[], help="the benchmarks (.npz) that this one is made of")


class DeclaredSettings(dict[str, object]):
    """The settings that the registration of a benchmark lists; a loader that reads another setting is told where that
    belongs."""

    def __init__(self, benchmark: str, values: Mapping[str, object]) -> None:
        super().__init__(values)
        self.benchmark = benchmark

    def __missing__(self, key: str) -> NoReturn:
        raise ConfigError(
            f"the loader of '{self.benchmark}' reads setting '{key}', which its registration does not list; add it to "
            f"'settings' of BENCHMARKS['{self.benchmark}'], or with its value to 'fixed', or correct the loader"
        )


def loaded(module: str, load: Callable[..., object], *given: object) -> "Benchmark":
    """Return what the function `load` of a module returns. Raises ConfigError, which names file and function, if it
    cannot be called in this way, or returns no benchmark."""
    where = f"src/{module.replace('.', '/')}.py: `load"
    try:
        inspect.signature(load).bind(*given)
    except TypeError as error:
        raise ConfigError(
            f"{where}{inspect.signature(load)}` cannot be called as load(name, settings, archive) ({error}); write "
            "`def load(name, settings, archive=None):`"
        ) from None
    from metabo.tasks.benchmark import Benchmark

    try:
        benchmark = load(*given)
    except DataError as error:
        lines = str(error).splitlines()
        if PARTS.match(lines[0]):  # what is at fault was made from the loader's numbers, and knows no file
            raise DataError(*lines[:-1], f"{lines[-1]} (made by src/{module.replace('.', '/')}.py)") from error
        raise
    if not isinstance(benchmark, Benchmark):
        raise ConfigError(
            f"{where}` returns {type(benchmark).__name__}, not a Benchmark; end it with `return Benchmark(name, ...)`"
        )
    return benchmark


def refuse_shapes(benchmark: "Benchmark", where: str) -> None:
    """Raise DataError for a task whose outputs, metric or row numbers are not a list with one number for each point.
    `where`: the loader."""
    import numpy as np

    for task in benchmark.tasks.values():
        for name, values in (("y", task.y), ("metric", task.metric), ("rows", task.rows)):
            if (shape := np.shape(values)) != (len(task.x),):
                raise DataError(
                    f"{where}: task '{task.name}' has {name} of the shape {shape}, and {len(task.x)} points; "
                    f"give one number for each point, the shape {(len(task.x),)}"
                )


def refuse_outside(benchmark: "Benchmark", where: str) -> None:
    """Raise DataError for a task with inputs outside the unit cube: kernels, candidates and learned length-scales take
    all inputs to lie in it. `where`: the loader."""
    import numpy as np

    for task in benchmark.tasks.values():
        if len(found := np.argwhere((task.x < -HAIR) | (task.x > 1.0 + HAIR))):
            row, column = found[0]
            names = [one.name for one in benchmark.spaces[task.space].parameters for _ in range(one.width)]
            value = f"input {column + 1} ('{names[column]}') is {task.x[row, column]:g} in row {row}"
            raise DataError(
                f"{where}: task '{task.name}', {value}, outside [0, 1]; encode the inputs with the benchmark's "
                "SearchSpace"
            )


HAIR = 0.01
"""How far an input may lie outside the unit cube: tables have points beside their box by a rounding."""
PARTS = re.compile(r"(task|space|split|matched block|parameter) '")
"""How a fault of a benchmark's parts begins."""


def refuse_flat(benchmark: "Benchmark", where: str) -> None:
    """Raise DataError for a task that is tested, and whose outcomes are all equal: every choice there is the best.
    `where`: the files that it is read from."""
    tested = dict.fromkeys(task for folds in benchmark.splits.values() for fold in folds for task in fold.test)
    for task in (benchmark.tasks[name] for name in tested):
        if task.flat:
            raise DataError(
                f"{where}: all {len(task.y)} outcomes of task '{task.name}' are equal, so it says nothing of methods; "
                "correct them, delete its rows, or let it train only (a split's `Fold`)"
            )


def work(args: Namespace, spec: DataSpec) -> Outcome:
    """Load `spec.benchmark` with `spec.settings`, print the counts, save the benchmark."""
    import importlib

    from metabo.data.counts import counts
    from metabo.plan import registry
    from metabo.plan.typed import plain

    module = registry.loader(spec.benchmark)
    source = importlib.import_module(module)
    settings = DeclaredSettings(spec.benchmark, {key: plain(value) for key, value in spec.settings.items()})
    archive = Path(args.in_archive) if args.in_archive else None
    members = [Path(path) for path in args.in_members]
    benchmark = loaded(module, source.load, spec.benchmark, settings, members or archive)
    where = f"src/{module.replace('.', '/')}.py"
    refuse_shapes(benchmark, where)
    # The paper's code scales PD1's inputs, but not into the unit cube; members have been checked.
    if settings.get("inputs") != "warped" and not members:
        refuse_outside(benchmark, where)
    print(counts(benchmark), flush=True)
    refuse_flat(benchmark, ", ".join(args.in_files) or where)
    benchmark.save(args.out)
    points = sum(len(task.y) for task in benchmark.tasks.values())
    return {"tasks": len(benchmark.tasks), "points": points, "counts": [count._asdict() for count in benchmark.counts]}


if __name__ == "__main__":
    main("data", add_arguments, work, DataSpec)
