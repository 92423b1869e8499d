"""The command `metabo`: tune with one's own history, look at what is registered, check the configuration and finished
results, ship a re-collected benchmark."""

import argparse
import json
import sys
from pathlib import Path

from metabo.compute import cores
from metabo.errors import MetaboError
from metabo.tuner import commands as tuning

# Commands import the plan themselves: it reads the registrations, and a fault in one is told like any other.


def main(argv: list[str] | None = None) -> None:
    """Run the command line. A MetaboError ends it with one clear message and exit status 1, as does what `verify`
    finds damaged or missing."""
    cores.own_process()
    args = _parsed(_parser(), argv)
    try:
        lines, status = _run(args)
    except MetaboError as error:
        print(f"metabo: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    print("\n".join(lines))
    if status:
        raise SystemExit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="metabo", description="Bayesian optimisation with learned GP priors")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list what is registered")
    listing.add_argument("what", choices=("methods", "benchmarks", "artefacts"))
    checking = commands.add_parser("check-config", help="check config.yaml, the overlays and the catalogue")
    checking.add_argument("overlay", nargs="*", type=Path, help="overlays to check (default: every config/*.yaml)")
    shipping = commands.add_parser("ship", help="put a re-collected benchmark into the package")
    shipping.add_argument("benchmark", help="an embedded one, e.g. pd1_mini")
    shipping.add_argument("table", type=Path, help="e.g. results/laptop/collect/pd1_mini.parquet")
    verifying = commands.add_parser("verify", help="compare finished results with the checksums in their records")
    verifying.add_argument("folder", nargs="?", type=Path, default=Path("results"), help="default: results, all scales")
    verifying.add_argument("--json", action="store_true", help="print JSON")
    tuning.add(commands)
    return parser


def _run(args: argparse.Namespace) -> tuple[list[str], int]:
    """Return the lines of a command's standard output, and its exit status."""
    if args.command in tuning.NAMES:
        return tuning.run(args), 0
    if args.command == "verify":
        return _verify(args.folder, args.json)
    if args.command == "list":
        return _list(args.what), 0
    return (_check(args.overlay) if args.command == "check-config" else _ship(args.benchmark, args.table)), 0


def _parsed(parser: argparse.ArgumentParser, argv: list[str] | None) -> argparse.Namespace:
    """Parse arguments; before Python 3.13 argparse does not see the CSV of `tell` behind an option."""
    args, rest = parser.parse_known_args(argv)
    if len(rest) == 1 and getattr(args, "results", ...) is None and not rest[0].startswith("-"):
        args.results, rest = Path(rest[0]), []
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _list(what: str) -> list[str]:
    from metabo.plan import catalogue, registry

    if what == "artefacts":
        return [
            f"{id:16} {', '.join(entry.benchmarks or ['-']):40} {entry.title}" for id, entry in catalogue.load().items()
        ]
    if what == "benchmarks":
        return [f"{name:16} {_source(name)}" for name in registry.benchmarks()]
    methods = {name: registry.method(name) for name in registry.methods()}
    return [f"{name:16} {entry.label:10} metabo.{registry.made_of(name).pretrain}" for name, entry in methods.items()]


def _ship(benchmark: str, table: Path) -> list[str]:
    from metabo.collect import shipped
    from metabo.plan import collectors

    collectors.collector_module(benchmark)  # refuses one that is not collected
    return shipped.ship(benchmark, table)


def _verify(folder: Path, as_json: bool) -> tuple[list[str], int]:
    from metabo.records import verify

    found = verify.verify(folder)
    return ([json.dumps(found.json, indent=1)] if as_json else found.lines), int(not found.intact)


def _source(benchmark: str) -> str:
    from metabo.plan import registry

    entry = registry.benchmark(benchmark)
    if entry.collector:
        return f"collected by this project (metabo.{entry.collector}), table in the package"
    if entry.dataset:
        return f"archive {entry.dataset} (downloaded on request)"
    if entry.package:
        return f"package {entry.package}"
    if entry.files:
        return f"your files, benchmarks.{benchmark}.{entry.files[0]} in config.yaml"
    return f"made by {registry.loader(benchmark)}"


def _check(overlays: list[Path]) -> list[str]:
    from metabo.plan import catalogue, config

    papers = catalogue.papers(catalogue.load())
    checked = []
    for chosen in ((), *((path,) for path in overlays or sorted(Path("config").glob("*.yaml")))):
        config.check(config.read(overlays=chosen), papers)
        checked.append(f"ok: config.yaml{''.join(f' + {path}' for path in chosen)}")
    return [*checked, f"ok: {catalogue.CATALOGUE}"]
