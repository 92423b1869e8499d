"""Past studies of Optuna: every state, distribution and direction becomes what a history has, or is told."""

import csv
import io
import json
import sqlite3

import pytest

from metabo.data.history import description
from metabo.data.history.past import read_all
from metabo.data.imports import draft, optuna_storage, optuna_studies
from metabo.data.imports import optuna_ranges as ranges
from metabo.errors import ConfigError, DataError

optuna = pytest.importorskip("optuna", reason="Optuna (extra `optuna`) is not installed")
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState, create_trial  # noqa: E402

RATE = FloatDistribution(1e-5, 0.1, log=True)
LAYERS = IntDistribution(1, 6)
KIND = CategoricalDistribution(("sgd", "adam"))
MOMENTUM = FloatDistribution(0.0, 0.99)
RANGES = {"rate": RATE, "layers": LAYERS, "kind": KIND, "momentum": MOMENTUM}


def trial(value=0.5, state=TrialState.COMPLETE, ranges=RANGES, stored=None, **params):
    given = {name: ranges[name] for name in params}
    return create_trial(state=state, value=value, params=params, distributions=given, system_attrs=stored)


def good(i, **changes):
    """A trial of a space in which momentum depends on the optimiser."""
    params = {"rate": 10.0 ** -(1.5 + i % 3), "layers": 1 + i % 6, "kind": ("sgd", "adam")[i % 2]}
    return trial(0.1 + 0.01 * i, **params, **({} if i % 2 else {"momentum": 0.1 * (i % 9)}), **changes)


def past(storage, name="a", trials=None, direction="minimize", **options):
    """Add a study to a storage."""
    goal = {"directions": direction} if isinstance(direction, list) else {"direction": direction}
    study = optuna.create_study(storage=storage, study_name=name, **goal)
    study.add_trials([good(i) for i in range(8)] if trials is None else trials)
    return study


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def imported(tmp_path):
    """Return a function that imports studies from memory and reads the files back: (import, description, past)."""

    def call(storage, readable=True, **options):
        found = [
            optuna_storage._study(optuna.load_study(study_name=name, storage=storage), "past.db")
            for name in optuna.get_all_study_names(storage)
        ]
        made = optuna_studies.imported(found, "past.db", "own", **options)
        history, space = tmp_path / "history.csv", tmp_path / "space.yaml"
        history.write_text(made.csv)
        space.write_text(draft.text(made.draft))
        return made, description.load(space), read_all([history], [space])[0] if readable else None

    return call


@pytest.fixture
def storage():
    return optuna.storages.InMemoryStorage()


def account(made, study):
    return next(one for one in made.accounts if one["study"] == study)


@pytest.mark.parametrize("kind", ["url", "path", "journal"])
def test_a_storage_on_disk_is_read_and_left_as_it_is(tmp_path, kind):
    path = tmp_path / "past studies.db"
    if kind == "journal":
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        there = JournalStorage(JournalFileBackend(str(path)))
    else:
        there = f"sqlite:///{path}"
    past(there, "b", direction="maximize")
    named = past(there, "a", [good(1), good(2)])
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        named.set_metric_names(["error"])
    path.chmod(0o444)
    before = path.read_bytes()
    given = f"sqlite:///{path}" if kind == "url" else str(path)
    studies = optuna_storage.read(given)
    assert {(one.name, one.goal, one.outcome, len(one.trials)) for one in studies} == {
        ("b", "maximise", "", 8), ("a", "minimise", "error", 2),
    }  # fmt: skip
    assert optuna_storage.called(given) == str(path)
    assert [one.name for one in optuna_storage.read(given, only=["a"])] == ["a"]
    assert [one.name for one in optuna_storage.read(given, without=["a"])] == ["b"]
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == [path.name]
    with pytest.raises(ConfigError, match=r"unknown study of .*past studies.db 'c'\. Valid: a, b"):
        optuna_storage.read(given, only=["c"])
    with pytest.raises(ConfigError, match="--only and --without leave no study; it has "):
        optuna_storage.read(given, only=["a"], without=["a"])


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        (None, "{}", "cannot read it (No such file or directory); check the path of the storage"),
        (None, "sqlite:///{}", "cannot read it (No such file or directory)"),
        ("sqlite", "{}", "an SQLite file, but no storage of Optuna (tables: runs); give the file that was named in"),
        (b"SQLite format 3\0" + b"x" * 200, "{}", "cannot be read as SQLite ("),
        (b"study,rate,error\na,1,2\n", "{}", "row 1 is no entry of an Optuna journal; give an SQLite file, a journal"),
        (b'{"op_code": 0}\n{"op"\n', "{}", "row 2 is no entry of an Optuna journal"),
        (b'{"op_code": 77, "worker_id": "x"}\n', "{}", "Optuna cannot read it ("),
        (b"", "{}", "no study in this storage; check that it is the right one"),
        (b"study,rate\n", "sqlite:///{}", "no SQLite file; give the path alone if it is a journal of Optuna"),
    ],
)
def test_a_file_that_is_no_storage_is_refused_and_left_alone(tmp_path, content, given, message):
    path = tmp_path / "past.db"
    if content == "sqlite":
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE runs (id)")
        database.close()
    elif content is not None:
        path.write_bytes(content)
    before = path.read_bytes() if content else None
    with pytest.raises(DataError) as error:
        optuna_storage.read(given.format(path))
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value) and "\n" not in str(error.value)
    assert (path.read_bytes() if path.exists() and content else None) == before


def test_a_storage_of_another_version_and_a_database_that_is_not_there(tmp_path):
    path = tmp_path / "past.db"
    past(f"sqlite:///{path}")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = 'v2.4.0.a'")
    database.close()
    with pytest.raises(DataError, match=r"past\.db: Optuna cannot read it \(.*optuna storage upgrade"):
        optuna_storage.read(str(path))
    with pytest.raises(DataError) as error:
        optuna_storage.read("nosuch+driver://me:secret@host/past")
    assert "nosuch+driver://me:***@host/past: Optuna cannot read it" in str(error.value)
    assert "secret" not in str(error.value)
    with pytest.raises(ConfigError, match="not the URL of a database; write e"):
        optuna_storage.read("://")


def test_every_url_of_sqlite_names_a_file(tmp_path):
    """Which SQLAlchemy would make if it is not there."""
    path = tmp_path / "past.db"
    given = f"sqlite+pysqlite:///{path}"
    with pytest.raises(
        DataError, match=r"past\.db: cannot read it \(No such file or directory\); check the path of the"
    ):
        optuna_storage.read(given)
    assert not list(tmp_path.iterdir())
    past(f"sqlite:///{path}")
    before = path.read_bytes()
    assert [one.name for one in optuna_storage.read(f"{given}?timeout=10")] == ["a"]
    assert optuna_storage.called(given) == str(path) and path.read_bytes() == before
    for lacking in ("sqlite://", "sqlite:///", "sqlite+pysqlite://"):
        with pytest.raises(
            ConfigError, match=r"storage: the URL of an SQLite database names its file; write e\.g\. sql"
        ):
            optuna_storage.read(lacking)


def test_several_objectives_are_refused(tmp_path):
    there = f"sqlite:///{tmp_path / 'past.db'}"
    past(there)
    past(there, "both", [], ["minimize", "maximize"])
    with pytest.raises(DataError) as error:
        optuna_storage.read(there)
    assert (
        "study 'both' has 2 objectives (minimize, maximize), and a prior is of one outcome; leave it out with "
        in str(error.value)
    )
    assert [one.name for one in optuna_storage.read(there, without=["both"])] == ["a"]


def test_without_optuna_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"needs Optuna, which is not installed; install the extra: pip install 'met"):
        optuna_storage.read("past.db")


def test_studies_become_a_history_and_a_space(storage, imported):
    past(storage, "a")
    past(storage, "b", [good(i) for i in range(3, 12)])
    made, space, read = imported(storage)
    fields = {field.name: field for field in space.fields}
    assert list(fields) == ["rate", "layers", "kind", "momentum"] and space.name == "own"
    assert (fields["rate"].low, fields["rate"].high, fields["rate"].log) == (1e-5, 0.1, True)
    assert (fields["layers"].low, fields["layers"].high, fields["layers"].kind) == (1, 6, "int")
    assert fields["kind"].choices == ("sgd", "adam") and not fields["momentum"].log
    assert (fields["momentum"].parent, fields["momentum"].needs) == ("kind", ("sgd",))
    assert space.ignore == ("trial", "state") and not space.maximise and space.outcome == "value"
    assert [len(task.y) for task in read.tasks.values()] == [8, 9]
    assert (read.tasks["a"].metric == [0.1 + 0.01 * i for i in range(8)]).all()
    assert [(one["read"], one["used"], one["failed"]) for one in made.accounts] == [(8, 8, 0), (9, 9, 0)]


def test_every_state_is_used_or_told(storage, imported):
    states = [
        *(good(i) for i in range(4)),
        trial(None, TrialState.FAIL, rate=0.01, layers=2, kind="adam"),
        trial(None, TrialState.FAIL, rate=0.01),
        trial(None, TrialState.PRUNED, rate=0.02, layers=2, kind="adam"),
        trial(0.3, TrialState.PRUNED, rate=0.02, layers=2, kind="sgd"),
        trial(None, TrialState.RUNNING, rate=0.01),
        trial(None, TrialState.WAITING),
        trial(float("inf"), rate=0.03, layers=2, kind="adam"),
    ]
    past(storage, "a", states)
    made, _, read = imported(storage, pruned="failed")
    told = account(made, "a")
    assert (told["read"], told["used"], told["failed"]) == (11, 7, 3) and told["notes"] == ["1 pruned count as failed"]
    assert account(imported(storage)[0], "a")["notes"] == ["1 pruned count as failed"]  # which reported no value
    assert {one["reason"]: one["rows"] for one in told["dropped"]} == {
        "ended before it had layers": [5], "ended before it had momentum": [7],
        "still running": [8], "waiting to be run": [9],
    }  # fmt: skip
    assert [row[1] for row in made.rows if row[-1] == "failed"] == ["4", "6", "10"]
    assert read.accounts[0]["failed"] == 3
    dropped, _, _ = imported(storage, pruned="drop")
    assert {"pruned"} <= {one["reason"] for one in account(dropped, "a")["dropped"]}
    assert account(dropped, "a")["used"] == 6


@pytest.mark.parametrize(
    ("direction", "values", "counts"),
    [
        ("minimize", {1: 0.9, 3: 0.5}, 0.5),
        ("minimize", {2: 0.01}, 0.115),  # better than the finished ones' median after a few steps
        ("maximize", {2: 0.01}, 0.01),
        ("maximize", {2: 0.9}, 0.115),
        ("minimize", {0: float("nan")}, None),
        ("minimize", {}, None),
    ],
)
def test_a_pruned_trial_is_a_partial_result(storage, imported, direction, values, counts):
    params = {"rate": 0.02, "layers": 2, "kind": "adam"}
    ranges = {name: RANGES[name] for name in params}
    pruned = create_trial(state=TrialState.PRUNED, params=params, distributions=ranges, intermediate_values=values)
    past(storage, "a", [*(good(i) for i in range(4)), pruned], direction)
    made, _, _ = imported(storage)
    assert made.rows[-1][-1] == ("failed" if counts is None else repr(counts))
    said = "1 pruned count as failed" if counts is None else "1 pruned count with their last value"
    assert account(made, "a")["notes"][0].startswith(said)


def test_a_study_of_another_sign_and_scale_is_told(storage, imported):
    """Accuracies in per cent among errors below 1: flipped, they are around -90."""
    for name in "ab":
        past(storage, name)
    past(storage, "c", [trial(80.0 + i, rate=0.01, layers=2, kind="adam") for i in range(8)], "maximize")
    made, _, _ = imported(storage)
    (remark,) = [one for one in made.remarks if "another quantity" in one]
    assert "study 'c' lie around -83.5" in remark and "--without 'c'" in remark and "scale_by" in remark
    past(storage, "d")
    assert len([one for one in imported(storage, goal="minimise")[0].remarks if "'d'" in one]) == 0


def test_directions_that_differ_are_flipped_and_told(storage, imported):
    for name, direction in (("a", "minimize"), ("b", "minimize"), ("c", "maximize")):
        past(storage, name, direction=direction)
    made, space, read = imported(storage)
    assert not space.maximise and space.studies["c"].flipped and set(space.studies) == {"c"}
    assert account(made, "c")["notes"] == ["goal maximise: its sign is flipped"]
    assert (read.tasks["c"].metric == -read.tasks["a"].metric).all()
    assert "2 of 3 studies minimise it; the sign of the others is flipped" in draft.text(made.draft)
    _, space, _ = imported(storage, goal="maximise")
    assert space.maximise and set(space.studies) == {"a", "b"}


def test_as_many_of_each_direction_are_not_decided(storage, imported):
    past(storage, "a")
    past(storage, "b", direction="maximize")
    with pytest.raises(ConfigError, match="1 studies minimise and as many maximise; say which is today's with --goal "):
        imported(storage)
    assert imported(storage, goal="minimise")[1].studies["b"].flipped


def kinds(storage, imported, *distributions):
    """Import one study for each distribution of a parameter, whose values are its ends."""
    for number, one in enumerate(distributions):
        ends = one.choices if isinstance(one, CategoricalDistribution) else (one.low, one.high)
        values = [ends[i % len(ends)] for i in range(6)]
        trials = [
            trial(0.1 * i, ranges={"p": one, "q": MOMENTUM}, p=value, q=0.1 * i) for i, value in enumerate(values)
        ]
        past(storage, f"s{number}", trials)
    return imported(storage)


@pytest.mark.parametrize(
    ("distributions", "entry", "note"),
    [
        ([RATE, FloatDistribution(1e-4, 1.0, log=True)],
         {"type": "float", "low": 1e-5, "high": 1.0, "scale": "log"},
         "bounds of all studies together; 's0' had 1e-05 to 0.1, 's1' had 0.0001 to 1"),
        ([FloatDistribution(0.0, 1.0), FloatDistribution(1e-3, 1.0, log=True)],
         {"type": "float", "low": 0.0, "high": 1.0}, "check: linear, for some studies have a log scale and others not"),
        ([FloatDistribution(0.1, 1.0), FloatDistribution(0.1, 1.0, log=True)],
         {"type": "float", "low": 0.1, "high": 1.0, "scale": "log"}, "check: log, for some studies have a log scale"),
        ([IntDistribution(1, 1024, log=True)], {"type": "int", "low": 1, "high": 1024, "scale": "log"}, ""),
        ([IntDistribution(1, 4), FloatDistribution(0.5, 4.0)], {"type": "float", "low": 0.5, "high": 4.0},
         "check: float, for some studies have whole numbers and others not"),
        ([IntDistribution(16, 64, step=16)], {"type": "ordinal", "choices": [16, 32, 48, 64]}, "the steps as choices"),
        ([FloatDistribution(0.1, 0.7, step=0.2)], {"type": "ordinal", "choices": [0.1, 0.3, 0.5, 0.7]}, "the steps as"),
        ([FloatDistribution(0.0, 1.0, step=0.01)], {"type": "float", "low": 0.0, "high": 1.0},
         "check: its steps are left out, it may take values between them"),
        ([IntDistribution(2, 8, step=2), IntDistribution(1, 9)], {"type": "int", "low": 1, "high": 9}, "its steps are"),
        ([CategoricalDistribution((64, 16, 32))], {"type": "ordinal", "choices": [16, 32, 64]},
         "check: ordinal, for the choices are numbers"),
        ([CategoricalDistribution((True, False))], {"type": "categorical", "choices": [True, False]}, ""),
        ([CategoricalDistribution(("a", None)), CategoricalDistribution(("b", "a"))],
         {"type": "categorical", "choices": ["a", "None", "b"]}, "None is the text 'None' here"),
        ([CategoricalDistribution(("1e-3", "no", " x  y "))],
         {"type": "categorical", "choices": ["1e-3", "no", "x y"]}, ""),
    ],
)  # fmt: skip
def test_distributions_become_parameters(storage, imported, distributions, entry, note):
    made, space, read = kinds(storage, imported, *distributions)
    found = next(one for one in made.draft.parameters if one.name == "p")
    assert found.entry == entry and note in "; ".join(found.notes)
    assert space.source["parameters"]["p"] == entry  # as the file has it
    assert [len(task.y) for task in read.tasks.values()] == [6] * len(distributions)


def test_values_on_a_grid_are_written_as_its_choices(storage, imported):
    grid = FloatDistribution(0.1, 0.9, step=0.1)
    values = [0.1 + i * 0.1 for i in range(9)]
    assert 0.30000000000000004 in values
    past(storage, "a", [trial(v, ranges={"p": grid}, p=v) for v in values])
    made, _, read = imported(storage)
    assert [row[2] for row in made.rows] == ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]
    assert len(read.tasks["a"].y) == 9


@pytest.mark.parametrize(
    ("distribution", "values", "cells"),
    [
        (CategoricalDistribution((1e-14, 1e-13, 1e-12)), (1e-14, 1e-13, 1e-12), ["1e-14", "1e-13", "1e-12"]),
        (CategoricalDistribution((0.0, 1e-12, 1e-6)), (0.0, 1e-12, 1e-6), ["0.0", "1e-12", "1e-06"]),
        (CategoricalDistribution((1.0, 1.0 + 1e-12)), (1.0, 1.0 + 1e-12), ["1.0", "1.000000000001"]),
        (FloatDistribution(1e-13, 5e-13, step=1e-13), (1e-13, 3e-13, 5e-13), ["1e-13", "3e-13", "5e-13"]),
        (FloatDistribution(0.1, 0.9, step=0.1), (0.1 + 2 * 0.1, 0.1 + 0.1 * 7), ["0.3", "0.8"]),
    ],
)  # fmt: skip
def test_each_choice_has_its_own_cell_however_small(storage, imported, distribution, values, cells):
    past(storage, trials=[trial(0.1 * i, ranges={"p": distribution}, p=value) for i, value in enumerate(values)])
    made, space, read = imported(storage)
    assert [row[2] for row in made.rows] == cells
    assert {float(cell) for cell in cells} <= set(space.fields[0].choices)
    assert len(read.tasks["a"].y) == len(values)


def test_a_value_between_the_choices_is_none_of_them():
    entry = {"type": "ordinal", "choices": [0.1, 0.2, 0.3]}
    assert [ranges.cell(value, entry) for value in (0.1 + 2 * 0.1, 0.2000001, 0.25)] == ["0.3", "0.2000001", "0.25"]
    far = {"type": "ordinal", "choices": [-1e6, -999999.999, -999999.998]}
    assert ranges.cell(-1e6 + 2 * 0.001 + 3e-10, far) == "-999999.998"  # digits of numbers of that size


def test_grids_that_differ_by_rounding_are_one(storage, imported):
    with pytest.warns(UserWarning, match="not divisible by `step`"):
        second = FloatDistribution(0.1 + 2 * 0.1, 0.7, step=0.1)
    _, space, read = kinds(storage, imported, FloatDistribution(0.1, 0.6, step=0.1), second)
    assert space.fields[0].choices == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6) and len(read.tasks) == 2


def test_numbers_of_one_value_are_one_choice(storage, imported):
    made, space, read = kinds(
        storage, imported, CategoricalDistribution((16, 32)), CategoricalDistribution((16.0, 32.0, 48.5))
    )
    assert space.source["parameters"]["p"] == {"type": "ordinal", "choices": [16, 32, 48.5]}
    assert "choices of all studies together; 's0' had 16, 32" in draft.text(made.draft)
    assert [[row[2] for row in made.rows][i] for i in (0, 1, 6, 7, 8)] == ["16", "32", "16", "32", "48.5"]
    assert len(read.tasks) == 2


def test_no_cell_of_the_history_is_a_formula(storage, imported):
    ranges = {"p": CategoricalDistribution(("=1+1", "-x")), "q": MOMENTUM}
    trials = [trial(0.1 * i, ranges=ranges, p=["=1+1", "-x"][i % 2], q=0.1 * i) for i in range(4)]
    past(storage, "@study", trials, direction="maximize")  # which space.yaml names
    past(storage, '"@other"', trials)
    past(storage, "third", trials)
    made, _, read = imported(storage)
    cells = [cell for row in csv.reader(io.StringIO(made.csv)) for cell in row]
    assert '"@study"' in cells and not [cell for cell in cells if cell[:1] in "=@" and cell]
    assert {"@study", '"@other"', "third"} == set(read.tasks) and len(read.tasks["@study"].y) == 4


def test_texts_that_a_table_confuses_are_written_in_quotes(storage, imported):
    made, space, read = kinds(storage, imported, CategoricalDistribution(('"64"', "64", "none")))
    assert [row[2] for row in made.rows][:3] == [r'"\"64\""', "64", "none"]
    (task,) = read.tasks.values()
    field = next(one for one in space.fields if one.name == "p")
    assert [field.parse(row[2]) for row in made.rows] == ['"64"', "64", "none"] * 2 and len(task.y) == 6


@pytest.mark.parametrize(
    ("distributions", "message"),
    [
        ([KIND, LAYERS], "past.db: parameter 'p' has choices in study 's0' and bounds in study 's1', so it is not one"),
        (
            [CategoricalDistribution((1, "1"))],
            "past.db: parameter 'p' has the choices 1 and '1', which are alike in a ",
        ),
        ([CategoricalDistribution((True, "True"))], "has the choices True and 'True', which are alike in a CSV file"),
        ([CategoricalDistribution((None, "None"))], "None and 'None', which are alike in a CSV file; leave study 's0'"),
        ([CategoricalDistribution(("a", " x")), CategoricalDistribution(("a", "x"))],
         "has the choices ' x' and 'x', which are alike in a CSV file; import the studies apart, with --only"),
    ],
)  # fmt: skip
def test_distributions_that_do_not_go_together(storage, imported, distributions, message):
    with pytest.raises(DataError) as error:
        kinds(storage, imported, *distributions)
    assert message in str(error.value)


def test_what_never_changes_is_left_out_and_told(storage, imported):
    made, space, _ = kinds(storage, imported, FloatDistribution(2.0, 2.0))
    assert [field.name for field in space.fields] == ["q"]
    assert made.remarks == ["past.db: parameter 'p' is always 2, so it is left out"]


def test_a_parameter_that_a_study_did_not_tune_needs_a_default(storage, imported, tmp_path):
    past(storage, "a")
    past(storage, "b", [trial(0.1 * i, rate=10.0 ** -(1 + i), kind="adam") for i in range(1, 4)])
    made, _, _ = imported(storage, readable=False)
    text = draft.text(made.draft)
    assert "layers: {type: int, low: 1, high: 6}  # check: not tuned in 'b': add default: with the value" in text
    with pytest.raises(DataError, match=r"rows 10, 11, 12, field 'layers' has no value in all of study 'b'; write the"):
        read_all([tmp_path / "history.csv"], [tmp_path / "space.yaml"])
    space = tmp_path / "space.yaml"
    space.write_text(text.replace("{type: int, low: 1, high: 6}", "{type: int, low: 1, high: 6, default: 2}"))
    assert "layers not tuned, taken as 2" in read_all([tmp_path / "history.csv"], [space])[0].accounts[1]["notes"]


def test_two_parameters_that_explain_a_gap_are_both_named(storage, imported):
    other = CategoricalDistribution(("x", "y"))
    ranges = {**RANGES, "other": other}
    trials = []
    for i in range(6):
        one = {"rate": 0.01 * (1 + i), "kind": ("sgd", "adam")[i % 2], "other": ("x", "y")[i % 2]}
        trials.append(trial(0.1 * i, ranges=ranges, **one, **({} if i % 2 else {"momentum": 0.1})))
    past(storage, "a", trials)
    made, _, _ = imported(storage)
    assert "when: {kind: sgd}}  # check: has a value exactly there (so would other)" in draft.text(made.draft)


def test_columns_get_names_that_no_parameter_has(storage, imported):
    ranges = {"study": LAYERS, "value": RATE, "trial": MOMENTUM}
    given = [{"study": 1 + i, "value": 0.01 + i / 99, "trial": 0.1 * i} for i in range(5)]
    past(storage, "a", [create_trial(value=0.1 * i, params=p, distributions=ranges) for i, p in enumerate(given)])
    _, space, read = imported(storage)
    assert (space.study, space.outcome, space.ignore) == ("study_", "value_", ("trial_", "state"))
    assert len(read.tasks["a"].y) == 5


def test_a_storage_without_a_finished_trial(storage, imported):
    past(storage, "a", [trial(None, TrialState.RUNNING, rate=0.01)])
    with pytest.raises(DataError, match=r"past\.db: no study has a finished trial with parameters"):
        imported(storage)
    past(storage, "b", direction="maximize")
    made, space, _ = imported(storage, goal="maximise")
    assert not space.studies and account(made, "a")["used"] == 0


def test_json_of_a_record_keeps_the_accounts(storage, imported):
    past(storage, "a")
    _, _, read = imported(storage)
    assert json.loads(json.dumps(read.accounts)) == read.accounts


def constrained(i, **values):
    """A good trial with these values of constraints."""
    one = good(i)
    return create_trial(value=one.value, params=one.params, distributions=one.distributions, constraints=values)


class TestConstraints:
    def test_values_become_columns_that_break_above_0(self, imported, storage):
        """However good its outcome, a trial that broke one is no better than one that failed."""
        trials = [constrained(i, memory=-1.0, layers=0.0) for i in range(1, 8)]
        best = constrained(0, memory=0.5, layers=-2.0)
        past(storage, trials=[best, *trials])
        past(storage, "b")
        made, space, _ = imported(storage, readable=False)
        assert [(one.name, one.said) for one in space.constraints] == [
            ("memory", "at most 0"),
            ("layers_", "at most 0"),
        ]
        assert made.rows[0][-4:-2] == ["0.5", "-2.0"] and made.rows[-1][-4:-2] == ["", ""]
        assert "check: not recorded in 'b': add unrecorded: met, or drop" in draft.text(made.draft)

    def test_what_is_learned_is_as_if_they_had_failed(self, imported, storage):
        past(storage, trials=[constrained(i, memory=1.0 if i < 3 else -1.0) for i in range(8)])
        _, _, learned = imported(storage)
        (task,) = learned.tasks.values()
        assert task.metric.min() == pytest.approx(0.13) and (task.metric[:3] == task.metric.max()).all()
        notes = [note for one in learned.accounts for note in one["notes"]]
        assert "3 broke memory (at most 0) and count as failed" in notes

    def test_numbers_of_a_constraints_func_and_infinite_values(self, imported, storage):
        past(storage, trials=[good(i, stored={"constraints": (float("inf") if i == 2 else -1.0,)}) for i in range(6)])
        made, space, learned = imported(storage)
        assert [one.name for one in space.constraints] == ["constraint_0"] and made.rows[2][-3] == "1e+300"
        assert any("row 4 breaks 'constraint_0'" in remark for remark in learned.remarks)

    def test_a_pruned_trial_without_a_value_is_told(self, imported, storage):
        half = create_trial(
            state=TrialState.PRUNED, params=good(1).params, distributions=good(1).distributions,
            intermediate_values={1: 0.4},
        )  # fmt: skip
        past(storage, trials=[*(constrained(i, memory=-1.0) for i in range(6)), half])
        made, _, learned = imported(storage)
        assert made.rows[-1][-3] == "0.0" and sum(len(task.y) for task in learned.tasks.values()) == 7
        assert "1 pruned without a value of a constraint, taken as met" in account(made, "a")["notes"]


def test_studies_with_fewer_choices_are_named(imported, storage):
    """As those with other bounds are; trials with a choice that others did not have are used."""
    wide = CategoricalDistribution(("sgd", "adam", "lbfgs"))
    for name, choices in (("a", KIND), ("b", wide), ("c", CategoricalDistribution(("adam", "sgd")))):
        ranges = {"rate": RATE, "kind": choices}
        trials = [trial(0.1 + 0.01 * i, ranges=ranges, rate=10.0 ** -(2 + i % 3), kind=choices.choices[i % 2])
                  for i in range(6)]  # fmt: skip
        past(storage, name, trials=trials)
    made, space, learned = imported(storage)
    assert space.fields[1].choices == ("sgd", "adam", "lbfgs") and len(learned.tasks) == 3
    said = "check: choices of all studies together; 'a' had adam, sgd, 'c' had adam, sgd"
    assert said in draft.text(made.draft)
