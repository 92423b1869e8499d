"""Stage `download`: fetch a published archive, or its files, from the first address that gives the right bytes."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from metabo.plan.specs import DownloadSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs of this stage."""
    parser.add_argument("--in-datasets", help="the table that the addresses come from, for the record in the sidecar")


def work(args: Namespace, spec: DownloadSpec) -> Outcome:
    """Download `spec.name` to --out, checked against `spec.checksum`: a copy below METABO_DATA first, then `spec.urls`.

    A data set of many files (`spec.members`) is fetched file by file and packed.
    """
    from metabo.data import bundle, download

    urls = [*bundle.local_copies(spec.name, Path(args.out).name, many=spec.members is not None), *spec.urls]
    if spec.members is not None:
        members = bundle.manifest(Path(spec.members))
        limit = spec.size or download.LIMIT  # no file is larger than all together
        bundle.fetch_bundle(spec.name, urls, members, spec.checksum, args.out, spec.retries, spec.pause, limit=limit)
    else:
        download.fetch(spec.name, urls, spec.checksum, args.out, spec.size, spec.retries, spec.pause)
    return {"source": spec.name}


if __name__ == "__main__":
    main("download", add_arguments, work, DownloadSpec)
