"""Constraints of the study that is tuned: an infeasible trial is never the best, and attracts as a failed one does."""

import csv
import json
import shutil

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metabo import cli
from metabo.errors import DataError
from metabo.tuner import store
from metabo.tuner.ledger import Ledger
from metabo.tuner.listing import listed
from metabo.tuner.page.facts import facts_of
from metabo.tuner.page.html import page
from metabo.tuner.study import Study, pretrain
from tests.tuner.conftest import HEADER, SPACE, rows, trials_of, write
from tests.tuner.test_ledger import GOOD

BOUNDS = {"memory_gb": {"at_most": 8}, "accuracy": {"at_least": 0.5, "at_most": 1.0, "unrecorded": "met"}}
MET = {"memory_gb": 6.0, "accuracy": 0.9}
WITH = [*HEADER[1:-1], "memory_gb", "accuracy", "error"]


def described(constraints):
    return yaml.safe_load(SPACE) | ({"constraints": constraints} if constraints else {})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a prior of the default, of a space with two constraints, one of which no past study recorded."""
    place = tmp_path_factory.mktemp("constrained")
    (place / "space.yaml").write_text(yaml.safe_dump(described(BOUNDS), sort_keys=False))
    table = [[*row[:-1], "9" if i % 7 == 0 else "6", row[-1]] for i, row in enumerate(rows())]
    history = write(place / "history.csv", [*HEADER[:-1], "memory_gb", "error"], table)
    return pretrain(history, place / "space.yaml", place / "prior").folder


@pytest.fixture
def study(made, tmp_path):
    return Study(shutil.copytree(made, tmp_path / "study"))


def test_what_the_past_broke_is_in_the_record(study):
    notes = {one["study"]: one["notes"] for one in study.record["past"][0]["accounts"]}
    assert all("accuracy not recorded, taken as met" in one for one in notes.values())
    assert any(note.endswith("broke memory_gb (at most 8) and count as failed") for note in notes["d3"])


class TestTelling:
    def test_the_values_are_kept_and_the_best_is_feasible(self, study):
        study.tell(GOOD, 0.01, constraints=MET | {"memory_gb": 8.5})
        assert study.best is None
        told = study.tell(GOOD | {"layers": 4}, 0.3, constraints=MET)
        assert (told["state"], told["outcome"], told["constraints"]) == ("done", 0.3, MET)
        study.tell_all([(GOOD | {"layers": 5}, 0.2, {"memory_gb": 8, "accuracy": 1}), (GOOD | {"layers": 6}, None)])
        assert study.best["outcome"] == 0.2  # ends are inside
        assert [study.broken(one) for one in study.trials] == [["memory_gb"], [], [], []]
        assert [one.get("constraints") for one in Ledger(study.folder).trials] == [
            {"memory_gb": 8.5, "accuracy": 0.9}, MET, {"memory_gb": 8.0, "accuracy": 1.0}, None,
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (None, "constraint 'memory_gb' has no value; tell it with the outcome (constraints={'memory_gb': ...}, "),
            ({"memory_gb": 6.0}, "constraint 'accuracy' has no value; tell it with the outcome"),
            (MET | {"memory_gb": None}, "constraint 'memory_gb' has no value"),
            (MET | {"memory_gb": float("nan")}, "constraint 'memory_gb': nan is no finite number; tell one, or that"),
            (MET | {"memory_gb": float("inf")}, "constraint 'memory_gb': inf is no finite number"),
            (MET | {"memory_gb": "much"}, "constraint 'memory_gb': 'much' is no finite number"),
            (MET | {"memory_gb": True}, "constraint 'memory_gb': True is no finite number"),
            (MET | {"memory": 6.0}, "unknown constraint 'memory'. Did you mean 'memory_gb'? Constraints: memory_gb"),
            ([6.0, 0.9], "constraints [6.0, 0.9] is no dict; tell a dict of the constraints' names and values"),
        ],
    )  # fmt: skip
    def test_a_value_that_is_not_there_is_one_line(self, study, given, message):
        with pytest.raises(DataError) as error:
            study.tell(GOOD, 0.1, constraints=given)
        assert message in str(error.value) and "\n" not in str(error.value)
        with pytest.raises(DataError, match=r"^result 2: "):
            study.tell_all([(GOOD, 0.1, MET), (GOOD | {"layers": 1}, 0.1, given)])
        assert study.trials == []

    def test_a_space_without_constraints_takes_none(self, plain):
        with pytest.raises(DataError, match=r"unknown constraint 'memory_gb'. The space has none"):
            Ledger(plain).tell(GOOD, 0.1, constraints=MET)
        Ledger(plain).tell(GOOD, 0.1)
        (kept,) = trials_of(plain / "trials" / "study.json")
        assert set(kept) == {"number", "parameters", "state", "outcome"}  # as it was written before

    def test_other_values_are_a_repeat_unless_they_correct(self, study):
        for memory in (6.0, 6.0, 9.0):
            study.tell(GOOD, 0.1, constraints=MET | {"memory_gb": memory})
        assert [one["constraints"]["memory_gb"] for one in study.trials] == [6.0, 9.0]
        study.tell(GOOD, 0.1, correct=True, constraints=MET | {"memory_gb": 7.0})
        assert [one["constraints"]["memory_gb"] for one in study.trials] == [7.0]

    def test_a_correction_keeps_the_values_of_a_constraint_that_is_no_more(self, study, tmp_path):
        """They cannot be told again, and the constraint may come back."""
        study.tell(GOOD, 0.1, constraints=MET)
        study.tell(GOOD | {"layers": 4}, 0.3, constraints=MET)
        study.tell(GOOD | {"layers": 4}, 0.3, constraints=MET | {"memory_gb": 7.0})
        only = {name: bound for name, bound in BOUNDS.items() if name == "accuracy"}
        (tmp_path / "space.yaml").write_text(yaml.safe_dump(described(only), sort_keys=False))
        write(tmp_path / "history.csv", HEADER, rows())
        fewer = pretrain(tmp_path / "history.csv", tmp_path / "space.yaml", study.folder, method="stboh")
        fewer.tell(GOOD, 0.2, correct=True, constraints={"accuracy": 0.95})
        fewer.tell(GOOD | {"layers": 4}, 0.4, correct=True, constraints={"accuracy": 0.95})
        assert [(one["outcome"], one["constraints"]) for one in Study(study.folder).trials] == [
            (0.2, MET | {"accuracy": 0.95}),
            (0.4, {"accuracy": 0.95}),  # two outcomes had two values of memory: neither is that of the new one
        ]
        fewer.tell(GOOD, None, correct=True)
        assert "constraints" not in Study(study.folder).trials[0]

    def test_a_claim_ends_with_its_values(self, study):
        (one,) = study.suggest(claim=True)
        study.tell(one.configuration, 0.2, constraints=MET)
        assert [(one["state"], one["constraints"]) for one in study.trials] == [("done", MET)]


CONFIGURATIONS = [
    GOOD | {"layers": layers, "batch": batch, "momentum": None} for layers in range(1, 7) for batch in (16, 64)
]
RESULT = st.tuples(
    st.one_of(st.none(), st.floats(0.01, 10.0)),
    st.sampled_from([1.0, 8.0, 8.1, 90.0]),
    st.sampled_from([0.2, 0.5, 1.0]),
)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(RESULT, min_size=1, max_size=len(CONFIGURATIONS)))
def test_infeasible_trials_are_to_the_tuner_what_failed_ones_are(made, tmp_path_factory, results):
    """The best is the best of the feasible ones, and what suggestions and the page are made from is as if they had
    failed, however good their outcomes are."""
    one, other = (Study(shutil.copytree(made, tmp_path_factory.mktemp("s") / "study")) for _ in range(2))
    feasible = [m <= 8 and a >= 0.5 for _, m, a in results]
    told = list(zip(CONFIGURATIONS, results, strict=False))
    one.tell_all([(c, y, {"memory_gb": m, "accuracy": a}) for c, (y, m, a) in told])
    kept = [y if good else None for (_, (y, _, _)), good in zip(told, feasible, strict=True)]
    other.tell_all([(c, y, MET) for (c, _), y in zip(told, kept, strict=True)])
    outcomes = [y for y in kept if y is not None]
    assert (one.best["outcome"] if one.best else None) == min(outcomes, default=None)
    seen, same = one._told(one.trials), other._told(other.trials)
    assert (seen.done, seen.running) == (same.done, same.running)
    np.testing.assert_array_equal(seen.outcomes, same.outcomes)


def test_neither_the_suggestion_nor_the_page_sees_their_outcomes(made, tmp_path):
    one, other = (Study(shutil.copytree(made, tmp_path / name)) for name in ("one", "other"))
    for place, c in enumerate(CONFIGURATIONS[:8]):
        infeasible = place in (1, 2, 5)
        one.tell(
            c, 0.01 if infeasible else 0.1 * (1 + place), constraints=MET | {"memory_gb": 9.0 if infeasible else 1.0}
        )
        other.tell(c, None if infeasible else 0.1 * (1 + place), constraints=MET)
    assert one.suggest(2) == other.suggest(2)
    assert facts_of(one.prior, one.trials) == facts_of(other.prior, other.trials)
    free = Study(shutil.copytree(made, tmp_path / "free"))
    free.tell_all([(one["parameters"], one["outcome"], MET) for one in one.trials])
    assert free.suggest(2) != one.suggest(2)  # if they counted, they would be seen


GRID = {"name": "grid", "study": "study", "outcome": {"column": "y", "goal": "minimise"},
        "parameters": {name: {"type": "int", "low": 0, "high": 7} for name in ("a", "b")}}  # fmt: skip
PLACES = [{"a": a, "b": b} for a in range(8) for b in range(8)]
BUDGET = 20
"""Of 64 configurations: a random search finds the best one with probability 0.31."""


def loss(c, at=(6.2, 5.9)):
    return (c["a"] - at[0]) ** 2 + 1.3 * (c["b"] - at[1]) ** 2


@pytest.mark.parametrize("seed", [6, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (7, 8))])
@pytest.mark.parametrize("bound", [None, 5])
def test_the_search_goes_to_the_best_configuration_that_is_feasible(tmp_path, seed, bound):
    """a + b is at most 5, or at most anything: the best of all is (6, 6), that of the feasible ones (2, 3)."""
    constraint = {"constraints": {"size": {"at_most": bound}}} if bound else {}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(GRID | constraint, sort_keys=False))
    rng, table = np.random.default_rng(seed), []
    for number in range(4):
        at = 6.2 + rng.normal(scale=0.5), 5.9 + rng.normal(scale=0.5)
        for place in rng.choice(64, size=15, replace=False):
            c = PLACES[place]
            table.append([f"s{number}", c["a"], c["b"], *([c["a"] + c["b"]] if bound else []), loss(c, at)])
    header = ["study", "a", "b", *(["size"] if bound else []), "y"]
    study = pretrain(write(tmp_path / "h.csv", header, table), tmp_path / "grid.yaml", tmp_path / "to")
    for _ in range(BUDGET):
        (found,) = study.suggest(seed=seed)
        c = found.configuration
        study.tell(c, loss(c), constraints={"size": c["a"] + c["b"]} if bound else None)
    allowed = [c for c in PLACES if bound is None or c["a"] + c["b"] <= bound]
    best = min(allowed, key=loss)
    assert best == ({"a": 6, "b": 6} if bound is None else {"a": 2, "b": 3})
    assert study.best["parameters"] == best


class TestCommands:
    @pytest.fixture
    def metabo(self, capsys):
        def call(*arguments):
            cli.main([str(argument) for argument in arguments])
            return capsys.readouterr()

        return call

    def test_a_table_goes_out_and_comes_back(self, metabo, study, tmp_path):
        table = list(csv.reader(metabo("suggest", study.folder, "--count", 3)[0].splitlines()))
        assert table[0] == WITH and all(row[-3:] == ["", "", ""] for row in table[1:])
        ends = (["9.5", "0.4", "0.05"], ["6", "1", "0.2"], ["", "", "failed"])
        filled = [[*row[:-3], *end] for row, end in zip(table[1:], ends, strict=True)]
        out, _ = metabo("tell", study.folder, write(tmp_path / "todo.csv", table[0], filled))
        assert out.startswith(
            "told 3; study 'study' has 3 finished trials; 1 infeasible: 1 memory_gb (at most 8), "
            "1 accuracy (at least 0.5 and at most 1)\nbest error: 0.2 at "
        )
        head, *lines = metabo("trials", study.folder)[0].splitlines()
        assert head.endswith("3 trials (0 running, 2 done, 1 failed); 1 infeasible: 1 memory_gb (at most 8), "
                             "1 accuracy (at least 0.5 and at most 1)")  # fmt: skip
        assert "0.05, breaks memory_gb (9.5), breaks accuracy (0.4)" in lines[0] and "breaks" not in lines[1] + lines[2]
        assert [line.split()[0] for line in listed(study, "infeasible")[1:]] == ["0"]
        copied = tmp_path / "copied.csv"
        copied.write_text(metabo("trials", study.folder, "--csv")[0])
        metabo("tell", study.folder, copied, "--study", "copy")
        assert Ledger(study.folder, "copy").trials == study.trials
        assert metabo("trials", study.folder, "--csv", "--state", "infeasible")[0].splitlines()[1:] == [
            copied.read_text().splitlines()[1]
        ]
        assert metabo("trials", study.folder, "--state", "infeasible")[0].splitlines() == listed(study, "infeasible")
        assert [one["outcome"] for one in study.trials] == [0.05, 0.2, None]

    def test_one_configuration(self, metabo, study, capsys):
        one = ["tell", study.folder, "--parameters", json.dumps(GOOD), "--outcome", 0.1]
        assert "told 1" in metabo(*one, "--constraints", json.dumps(MET))[0]
        for wrong, said in (
            ([], "constraint 'memory_gb' has no value"),
            (["--constraints", "{"], "--constraints: not JSON"),
            (["--constraints", "[1]"], "--constraints: must be a JSON object"),
        ):
            with pytest.raises(SystemExit):
                cli.main([str(part) for part in [*one, *wrong]])
            shown = capsys.readouterr().err
            assert said in shown and shown.count("\n") == 1
        for alone in (["todo.csv"], ["--parameters", "{}", "--failed"]):
            with pytest.raises(SystemExit):
                cli.main(["tell", str(study.folder), *alone, "--constraints", "{}"])
            assert "--constraints goes with --parameters and --outcome; in a CSV" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("cells", "said"),
        [
            (
                ["", "0.9", "0.1"],
                "field 'memory_gb' has no value; write a number, or 'failed' into 'error' if the trial",
            ),
            (["nan", "0.9", "0.1"], "field 'memory_gb' has no value"),
            (["6", "good", "0.1"], "field 'accuracy' is 'good', no finite number; write a number, or 'failed'"),
            (["6", "inf", "0.1"], "field 'accuracy' is 'inf', no finite number"),
        ],
    )
    def test_a_row_without_a_value_stops_the_file(self, study, tmp_path, capsys, cells, said):
        path = write(tmp_path / "todo.csv", WITH, [["0.01", "3", "32", "adam", "", "6", "0.9", "0.1"],
                                                   ["0.01", "4", "32", "adam", "", *cells]])  # fmt: skip
        with pytest.raises(SystemExit):
            cli.main(["tell", str(study.folder), str(path)])
        shown = capsys.readouterr().err
        assert f"{path}: row 3, {said}" in shown and shown.count("\n") == 1
        assert study.trials == []

    def test_a_column_that_is_missing(self, study, tmp_path):
        path = write(tmp_path / "todo.csv", [*HEADER[1:-1], "memory_gb", "error"], [])
        with pytest.raises(DataError, match="column 'accuracy' is missing"):
            study.tell_file(path)

    def test_a_spreadsheet_with_decimal_commas(self, study, tmp_path):
        path = tmp_path / "todo.csv"
        path.write_text(";".join(WITH) + "\n0,01;3;32;adam;;6,25;0,9;0,1\n")
        (told,) = study.tell_file(path)
        assert told["constraints"] == {"memory_gb": 6.25, "accuracy": 0.9}

    def test_the_page_says_who_broke_what(self, metabo, study):
        for layers, memory in ((1, 9.0), (2, 6.0), (3, 12.0)):
            study.tell(GOOD | {"layers": layers}, 0.1 * layers, constraints=MET | {"memory_gb": memory})
        metabo("show", study.folder)
        shown = (study.folder / "study.html").read_text()
        assert "; 2 infeasible: 2 memory_gb (at most 8)" in shown and "done, breaks memory_gb" in shown
        assert "<th class='n'>memory_gb</th><th class='n'>accuracy</th>" in shown and ">12</td>" in shown
        assert shown.count('class="out"') == 2 and "<b>0.2</b>" in shown
        assert "broke memory_gb (at most 8) and count as failed" in shown

    def test_the_page_of_a_study_without_a_feasible_trial(self, study):
        study.tell(GOOD, 0.1, constraints=MET | {"memory_gb": 9.0})
        trials, space = study.trials, study.description
        shown = page("s", study.record, space, trials, facts_of(study.prior, trials))
        assert "No feasible trial has an outcome yet." in shown and "class='best'" not in shown


class TestFolder:
    """The constraints of a folder with trials change when the prior is made again."""

    def again(self, study, place, constraints):
        (place / "space.yaml").write_text(yaml.safe_dump(described(constraints), sort_keys=False))
        table = [[*row[:-1], "6", "0.9", row[-1]] for row in rows()]
        history = write(place / "again.csv", [*HEADER[:-1], "memory_gb", "accuracy", "error"], table)
        if not constraints:
            history = write(place / "again.csv", HEADER, rows())
        return pretrain(history, place / "space.yaml", study.folder, steps=2)

    def test_trials_are_judged_by_the_bounds_of_today(self, study, tmp_path):
        for layers, memory in ((1, 7.0), (2, 5.0)):
            study.tell(GOOD | {"layers": layers}, 0.1 * layers, constraints=MET | {"memory_gb": memory})
        assert study.best["outcome"] == 0.1
        tighter = self.again(study, tmp_path, BOUNDS | {"memory_gb": {"at_most": 6}})
        assert tighter.best["outcome"] == 0.2 and tighter.broken(tighter.trials[0]) == ["memory_gb"]
        with pytest.raises(DataError, match="has another space than when the study was opened; open the study again"):
            study.tell(GOOD, 0.1, constraints=MET)  # it asks for what the folder no longer asks for

    def test_a_constraint_that_goes_leaves_its_values(self, study, tmp_path):
        study.tell(GOOD, 0.1, constraints=MET | {"memory_gb": 9.0})
        free = self.again(study, tmp_path, None)
        assert free.best["outcome"] == 0.1 and free.trials[0]["constraints"]["memory_gb"] == 9.0
        assert free.suggest() and listed(free)[0].endswith("1 trial (0 running, 1 done, 0 failed)")

    def test_the_same_outcome_told_again_without_a_constraint_that_went_is_the_same_trial(self, study, tmp_path):
        study.tell(GOOD, 0.1, constraints=MET | {"memory_gb": 9.0})
        free = self.again(study, tmp_path, None)
        for correct in (False, True):
            free.tell(GOOD, 0.1, correct=correct)
            assert len(free.trials) == 1
        assert len(free.tell_all([(GOOD, 0.2)])) == 1 and len(free.trials) == 2, "another outcome is a repeat"

    def test_a_constraint_that_told_trials_do_not_know_is_refused(self, study, tmp_path):
        study.tell(GOOD | {"layers": 1}, None)
        study.tell(GOOD, 0.1, constraints=MET)
        before = (study.folder / store.RECORD).read_bytes()
        history = write(
            tmp_path / "t.csv", [*HEADER[:-1], "time", "error"], [[*row[:-1], "6", row[-1]] for row in rows()]
        )
        (tmp_path / "space.yaml").write_text(yaml.safe_dump(described({"time": {"at_most": 9}}), sort_keys=False))
        with pytest.raises(DataError) as error:
            pretrain(history, tmp_path / "space.yaml", study.folder, steps=2)
        assert str(error.value) == (
            f"{study.folder / 'trials' / 'study.json'}: trial 1 has no value of 'time', and {tmp_path / 'space.yaml'} "
            "key 'constraints.time' asks for it; remove the constraint, or choose another folder and tell the trials "
            "there with their values"
        )
        assert (study.folder / store.RECORD).read_bytes() == before

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda one: one.pop("constraints"), "field 'constraints' is missing"),
            (lambda one: one["constraints"].pop("accuracy"), "field 'constraints.accuracy' is missing"),
            (
                lambda one: one["constraints"].update(memory_gb="6"),
                "field 'constraints.memory_gb' is '6', must be a number",
            ),
            (lambda one: one["constraints"].update(memory_gb=1e999), "'constraints.memory_gb' is inf, must be finite"),
            (
                lambda one: one.update(state="failed", outcome=None),
                "'constraints' is of a done trial, this one is failed",
            ),
        ],
    )
    def test_an_edited_file_is_refused_with_its_field(self, study, change, message):
        study.tell(GOOD, 0.1, constraints=MET)
        path = study.folder / "trials" / "study.json"
        (one,) = trials_of(path)
        change(one)
        path.write_text(json.dumps([one]))
        with pytest.raises(DataError) as error:
            _ = study.trials
        assert f"{path}: trial 0: " in str(error.value) and message in str(error.value)


def test_another_method_sees_failures_in_their_place(study):
    """Every method sees the trials through `_told`."""
    study.tell(GOOD, 0.01, constraints=MET | {"memory_gb": 9.0})
    study.tell(GOOD | {"layers": 1}, 0.3, constraints=MET)
    told = study._told(study.trials)
    np.testing.assert_array_equal(told.outcomes, [np.nan, 0.3])
