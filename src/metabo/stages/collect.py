"""Stage `collect`: train every configuration of one unit (a task or a data set) of an embedded benchmark."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from metabo.plan.specs import CollectSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the journal: finished trials, so that a killed job goes on where it stopped."""
    parser.add_argument(
        "--journal",
        required=True,
        help="record of finished trials (kept when the job is killed), .../scale/collection/unit.jsonl; if "
        "METABO_COLLECTED names a folder, it is there, and a finished table beside it is taken",
    )


def work(args: Namespace, spec: CollectSpec) -> Outcome:
    """Collect the unit `spec.unit` of `spec.benchmark` with `spec.sizes`, or take its finished table."""
    from metabo.collect import kept, shipped
    from metabo.collect.journal import Journal
    from metabo.plan import codegraph, collectors, digests
    from metabo.plan.typed import plain
    from metabo.records.files import canonical

    trained_by = digests.together(codegraph.inputs([collectors.collector_module(spec.benchmark)]))
    place, stays = kept.place(Path(args.journal))
    record, said = kept.finished(place.with_suffix(".parquet"), plain(spec), trained_by)
    if said:
        print(said, flush=True)
    told: dict[str, object] = {kept.CODE: trained_by}
    if record:
        table = shipped.read_table(place.with_suffix(".parquet"))
        shipped.write_table(table, args.out)
        told |= {"resumed_trials": len(table), "taken": {key: record.get(key) for key in kept.ORIGIN}}
    else:
        journal = Journal(place, f"{canonical(plain(spec))} {trained_by}")
        told["resumed_trials"] = len(journal.records)
        table = collectors.collector(spec.benchmark).collect(spec.unit, plain(spec.sizes), spec.seed, journal)
        shipped.write_table(table, args.out)
        if not stays:
            journal.remove()
    return {"trials": len(table), "statuses": table["status"].value_counts().to_dict(), **told}


if __name__ == "__main__":
    main("collect", add_arguments, work, CollectSpec)
