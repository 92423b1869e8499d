"""Stage `evaluate`: Test NLL, training NLL and EKL of one method's priors."""

from argparse import ArgumentParser, Namespace
from typing import Any

from metabo.stages.common import main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs: benchmark and priors."""
    parser.add_argument("--in-data", required=True, help="benchmark (.npz)")
    parser.add_argument("--in-prior", required=True, help="priors (.npz)")


def work(args: Namespace, spec: dict[str, Any]) -> dict[str, Any]:
    """Evaluate and write the tidy table."""
    from metabo import priors
    from metabo.evaluation import evaluate
    from metabo.files import atomic_path
    from metabo.tasks import Benchmark

    trained_from, trained = priors.load(args.in_prior)
    table = evaluate(Benchmark.load(args.in_data), trained_from, trained)
    with atomic_path(args.out) as scratch:
        table.to_parquet(scratch, index=False, compression="zstd")
    return {"rows": len(table)}


if __name__ == "__main__":
    main("evaluate", add_arguments, work)
