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

from metabo.artefacts import api
from metabo.artefacts import settings as sidecars

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted(p for p in (ROOT / "notebooks").rglob("*.ipynb") if p.parent.name != "tutorial")
CATALOGUE = yaml.safe_load((ROOT / "workflow" / "catalogue.yaml").read_text())
STANDARD = {"artefact", "title", "caption", "out"}
ON_BENCHMARK = {"benchmark", "data"}
TABLES = {"trajectories": "parquet", "evaluations": "parquet", "online": "parquet"}
INPUTS = TABLES | {"studies": "parquet", "theory": "json"}

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
    assert len(notebook["cells"]) <= 13
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids) and all(id.isidentifier() for id in ids)
    for cell in notebook["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)
    assert path.read_text() == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


ORDER = (
    "title", "parameters", "run", "load", "check", "figure", "draw", "tables", "save", "table", "numbers", "settings",
    "remarks",
)  # fmt: skip
"""Ids of cells, as a reader meets them: the paper's figure, what was run, the figure, its numbers, how to read it."""
MAY_LACK = {"check", "tables", "settings"}
HEADINGS = {
    "run": {"## What was run", "## How it is made"},
    "figure": {"## The figure", "## The table"},
    "table": {"## The numbers"},
}


@each_template
def test_a_template_reads_as_a_page(path):
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]}
    assert list(cells) == [id for id in ORDER if id in cells] and set(ORDER) - set(cells) <= MAY_LACK
    assert all(cells[id] in headings for id, headings in HEADINGS.items())
    assert (cells["run"] == "## What was run") == ("check" in cells), "what reads results says where they are from"
    heading, sentence, command = cells["title"].split("\n\n")
    assert heading.startswith("# ") and sentence.endswith((".", "?"))
    given = parameters_cell(path)
    assert f"with the workflow: `snakemake --cores 2 {given['artefact']}`." in command and "\n" not in command
    assert cells["remarks"].startswith("## How to read it\n\n- ")
    assert "artefacts.show(" in cells["save"]


@each_template
def test_no_template_says_what_the_project_lacks(path):
    """Such a sentence is true when it is written; captions and the replication notes are the place for it."""
    assert "not part of this project" not in path.read_text()


RENAMED = {
    "divergence": {'{"output": "method"}'},  # an output of the network stands for a method
    "task_correlations": {'{"task": "other", "other": "task"}'},  # a display: both tasks of a pair are its first
    "variants": {'{"share": "bands_meet"}'},  # one share beside others
}
"""Columns that a notebook may rename, each to what it then holds."""


@each_template
def test_a_template_names_the_keys_of_what_it_saves_and_renames_no_column_for_them(path):
    code = "\n".join("".join(c["source"]) for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code")
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    named = [(getattr(call.func, "attr", ""), {k.arg: ast.unparse(k.value) for k in call.keywords}) for call in calls]
    assert ["keys" in given for name, given in named if name == "save"] == [True]
    renamed = {given["columns"].replace("'", '"') for name, given in named if name == "rename" and "columns" in given}
    assert renamed == RENAMED.get(path.stem, set())


@each_template
def test_parameters_point_at_the_smoke_run_and_papermill_sees_them_all(path):
    given = parameters_cell(path)
    assert given.keys() >= STANDARD
    for name in INPUTS.keys() & given.keys():
        assert all(p.startswith("results/smoke/") and p.endswith(f".{INPUTS[name]}") for p in given[name])
    entry = CATALOGUE[given["artefact"]]
    assert entry["notebook"] == f"{path.parent.name}/{path.name}"
    place = entry["paper"]
    if "benchmarks" in entry:
        assert given["benchmark"] in entry["benchmarks"]
        assert given["data"] == f"results/smoke/data/{given['benchmark']}.npz"
        place = f"{place}/{given['benchmark']}"
    assert given["out"] == f"results/smoke/{place}/{given['artefact']}"
    assert set(papermill.inspect_notebook(str(path))) == set(given), "papermill cannot parse a line of the cell"


@pytest.mark.parametrize("path", [p for p in TEMPLATES if TABLES.keys() & parameters_cell(p)], ids=lambda p: p.stem)
def test_a_comparison_of_methods_ends_with_the_settings_of_all_its_tables(path):
    given, cells = parameters_cell(path), json.loads(path.read_text())["cells"]
    tables = [name for name in TABLES if given.get(name)]
    found = [i for i, cell in enumerate(cells) if "show_settings(" in "".join(cell["source"])]
    if not tables:
        assert not found
        return
    listed = tables[0] if len(tables) == 1 else f"[{', '.join(f'*{name}' for name in tables)}]"
    assert found == [len(cells) - 2]
    assert "".join(cells[-2]["source"]) == f"artefacts.show_settings({listed})" and cells[-2]["id"] == "settings"


@pytest.mark.parametrize("id", CATALOGUE)
def test_catalogue_parameters_exist_in_the_template(id):
    entry = CATALOGUE[id]
    known = parameters_cell(ROOT / "notebooks" / entry["notebook"])
    extra = entry.get("parameters", {})
    assert set(extra) <= set(known) - STANDARD - ON_BENCHMARK - INPUTS.keys() - {"split", "splits"}
    for name, value in extra.items():
        assert type(value) is type(known[name]), f"{name}: {value!r} is not like the default {known[name]!r}"


@pytest.mark.parametrize("id", CATALOGUE)
def test_an_entry_lists_the_inputs_that_its_template_reads(id):
    """Only listed inputs are given: another one would silently be read from the defaults, the smoke run."""
    known = parameters_cell(ROOT / "notebooks" / CATALOGUE[id]["notebook"])
    listed = set(CATALOGUE[id].get("inputs", {}))
    assert listed <= set(known)
    assert {name for name in (*INPUTS, "split", "splits") if known.get(name)} == listed
    assert (known.keys() >= ON_BENCHMARK) == ("benchmarks" in CATALOGUE[id])


def test_every_template_is_in_the_catalogue():
    used = {entry["notebook"] for entry in CATALOGUE.values()}
    assert used == {f"{path.parent.name}/{path.name}" for path in TEMPLATES}


# pd1 for the templates that compare with the paper's printed values, each template at least once.
QUICK = {"hyperbo_fig16", "hyperbo_tab05", "hyperbo_fig14", "hyperbo_fig11", "mphd_fig14"}
EXECUTED = [
    ("hyperbo_fig07", "tables", {"profile", "resolved", "least", "spread"}),
    (
        "hyperbo_fig16",
        "hpob",
        {"budget", "curve", "slice", "task", "difference", "spread", "speedup", "speedup_summary"},
    ),
    ("hyperbo_fig09", "tables", {"rank", "spread"}),
    ("hyperbo_fig10", "pd1", {"point", "pearson", "spread"}),
    ("hyperbo_tab05", "pd1", {"best_metric", "spread", "paper"}),
    ("hyperbo_tab06", "pd1", {"loss", "spread", "paper"}),
    ("hyperbo_tab03", "pd1", {"task", "count"}),
    ("hyperbo_tab04", "pd1_mini", {"range"}),
    ("hyperbo_x02", "pd1_mini", {"pair", "summary", "count"}),
    ("hyperbo_x05", "hpob_mini", {"task", "summary"}),
    ("hyperbo_x12", "tables", {"rung", "prior", "summary", "overfitting", "random", "budget", "order"}),
    ("hyperbo_fig14", "pd1_mini", {"curve", "final", "infeasible", "comparison"}),
    ("hyperbo_fig11", "tables", {"curve", "reference", "slice", "trend", "difference", "below", "budget"}),
    ("hyperbo_fig13", "tables", {"profile", "curve", "rank", "window", "difference"}),
    ("hyperbo_fig19", "hpob_mini", {"curve", "slice", "difference", "spread"}),
    ("hyperbo_tab07", "hpob_mini", {"cell", "pearson", "beside"}),
    ("hyperbo_fig23", "tables", {"profile", "curve", "rank", "ending", "difference", "spread"}),
    ("hyperbo_fig26", "hpob_mini", {"profile", "curve", "rank", "ending", "difference", "spread"}),
    ("hyperbo_fig28", "hpob_mini", {"curve", "spread"}),
    ("hyperbo_fig02", "", {"node", "edge", "plate"}),
    ("hyperbo_fig03", "", {"curve", "lowest", "differ"}),
    ("hyperbo_fig04", "", {"marginal", "training", "test", "kl", "wins", "variance"}),
    ("hyperbo_fig06", "", {"function", "band", "sample", "coverage"}),
    ("hyperbo_tab01", "", {"exponent", "measure"}),
    ("hyperbo_tab02", "", {"loss", "order", "coverage", "paper"}),
    ("hyperbo_x06", "tables", {"curve", "regret", "budget", "difference"}),
    ("hyperbo_x04", "", {"loss", "difference", "moved"}),
    (
        "hyperbo_x01",
        "tables",
        {
            "cell",
            "variance",
            "training",
            "learner_variance",
            "comparison",
            "verdict",
            "stability",
            "term",
            "level",
            "budget",
        },
    ),
    ("mphd_tab01", "", {"symbol"}),
    ("mphd_fig01", "", {"prior"}),
    ("mphd_fig02", "", {"node", "edge", "plate"}),
    ("mphd_fig03", "super_mini", {"context", "space"}),
    ("mphd_fig04", "", {"point", "path", "gap"}),
    ("mphd_fig05", "", {"prior", "truth", "convergence", "levene", "noise_mass", "nll", "nll_trend", "density"}),
    ("mphd_fig06", "", {"divergence", "limit", "trend", "difference", "truth"}),
    ("mphd_fig08", "super_mini", {"curve", "ending", "difference", "savings", "floor"}),
    ("mphd_fig10", "", {"estimate", "truth", "spread", "trend"}),
    ("mphd_fig11", "", {"prior", "truth", "convergence", "levene", "noise_mass", "nll", "nll_trend", "density"}),
    ("mphd_fig12", "mphd_l", {"curve", "ending", "difference", "savings", "floor"}),
    ("mphd_fig14", "super_mini", {"curve", "ending", "difference", "savings", "floor"}),
    ("mphd_x02", "mphd_l", {"curve", "ending", "difference", "savings", "floor"}),
    ("hegpucb_tab01", "", {"algorithm"}),
    ("hegpucb_fig01", "", {"band", "point", "outcome"}),
    (
        "hegpucb_fig02b",
        "",
        {"curve", "ending", "difference", "equal", "scale", "stuck", "wrong", "phase", "drop", "left", "budget"},
    ),
    ("hegpucb_fig03", "", {"band", "function", "point", "variant"}),
    ("hegpucb_fig04", "", {"function", "fit", "variant"}),
    ("hegpucb_fig05", "", {"function", "fact"}),
    ("hegpucb_fig06", "", {"mean"}),
    ("hegpucb_x02", "", {"difference", "cell", "verdict", "calibration"}),
    ("hegpucb_x03", "", {"curve", "function", "alive", "budget"}),
    ("hegpucb_x04", "tables", {"curve", "difference", "task", "budget"}),
    ("hegpucb_x05", "", {"mean", "difference", "followed", "drop", "budget"}),
    ("cmbo_tab01", "cmbo_mini", {"space"}),
    ("cmbo_fig01", "cmbo_mini", {"curve", "difference", "claim", "repeat"}),
    ("cmbo_fig02", "cmbo_mini", {"rank", "solved"}),
    ("cmbo_fig01", "cmbo_lcbench", {"curve", "difference", "claim", "repeat"}),
    ("cmbo_fig02", "cmbo_taskset", {"rank", "solved"}),
    ("cmbo_tab01", "cmbo_lcbench", {"space"}),
    ("hyperbo_x14", "pd1_mini_nan", {"curve", "support", "query", "beyond", "difference", "budget"}),
    ("hyperbo_x06", "taskset", {"curve", "regret", "budget", "difference"}),
    ("cmbo_fig03", "cmbo_mini", {"curve", "number"}),
    ("cmbo_x01", "", {"paper", "claim", "growth", "cost", "time", "iterations", "typical", "stability", "changes"}),
    ("cmbo_x03", "cmbo_mini", {"curve", "ending"}),
    ("cmbo_x06", "cmbo_control", {"curve", "difference"}),
    ("cmbo_x08", "cmbo_control", {"curve", "number"}),
]

ELSEWHERE = {"shared/theory.ipynb"}  # tests/papers/engine/theory/test_tables.py
LISTED = {CATALOGUE[id]["notebook"] for id, _, _ in EXECUTED} | ELSEWHERE
OTHERS = {e["notebook"]: (id, e.get("benchmarks", [""])[0], set()) for id, e in CATALOGUE.items()}
"""Templates without a line above are executed too, whatever tables they save."""


@pytest.mark.filterwarnings("ignore")  # papermill and the kernel's client warn in this process
@pytest.mark.parametrize(
    ("id", "benchmark", "tables"),
    [
        *(
            pytest.param(*case, id="-".join(case[:2]), marks=[] if case[0] in QUICK else pytest.mark.slow)
            for case in EXECUTED
        ),
        *(pytest.param(*case, id=case[0]) for notebook, case in OTHERS.items() if notebook not in LISTED),
    ],
)
def test_template_executes(id, benchmark, tables, inputs, execute, tmp_path):
    entry = CATALOGUE[id]
    parameters = inputs(id, entry, benchmark, tmp_path / "out")
    execute(ROOT / "notebooks" / entry["notebook"], tmp_path / "executed.ipynb", parameters)
    out = tmp_path / "out"
    assert sorted(p.name for p in out.iterdir()) == ["data.csv", "figure.pdf", "figure.png"]
    assert (out / "figure.pdf").read_bytes().startswith(b"%PDF") and (out / "figure.png").stat().st_size > 10_000
    with open(out / "data.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows and (not tables or {row["table"] for row in rows} == tables)
    assert {(row["artefact"], row["benchmark"]) for row in rows} == {(id, benchmark)}
    of = f" Benchmark: {benchmark}." if benchmark else ""
    assert all(row["value"] == "" or not np.isnan(float(row["value"])) for row in rows)
    notebook = json.loads((tmp_path / "executed.ipynb").read_text())
    text = json.dumps(notebook, ensure_ascii=False)
    assert "image/png" in text and f"{parameters['caption']}{of}" in text
    assert ("no sidecar" in text) == bool(entry.get("inputs") or benchmark)
    assert (sidecars.LEGEND in text) == bool(TABLES.keys() & entry.get("inputs", {}).keys())
    assert (api.ONE_DATA_SET in text) == (sidecars.LEGEND in text and benchmark in ("taskset", "cmbo_taskset"))
    streams = [o for c in notebook["cells"] for o in c.get("outputs", []) if o.get("name") == "stderr"]
    assert streams == [], "a cell warns"
