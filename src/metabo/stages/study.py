"""Stage `study`: one synthetic study, which needs no benchmark."""

from argparse import Namespace
from typing import Any

from metabo.stages.common import main


def work(args: Namespace, spec: dict[str, Any]) -> dict[str, Any]:
    """Run the study and write its tables."""
    import importlib

    from metabo.papers.engine.studies import files as tables
    from metabo.plan import registry

    study = importlib.import_module(registry.study_module(spec["study"]))
    frames = study.run(spec)
    tables.write(frames, args.out)
    return {"rows": {name: len(frame) for name, frame in frames.items()}}


if __name__ == "__main__":
    main("study", None, work)
