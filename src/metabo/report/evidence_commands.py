"""The command `metabo evidence`: keep finished results with the code, list them and their verdicts, restore them."""

import argparse
from pathlib import Path

from metabo.errors import ConfigError, DataError
from metabo.tuner.commands import command

KEPT = Path("evidence")

# What a command needs it imports itself: the command line starts without it.


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its actions to the command line."""
    actions = command(commands, "evidence", "keep finished results with the code").add_subparsers(
        dest="action", required=True, help="`metabo evidence ACTION --help` says more"
    )
    adding = command(actions, "add", "keep the results of a run; what the run does not have stays as it is")
    _results(adding, "results of one run, e.g. results/laptop")
    _folder(adding)
    adding.add_argument("--artefacts", nargs="+", default=[], help="keep what these were made from (default: all)")
    adding.add_argument(
        "--without-trajectories", action="store_true", help="of runs of BO keep the records alone, with their checksums"
    )
    adding.add_argument("--without-priors", action="store_true", help="of files of priors keep the records alone")
    listing = command(actions, "list", "say what is kept, what it cost, where it was made and what other code made")
    _results(listing, "recorded results, of all scales or of one (default: --to)")
    _folder(listing)
    claims = command(actions, "claims", "list the recorded verdicts, each with the table that it is read from")
    claims.add_argument("papers", nargs="*", help="e.g. hyperbo (default: all)")
    _folder(claims)
    restoring = command(actions, "restore", "bring results back to where jobs make them, so that a run goes on")
    _results(restoring, "where the run has its results, e.g. results/published")
    _folder(restoring)
    restoring.add_argument("--configfile", nargs="+", type=Path, default=[], help="overlays, as Snakemake takes them")


def _results(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("results", nargs="?", type=Path, help=what)


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", type=Path, default=KEPT, help="folder of all recorded results (evidence)")


def run(args: argparse.Namespace) -> list[str]:
    """Return the lines of an action's standard output. Raises MetaboError."""
    if args.action == "list":
        return _list(args)
    if args.action == "claims":
        require_clone("evidence claims")
        from metabo.report import recorded

        _require_folder(args.to)
        return recorded.lines(args.to, args.papers)
    if args.results is None:
        raise DataError(f"metabo evidence {args.action}: {_unnamed(args)}")
    return _restore(args.to, args.results, args.configfile) if args.action == "restore" else _add(args)


def require_clone(name: str) -> None:
    """Raise ConfigError if the current folder is not a clone of the project."""
    if not Path("workflow", "catalogue.yaml").is_file():
        raise ConfigError(
            f"metabo {name} reads the workflow, which is not in the installed package: call it in a clone of the "
            "project, in the folder with the Snakefile"
        )


def _unnamed(args: argparse.Namespace) -> str:
    """Say why no results are named: an option that takes several names takes the folder behind it too."""
    for option in ("artefacts", "configfile"):
        if taken := getattr(args, option, []):
            *rest, last = map(str, taken)
            return (
                f"--{option} took all names behind it; put the folder first: metabo evidence {args.action} {last} "
                f"--{option} {' '.join(rest) or '...'}"
            )
    return "name the results of one run, e.g. results/laptop"


def _require_folder(folder: Path) -> None:
    """Raise DataError if a folder was named that is not there."""
    if folder != KEPT and not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder; recorded results are in {KEPT}")


def _list(args: argparse.Namespace) -> list[str]:
    from metabo.evidence import listing

    _require_folder(args.results or args.to)
    return listing.lines(args.results or args.to)


def _add(args: argparse.Namespace) -> list[str]:
    from metabo.evidence import adding
    from metabo.plan import catalogue

    entries = catalogue.load() if catalogue.CATALOGUE.is_file() else None
    bare = not args.without_trajectories, not args.without_priors
    return [adding.add(args.results, args.to, args.artefacts, *bare, entries).line]


def _restore(kept: Path, results: Path, overlays: list[Path]) -> list[str]:
    from metabo.evidence import restoring
    from metabo.plan.chain import behind
    from metabo.report.explain import names

    require_clone("evidence restore")
    known = names.load(overlays)
    if results != Path(known.chain.out):
        raise ConfigError(
            f"{results}: the configuration makes {known.chain.out}; name that, or the overlay of {results.name}: "
            f"--configfile config/{results.name}.yaml"
        )
    jobs = behind(known.chain.artefact(one) for one in known.enabled)
    return restoring.restore(kept / results.name, jobs, results, overlays).lines
