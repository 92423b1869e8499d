"""Stage `study`: one synthetic study, which needs no benchmark."""

from argparse import Namespace

from metabo.plan.typed import Values
from metabo.stages.common import Outcome, main


def work(args: Namespace, spec: Values) -> Outcome:
    """Run the study and write its tables."""
    import importlib

    from metabo.papers.engine.studies import files as tables
    from metabo.plan import registry
    from metabo.plan.typed import written

    study = importlib.import_module(registry.study_module(str(spec["study"])))
    frames = study.run(written(spec))
    tables.write(frames, args.out)
    return {"rows": {name: len(frame) for name, frame in frames.items()}}


if __name__ == "__main__":
    main("study", None, work, Values)
