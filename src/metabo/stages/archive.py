"""Stage `archive`: write a collected table as an archive in the published format, which the loader reads."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from metabo.plan.specs import ArchiveSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the input."""
    parser.add_argument("--in-table", required=True, help="collected or shipped table")


def work(args: Namespace, spec: ArchiveSpec) -> Outcome:
    """Write the archive; a shipped table is checked against its recorded checksum first."""
    from metabo.collect import shipped
    from metabo.plan import collectors

    path = Path(args.in_table)
    table = shipped.read(spec.benchmark, path) if spec.source == "shipped" else shipped.read_table(path)
    collectors.writer(spec.benchmark).write_archive(table, args.out)
    return {"trials": len(table)}


if __name__ == "__main__":
    main("archive", add_arguments, work, ArchiveSpec)
