"""Stage `collect`: train every configuration of one unit (a task or a data set) of an embedded benchmark."""

from argparse import ArgumentParser, Namespace

from metabo.plan.specs import CollectSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the journal: finished trials, so that a killed job goes on where it stopped."""
    parser.add_argument("--journal", required=True, help="record of finished trials (kept when the job is killed)")


def work(args: Namespace, spec: CollectSpec) -> Outcome:
    """Collect the unit `spec.unit` of `spec.benchmark` with `spec.sizes`."""
    from metabo.collect import shipped
    from metabo.collect.journal import Journal
    from metabo.plan import codegraph, digests, registry
    from metabo.plan.typed import plain
    from metabo.records.files import canonical

    code = digests.together(codegraph.inputs(codegraph.stage_roots("collect", {"benchmark": spec.benchmark})))
    journal = Journal(args.journal, f"{canonical(plain(spec))} {code}")
    resumed = len(journal.records)
    table = registry.collector(spec.benchmark).collect(spec.unit, plain(spec.sizes), spec.seed, journal)
    shipped.write_table(table, args.out)
    journal.remove()
    return {"trials": len(table), "resumed_trials": resumed, "statuses": table["status"].value_counts().to_dict()}


if __name__ == "__main__":
    main("collect", add_arguments, work, CollectSpec)
