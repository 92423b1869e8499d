"""Stage `pretrain`: train one method's priors for every (fold, seed) of a split."""

from argparse import ArgumentParser, Namespace
from typing import Any

from metabo.stages.common import main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the input: the benchmark."""
    parser.add_argument("--in-data", required=True, help="benchmark (.npz)")


def work(args: Namespace, spec: dict[str, Any]) -> dict[str, Any]:
    """Pre-train and save; return the sidecar's loss summary."""
    import jax

    from metabo import priors, registry
    from metabo.tasks import Benchmark
    from metabo.training import prior_keys, training_sets_of

    module = registry.training_module(spec["method"])
    trained, summary = [], []
    for training in training_sets_of(Benchmark.load(args.in_data), spec):
        keys = prior_keys(training, spec["seed"], spec["seeds"])
        params, log = module.pretrain(spec, training, keys, jax.default_backend() != "cpu")
        prior = priors.of_training(training, params, log)
        trained.append(prior)
        summary.append(priors.summary(prior))
    priors.save(args.out, spec, trained)
    return {"seeds": list(range(spec["seeds"])), "training": summary}


if __name__ == "__main__":
    main("pretrain", add_arguments, work)
