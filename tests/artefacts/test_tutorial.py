"""The tutorial on one's own data: stripped, and executed with few steps and real trainings."""

import json
from pathlib import Path

import nbformat
import papermill
import pytest

from metabo.artefacts import run as notebook
from metabo.tuner.study import Study

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "notebooks" / "tutorial" / "own_data.ipynb"


def test_it_is_stripped():
    content = json.loads(TUTORIAL.read_text())
    nbformat.validate(nbformat.read(TUTORIAL, as_version=4))
    for cell in content["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)
    assert TUTORIAL.read_text() == json.dumps(content, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.slow
def test_it_runs(tmp_path):
    parameters = {"folder": str(tmp_path / "study"), "steps": 20, "rounds": 2, "batch": 1}
    notebook.check_parameters(TUTORIAL, parameters)
    with notebook._kernel_environment():
        executed = papermill.execute_notebook(
            TUTORIAL, tmp_path / "out.ipynb", parameters=parameters, kernel_name="python3", cwd=str(ROOT),
            progress_bar=False,
        )  # fmt: skip
    study = Study(tmp_path / "study")
    assert [trial["number"] for trial in study.trials] == [0, 1]
    assert {trial["state"] for trial in study.trials} <= {"done", "failed"}
    cells = {cell["id"]: cell for cell in executed["cells"]}
    assert any("image/png" in output.get("data", {}) for output in cells["draw"]["outputs"])
    assert "without a finite outcome count as failed trials" in cells["learn"]["outputs"][0]["text"]
