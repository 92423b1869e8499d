"""Make one table or figure: run its notebook template and publish notebook, figure, data and provenance."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from metabo.plan.typed import Values
from metabo.stages.common import Outcome, main


def add_arguments(parser: ArgumentParser) -> None:
    """Add the inputs. The spec holds the notebook's parameters, with the paths that it reads."""
    parser.add_argument("--in-template", required=True, help="notebook template")
    parser.add_argument("--in-tables", nargs="*", default=[], help="trajectory and evaluation tables")
    parser.add_argument("--in-data", help="benchmark file, if it reads one")
    parser.add_argument("--scratch", required=True, help="where the executed copy stays when a cell fails")
    parser.add_argument("--target", default="", help="what Snakemake is given to make it, for the text")


def work(args: Namespace, spec: Values) -> Outcome:
    """Run the notebook."""
    from metabo.artefacts import run as notebook
    from metabo.plan.typed import written

    figures = notebook.run(Path(args.in_template), Path(args.scratch), Path(args.out), written(spec), args.target)
    return {"outputs": figures}


def roots(args: Namespace, _spec: Values) -> list[str]:
    """Return the modules of this stage and those that the template imports."""
    from metabo.plan import codegraph

    return ["metabo.stages.notebook", *codegraph.notebook_roots(args.in_template)]


if __name__ == "__main__":
    main("notebook", add_arguments, work, Values, roots)
