"""What is made of the checks: the stage's files, tables, the figure and the notebook."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import papermill
import pytest

from metabo.errors import ConfigError, DataError
from metabo.papers.engine.theory import figure as drawings
from metabo.papers.engine.theory import records, tables, verdicts
from metabo.plan import registry

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of the stage for two checks, run once through its command."""
    folder = tmp_path_factory.mktemp("theory")
    for name in ("tail_bounds", "lemma15"):
        spec = json.dumps({"paper": "hyperbo", "check": name, "seed": 0, "share": 0.05})
        command = [sys.executable, "-m", "metabo.stages.theory", "--spec", spec, "--out", f"{folder}/{name}.json"]
        done = subprocess.run(
            [*command, "--sidecar", f"{folder}/{name}.meta.json"], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "counterexample" in done.stdout
    return folder


def test_the_stage_writes_verdicts_and_a_sidecar(results):
    record = json.loads((results / "lemma15.json").read_text())
    assert (record["paper"], record["check"], record["share"], record["status"]) == ("hyperbo", "lemma15", 0.05, "ok")
    assert record["title"] == registry.check("hyperbo", "lemma15")
    sidecar = json.loads((results / "lemma15.meta.json").read_text())
    assert sidecar["stage"] == "theory" and sidecar["verdicts"]["Lemma 15 (printed)"] == ["REFUTED", "ok"]
    assert list(sidecar["outputs"]) == [str(results / "lemma15.json")]


def test_an_unknown_check_ends_with_one_message(tmp_path):
    spec = json.dumps({"paper": "hyperbo", "check": "lemma99", "seed": 0, "share": 1.0})
    command = [sys.executable, "-m", "metabo.stages.theory", "--spec", spec, "--out", str(tmp_path / "x.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "unknown theory check" in done.stderr
    assert "lemma15" in done.stderr


def test_tables_of_results(results):
    paths = [results / "tail_bounds.json", results / "lemma15.json"]
    statements = sum(len(json.loads(path.read_text())["statements"]) for path in paths)
    checks = tables.read([str(path) for path in paths])
    verdicts, cells = tables.verdicts(checks), tables.cells(checks)
    assert verdicts["statement"].tolist()[:2] == ["Lemma 9", "Corollary 14"] and len(verdicts) == statements
    row = verdicts[(verdicts["statement"] == "Lemma 15") & (verdicts["version"] == "printed")].iloc[0]
    assert row["verdict"] == "REFUTED" and row["decided"].startswith("P = 0.9")
    exact = cells[(cells["statement"] == "Lemma 15") & (cells["part"] == "exact") & (cells["version"] == "printed")]
    assert exact["is_control"].sum() == 2 and (exact.loc[exact["is_control"], "verdict"] == "REFUTED").all()
    exact = exact[~exact["is_control"]]
    assert len(exact) == 50 and exact["share"].between(0, 1).all()
    saved = tables.numbers(checks)
    assert not saved["cell"]["value"].isna().any() and len(saved["verdict"]) == statements
    one = saved["cell"].query("part == 'control of upper tail' and number == 'violations'")
    assert one["value"].tolist() == [73.0] and one["verdict"].tolist() == ["REFUTED"]


def test_the_table_of_parts_names_every_control(results):
    checks = tables.read([f"{results}/tail_bounds.json", f"{results}/lemma15.json"])
    table = tables.parts(checks)
    assert len(table) == sum(len(s["parts"]) for check in checks for s in check["statements"])
    assert (table["refuted"] == "REFUTED").all() and (table["by"] != "").all()
    upper = table[table["part"] == "upper tail"].iloc[0]
    assert upper["decided"] == "violated 0 of 240 times" and upper["by"] == "violated 73 of 240 times"
    one = {"violations": 0, "cases": 1, "smaller": 1e-3, "larger": 303.5}
    assert tables._text("inequality", one) == "0.001 <= 304"
    assert tables._text("inequality", one | {"violations": 1, "larger": 0.0}) == "0.001 > 0"
    # of two cells of a control the one nearer to its claim: share less limit
    half = table[(table["statement"] == "Lemma 15") & (table["version"] == "printed") & (table["part"] == "exact")]
    assert half["by"].item().startswith("P = 0.601, limit 0.5") and half["decided"].item().startswith("P = 0.975")
    assert tables.verdicts(checks)["controls"].tolist()[:2] == ["2 of 2", "1 of 1"]
    part = checks[0]["statements"][0]["parts"][0]
    checks[0]["statements"][0]["parts"] = [part | {"control": None}]
    assert tables.parts(checks)[["control", "refuted", "by"]].iloc[0].tolist() == ["none", "", ""]
    assert tables.verdicts(checks)["controls"].iloc[0] == "0 of 1"


def _probability(name, cells):
    made = [records.cell(verdicts.probability(bad, 1000, limit), case=name) for bad, limit in cells]
    return records.part(name, "claim", "probability", made)


@pytest.mark.parametrize(
    ("parts", "start"),
    [
        ({"held": [(10, 0.5)], "open": [(100, 0.1)]}, "P = 0.1 "),  # the part that is undecided, not the first
        ({"first": [(700, 0.5)], "second": [(500, 0.4), (900, 0.5)]}, "P = 0.9 "),  # the worst of all that refute
        ({"mild": [(10, 0.5)], "worse": [(300, 0.5), (20, 0.9)]}, "P = 0.3 "),  # supported: nearest to the limit
        ({"open": [(100, 0.1), (10, 0.5)], "held": [(2, 0.5)], "worse": [(104, 0.1)]}, "P = 0.104 "),
    ],
)
def test_decided_shows_the_worst_cell_of_the_parts_with_the_verdict(parts, start):
    made = records.statement("S", "title", "where", [_probability(*one) for one in parts.items()])
    assert tables.decided(made).startswith(start)


def test_decided_compares_numbers_of_one_kind_alone():
    equal = records.cell(verdicts.identity(np.array([1.0 + 1e-12]), np.array([1.0])))
    parts = [records.part("exact", "claim", "identity", [equal]), _probability("share", [(10, 0.5)])]
    assert tables.decided(records.statement("S", "title", "where", parts)).startswith("error 5e-13")


def test_a_powerless_check_shows_as_such(results):
    record = json.loads((results / "tail_bounds.json").read_text())
    record["statements"][0]["status"] = "no power"
    assert tables.verdicts([record])["verdict"].iloc[0] == "no power"


def test_missing_and_wrong_results_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such check; make it"):
        tables.read([str(tmp_path / "absent.json")])
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError, match="not the result of a theory check"):
        tables.read([str(tmp_path / "other.json")])
    with pytest.raises(DataError, match="no theory check given"):
        tables.read([])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda s: s.pop("title"), "field 'statements.0.title' is missing"),
        (lambda s: s.update(parts={}), "field 'statements.0.parts' is {}, must be a list of objects"),
        (lambda s: s["parts"][0].update(kind=3), "field 'statements.0.parts.0.kind' is 3, must be text"),
        (
            lambda s: s["parts"][0]["control"].update(cells=[1]),
            "field 'statements.0.parts.0.control.cells.0' is 1, must be an object",
        ),
    ],
    ids=["missing", "list", "text", "cell"],
)
def test_a_damaged_result_is_refused_with_its_field(results, tmp_path, damage, message):
    record = json.loads((results / "lemma15.json").read_text())
    damage(record["statements"][0])
    path = tmp_path / "lemma15.json"
    path.write_text(json.dumps(record))
    with pytest.raises(DataError) as refused:
        tables.read([str(path)])
    assert str(refused.value) == f"{path}: {message}; delete it and run again"


def test_a_cell_without_its_number_is_refused(results):
    checks = tables.read([f"{results}/tail_bounds.json"])
    del checks[0]["statements"][0]["parts"][0]["cells"][0]["numbers"]["violations"]
    with pytest.raises(DataError, match="a cell has no number 'violations', only cases"):
        tables.verdicts(checks)


def test_results_are_read_as_they_were_written(results):
    path = results / "tail_bounds.json"
    (read,), written = tables.read([str(path)]), json.loads(path.read_text())
    assert read == {key: written[key] for key in read} and set(read) == {"check", "share", "statements"}


def test_the_figure_has_every_statement_and_refuses_unknown_panels(results):
    checks = tables.read([f"{results}/lemma15.json"])
    verdicts, cells = tables.verdicts(checks), tables.cells(checks)
    figure = drawings.verdict_figure(verdicts, cells, ["best_observation"], "Theory")
    assert len(figure.axes) == 2
    panel, table = figure.axes
    written = " ".join(text.get_text() for text in table.texts)
    for name in (*verdicts["decided"], *verdicts["title"]):
        assert name in written
    assert len(panel.lines) > 4 and figure.get_figwidth() <= 6.6, "a page is no wider"
    powerless = drawings.verdict_figure(verdicts.assign(verdict="no power", status="no power"), cells, [], "Theory")
    assert "no power" in [text.get_text() for text in powerless.axes[0].texts]
    with pytest.raises(ConfigError, match=r"unknown panel 'bais'.*Did you mean 'bias'"):
        drawings.verdict_figure(verdicts, cells, ["bais"], "Theory")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # papermill and the kernel's client warn in this process
def test_the_notebook_shows_two_checks(results, tmp_path):
    parameters = {
        "artefact": "hyperbo_x03", "title": "Theory", "caption": "A caption.", "out": str(tmp_path / "out"),
        "theory": [f"{results}/tail_bounds.json", f"{results}/lemma15.json"], "panels": ["best_observation"],
    }  # fmt: skip
    executed = tmp_path / "executed.ipynb"
    papermill.execute_notebook(
        str(ROOT / "notebooks/shared/theory.ipynb"), str(executed), parameters, kernel_name="python3",
        progress_bar=False, cwd=str(ROOT),
    )  # fmt: skip
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["data.csv", "figure.pdf", "figure.png"]
    saved = pd.read_csv(tmp_path / "out" / "data.csv")
    assert set(saved["table"]) == {"verdict", "cell"} and saved["value"].notna().all()
    text = executed.read_text()
    assert "negative control was not refuted: none" in text and "Corollary 14 (printed): not P[x - μ" in text
