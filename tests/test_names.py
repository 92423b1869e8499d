"""Names that a reader meets in several rooms mean one thing."""

import ast
from collections import defaultdict
from pathlib import Path

import metabo

PACKAGE = Path(metabo.__file__).parent


def classes(folders: list[Path]) -> dict[str, list[str]]:
    """Return the modules that define a class of each name, nested ones too."""
    found = defaultdict(list)
    for path in (path for folder in folders for path in sorted(folder.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path.as_posix())
    return found


def test_no_two_classes_share_a_name():
    found = classes([PACKAGE])
    assert {"Evidence", "Runs", "Look"} <= set(found)
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_a_name_that_two_modules_use_is_found(tmp_path):
    for module in ("first", "second"):
        (tmp_path / f"{module}.py").write_text("class Finding:\n    pass\n")
    assert [len(paths) for paths in classes([tmp_path]).values()] == [2]
