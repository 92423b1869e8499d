"""Stage `bo`: offline BO with one method and acquisition on every test task of a split."""

from argparse import ArgumentParser, Namespace

from metabo.plan.specs import BOSpec
from metabo.stages.common import Outcome, main, raised


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs: benchmark and priors."""
    parser.add_argument("--in-data", required=True, help="benchmark (.npz)")
    parser.add_argument("--in-prior", required=True, help="priors (.npz)")


def work(args: Namespace, spec: BOSpec) -> Outcome:
    """Run BO and write the trajectory table."""
    import jax
    import pandas as pd

    from metabo.bo import priors
    from metabo.bo.soundness import flat, require_scores, unsound
    from metabo.bo.trajectories import optimise, refuse_seen
    from metabo.compute import progress
    from metabo.plan import registry
    from metabo.records import results
    from metabo.records.files import digest
    from metabo.tasks.benchmark import Benchmark
    from metabo.tasks.training_set import training_sets_of

    benchmark = Benchmark.load(args.in_data)
    trained_from, trained = priors.load(args.in_prior)
    refuse_seen(spec, trained_from)
    require_scores(spec.acquisition)
    chunk = None if jax.default_backend() != "cpu" else CHUNK
    data = digest(args.in_data)[:12]
    parts = registry.made_of(spec.method)
    sets = training_sets_of(benchmark, trained_from) if parts.uses_past else [None] * len(trained)
    if parts.pads_inputs:
        trained = [priors.widened(prior, trained_from, benchmark.width) for prior in trained]
        sets = [past and past.widened() for past in sets]
    spaces = progress.loop(zip(trained, sets, strict=True), "spaces")
    tables = [optimise(benchmark, prior, spec, data, chunk, past) for prior, past in spaces]
    table = pd.concat(tables, ignore_index=True)
    bad = unsound(table)
    flat(table)
    results.write(table, args.out)
    return {
        "seeds": list(range(spec.seeds)), "rows": len(table), "unsound_steps": bad, "raised_jitter": raised(table)
    }  # fmt: skip


CHUNK = 1
"""Runs side by side on a CPU: one, since its posterior rows then stay in cache. An accelerator takes all that fit."""

if __name__ == "__main__":
    main("bo", add_arguments, work, BOSpec)
