"""Stage `study`: one synthetic study, which needs no benchmark."""

from argparse import ArgumentParser, Namespace
from typing import Any

from metabo.stages.common import main


def add_arguments(_parser: ArgumentParser) -> None:
    """Declare no inputs: a study draws its functions itself."""


def work(args: Namespace, spec: dict[str, Any]) -> dict[str, Any]:
    """Run the study and write its tables."""
    import importlib

    from metabo import registry
    from metabo.studies import tables

    study = importlib.import_module(registry.study_module(spec["study"]))
    frames = study.run(spec)
    tables.write(frames, args.out)
    return {"rows": {name: len(frame) for name, frame in frames.items()}}


if __name__ == "__main__":
    main("study", add_arguments, work)
