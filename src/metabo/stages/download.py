"""Stage `download`: fetch one published archive from the first of its addresses that gives the right bytes."""

from argparse import ArgumentParser, Namespace
from typing import Any

from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs of this stage."""
    parser.add_argument("--in-datasets", help="the table that the addresses come from, for the record in the sidecar")


def work(args: Namespace, spec: dict[str, Any]) -> Outcome:
    """Download `spec["name"]` from `spec["urls"]` to --out, checked against `spec["checksum"]`.

    Optional keys: `size`, `retries` and `pause` (metabo.data.download.fetch).
    """
    from metabo.data import download

    download.fetch(out=args.out, **spec)
    return {"source": spec["name"]}


if __name__ == "__main__":
    main("download", add_arguments, work)
