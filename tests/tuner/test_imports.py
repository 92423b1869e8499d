"""`metabo import` as a reader of docs/own-data.md types it, and spaces drafted in Python."""

import csv
import io
import re

import pandas as pd
import pytest

import metabo
from metabo import cli
from metabo.data.history import description
from metabo.errors import ConfigError, DataError
from metabo.tuner.study import Study
from tests.tuner.conftest import HEADER, rows, write


@pytest.fixture
def call(capsys):
    """Return a function that runs a command and returns (standard output, standard error)."""

    def run(*arguments):
        cli.main([str(argument) for argument in arguments])
        return capsys.readouterr()

    return run


@pytest.fixture
def refused(capsys):
    """Return a function that runs a command that is refused, and returns its message."""

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            cli.main([str(argument) for argument in arguments])
        assert stop.value.code == 1
        message = capsys.readouterr().err
        assert message.startswith("metabo: ") or "\nmetabo: " in message
        return message[message.index("metabo: ") :].strip()

    return run


@pytest.fixture
def storage(tmp_path):
    """An SQLite file of Optuna with the small history as four past studies, and one trial that still runs."""
    optuna = pytest.importorskip("optuna", reason="Optuna (extra `optuna`) is not installed")
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.trial import TrialState, create_trial

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    ranges = {
        "learning_rate": FloatDistribution(1e-4, 1.0, log=True),
        "layers": IntDistribution(1, 6),
        "batch": CategoricalDistribution((16, 32, 64)),
        "optimiser": CategoricalDistribution(("sgd", "adam")),
        "momentum": FloatDistribution(0.0, 0.9),
    }
    url = f"sqlite:///{tmp_path / 'past.db'}"
    for name in ("d0", "d1", "d2", "d3"):
        trials = []
        for row in (row for row in rows() if row[0] == name):
            cells = dict(zip(HEADER[1:-1], row[1:-1], strict=True))
            params = {"learning_rate": float(cells["learning_rate"]), "layers": int(cells["layers"])}
            params |= {"batch": int(cells["batch"]), "optimiser": cells["optimiser"]}
            params |= {"momentum": float(cells["momentum"])} if cells["momentum"] else {}
            state = TrialState.COMPLETE if row[-1] else TrialState.FAIL
            own = {key: ranges[key] for key in params}
            trials.append(
                create_trial(state=state, value=float(row[-1]) if row[-1] else None, params=params, distributions=own)
            )
        study = optuna.create_study(storage=url, study_name=name)
        study.add_trials(trials)
    study.ask()
    return url


def test_from_an_optuna_file_to_three_suggestions_in_two_commands(storage, call, tmp_path):
    out, err = call("import", "optuna", storage, "--out", tmp_path / "past", "--to", tmp_path / "study", "--steps", 20)
    assert re.search(r"^d3 +12 +11 +\d +1: still running \(trial 11\)$", out, re.M)
    assert "38 trials of 4 past studies (UTF-8, columns separated by commas" in out and err.startswith("reading the")
    assert re.search(r"^all +38 +38 +\d+ +0 dropped$", out, re.M)
    suggested, _ = call("suggest", tmp_path / "study", "--count", 3)
    table = list(csv.reader(io.StringIO(suggested)))
    assert table[0] == [*HEADER[1:-1], "value"] and len(table) == 4
    study = Study(tmp_path / "study")
    (past,) = study.record["past"]
    assert [(one["study"], one["used"]) for one in past["accounts"]] == [("d0", 8), ("d1", 9), ("d2", 10), ("d3", 11)]
    assert past["layout"] == "UTF-8, columns separated by commas, decimal points"
    assert study.description.name == "past" and study.description.fields[0].log


def test_the_same_import_again_changes_nothing_and_another_one_is_refused(storage, call, refused, tmp_path):
    out, _ = call("import", "optuna", storage, "--out", tmp_path / "past")
    assert f"next: metabo pretrain {tmp_path}/past/history.csv --space {tmp_path}/past/space.yaml --to my_study" in out
    assert "before metabo pretrain" not in out
    assert call("import", "optuna", storage, "--out", tmp_path / "past")[0] == out
    space = tmp_path / "past" / "space.yaml"
    edited = space.read_text() + "# mine\n"
    space.write_text(edited)
    message = refused("import", "optuna", storage, "--out", tmp_path / "past")
    there = "is there already, with another content; delete it, or choose another folder with --out"
    assert message.startswith(f"metabo: {space}: {there}; if you edited it, ")
    history = space.parent / "history.csv"
    assert f"if you edited it, learn from it as it is: metabo pretrain {history} --space {space} --to " in message
    assert space.read_text() == edited
    history.unlink()  # the space.yaml is that of something else
    assert refused("import", "optuna", storage, "--out", tmp_path / "past") == f"metabo: {space}: {there}"
    message = refused("import", "optuna", storage, "--only", "d9")
    assert "unknown study of " in message and "Did you mean 'd3'? Valid: d0, d1, d2, d3" in message


@pytest.mark.parametrize(("said", "goal"), [("min", "minimise"), ("maximize", "maximise")])
def test_a_goal_may_be_spelt_as_elsewhere(call, tmp_path, said, goal):
    history = write(tmp_path / "history.csv", HEADER, rows())
    call("import", "csv", history, "--study", "dataset", "--outcome", "error", "--goal", said, "--out", tmp_path / "o")
    assert f"goal: {goal}" in (tmp_path / "o" / "space.yaml").read_text()


def test_what_a_draft_lacks_is_told_before_the_training(call, refused, tmp_path):
    place = HEADER.index("layers")
    table = [["" if row[0] == "d1" and i == place else cell for i, cell in enumerate(row)] for row in rows()]
    history = write(tmp_path / "history.csv", HEADER, table)
    given = ["import", "csv", history, "--study", "dataset", "--outcome", "error", "--goal", "minimise"]
    out, err = call(*given, "--out", tmp_path / "past")
    assert "before metabo pretrain: " in out and "has no value in all of study 'd1'" in out
    assert "history.csv: UTF-8, columns separated by commas, decimal points" in err
    message = refused(*given, "--out", tmp_path / "past", "--to", tmp_path / "study")
    assert "has no value in all of study 'd1'; write the value that it had there under" in message
    space = tmp_path / "past" / "space.yaml"
    space.write_text(space.read_text().replace("high: 6}", "high: 6, default: 3}"))
    out, _ = call("pretrain", history, "--space", space, "--to", tmp_path / "study", "--method", "rand")
    assert "layers not tuned, taken as 3" in out


def test_a_table_from_a_spreadsheet_in_two_commands(call, tmp_path):
    lines = [[cell.replace(".", ",") for cell in row] for row in rows()]
    text = "\r\n".join(";".join(row) for row in [HEADER, *lines]).replace("d0", "König")
    path = tmp_path / "history.csv"
    path.write_bytes(text.encode("cp1252"))
    given = ["--study", "dataset", "--outcome", "error", "--goal", "minimise", "--out", tmp_path / "past"]
    out, err = call("import", "csv", path, *given, "--to", tmp_path / "study", "--steps", 5)
    assert "history.csv: cp1252 (it is not UTF-8; check that row 2 has the letter 'ö'), columns separated by" in err
    assert "38 trials of 4 past studies (cp1252 (" in out and "\nKönig " in out
    todo = tmp_path / "todo.csv"
    suggested = call("suggest", tmp_path / "study")[0].splitlines()
    todo.write_text(f"{suggested[0]}\n{suggested[1]}0,5\n".replace(",", ";").replace(".", ",").replace(";0;5", ";0,5"))
    out, err = call("tell", tmp_path / "study", todo)
    assert "told 1; " in out and "best error: 0.5 " in out
    assert err == f"{todo}: UTF-8, columns separated by semicolons, decimal commas\n"


def test_runs_of_mlflow(call, refused, tmp_path):
    table = pd.DataFrame(rows(), columns=HEADER).rename(columns={"dataset": "tags.data", "error": "metrics.error"})
    table = table.rename(columns={column: f"params.{column}" for column in HEADER[1:-1]})
    table = table.assign(run_id=[f"r{i}" for i in range(38)], experiment_id="7", status="FINISHED")
    table.loc[table["metrics.error"] == "", "status"] = "FAILED"
    table.to_csv(tmp_path / "runs.csv", index=False)
    given = ["import", "mlflow", tmp_path / "runs.csv", "--goal", "minimise"]
    out, err = call(*given, "--by", "tags.data", "--out", tmp_path / "past")
    assert "38 trials of 4 studies" in out and "runs.csv: UTF-8, columns" in err and "before metabo" not in out
    space = description.load(tmp_path / "past" / "space.yaml")
    assert [field.name for field in space.fields] == HEADER[1:-1] and space.fields[-1].parent == "optimiser"
    _, err = call(*given, "--out", tmp_path / "one")
    assert "all runs are of one study, '7' (column 'experiment_id'); a prior needs several: choose another" in err
    assert "Did you mean 'tags.data'?" in refused(*given, "--by", "tags.dat")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["optuna", "none.db"], "none.db: cannot read it (No such file or directory); check the path of the storage"),
        (["mlflow", "none.csv", "--goal", "minimise"], "none.csv: cannot read it (No such file or directory)"),
        (["csv", "none.csv", "--study", "a", "--outcome", "b", "--goal", "minimise"], "none.csv: cannot read it"),
    ],
)
def test_a_file_that_is_not_there(refused, arguments, message, tmp_path, monkeypatch):
    if arguments[0] == "optuna":
        pytest.importorskip("optuna", reason="Optuna (extra `optuna`) is not installed")
    monkeypatch.chdir(tmp_path)
    assert refused("import", *arguments).startswith(f"metabo: {message}")
    assert not list(tmp_path.iterdir())


class TestDraftSpace:
    def frame(self):
        made = pd.DataFrame(rows(), columns=HEADER).replace("", None)
        return made.astype({"learning_rate": float, "layers": int, "batch": int, "momentum": float, "error": float})

    def test_a_frame_a_dict_a_list_and_a_file_have_one_draft(self, tmp_path):
        whole = self.frame()
        parts = {study: part.drop(columns="dataset") for study, part in whole.groupby("dataset")}
        given = {"study": "dataset", "outcome": "error", "goal": "minimise"}
        path = write(tmp_path / "history.csv", HEADER, rows())
        texts = set()
        for number, history in enumerate([whole, [whole[:20], whole[20:]], parts, path, str(path)]):
            space = metabo.draft_space(history, tmp_path / f"{number}" / "space.yaml", **given)
            texts.add(space.read_text().partition("\n")[2])
        other = metabo.draft_space(whole, tmp_path / "other" / "space.yaml", **{**given, "goal": "minimize"})
        texts.add(other.read_text().partition("\n")[2])
        (text,) = texts
        assert "learning_rate: {type: float" in text and "momentum" in text

    @pytest.mark.parametrize(
        ("changes", "kind", "message"),
        [
            ({"goal": "less"}, ConfigError, "goal is 'less'; say 'minimise' or 'maximise'"),
            ({"study": "data"}, DataError, "DataFrame (rows counted from 0): column 'data' is missing. Did you mean"),
            ({"ignore": ["id"]}, ConfigError, "unknown column to ignore 'id'. "),
        ],
    )
    def test_arguments_that_do_not_fit(self, tmp_path, changes, kind, message):
        given = {"study": "dataset", "outcome": "error", "goal": "minimise", **changes}
        with pytest.raises(kind) as error:
            metabo.draft_space(self.frame(), tmp_path / "space.yaml", **given)
        assert message in str(error.value) and not (tmp_path / "space.yaml").exists()

    def test_a_file_that_was_edited_and_several_histories(self, tmp_path):
        given = {"study": "dataset", "outcome": "error", "goal": "minimise"}
        (tmp_path / "space.yaml").write_text("mine")
        with pytest.raises(ConfigError, match=r"space\.yaml: is there already, with another content; delete it, or"):
            metabo.draft_space(self.frame(), tmp_path / "space.yaml", **given)
        with pytest.raises(ConfigError, match=r"2 histories; a space\.yaml describes one: draft one for each of them"):
            metabo.draft_space([self.frame(), "history.csv"], tmp_path / "other.yaml", **given)
