"""Judge every claim of one paper on the artefacts that this run made."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from metabo.plan.specs import ClaimsSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Add the inputs."""
    parser.add_argument("--in-sheet", required=True, help="claims of the paper")
    parser.add_argument("--in-catalogue", required=True, help="catalogue of artefacts")
    parser.add_argument("--out-gates", required=True, help="table of gates: controls that claims rest on")
    parser.add_argument("--in-data", nargs="*", default=[], help="data.csv of the artefacts")


def work(args: Namespace, spec: ClaimsSpec) -> Outcome:
    """Run the tests of every claim and write one table. Raises DataError if the claims change meanwhile: what is newer
    than they are would be taken for judged by them."""
    from metabo.errors import ConfigError, DataError
    from metabo.papers.engine.claims import evidence, gates, judge, sheet
    from metabo.plan import catalogue
    from metabo.records.checksums import checksums
    from metabo.records.files import digest, write_text

    before = {path: digest(path) for path in (args.in_sheet, args.in_catalogue)}
    entries = catalogue.load()
    claims = sheet.load(spec.paper)
    if faults := sheet.faults(claims, entries):
        raise ConfigError(f"{args.in_sheet} and {args.in_catalogue}:", *(f"  {fault}" for fault in faults))
    results = Path(spec.results)
    made = [catalogue.Artefact(id, id, benchmark, entries[id]) for id, benchmark in spec.artefacts]
    reads = [path for artefact in made for paths in evidence.gather(artefact, results)[1].values() for path in paths]
    checksums(path for path in reads if path.is_file())
    table, controls, read = judge.judge(claims, made, results, entries)
    for path, sha in before.items():
        if digest(path) != sha:
            raise DataError(f"{path}: changed while the claims were judged; run the same command again")
    write_text(args.out, table.to_csv(index=False))
    write_text(args.out_gates, controls.to_csv(index=False))
    verdicts = judge.verdicts(table)["verdict"].value_counts().to_dict()
    print(f"{spec.paper}: {len(claims)} claims, {', '.join(f'{n} {verdict}' for verdict, n in verdicts.items())}")
    for gate in [row for row in controls.to_dict("records") if row["verdict"] == gates.FAILS]:
        place = f"{gate['artefact']} on {gate['benchmark']}"
        print(f"{place}: gate '{gate['gate']}' fails: {gate['said']}; claims {gate['claims'] or '-'}")
    files = sorted({path for paths in read.values() for path in paths})
    return {
        "verdicts": verdicts,
        "rows": len(table),
        "gates": len(controls),
        "read": {path: digest(path) for path in files},
    }


if __name__ == "__main__":
    main("claims", add_arguments, work, ClaimsSpec)
