"""Stage `download`: fetch one published archive from the first of its addresses that gives the right bytes."""

from argparse import ArgumentParser, Namespace

from metabo.plan.specs import DownloadSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs of this stage."""
    parser.add_argument("--in-datasets", help="the table that the addresses come from, for the record in the sidecar")


def work(args: Namespace, spec: DownloadSpec) -> Outcome:
    """Download `spec.name` from `spec["urls"]` to --out, checked against `spec["checksum"]`.

    Optional keys: `size`, `retries` and `pause` (metabo.data.download.fetch).
    """
    from metabo.data import download

    download.fetch(spec.name, list(spec.urls), spec.checksum, args.out, spec.size, spec.retries, spec.pause)
    return {"source": spec.name}


if __name__ == "__main__":
    main("download", add_arguments, work, DownloadSpec)
