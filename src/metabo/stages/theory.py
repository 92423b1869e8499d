"""Stage `theory`: run one check of a paper's theory and write its statements with their verdicts."""

from argparse import Namespace

from metabo.plan.specs import TheorySpec
from metabo.stages.common import Outcome, main


def work(args: Namespace, spec: TheorySpec) -> Outcome:
    """Run `spec.check` of `spec.paper` with the share `spec.share` of its replicates, print and write it."""
    import importlib
    import json

    from metabo.compute import keys
    from metabo.papers.engine.theory.records import NO_POWER, OK, describe
    from metabo.plan import registry
    from metabo.records import files

    paper, name = spec.paper, spec.check
    check = getattr(importlib.import_module(registry.check_module(paper, name)), name)
    statements = check(keys.stream(spec.seed, "theory", paper, name), spec.share)
    for statement in statements:
        print(describe(statement), flush=True)
    record = {
        "paper": paper,
        "check": name,
        "title": registry.check(paper, name),
        "share": spec.share,
        "status": OK if all(s["status"] == OK for s in statements) else NO_POWER,
        "statements": statements,
    }
    files.write_text(args.out, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return {"verdicts": {f"{s['id']} ({s['version']})": [s["verdict"], s["status"]] for s in statements}}


if __name__ == "__main__":
    main("theory", None, work, TheorySpec)
