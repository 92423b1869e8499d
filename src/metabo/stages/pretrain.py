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
    import jax.numpy as jnp

    from metabo import priors, registry
    from metabo.keys import stream
    from metabo.tasks import Benchmark
    from metabo.training import training_sets

    module = registry.training_module(spec["method"])
    trained, summary = [], []
    for training in training_sets(Benchmark.load(args.in_data), spec["split"]):
        names = [(training.space, fold.name) for fold in training.folds]
        keys = jnp.stack(
            [jnp.stack([stream(spec["seed"], "prior", *name, s) for s in range(spec["seeds"])]) for name in names]
        )
        params, log = module.pretrain(spec, training, keys, jax.default_backend() != "cpu")
        prior = priors.SpacePrior(training.space, training.dim, training.folds, params, *priors.shorten(log, keys.size))
        trained.append(prior)
        summary.append(priors.summary(prior))
    priors.save(args.out, spec, trained)
    return {"seeds": list(range(spec["seeds"])), "training": summary}


if __name__ == "__main__":
    main("pretrain", add_arguments, work)
