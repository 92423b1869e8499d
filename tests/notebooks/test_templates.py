"""Notebook templates: stripped, short, parameterised, in step with the catalogue, and executable."""

import ast
import csv
import json
from pathlib import Path

import nbformat
import numpy as np
import papermill
import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / "notebooks").rglob("*.ipynb"))
CATALOGUE = yaml.safe_load((ROOT / "workflow" / "catalogue.yaml").read_text())
STANDARD = {"artefact", "title", "caption", "benchmark", "data", "out"}
TABLES = {"trajectories", "evaluations", "online"}

each_template = pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.stem)


def parameters_cell(path: Path) -> dict:
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert cells[0]["metadata"].get("tags") == ["parameters"]
    assert all("parameters" not in c["metadata"].get("tags", []) for c in cells[1:])
    tree = ast.parse("".join(cells[0]["source"]))
    return {node.targets[0].id: ast.literal_eval(node.value) for node in tree.body}


@each_template
def test_template_is_stripped_and_short(path):
    notebook = json.loads(path.read_text())
    nbformat.validate(nbformat.read(path, as_version=4))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len(notebook["cells"]) < 10
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids) and all(id.isidentifier() for id in ids)
    for cell in notebook["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)
    assert path.read_text() == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


@each_template
def test_parameters_point_at_the_smoke_run_and_papermill_sees_them_all(path):
    given = parameters_cell(path)
    assert given.keys() >= STANDARD
    for name in TABLES & given.keys():
        assert all(p.startswith("results/smoke/") and p.endswith(".parquet") for p in given[name])
    assert given["data"] == f"results/smoke/data/{given['benchmark']}.npz"
    assert given["out"] == f"results/smoke/hyperbo/{given['benchmark']}/{given['artefact']}"
    entry = CATALOGUE[given["artefact"]]
    assert entry["notebook"] == f"{path.parent.name}/{path.name}" and given["benchmark"] in entry["benchmarks"]
    assert set(papermill.inspect_notebook(str(path))) == set(given), "papermill cannot parse a line of the cell"


@pytest.mark.parametrize("id", CATALOGUE)
def test_catalogue_parameters_exist_in_the_template(id):
    entry = CATALOGUE[id]
    known = parameters_cell(ROOT / "notebooks" / entry["notebook"])
    extra = entry.get("parameters", {})
    assert set(extra) <= set(known) - STANDARD - TABLES - {"split"}
    for name, value in extra.items():
        assert type(value) is type(known[name]), f"{name}: {value!r} is not like the default {known[name]!r}"


@pytest.mark.parametrize("id", CATALOGUE)
def test_an_entry_lists_the_inputs_that_its_template_reads(id):
    """Only listed inputs are given: another one would silently be read from the defaults, the smoke run."""
    known = parameters_cell(ROOT / "notebooks" / CATALOGUE[id]["notebook"])
    listed = set(CATALOGUE[id].get("inputs", {}))
    assert listed <= set(known)
    assert {name for name in (*TABLES, "split") if known.get(name)} == listed


def test_every_template_is_in_the_catalogue():
    used = {entry["notebook"] for entry in CATALOGUE.values()}
    assert used == {f"{path.parent.name}/{path.name}" for path in TEMPLATES}


# pd1 for the templates that compare with the paper's printed values, each template at least once.
QUICK = {"hyperbo_fig16", "hyperbo_tab05", "hyperbo_fig14"}
EXECUTED = [
    ("hyperbo_fig07", "tables", {"profile", "spread"}),
    ("hyperbo_fig16", "hpob", {"curve", "slice", "task", "difference", "spread", "speedup", "speedup_summary"}),
    ("hyperbo_fig09", "tables", {"rank", "spread"}),
    ("hyperbo_fig10", "pd1", {"point", "pearson", "spread"}),
    ("hyperbo_tab05", "pd1", {"best_metric", "spread", "paper"}),
    ("hyperbo_tab06", "pd1", {"loss", "spread", "paper"}),
    ("hyperbo_tab03", "pd1", {"task", "count"}),
    ("hyperbo_tab04", "pd1_mini", {"range"}),
    ("hyperbo_x02", "pd1_mini", {"pair", "summary", "count"}),
    ("hyperbo_fig14", "pd1_mini", {"curve", "final", "infeasible", "comparison"}),
]


@pytest.mark.filterwarnings("ignore")  # papermill and the kernel's client warn in this process
@pytest.mark.parametrize(
    ("id", "benchmark", "tables"),
    [pytest.param(*case, id=case[0], marks=[] if case[0] in QUICK else pytest.mark.slow) for case in EXECUTED],
)
def test_template_executes(id, benchmark, tables, inputs, tmp_path):
    entry = CATALOGUE[id]
    parameters = inputs(id, entry, benchmark, tmp_path / "out")
    papermill.execute_notebook(
        str(ROOT / "notebooks" / entry["notebook"]), str(tmp_path / "executed.ipynb"), parameters,
        kernel_name="python3", progress_bar=False, cwd=str(tmp_path),
    )  # fmt: skip
    out = tmp_path / "out"
    assert sorted(p.name for p in out.iterdir()) == ["data.csv", "figure.pdf", "figure.png"]
    assert (out / "figure.pdf").read_bytes().startswith(b"%PDF") and (out / "figure.png").stat().st_size > 10_000
    with open(out / "data.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["table"] for row in rows} == tables
    assert {(row["artefact"], row["benchmark"]) for row in rows} == {(id, benchmark)}
    assert all(row["value"] == "" or not np.isnan(float(row["value"])) for row in rows)
    notebook = json.loads((tmp_path / "executed.ipynb").read_text())
    text = json.dumps(notebook, ensure_ascii=False)
    assert "image/png" in text and f"{parameters['caption']} Benchmark: {benchmark}." in text and "no sidecar" in text
    streams = [o for c in notebook["cells"] for o in c.get("outputs", []) if o.get("name") == "stderr"]
    assert streams == [], "a cell warns"


def test_every_template_is_executed_here():
    assert {CATALOGUE[id]["notebook"] for id, _, _ in EXECUTED} == {entry["notebook"] for entry in CATALOGUE.values()}
