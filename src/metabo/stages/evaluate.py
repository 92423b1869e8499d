"""Stage `evaluate`: Test NLL, training NLL and EKL of one method's priors."""

from argparse import ArgumentParser, Namespace

from metabo.plan.specs import EvaluateSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs: benchmark and priors."""
    parser.add_argument("--in-data", required=True, help="benchmark (.npz)")
    parser.add_argument("--in-prior", required=True, help="priors (.npz)")


def work(args: Namespace, spec: EvaluateSpec) -> Outcome:
    """Evaluate and write the tidy table."""
    from metabo.bo import priors
    from metabo.bo.evaluation import evaluate
    from metabo.records import results
    from metabo.tasks.benchmark import Benchmark

    trained_from, trained = priors.load(args.in_prior)
    table, left_out = evaluate(Benchmark.load(args.in_data), trained_from, trained, spec.split)
    results.write_evaluations(table, args.out)
    return {"rows": len(table), "left_out": left_out}


if __name__ == "__main__":
    main("evaluate", add_arguments, work, EvaluateSpec)
