"""Stage `pretrain`: train one method's priors for every (fold, seed) of a split."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from metabo.plan.specs import PretrainSpec, training_spec
from metabo.stages.common import Outcome, main

if TYPE_CHECKING:  # both import JAX, before which the cores must be pinned
    from metabo.bo.priors import SpacePrior
    from metabo.tasks.training_set import TrainingSet


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs: the benchmark and, for methods that start from another's priors, these."""
    parser.add_argument("--in-data", required=True, help="benchmark (.npz)")
    parser.add_argument("--in-fits", help="priors (.npz) of the method that the registration names under `fits`")


def work(args: Namespace, spec: PretrainSpec) -> Outcome:
    """Pre-train and save; return what the sidecar says: losses, and remarks on the priors that it started from."""
    import jax

    from metabo.bo import priors
    from metabo.compute import progress
    from metabo.plan import registry
    from metabo.tasks.benchmark import Benchmark
    from metabo.tasks.training_set import prior_keys, training_sets_of

    module, embedded = registry.training_module(spec.method), training_spec(spec)
    parts = registry.made_of(spec.method)
    sets = training_sets_of(Benchmark.load(args.in_data), embedded)
    keys = [prior_keys(training, spec.seed, spec.seeds) for training in sets]
    accelerator, remarks = jax.default_backend() != "cpu", []
    if parts.across_spaces:
        fits = _fits(args.in_fits, spec, sets) if spec.fits else None
        remarks = registry.function(parts.remarks)(sets, fits) if fits and parts.remarks else []
        results = module.pretrain_across(embedded, sets, keys, fits, accelerator)
    else:
        spaces = progress.loop(zip(sets, keys, strict=True), "spaces")
        results = (module.pretrain(embedded, *of_space, accelerator) for of_space in spaces)
    trained = [priors.of_training(training, *result) for training, result in zip(sets, results, strict=True)]
    priors.save(args.out, embedded, trained)
    for remark in remarks:
        print(remark, flush=True)
    told = registry.function(parts.report) if parts.report else lambda prior: {}
    training = [priors.summary(prior) | told(prior) for prior in trained]
    return {"seeds": list(range(spec.seeds)), "training": training, "remarks": remarks}


def _fits(path: str | None, spec: PretrainSpec, sets: "list[TrainingSet]") -> "list[SpacePrior]":
    """Return the priors that a method starts from, one per space. Raises DataError if their folds or seeds differ."""
    from metabo.bo import priors
    from metabo.errors import DataError

    if path is None:
        raise DataError(f"method '{spec.method}' starts from the priors of '{spec.fits}'; give them by --in-fits")
    _, fits = priors.load(path)
    if [(f.folds, f.seeds) for f in fits] != [(training.folds, spec.seeds) for training in sets]:
        raise DataError(
            f"{path}: priors of other folds or seeds than method '{spec.method}' is trained for; make those of "
            f"'{spec.fits}' again from the same benchmark, with as many seeds ({spec.seeds})"
        )
    return fits


if __name__ == "__main__":
    main("pretrain", add_arguments, work, PretrainSpec)
