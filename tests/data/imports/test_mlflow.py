"""Runs of MLflow: which become trials, which are left out and told, and exports that are none."""

import csv

import pytest

from metabo.data.history import description
from metabo.data.history.past import read_all
from metabo.data.imports import draft, mlflow_runs
from metabo.errors import ConfigError, DataError

HEADER = [
    "run_id", "experiment_id", "status", "start_time", "metrics.loss", "metrics.steps", "params.lr", "params.kind",
    "params.momentum", "tags.dataset", "tags.mlflow.user",
]  # fmt: skip


def runs(studies=3, each=6):
    out = []
    for study in range(studies):
        for i in range(each):
            kind = ("sgd", "adam")[i % 2]
            cells = [f"r{study}-{i}", str(study), "FINISHED", "2024-01-01", repr(0.1 + 0.07 * i), "100"]
            cells += [repr(10.0 ** -(1 + (i + study) % 4)), kind, repr(0.1 * i + 0.05) if kind == "sgd" else ""]
            out.append([*cells, f"set {study % 2}", "me"])
    return out


def altered(row, column, value):
    table = runs()
    table[row - 2][HEADER.index(column)] = value
    return table


@pytest.fixture
def imported(tmp_path):
    """Return a function that imports tables and reads the files back."""

    def call(*tables, header=HEADER, goal="minimise", outcome="loss", delimiter=",", **options):
        paths = []
        for number, table in enumerate(tables):
            paths.append(tmp_path / f"runs{number}.csv")
            with paths[-1].open("w", newline="") as stream:
                csv.writer(stream, delimiter=delimiter).writerows([header, *table])
        made = mlflow_runs.imported(paths, goal, "own", outcome, **options)
        history, space = tmp_path / "history.csv", tmp_path / "space.yaml"
        history.write_text(made.csv)
        space.write_text(draft.text(made.draft))
        return made, description.load(space), read_all([history], [space])[0]

    return call


def test_runs_become_trials(imported):
    made, space, past = imported(runs())
    assert [field.name for field in space.fields] == ["lr", "kind", "momentum"] and space.outcome == "loss"
    assert space.fields[2].parent == "kind" and space.ignore == ("run_id", "status")
    assert [len(task.y) for task in past.tasks.values()] == [6, 6, 6] and list(past.tasks) == ["0", "1", "2"]
    assert [one["read"] for one in made.accounts] == [6, 6, 6]
    assert made.remarks[0].endswith("runs0.csv: UTF-8, columns separated by commas, decimal points")
    assert imported(runs(), goal="maximise", outcome="metrics.loss")[1].maximise


def test_a_tag_can_name_the_study_and_parameters_can_be_left_out(imported):
    made, space, past = imported(runs(), by="tags.dataset", ignore=["momentum"])
    assert list(past.tasks) == ["set 0", "set 1"] and "momentum" in space.ignore
    made, _, _ = imported(runs(studies=1))
    assert (
        "all runs are of one study, '0' (column 'experiment_id'); a prior needs several: choose another"
        in made.remarks[-1]
    )
    assert "e.g. tags.dataset, tags.mlflow.user" in made.remarks[-1]


def test_every_status_is_used_or_told(imported):
    table = runs()
    for row, column, value in [
        (0, "status", "FAILED"), (1, "status", "KILLED"), (2, "status", "RUNNING"), (3, "status", "SCHEDULED"),
        (4, "metrics.loss", ""), (6, "metrics.loss", "inf"),
    ]:  # fmt: skip
        table[row][HEADER.index(column)] = value
    for column in ("params.lr", "params.kind", "params.momentum"):
        table[7][HEADER.index(column)] = ""
    made, _, past = imported(table)
    first, second = made.accounts[:2]
    assert (first["read"], first["used"], first["failed"]) == (6, 2, 1)
    assert {one["reason"]: one["rows"] for one in first["dropped"]} == {
        "killed": [3], "not finished": [4, 5], "finished without metrics.loss": [6],
    }  # fmt: skip
    assert "1 run ended as FAILED or KILLED with a value of 'metrics.loss'" in made.remarks[-1]
    assert "runs0.csv: row 2); the value is not used" in made.remarks[-1]
    first = imported(table, killed="failed")[0].accounts[0]
    assert (first["used"], first["failed"], first["dropped"][0]["reason"]) == (3, 2, "not finished")
    assert second["failed"] == 1 and second["dropped"] == [{"reason": "without parameters", "rows": [9]}]
    assert "0" not in past.tasks or past.accounts[0]["used"] == 0  # one outcome is left of it, which teaches nothing


def test_none_that_was_logged_is_a_value(imported):
    table = [[*row[:7], ["None", "cosine"][i % 2], *row[8:]] for i, row in enumerate(runs())]
    table[0][HEADER.index("params.lr")] = table[0][HEADER.index("params.momentum")] = ""
    for row in table[1:]:
        row[HEADER.index("params.lr")], row[HEADER.index("params.momentum")] = "", ""
    made, space, past = imported(table)
    assert space.fields[0].choices == ("None", "cosine") and [len(task.y) for task in past.tasks.values()] == [6, 6, 6]
    assert not any(one["dropped"] for one in made.accounts)


def test_several_files_are_one_history_and_a_run_counts_once(imported):
    made, _, past = imported(runs()[:10], runs()[6:])
    assert len(made.rows) == 18 and [len(task.y) for task in past.tasks.values()] == [6, 6, 6]
    assert any(one.endswith("4 rows of runs that other rows have too; each run counts once") for one in made.remarks)
    assert not any("counts once" in one for one in imported(runs())[0].remarks)


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_versions_of_a_run_the_one_that_ended_counts(imported, order):
    old = altered(5, "status", "RUNNING")
    old[3][HEADER.index("metrics.loss")] = "99"
    made, _, past = imported(*[old, runs()][::order])
    assert [len(task.y) for task in past.tasks.values()] == [6, 6, 6]
    assert [row[-1] for row in made.rows] == [row[HEADER.index("metrics.loss")] for row in runs()]


@pytest.mark.parametrize(("column", "value"), [("metrics.loss", "99"), ("params.lr", "0.5"), ("experiment_id", "7"),
                                               ("status", "FAILED")])  # fmt: skip
def test_two_versions_of_a_run_that_differ_are_refused(imported, column, value):
    before = runs()[3][HEADER.index(column)]
    what = f"runs1.csv: row 5, field '{column}': run r0-3 has '{value}' here and '{before}' in "
    with pytest.raises(DataError, match=what) as caught:
        imported(runs(), altered(5, column, value))
    assert str(caught.value).endswith("runs0.csv, row 5; delete the row that is out of date")


def test_versions_of_a_run_that_differ_in_what_is_not_read_are_one(imported):
    again = altered(5, "status", "Finished")
    again[3][HEADER.index("metrics.steps")] = "7"
    again[3][HEADER.index("metrics.loss")] += "0"
    again[3][HEADER.index("params.momentum")] = "9"
    assert len(imported(runs(), again, ignore=["momentum"])[0].rows) == 18
    for status, values in [("FAILED", ("1", "2")), ("FINISHED", ("nan", "NaN"))]:
        two = [altered(5, "status", status), altered(5, "status", status)]
        for table, value in zip(two, values, strict=True):
            table[3][HEADER.index("metrics.loss")] = value
        assert len(imported(*two)[0].rows) == 18


def test_rows_that_are_left_out_of_several_files_name_theirs(imported):
    made = imported(runs()[:6], altered(9, "status", "RUNNING")[6:])[0]
    assert made.accounts[1]["dropped"][0]["reason"].endswith("runs1.csv")


def test_a_file_with_semicolons_and_decimal_commas(imported):
    table = [[cell.replace(".", ",") if i in (4, 6, 8) else cell for i, cell in enumerate(row)] for row in runs()]
    made, _, past = imported(table, delimiter=";")
    assert "separated by semicolons, decimal commas" in made.remarks[0]
    assert past.tasks["0"].metric[0] == 0.1


@pytest.mark.parametrize(
    ("table", "header", "options", "kind", "message"),
    [
        (runs(), HEADER, {"outcome": "los"}, ConfigError, "unknown metric 'los'. Did you mean 'loss'? Valid: loss, st"),
        (runs(), HEADER, {"outcome": None}, ConfigError, "name the metric that was tuned with --outcome; there are l"),
        (runs(), HEADER, {"by": "tags.data"}, ConfigError,
         "no column 'tags.data' names the study of a run. Did you mean 'tags.dataset'?"),
        (runs(), [HEADER[0], "experiment", *HEADER[2:]], {}, ConfigError, "no column 'experiment_id' names the study"),
        (runs(), HEADER, {"ignore": ["moment"]}, ConfigError, "unknown column to ignore 'moment'. Did you mean 'mom"),
        (altered(3, "status", "DONE"), HEADER, {}, DataError,
         "runs0.csv: row 3, field 'status': 'DONE' is none of FINISHED, FAILED, KILLED, RUNNING, SCHEDULED; cor"),
        (altered(3, "experiment_id", ""), HEADER, {}, DataError, "runs0.csv: row 3, field 'experiment_id' is empty"),
        (altered(5, "params.lr", "fast"), HEADER, {}, DataError,
         "runs0.csv: row 5, field 'lr': 'fast' is no number, as 17 other cells of the column are; correct it"),
        ([*runs()[:3], runs()[3][:-1]], HEADER, {}, DataError, "runs0.csv: row 5 has 10 cells, the header has 11"),
        (runs(), [column.replace("params.", "") for column in HEADER], {}, DataError,
         "runs0.csv: row 1 lacks a column that begins with 'params.'; export the runs with mlflow.search_runs("),
        (runs(), ["state" if column == "status" else column for column in HEADER], {}, DataError,
         "runs0.csv: row 1 lacks the column 'status'"),
        ([], HEADER, {}, DataError, "runs0.csv: no rows below the header; an export has one row per run"),
        ([[*row[:2], "RUNNING", *row[3:]] for row in runs()], HEADER, {}, DataError,
         "runs0.csv: no finished run has parameters and 'metrics.loss'; check the export"),
    ],
)  # fmt: skip
def test_an_export_with_a_fault(imported, table, header, options, kind, message):
    if kind is DataError and "is no number" in message:  # few different values would be choices
        table = [[*row[:6], row[6] if row[6] == "fast" else f"0.0{i}", *row[7:]] for i, row in enumerate(table)]
    with pytest.raises(kind) as error:
        imported(table, header=header, **options)
    assert message in str(error.value)
