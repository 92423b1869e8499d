"""Imports in the cells of templates that name nothing are told before a run."""

import json
import shutil
from pathlib import Path

import pytest

from metabo import cli
from metabo.plan import cells

ROOT = Path(__file__).parents[2]


def notebook(path: Path, *sources: str) -> Path:
    made = [{"id": f"c{i}", "cell_type": "code", "source": source} for i, source in enumerate(sources)]
    path.write_text(json.dumps({"cells": [{"id": "t", "cell_type": "markdown", "source": "import metabo.no"}, *made]}))
    return path


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*/*.ipynb")), ids=lambda path: path.stem)
def test_the_imports_of_every_template_name_something(path):
    assert cells.faults(path) == []


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("from metabo.plots import look, style\nimport metabo.plots.look\nfrom metabo.plots.look import of", None),
        ("from metabo import load_benchmark\nimport pandas.nothing", None),  # names that modules make when they run
        ("from metabo.bo.acquisition import Scores, jnp", None),  # an assignment, and what the module imports
        (
            "a = 1\nfrom metabo.plotz import look",
            "line 2: there is no module metabo.plotz; correct the import, or add the module. Did you mean 'metabo",
        ),
        (
            "from metabo.plots.look import off",
            "line 1: src/metabo/plots/look.py defines no 'off'; correct the import, or add it there. Did you mean 'of",
        ),
        (
            "def f():\n    from metabo.plots import lok",
            "line 2: src/metabo/plots/__init__.py defines no 'lok'; correct the import, or add it there.",
        ),
    ],
)
def test_an_import_that_names_nothing_is_told_with_its_line(tmp_path, code, told):
    found = cells.faults(notebook(tmp_path / "n.ipynb", "import json", code))
    assert len(found) == (told is not None)
    if told:
        assert found[0].startswith(f"{tmp_path / 'n.ipynb'}, cell 'c1', {told}")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The files of the project that `metabo check-config` reads, in the present folder."""
    for part in ("config", "workflow", "notebooks"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copy(ROOT / "config.yaml", tmp_path)
    if (ROOT / "data").is_dir():  # tables that benchmarks read
        shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "notebooks/shared/ranks.ipynb", "from metabo.artefacts import api", "from metabo.artefacts import apy",
            "cell 'load', line 5: src/metabo/artefacts/__init__.py defines no 'apy'; correct the import, or add it "
            "there. Did you mean 'api'?",
        ),
        (
            "config.yaml", "history: []", "history: [mine.csv]",
            "config key 'benchmarks.own.history': mine.csv does not exist; correct the path, or put the file there",
        ),
    ],
)  # fmt: skip
def test_check_config_tells_what_only_a_run_would_show(project, capsys, file, old, new, said):
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new, 1))
    with pytest.raises(SystemExit):
        cli.main(["check-config"])
    printed = capsys.readouterr().err
    assert said in printed and "Traceback" not in printed
