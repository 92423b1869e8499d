"""The tuner's tutorial, run by tests where only what a light installation brings can be imported. It is given the
folder of the examples, the version of the package, and the modules that must not be imported."""

import builtins
import sys
import tempfile
from pathlib import Path

example, version, *others = Path(sys.argv[1]), *sys.argv[2:]
true = builtins.__import__


def only_light(name, *given, **options):
    if name.partition(".")[0] in others:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])
    return true(name, *given, **options)


builtins.__import__ = only_light
import metabo  # noqa: E402
from metabo.cli import main  # noqa: E402

assert metabo.__version__ == version
with tempfile.TemporaryDirectory() as place:
    folder = str(Path(place) / "study")
    main(["pretrain", str(example / "history.csv"), "--space", str(example / "space.yaml"), "--to", folder])
    study = metabo.Study(folder)
    for suggestion in study.suggest(3, claim=True):
        study.tell(suggestion.configuration, 0.1)
    main(["suggest", folder, "--count", "2", "--claim"])
    for command in (["trials"], ["show"], ["release", "--all"]):
        main([command[0], folder, *command[1:]])
    assert [one["state"] for one in study.trials] == ["done"] * 3
    table = ["import", "csv", str(example / "history.csv"), "--study", "study", "--outcome", "error"]
    main([*table, "--goal", "minimise", "--out", str(Path(place) / "past")])
    assert metabo.GP(1) is not None
    for command in (["import", "optuna", "past.db"], ["compare", "a.csv", "--space", "b.yaml"], ["explain", "C26"]):
        try:
            main(command)
        except SystemExit as end:
            assert end.code == 1
        else:
            raise AssertionError(command)
print("the tutorial ran; imported:", *sorted({name.partition(".")[0] for name in sys.modules}))
