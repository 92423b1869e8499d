"""Stage `data`: build one benchmark from its source and report the counts that its papers state."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from metabo.errors import ConfigError
from metabo.plan.specs import DataSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs of this stage."""
    parser.add_argument("--in-archive", help="the downloaded archive, for sources that have one")
    parser.add_argument("--in-files", nargs="*", default=[], help="files that the settings name, for the sidecar")
    parser.add_argument("--in-members", nargs="*", default=[], help="the benchmarks (.npz) that this one is made of")


class DeclaredSettings(dict[str, object]):
    """The settings that the registration of a benchmark lists; a loader that reads another one is told where it
    belongs."""

    def __init__(self, benchmark: str, values: Mapping[str, object]) -> None:
        super().__init__(values)
        self.benchmark = benchmark

    def __missing__(self, key: str) -> NoReturn:
        raise ConfigError(
            f"the loader of '{self.benchmark}' reads setting '{key}', which its registration does not list; add it to "
            f"'settings' of BENCHMARKS['{self.benchmark}'], or with its value to 'fixed', or correct the loader"
        )


def work(args: Namespace, spec: DataSpec) -> Outcome:
    """Load `spec.benchmark` with `spec.settings`, print the counts, save the benchmark."""
    import importlib

    from metabo.data.counts import counts
    from metabo.plan import registry
    from metabo.plan.typed import plain

    source = importlib.import_module(registry.loader(spec.benchmark))
    settings = DeclaredSettings(spec.benchmark, {key: plain(value) for key, value in spec.settings.items()})
    archive = Path(args.in_archive) if args.in_archive else None
    members = [Path(path) for path in args.in_members]
    benchmark = source.load(spec.benchmark, settings, members or archive)
    print(counts(benchmark), flush=True)
    benchmark.save(args.out)
    points = sum(len(task.y) for task in benchmark.tasks.values())
    return {"tasks": len(benchmark.tasks), "points": points, "counts": [count._asdict() for count in benchmark.counts]}


if __name__ == "__main__":
    main("data", add_arguments, work, DataSpec)
