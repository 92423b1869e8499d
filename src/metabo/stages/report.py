"""Stage `report`: join the claims of all papers into the scorecard and write the report page."""

from argparse import ArgumentParser, Namespace

from metabo.plan.specs import ReportSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Add the inputs. The spec holds `scale`, `papers` and `names` of the artefacts, in the order of --in-artefacts."""
    parser.add_argument("--in-artefacts", nargs="+", required=True, help="provenance.json of each artefact")
    parser.add_argument("--in-claims", nargs="*", default=[], help="claims of the papers, CSV")
    parser.add_argument("--in-gates", nargs="*", default=[], help="gates of the papers, CSV")
    parser.add_argument("--in-pages", nargs="*", default=[], help="sidecars of the jobs that rendered the notebooks")
    parser.add_argument("--evidence", default="", help="folder of recorded results; one that is damaged is not shown")
    parser.add_argument("--in-catalogue", required=True, help="workflow/catalogue.yaml")
    parser.add_argument("--out-scorecard", required=True, help="the verdicts of all claims, CSV")
    parser.add_argument("--out-multiverse", required=True, help="all that was judged, with parts and readings, CSV")


def work(args: Namespace, spec: ReportSpec) -> Outcome:
    """Gather, write both, print where the time went."""
    from pathlib import Path

    from metabo.evidence import recorded
    from metabo.evidence.manifest import NAME
    from metabo.papers.engine.claims import sheet
    from metabo.plan.entries import CatalogueEntry
    from metabo.plan.typed import read_each
    from metabo.plan.yaml_files import read_yaml
    from metabo.records import files
    from metabo.records.checksums import sidecar_of
    from metabo.report import cases, gallery, gates, jobs, page, questions, rungs, scorecard, theory

    table = scorecard.read(args.in_claims)
    kept = recorded.verdicts(Path(args.evidence)) if args.evidence else recorded.RecordedEvidence([], [])
    sidecars = [sidecar_of(path) for path in args.in_claims]
    made = jobs.behind([*args.in_artefacts, *args.in_pages, *filter(None, sidecars)])
    catalogue = read_each(CatalogueEntry, read_yaml(Path(args.in_catalogue)), args.in_catalogue)
    sheets = {(paper, one.id): one for paper in spec.papers if paper in sheet.papers() for one in sheet.read(paper)}
    claims, folders, refused = rungs.joined(scorecard.claims(table), kept, sheets, catalogue)
    out = Path(args.out)
    artefacts = [
        gallery.entry(path, name, catalogue, made, out)
        for path, name in zip(args.in_artefacts, spec.names, strict=True)
    ]
    tables = [
        cases.ShownTable(one.name, one.id, one.benchmark, Path(path).with_name("data.csv"))
        for path, one in zip(args.in_artefacts, artefacts, strict=True)
    ]
    kept_in = [folder.folder for folder in folders]
    asked = {paper: questions.questions(paper, tables, kept_in) for paper in spec.papers}
    text = page.index(
        spec.scale, list(spec.papers), claims, artefacts, theory.verdicts(made, out), gates.read(args.in_gates), made,
        folders, refused, asked,
    )  # fmt: skip
    files.write_text(args.out_scorecard, scorecard.scorecard(claims).to_csv(index=False))
    files.write_text(args.out_multiverse, table.to_csv(index=False))
    files.write_text(out, text)
    print("\n".join(page.summary_lines(list(spec.papers), claims, made, refused)), flush=True)
    shown = {folder.as_posix(): files.digest(folder / NAME) for folder, _, _ in folders}
    return {
        "verdicts": scorecard.counts(claims),
        "artefacts": len(artefacts),
        "jobs": len(made),
        "evidence": {"shown": shown, "refused": refused},
    }


if __name__ == "__main__":
    main("report", add_arguments, work, ReportSpec)
