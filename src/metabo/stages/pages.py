"""Stage `pages`: the executed notebooks of a paper as HTML, beside them, for the report page."""

from argparse import ArgumentParser, Namespace

from metabo.plan.specs import PagesSpec
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Add the inputs. The spec holds `names` of the artefacts, in the order of the notebooks, and `index`."""
    parser.add_argument("--in-sheets", nargs="*", default=[], help="claim sheet of the paper, if it has one")
    parser.add_argument("--in-notebooks", nargs="+", required=True, help="executed notebooks")
    parser.add_argument("--out", nargs="+", required=True, help="pages, in the same order")


def work(args: Namespace, spec: PagesSpec) -> Outcome:
    """Render each notebook with links to its artefact, its claims and their checks on the page `spec.index`."""
    import os
    from pathlib import Path

    from metabo.records.files import write_text
    from metabo.report import checks, notebooks

    export, listed = notebooks.exporter(), checks.sheet(spec.paper) if any(spec.claims) else {}
    claims = spec.claims or [()] * len(spec.names)
    for notebook, page, name, ids in zip(args.in_notebooks, args.out, spec.names, claims, strict=True):
        index = Path(os.path.relpath(spec.index, Path(page).parent)).as_posix()
        write_text(page, notebooks.render(Path(notebook), name, index, export, [listed[id] for id in ids]))
        print(page, flush=True)
    return {}


if __name__ == "__main__":
    main("pages", add_arguments, work, PagesSpec)
