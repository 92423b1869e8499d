"""The command `metabo`: tune with your own history, list what is registered, check the configuration and finished
results, keep results as evidence, and ship a re-collected benchmark."""

import argparse
import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from metabo.compute import cores
from metabo.errors import ConfigError, MetaboError
from metabo.plan import broken, extras
from metabo.records.provenance import VERSION
from metabo.report import evidence_commands
from metabo.tuner import commands as tuning
from metabo.tuner.commands import command

# Commands import the plan themselves: it reads the registrations, so a fault in one is reported like any other.

_NEGATIVE = re.compile(r"-([\d.].*|inf|infinity|nan)", re.IGNORECASE)


def main(argv: list[str] | None = None) -> None:
    """Run the command line. A MetaboError ends it with one clear message and exit status 1. The status is also 1 if
    `verify` finds something damaged or missing."""
    cores.own_process()
    args = _parsed(_parser(), argv)
    try:
        lines, status = _run(args)
    except Exception as error:
        if (said := _told(error, args.command)) is None:
            raise
        print(f"metabo: {said}", file=sys.stderr)
        raise SystemExit(1) from None
    _print(lines)
    if status:
        raise SystemExit(status)


def _print(lines: list[str]) -> None:
    """Write the lines to standard output. A reader that has seen enough (`| head`) ends the command quietly; an output
    that cannot be written ends it with a message."""
    try:
        print("\n".join(lines), flush=True)
    except OSError as error:
        if sys.stdout is sys.__stdout__:  # Python flushes it once more at its end
            with suppress(OSError), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(
                f"metabo: standard output cannot be written ({error.strerror}). What the command records is recorded: "
                "after suggest --claim, `metabo trials` lists the claims, and `metabo release` gives them up",
                file=sys.stderr,
            )
        raise SystemExit(1) from None


def _told(error: Exception, command: str) -> MetaboError | None:
    """Return the message to show instead of an error's traceback, or None for an error that is a bug of ours."""
    if isinstance(error, MetaboError):
        return error
    lacks = extras.lacking(error, f"metabo {command}") if isinstance(error, ModuleNotFoundError) else None
    return lacks or broken.told(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="metabo", description="Bayesian optimisation with learned GP priors")
    parser.add_argument("--version", action="version", version=f"metabo {VERSION}", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", required=True, help="`metabo COMMAND --help` says more")
    listing = command(commands, "list", "list what is registered")
    listing.add_argument(
        "what",
        choices=("methods", "benchmarks", "artefacts", "looks"),
        help="what to list; looks: how methods are drawn, and looks that are free",
    )
    explaining = command(commands, "explain", "say where a figure or table, a claim or a run comes from")
    explaining.add_argument("name", help="e.g. hyperbo_fig08, hyperbo_fig08_tables, C26 or h_nll-pi@new_rows")
    explaining.add_argument("--configfile", nargs="+", type=Path, default=[], help="overlays, as Snakemake takes them")
    checking = command(commands, "check-config", "check config.yaml, the overlays and the catalogue")
    checking.add_argument("overlay", nargs="*", type=Path, help="overlays to check (default: every config/*.yaml)")
    verifying = command(commands, "verify", "compare finished results with the checksums in their records")
    verifying.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("results"),
        help="folder to verify (default: results, all scales), or evidence",
    )
    verifying.add_argument("--json", action="store_true", help="print JSON for a program (not for evidence)")
    verifying.add_argument(
        "--runs", type=natural, default=20, help="evidence: recorded runs to replay; 0: checksums alone (20)"
    )
    verifying.add_argument("--seed", type=natural, default=0, help="evidence: seed that selects these runs (0)")
    evidence_commands.add(commands)
    shipping = command(commands, "ship", "put a re-collected benchmark into the package")
    shipping.add_argument("benchmark", help="an embedded benchmark, e.g. pd1_mini")
    shipping.add_argument("table", type=Path, help="e.g. results/laptop/collect/pd1_mini.parquet")
    tuning.add(commands)
    return parser


def natural(text: str) -> int:
    """Read a non-negative integer."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 0")
    return int(text)


def _run(args: argparse.Namespace) -> tuple[list[str], int]:
    """Return the lines of a command's standard output, and its exit status."""
    if args.command in tuning.NAMES:
        return tuning.run(args), 0
    if args.command == "verify":
        return _verify(args.folder, args.json, args.runs, args.seed)
    if args.command in ("explain", "check-config") or (args.command == "list" and args.what == "artefacts"):
        evidence_commands.require_clone(args.command)
    others = {
        "list": _list,
        "explain": _explain,
        "check-config": _check,
        "ship": _ship,
        "evidence": evidence_commands.run,
    }
    return others[args.command](args), 0


def _parsed(parser: argparse.ArgumentParser, argv: list[str] | None) -> argparse.Namespace:
    """Parse arguments; before Python 3.13 argparse misses the CSV of `tell`, and a folder that may be left out, if they
    follow an option."""
    args, rest = parser.parse_known_args(_joined(sys.argv[1:] if argv is None else argv))
    missed = [name for name in ("results", "folder") if getattr(args, name, ...) is None]
    if missed and len(rest) == 1 and not rest[0].startswith("-"):
        setattr(args, missed[0], Path(rest[0]))
        rest = []
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _joined(argv: list[str]) -> list[str]:
    """Return arguments with a negative outcome behind its option and "=": argparse takes -1e-3 for an option."""
    out: list[str] = []
    for given in argv:
        option = out[-1] if out and "--" not in out else ""
        if len(option) > 2 and "--outcome".startswith(option) and _NEGATIVE.fullmatch(given):
            out[-1] = f"{option}={given}"
        else:
            out.append(given)
    return out


def _list(args: argparse.Namespace) -> list[str]:
    from metabo.report import listing

    return listing.lines(args.what)


def _explain(args: argparse.Namespace) -> list[str]:
    from metabo.report.explain import names

    return names.explain(args.name, args.configfile)


def _ship(args: argparse.Namespace) -> list[str]:
    from metabo.collect import shipped
    from metabo.plan import collectors

    collectors.collector_module(args.benchmark)  # refuses one that is not collected
    return shipped.ship(args.benchmark, args.table)


def _verify(folder: Path, as_json: bool, runs: int, seed: int) -> tuple[list[str], int]:
    from metabo.evidence import manifest, swapping
    from metabo.records import verify

    if manifest.folders(folder) or swapping.left_over(folder):
        from metabo.evidence import verifying

        return verifying.lines(folder, runs, seed)
    found = verify.verify(folder)
    return ([json.dumps(found.json, indent=1)] if as_json else found.lines), int(not found.intact)


def _check(args: argparse.Namespace) -> list[str]:
    from metabo.data import download
    from metabo.papers.engine.claims import sheet
    from metabo.plan import catalogue, cells, codegraph, config, registry
    from metabo.plan.artefact import NOTEBOOKS

    entries = catalogue.load()
    notebooks = [NOTEBOOKS / name for name in dict.fromkeys(entry.notebook for entry in entries.values())]
    for path in notebooks:
        codegraph.notebook_roots(path)  # refuses a cell that is no Python
    if found := [fault for path in notebooks for fault in cells.faults(path)]:
        raise ConfigError(*found)
    papers = catalogue.papers(entries)
    checked = []
    for chosen in ((), *((path,) for path in args.overlay or sorted(Path("config").glob("*.yaml")))):
        made = config.check(config.read(overlays=chosen), papers)
        for benchmark in registry.benchmarks():
            config.named_files(made, benchmark)  # refuses files that are not there
        checked.append(f"ok: config.yaml{''.join(f' + {path}' for path in chosen)}")
    table = Path("workflow/datasets.csv")
    rows = download.archives(table, Path("workflow/schemas/datasets.yaml"))
    download.require_rows(table, rows, {name: registry.benchmark(name).dataset for name in registry.benchmarks()})
    sheets = [paper for paper in papers if paper in sheet.papers()]
    if found := sheet.faults([claim for paper in sheets for claim in sheet.load(paper)], entries):
        raise ConfigError(f"{catalogue.CATALOGUE} and the claims:", *(f"  {fault}" for fault in found))
    return [*checked, *(f"ok: claims of {paper}" for paper in sheets), f"ok: {catalogue.CATALOGUE}"]
