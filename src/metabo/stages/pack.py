"""Stage `pack`: join the units of a re-collection into one table and compare it with the shipped one."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the inputs: one table per unit."""
    parser.add_argument("--in-tables", nargs="+", required=True, help="collected units")


def work(args: Namespace, spec: dict[str, Any]) -> Outcome:
    """Write the joined table; report trials, seconds and statuses per unit, and how far the shipped table agrees."""
    import pandas as pd

    from metabo import registry
    from metabo.collect import shipped

    parts = [shipped.read_table(path) for path in args.in_tables]
    table = pd.concat(parts, ignore_index=True)
    shipped.write_table(table, args.out)
    records = [json.loads(Path(path).with_suffix(".json").read_text()) for path in args.in_tables]
    units = {
        record["spec"]["unit"]: {"trials": len(part), "wall_s": record["wall_s"], "statuses": record["statuses"]}
        for record, part in zip(records, parts, strict=True)
    }
    agreement = None
    if shipped.table_path(spec["benchmark"]).is_file():
        agreement = registry.collector(spec["benchmark"]).agreement(table, shipped.read(spec["benchmark"]))
    report = {"trials": len(table), "units": units, "agreement": agreement}
    print(json.dumps(report, indent=1), flush=True)
    return report


if __name__ == "__main__":
    main("pack", add_arguments, work)
