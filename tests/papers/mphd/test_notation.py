"""The table of the paper's notation names things that exist in the package."""

import ast
import importlib
import json
import re
from pathlib import Path

NOTEBOOK = Path("notebooks/mphd/notation.ipynb")


def places():
    """Return the third column of the table, as the notebook has it."""
    cells = ["".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"]]
    (source,) = [text for text in cells if text.startswith("symbols = ")]
    return [row[2] for row in ast.literal_eval(ast.parse(source).body[0].value)]


def test_every_symbol_has_a_place_in_the_package():
    assert len(places()) == 14
    for place in places():
        (dotted,) = re.findall(r"[a-z_]+(?:\.\w+)+", place)
        module, _, name = f"metabo.{dotted}".rpartition(".")
        parts = place.partition(": ")[2].split(", ") if ": " in place else []
        found = getattr(importlib.import_module(module), name, None) or importlib.import_module(f"{module}.{name}")
        known = {*dir(found), *getattr(found, "__annotations__", {})}
        assert {*parts} <= known, place
