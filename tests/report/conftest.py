"""A small finished run, made with the project's own writers, and its report by the real stages."""

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from metabo.artefacts import api as artefacts
from metabo.papers.engine.theory import records, verdicts
from metabo.records import checksums, files, provenance
from metabo.report import gates, scorecard

ROOT = Path(__file__).parents[2]
OUT = "results/smoke"
CATALOGUE = """
hyperbo_fig08: {title: Regret <curves> & more, paper: hyperbo, notebook: a/b.ipynb, claims: [C01, C02, C09],
  caption: "Regret* of `a_b`."}
hyperbo_tab05: {title: Best metric, paper: hyperbo, notebook: a/b.ipynb, claims: [C03], caption: In percent.}
mphd_x01: {title: Theory of MPHD, paper: mphd, notebook: a/b.ipynb, caption: All verdicts.}
"""
MADE = {  # rule: artefact, benchmark, inputs
    "hyperbo_fig08": ("hyperbo_fig08", "tables", ["bo/tables/held_out/h_nll-pi.parquet", "data/tables.npz"]),
    "hyperbo_fig08_pd1": ("hyperbo_fig08", "pd1", ["data/pd1.npz"]),
    "hyperbo_tab05": ("hyperbo_tab05", "tables", ["data/tables.npz"]),
    "mphd_x01": ("mphd_x01", "", ["theory/mphd/equation3.json"]),
}
CLAIMS = [
    ("C01", "Pre-training helps.", "3 times", "claim", "tables", "hyperbo_fig08", "holds", 3.21, 2.4, 4.9, "times"),
    ("C02", "It helps on all tasks.", "-", "claim", "tables", "hyperbo_fig08", "undecided", 0.8, 0.3, 1.2, "times"),
    ("C02", "It helps on all tasks.", "-", "part", "tables", "hyperbo_fig08", "undecided", 0.8, 0.3, 1.2, "times"),
    ("C02", "It helps on all tasks.", "-", "part", "tables", "hyperbo_tab05", "holds", 2.0, 1.5, 2.5, "times"),
    ("C02", "It helps on all tasks.", "-", "beside", "pd1", "hyperbo_fig08", "holds", 5.0, 4.0, 6.0, "times"),
    ("C03", "Its error is below 1 %.", "0.9", "claim", "tables", "hyperbo_tab05", "contradicted", 4.0, None, None, "%"),
    ("C04", "It takes a TPU.", "-", "claim", "", "", "not testable", None, None, None, ""),
]
GATES = [
    ("hyperbo", "asks around", "hyperbo_fig08", "tables", "h_nll", "passes", 0.1, 0.5, "Ten of 100.", ""),
    ("hyperbo", "asks around", "hyperbo_fig08", "tables", "stbo", "fails", 0.9, 0.5, "90 of 100.", "C02 C03"),
]


def finished(stage: str, sidecar: str, inputs: list[str], outputs: list[str], seconds: float, **spec) -> None:
    """Write a job's sidecar and Snakemake's benchmark file."""
    provenance.write_sidecar(
        sidecar, stage=stage, spec=spec, inputs=checksums.checksums(inputs), outputs=outputs, code="0" * 64,
        depends="0" * 64, started=provenance.start(),
        granted={"threads": 1, "cores": [0]}, extra={},
    )  # fmt: skip
    name = str(Path(sidecar).parent if sidecar.endswith("provenance.json") else sidecar).partition(".")[0]
    files.write_text(name.replace(OUT, f"{OUT}/benchmarks") + ".tsv", f"s\th:m:s\n{seconds}\t0:00:01\n")


def result(stage: str, path: str, seconds: float, inputs: list[str], content: str = "", **spec) -> None:
    """Write a result with its sidecar."""
    files.write_text(f"{OUT}/{path}", content or path)
    sidecar = Path(OUT, path).with_suffix(".meta.json" if path.endswith(".json") else ".json")
    finished(stage, str(sidecar), [f"{OUT}/{name}" for name in inputs], [f"{OUT}/{path}"], seconds, **spec)


def check() -> str:
    """Return the result of a theory check with a refuted and a supported statement."""
    false = records.control("twice that", [records.cell(verdicts.identity(np.ones(2), 2 * np.ones(2)))])
    right = records.part("p", "1 = 1", "identity", [records.cell(verdicts.identity(np.ones(2), np.ones(2)))], false)
    wrong = records.part("q", "1 = 3", "identity", [records.cell(verdicts.identity(np.ones(2), 3 * np.ones(2)))], false)
    statements = [
        records.statement("Eq. 3", "as printed <b>", "§2.3", [wrong]),
        records.statement("Eq. 3", "with ½", "§2.3", [right], "repaired"),
    ]
    record = {"paper": "mphd", "check": "equation3", "title": "T", "share": 1.0, "status": "ok"}
    return files.canonical(record | {"statements": statements})


def executed(parameters: dict) -> str:
    """Return a notebook as papermill leaves it: text, code, a wide table, the figure, a stream."""
    wide = pd.DataFrame(np.arange(60).reshape(2, 30), columns=[f"column {i}" for i in range(30)])
    figure = Path(parameters["out"], "figure.png").read_bytes()
    outputs = [
        nbformat.v4.new_output("stream", text="benchmark tables: 2 tasks\n"),
        nbformat.v4.new_output("display_data", {"text/html": wide.to_html(), "text/plain": "a table"}),
        nbformat.v4.new_output(
            "display_data", {"image/png": base64.b64encode(figure).decode(), "text/plain": "an image"}
        ),
    ]
    code = (
        "import metabo  # a comment\nlines = [name for name in ('a', 'b') if name != \"c\"]\n" + "long_name = 1; " * 20
    )
    cells = [
        nbformat.v4.new_markdown_cell(f"# {parameters['title'].replace('<', '&lt;')}\nWhat *is* shown."),
        nbformat.v4.new_code_cell(code, outputs=outputs, execution_count=1),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"papermill": {"parameters": parameters}})
    return nbformat.writes(notebook)


def artefact(id: str, benchmark: str, inputs: list[str], entry: dict) -> None:
    """Write the files of an artefact."""
    folder = "/".join(filter(None, (OUT, entry["paper"], benchmark, id)))
    figure = Figure(figsize=(4, 2))
    figure.subplots().plot([1, 2], [2, 1])
    numbers = pd.DataFrame({"method": ["rand", "h_nll"], "mean": [0.5, 0.25]})
    named = (entry["title"], entry["caption"], benchmark)
    artefacts.save(figure, {"curve": numbers}, folder, id, *named, keys=["method"])
    given = {"artefact": id, "title": entry["title"], "caption": entry["caption"], "out": folder}
    given |= {"benchmark": benchmark} if benchmark else {}
    files.write_text(f"{folder}/notebook.ipynb", executed(given))
    outputs = [f"{folder}/{name}" for name in ("data.csv", "figure.pdf", "figure.png", "notebook.ipynb")]
    made_from = [f"{OUT}/{name}" for name in inputs]
    finished("notebook", f"{folder}/provenance.json", made_from, outputs, 10.0, **given)


def stage(name: str, spec: dict, *options: str) -> str:
    """Run a stage in the present folder and return what it printed."""
    command = [sys.executable, "-m", f"metabo.stages.{name}", "--spec", files.canonical(spec), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def folder_of(rule: str) -> str:
    """Return the folder of an artefact of MADE."""
    id, benchmark, _ = MADE[rule]
    return "/".join(filter(None, (OUT, id.partition("_")[0], benchmark, id)))


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Return the project folder of a finished run with its report; what the stage printed is in report.log."""
    from metabo.plan.yaml_files import read_yaml

    place, before = tmp_path_factory.mktemp("site"), Path.cwd()
    os.chdir(place)
    try:
        files.write_text("workflow/catalogue.yaml", CATALOGUE)
        entries = read_yaml(Path("workflow/catalogue.yaml"))
        result("data", "data/tables.npz", 2.0, [])
        result("data", "data/pd1.npz", 3.0, [])
        result("pretrain", "priors/tables/held_out/h_nll.npz", 100.0, ["data/tables.npz"])
        result(
            "bo", "bo/tables/held_out/h_nll-pi.parquet", 50.0, ["data/tables.npz", "priors/tables/held_out/h_nll.npz"]
        )
        result("bo", "bo/tables/held_out/unused-pi.parquet", 1000.0, ["data/tables.npz"])
        result("theory", "theory/mphd/equation3.json", 5.0, [], check(), paper="mphd", check="equation3")
        for id, benchmark, inputs in MADE.values():
            artefact(id, benchmark, inputs, entries[id])
        table = pd.DataFrame(map(claim_row, CLAIMS), columns=list(scorecard.COLUMNS))
        result("claims", "claims/hyperbo.csv", 1.0, [], table.to_csv(index=False))
        controls = pd.DataFrame(GATES, columns=list(gates.ShownGate._fields))
        files.write_text(f"{OUT}/claims/hyperbo-gates.csv", controls.to_csv(index=False))
        folders = [folder_of(rule) for rule in MADE]
        stage(
            "pages",
            {
                "names": list(MADE), "index": f"{OUT}/index.html", "paper": "hyperbo",
                "claims": [["C01", "C02"], [], ["C03"], []],
            },
            "--sidecar", f"{OUT}/hyperbo/pages.json",
            "--in-notebooks", *[f"{folder}/notebook.ipynb" for folder in folders],
            "--out", *[f"{folder}/notebook.html" for folder in folders],
        )  # fmt: skip
        files.write_text(f"{OUT}/benchmarks/hyperbo/pages.tsv", "s\th:m:s\n4.0\t0:00:04\n")
        (place / "report.log").write_text(report())
    finally:
        os.chdir(before)
    return place


def claim_row(written: tuple) -> dict[str, object]:
    """Return a row of a table of claims; C01 and C02 are headline claims."""
    names = [
        "claim",
        "statement",
        "paper_value",
        "role",
        "benchmark",
        "artefact",
        "verdict",
        "value",
        "low",
        "high",
        "unit",
    ]
    row = dict(zip(names, written, strict=True))
    cause = {"undecided": "power", "contradicted": "unresolved"}.get(row["verdict"], "")
    more = {"paper": "hyperbo", "section": "§7", "rung": "smoke", "kind": "conceptual", "reading": "repeats"}
    return row | more | {"headline": int(row["claim"] in ("C01", "C02")), "metrics": "area"} | {
        "cause": cause if row["role"] == "claim" else "", "clusters": 5, "power": 0.2, "effect": 0.02,
        "said": f"Said of {row['claim']}.",
    }  # fmt: skip


REPORT = {"scale": "smoke", "papers": ["hyperbo", "mphd"], "names": list(MADE)}
"""The spec of the report."""


def reported() -> list[str]:
    """Return the options of the report stage."""
    return [
        "--in-catalogue", "workflow/catalogue.yaml", "--in-claims", f"{OUT}/claims/hyperbo.csv",
        "--in-gates", f"{OUT}/claims/hyperbo-gates.csv", "--in-pages", f"{OUT}/hyperbo/pages.json",
        "--out", f"{OUT}/index.html",
        "--out-scorecard", f"{OUT}/scorecard.csv", "--out-multiverse", f"{OUT}/multiverse.csv",
        "--in-artefacts", *[f"{folder_of(rule)}/provenance.json" for rule in MADE],
    ]  # fmt: skip


def report() -> str:
    """Write the report of the run in the present folder; return what the stage printed."""
    return stage("report", REPORT, *reported())


@pytest.fixture
def write_report():
    """Return the function that writes the report of the run in the present folder."""
    return report


@pytest.fixture
def copied(site, tmp_path, monkeypatch):
    """Return a copy of the run to change, as the present folder."""
    place = shutil.copytree(site, tmp_path / "copy")
    monkeypatch.chdir(place)
    return place
