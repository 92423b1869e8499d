"""Stage `online`: tune the test tasks of a split with one method, each evaluation a real training."""

from argparse import ArgumentParser, Namespace

from metabo.plan.specs import OnlineSpec
from metabo.stages.common import Outcome, main, raised


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs: benchmark and priors."""
    parser.add_argument("--in-data", required=True, help="benchmark (.npz)")
    parser.add_argument("--in-prior", required=True, help="priors (.npz)")


def work(args: Namespace, spec: OnlineSpec) -> Outcome:
    """Tune every test task and write the online table."""
    import importlib

    import pandas as pd

    from metabo.bo import priors
    from metabo.bo.ask_tell import Target
    from metabo.bo.online_runs import tune
    from metabo.bo.soundness import require_scores
    from metabo.compute import progress
    from metabo.plan import collectors, registry
    from metabo.plan.typed import plain
    from metabo.records import results
    from metabo.records.files import digest
    from metabo.tasks.benchmark import Benchmark
    from metabo.tasks.training_set import training_sets_of

    benchmark = Benchmark.load(args.in_data)
    trained_from, trained = priors.load(args.in_prior)
    require_scores(spec.acquisition)
    collector = importlib.import_module(collectors.evaluator(spec.benchmark))
    loader = importlib.import_module(registry.loader(spec.benchmark))
    module = registry.online_module(spec.method)
    data = digest(args.in_data)[:12]

    def target(task: str) -> Target:
        metric = collector.ONLINE[task]
        return Target(collector.evaluator(task, spec.seed), metric, loader.WARPS[metric])

    tables = []
    sets = training_sets_of(benchmark, trained_from)
    for prior, training in progress.loop(zip(trained, sets, strict=True), "spaces"):
        method = module.online(trained_from, prior, training, plain(spec.online), spec.acquisition, spec.iterations)
        tables.append(tune(benchmark, prior, method, spec, data, target, loader.raw_inputs))
    table = pd.concat(tables, ignore_index=True)
    results.write_online(table, args.out)
    return {
        "seeds": list(range(spec.seeds)), "rows": len(table), "infeasible": int((~table["feasible"]).sum()),
        "unsound_steps": int((~table["ok"]).sum()), "raised_jitter": raised(table),
    }  # fmt: skip


if __name__ == "__main__":
    main("online", add_arguments, work, OnlineSpec)
