"""Names of the package's classes: one class, one name, or a reader takes one thing for another."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "metabo"
ROOMS = ("bo", "collect", "compute", "data", "gaussians", "gp", "methods", "plan", "records", "tasks", "tuner")
"""Rooms whose class names are unique."""


def defined(source: str) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def repeated(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the class names that several places define, with these places."""
    places = defaultdict(list)
    for place, source in sources.items():
        for name in defined(source):
            places[name].append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_a_class_name_is_used_once():
    sources = {
        str(path.relative_to(PACKAGE)): path.read_text() for room in ROOMS for path in (PACKAGE / room).rglob("*.py")
    }
    assert len(sources) > 100
    twice = repeated(sources)
    assert twice == {}, "rename all but the most natural owner of the name"


def test_a_name_that_is_used_twice_is_found():
    sources = {"a.py": "class Pool: ...\nclass Row: ...", "b.py": "def f():\n    class Pool: ..."}
    assert repeated(sources) == {"Pool": ["a.py", "b.py"]}
