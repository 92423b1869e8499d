"""Stage `pack`: join the units of a re-collection into one table and compare it with the shipped one."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from metabo.plan.specs import PackSpec
from metabo.stages.common import Outcome, main

KEPT = ("statuses", "wall_s", "resumed_trials", "taken", "git", "code_sha256", "device")
"""What the report keeps of a unit's sidecar; `wall_s` is the time of the last start if it was resumed."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs: one table per unit."""
    parser.add_argument("--in-tables", nargs="+", required=True, help="collected units")


def work(args: Namespace, spec: PackSpec) -> Outcome:
    """Write the joined table; report trials, seconds and statuses per unit, and how far the shipped table agrees."""
    import pandas as pd

    from metabo.collect import shipped
    from metabo.plan import collectors
    from metabo.records.checksums import read_sidecar
    from metabo.records.files import digest

    parts = [shipped.read_table(path) for path in args.in_tables]
    table = pd.concat(parts, ignore_index=True)
    shipped.write_table(table, args.out)
    records = [read_sidecar(Path(path).with_suffix(".json")) for path in args.in_tables]
    units = {}
    for record, part in zip(records, parts, strict=True):
        told: dict[str, object] = {**record}
        of_unit = {key: told[key] for key in KEPT if key in told}
        units[str(record.get("spec", {})["unit"])] = {"trials": len(part), **of_unit}
    agreement = None
    if (there := shipped.table_path(spec.benchmark, spec.version)).is_file():
        agreement = {"shipped_sha256": digest(there)}
        agreement |= collectors.collector(spec.benchmark).agreement(table, shipped.read(spec.benchmark, there))
    report = {"trials": len(table), "units": units, "agreement": agreement}
    print(json.dumps(report, indent=1), flush=True)
    return report


if __name__ == "__main__":
    main("pack", add_arguments, work, PackSpec)
