"""The folder of a study: ask and tell, several at once, what a kill leaves, and files that are not what they were."""

import json
import shutil
import threading
from math import nan
from pathlib import Path

import numpy as np
import pytest
import yaml

from metabo.errors import ConfigError, DataError
from metabo.tuner import store, study
from metabo.tuner.asking import Suggestion
from metabo.tuner.blend import past as blend
from metabo.tuner.ledger import Ledger, claim_of
from metabo.tuner.study import Study, pretrain
from metabo.tuner.trials import claimed
from tests.tuner.conftest import HEADER, SPACE, rows, unseal, write

GOOD = {"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"}


def test_suggest_changes_nothing_and_claim_does(folder):
    before = sorted(p.name for p in folder.rglob("*"))
    one = Study(folder).suggest(2)
    assert one == Study(folder).suggest(2)
    assert sorted(p.name for p in folder.rglob("*")) == before
    claimed = Study(folder).suggest(2, claim=True)
    assert claimed == one
    assert [t["state"] for t in Study(folder).trials] == ["running", "running"]
    assert all("@" in t["claim"]["by"] for t in Study(folder).trials)
    other = Study(folder).suggest(1)[0]
    assert other.configuration not in [c.configuration for c in claimed]


def test_what_is_released_is_suggested_again(folder):
    tuned = Study(folder)
    (one,) = tuned.suggest(claim=True, by="job 7")
    assert tuned.trials[0]["claim"]["by"] == "job 7"
    assert [t["parameters"] for t in tuned.release(tuned.trials)] == [one.configuration]
    assert tuned.trials == [] and tuned.suggest() == [one]


def test_a_running_trial_ends_with_its_outcome(folder):
    tuned = Study(folder)
    (claimed,) = tuned.suggest(claim=True)
    # as a table shows it, with fewer digits
    told = tuned.tell(
        {**claimed.configuration, "learning_rate": claimed.configuration["learning_rate"] * (1 + 1e-11)}, 0.2
    )
    assert (told["number"], told["state"], told["outcome"]) == (0, "done", 0.2)
    assert len(tuned.trials) == 1
    tuned.tell(GOOD, 0.1)
    tuned.tell(GOOD | {"layers": 4}, None)
    assert tuned.best["outcome"] == 0.1 and [t["state"] for t in tuned.trials] == ["done", "done", "failed"]
    assert tuned.best["parameters"] == GOOD | {"momentum": None}


def test_an_outcome_told_in_single_precision_ends_the_trial_that_was_suggested(folder):
    """The trial keeps the digits of the suggestion, so telling it in either precision again changes nothing."""
    tuned = Study(folder)
    claimed = [one.configuration for one in tuned.suggest(3, claim=True)]
    for number, suggested in enumerate(claimed):
        single = {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in suggested.items()}
        assert single != suggested
        told = tuned.tell(single, 0.2 + number)
        assert (told["number"], told["state"], told["parameters"]) == (number, "done", suggested)
        assert tuned.tell(single, 0.2 + number) == tuned.tell(suggested, 0.2 + number) == told
    assert [(t["state"], t["outcome"]) for t in tuned.trials] == [("done", 0.2), ("done", 1.2), ("done", 2.2)]
    assert tuned.tell(single, 0.5, correct=True)["parameters"] == suggested
    assert [t["outcome"] for t in tuned.trials] == [0.2, 1.2, 0.5]


def test_the_same_outcome_twice_is_one_trial_and_another_outcome_a_repeat(folder):
    tuned = Study(folder)
    for outcome in (0.1, 0.1, 0.2, None, None):
        tuned.tell(GOOD, outcome)
    assert [t["outcome"] for t in tuned.trials] == [0.1, 0.2, None]


def test_studies_share_the_prior_and_nothing_else(folder):
    Study(folder, "a").tell(GOOD, 0.1)
    assert Study(folder, "b").trials == [] and len(Study(folder, "a").trials) == 1
    with pytest.raises(ConfigError, match=r"study '../x': write at most 100 letters"):
        Study(folder, "../x")


def test_concurrent_tells_lose_nothing(folder):
    faults = []

    def work(number):
        try:
            for layers in range(1, 7):
                Study(folder).tell(GOOD | {"layers": layers, "learning_rate": 0.001 * (number + 1)}, 0.1)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trials = Study(folder).trials
    assert not faults and len(trials) == 36
    assert [t["number"] for t in trials] == list(range(36))
    assert len({(t["parameters"]["layers"], t["parameters"]["learning_rate"]) for t in trials}) == 36


def test_tell_all_records_all_or_none(folder):
    with pytest.raises(DataError, match=r"parameter 'layers': 9 is outside \[1, 6\]"):
        Study(folder).tell_all([(GOOD, 0.1), (GOOD | {"layers": 9}, 0.1)])
    with pytest.raises(DataError, match="outcome -1 of 'error' has no logarithm"):
        Study(folder).tell_all([(GOOD, 0.1), (GOOD, -1.0)])
    assert Study(folder).trials == []


@pytest.mark.parametrize("step", ["save", "publish", "write_text"])
def test_a_killed_pretrain_leaves_the_old_prior_whole(folder, files, monkeypatch, step):
    """Killed while the parameters are written, before they get their name, and before the record names them."""
    before = Study(folder).suggest(1)
    Study(folder).tell(GOOD, 0.1)
    owner = {"save": study.priors, "publish": store, "write_text": store}[step]

    def kill(*_arguments, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, kill)
        with pytest.raises(KeyboardInterrupt):
            pretrain([files[0]], [files[1]], folder, method="h_nll", steps=2, seed=7)
    assert len(Study(folder).trials) == 1
    store.trials_path(folder, "study").unlink()
    assert Study(folder).suggest(1) == before
    (folder / ".prior-left-by-a-kill").mkdir()
    pretrain([files[0]], [files[1]], folder, method="h_nll", steps=2, seed=7)
    assert Study(folder).suggest(1) != before
    assert len(list(folder.glob("prior-*.npz"))) == 1 and not list(folder.glob(".prior-*"))


def test_a_new_prior_keeps_the_trials_unless_they_are_of_another_space(folder, files, tmp_path):
    Study(folder).tell(GOOD, 0.1)
    pretrain(files[0], files[1], folder, method="stboh")
    assert len(Study(folder).trials) == 1 and Study(folder).record["spec"]["method"] == "stboh"
    for old, new, differing in (
        ("layers: {type: int", "depth: {type: int", "parameters differ: layers, depth are in one of them alone"),
        (
            "layers: {type: int, low: 1, high: 6}",
            "layers: {type: float, low: 1, high: 6}",
            "'layers' is of another type",
        ),
        ("goal: minimise", "goal: maximise", "outcome is 'error', to be minimised, not 'error', to be maximised"),
    ):
        other = tmp_path / "other.yaml"
        other.write_text(SPACE.replace(old, new).replace(", scale: log}\np", "}\np"))
        table = tmp_path / "other.csv"
        table.write_text(files[0].read_text().replace("layers", "depth" if "depth" in new else "layers"))
        with pytest.raises(ConfigError, match=r"has trials of another space \(study\), whose ") as error:
            pretrain([table], [other], folder, method="stboh")
        assert differing in str(error.value) and str(error.value).endswith("; choose another folder")
    assert len(Study(folder).trials) == 1


def test_a_wider_space_keeps_the_trials_and_one_without_a_trial_is_refused(folder, files, tmp_path):
    Study(folder).tell(GOOD, 0.1)
    other = tmp_path / "other.yaml"
    wider = (("high: 6", "high: 7"), ("[sgd, adam]", "[sgd, adam, lion]"), ("high: 1.0,", "high: 10.0,"))
    text = SPACE
    for old, new in wider:
        assert old in text
        text = text.replace(old, new)
    other.write_text(text)
    study = pretrain([files[0]], [other], folder, method="stboh")
    assert [one["parameters"] for one in study.trials] == [one["parameters"] for one in Study(folder).trials]
    study.tell(GOOD | {"layers": 7}, 0.2)
    study.suggest(2)
    with pytest.raises(ConfigError, match=r"'layers': 7 is outside \[1, 6\]; widen the space, or choose") as narrow:
        pretrain([files[0]], [files[1]], folder, method="stboh")
    assert str(narrow.value).startswith(str(files[1])), "space.yaml is at fault, not the trials"
    assert len(Study(folder).trials) == 2 and Study(folder).description.fields[1].high == 7


def test_a_space_that_only_a_running_trial_keeps_wide_is_narrowed_after_its_release(folder, files, tmp_path):
    """Its values were suggested and never told, so there is no outcome to lose."""
    wide = tmp_path / "wide.yaml"
    wide.write_text(SPACE.replace("high: 6", "high: 7"))
    pretrain([files[0]], [wide], folder, method="stboh")
    study = Study(folder)
    study.tell(GOOD, 0.1)
    study.suggest(30, claim=True)
    study.release([one for one in study.trials[1:] if one["parameters"]["layers"] < 7])
    assert len(study.trials) > 1
    released = r"widen the space, give running trials up with metabo release, or choose another folder"
    with pytest.raises(ConfigError, match=released):
        pretrain([files[0]], [files[1]], folder, method="stboh")
    study.release(study.trials[1:])
    pretrain([files[0]], [files[1]], folder, method="stboh")
    assert Study(folder).description.fields[1].high == 6 and len(Study(folder).trials) == 1


@pytest.mark.parametrize("choices", ['["16", "32", "64"]', "[16.5, 32, 64]"])
def test_choices_that_would_turn_a_trial_into_another_one_are_refused(folder, files, tmp_path, choices):
    """A batch of 16 is not the text "16": its claim could not be ended or released any more."""
    study = Study(folder)
    study.tell(GOOD | {"batch": 16}, 0.1)
    other = tmp_path / "other.yaml"
    kind = "categorical" if '"' in choices else "ordinal"
    other.write_text(SPACE.replace("ordinal, choices: [16, 32, 64]", f"{kind}, choices: {choices}"))
    table = tmp_path / "other.csv"
    table.write_text(files[0].read_text().replace(",16,", ",32,"))
    with pytest.raises(ConfigError, match=r"choose another folder$") as error:
        pretrain([table], [other], folder, method="stboh")
    assert "metabo release" not in str(error.value), "an outcome would be lost"
    assert Study(folder).trials == study.trials


def test_a_choice_that_would_turn_a_running_trial_into_another_one_can_be_made_after_its_release(
    folder, files, tmp_path
):
    running = claimed(0, [GOOD | {"batch": 16}], claim_of())
    store.write_trials(folder, "study", running, Study(folder).description)
    other = tmp_path / "other.yaml"
    other.write_text(SPACE.replace("choices: [16, 32, 64]", "choices: [16.5, 32, 64]"))
    table = tmp_path / "other.csv"
    table.write_text(files[0].read_text().replace(",16,", ",32,"))
    with pytest.raises(ConfigError, match=r"give running trials up with metabo release, or choose another folder$"):
        pretrain([table], [other], folder, method="stboh")
    assert [one["state"] for one in Study(folder).trials] == ["running"]
    Study(folder).release()
    pretrain([table], [other], folder, method="stboh")
    assert Study(folder).trials == []


class TestScaleLog:
    """The scale of the outcome becomes log when outcomes have been told on the linear scale."""

    @pytest.fixture
    def linear(self, files, tmp_path):
        """Return (folder with the outcomes 0, -1 and 0.5, history, linear space, log space)."""
        space = tmp_path / "linear" / "space.yaml"
        space.parent.mkdir()
        space.write_text(SPACE.replace(", scale: log}\nparameters", "}\nparameters"))
        tuned = pretrain([files[0]], [space], tmp_path / "to", method="stboh")
        assert not tuned.description.log
        tuned.tell_all([(GOOD | {"layers": layers}, outcome) for layers, outcome in ((1, 0.0), (2, -1.0), (3, 0.5))])
        return tuned.folder, files[0], space, files[1]

    def test_outcomes_without_a_logarithm_refuse_it_until_they_are_corrected(self, linear):
        folder, history, _, log = linear
        with pytest.raises(DataError, match=r"trials/study\.json: trial 0 has outcome 0 of 'error'") as error:
            pretrain([history], [log], folder, method="stboh")
        for part in (f"{log} key 'outcome.scale' is log", "remove 'scale: log'", "tell --correct", "another folder"):
            assert part in str(error.value)
        assert not Study(folder).description.log
        Study(folder).tell_all([(GOOD | {"layers": 1}, 0.1), (GOOD | {"layers": 2}, nan)], correct=True)
        assert pretrain([history], [log], folder, method="stboh").description.log

    def test_outcomes_told_while_the_prior_was_learned_count_too(self, linear, monkeypatch):
        folder, history, _, log = linear
        store.trials_path(folder, "study").unlink()
        learn = study.learning.learn

        def slow(*arguments):
            Study(folder, "late").tell(GOOD, -1.0)
            return learn(*arguments)

        monkeypatch.setattr(study.learning, "learn", slow)
        with pytest.raises(DataError, match=r"trials/late\.json: trial 0 has outcome -1"):
            pretrain([history], [log], folder, method="stboh")
        assert not Study(folder).description.log

    def test_a_folder_in_which_it_has_happened_is_told(self, linear):
        """An older version let it happen."""
        folder, *_ = linear
        unseal(folder)
        record = json.loads((folder / store.RECORD).read_text())
        record["space"]["outcome"]["scale"] = "log"
        (folder / store.RECORD).write_text(json.dumps(record))
        for claim in (False, True):
            with pytest.raises(DataError, match=r"study\.json: trial 0 has outcome 0 .*to.study\.json key 'outcome"):
                Study(folder).suggest(claim=claim)


class TestCorrect:
    def test_a_mistyped_outcome_is_replaced(self, folder):
        tuned = Study(folder)
        tuned.tell_all([(GOOD, 0.012), (GOOD | {"layers": 4}, 0.1), (GOOD | {"layers": 5}, nan)])
        assert tuned.tell(GOOD, 0.12, correct=True) == tuned.trials[0]
        assert [t["outcome"] for t in tuned.trials] == [0.12, 0.1, None] and tuned.best["number"] == 1
        before = tuned.trials
        tuned.tell(GOOD, 0.12, correct=True)  # a second time changes nothing
        assert tuned.trials == before
        tuned.tell(GOOD | {"layers": 5}, 0.3, correct=True)
        tuned.tell(GOOD, None, correct=True)
        assert [(t["state"], t["outcome"]) for t in tuned.trials] == [("failed", None), ("done", 0.1), ("done", 0.3)]

    def test_it_takes_the_place_of_all_repeats(self, folder):
        """The outcome told again in the belief that this corrects it, and real repeats, of which one was mistyped."""
        tuned = Study(folder)
        tuned.tell_all([(GOOD, 0.012), (GOOD | {"layers": 4}, 0.1), (GOOD, 0.12), (GOOD | {"layers": 5}, 0.2)])
        tuned.tell(GOOD, 0.12, correct=True)
        assert [(t["number"], t["outcome"]) for t in tuned.trials] == [(0, 0.12), (1, 0.1), (2, 0.2)]
        told = tuned.tell_all([(GOOD, 0.12), (GOOD | {"layers": 4}, 0.4), (GOOD, 0.13), (GOOD, 0.12)], correct=True)
        assert [(t["number"], t["outcome"]) for t in tuned.trials] == [(0, 0.12), (1, 0.13), (2, 0.4), (3, 0.2)]
        assert [t["number"] for t in told] == [0, 2, 1, 0]

    def test_what_was_never_told_is_refused_and_nothing_changes(self, folder):
        tuned = Study(folder)
        tuned.tell(GOOD, 0.012)
        (claimed,) = tuned.suggest(claim=True)
        before = tuned.trials
        with pytest.raises(DataError, match=r"result 2: the configuration \(.*layers 4, .*was never told.*--correct"):
            tuned.tell_all([(GOOD, 0.12), (GOOD | {"layers": 4}, 0.1)], correct=True)
        with pytest.raises(DataError, match=r"^the configuration .* is running and has no outcome yet"):
            tuned.tell(claimed.configuration, 0.1, correct=True)
        with pytest.raises(DataError, match="outcome 0 of 'error' has no logarithm"):
            tuned.tell(GOOD, 0.0, correct=True)
        assert tuned.trials == before


def test_what_a_killed_tell_left_is_no_study_and_goes_with_the_next(folder, files, tmp_path):
    (folder / "trials").mkdir()
    mine = folder / "trials" / ".metabo-notes"
    mine.touch()
    left = [folder / "trials" / ".metabo-study.json.abcd_123.json", folder / ".metabo-study.json.abcd_123.json"]
    for path in left:
        path.write_text("[")
    assert store.told_studies(folder) == []
    other = tmp_path / "other.yaml"
    other.write_text(SPACE.replace("high: 6", "high: 7"))
    pretrain([files[0]], [other], folder, method="stboh")
    Study(folder, "a.b").tell(GOOD, 0.1)
    assert store.told_studies(folder) == ["a.b"]
    assert not any(path.exists() for path in left) and mine.exists()


def test_the_record_says_what_was_learned_from(folder):
    record = json.loads((folder / store.RECORD).read_text())
    assert record["spec"]["method"] == "h_nll" and record["spec"]["pretrain"]["steps"] == 600
    (source,) = record["past"]
    assert source["history"].endswith("history.csv") and (source["studies"], source["trials"]) == (4, 38)
    assert any("count as failed trials" in remark for remark in record["remarks"])


def test_a_target_must_not_have_two_descriptions(files, tmp_path):
    target = tmp_path / "again" / "space.yaml"
    target.parent.mkdir()
    target.write_text(SPACE.replace("high: 6", "high: 7"))
    with pytest.raises(ConfigError, match="space 'space' has another description in --space"):
        pretrain([files[0]], [files[1]], tmp_path / "to", target=target)


def test_a_space_may_be_a_dict(files, tmp_path):
    said = {**yaml.safe_load(SPACE), "study": "dataset"}
    said["parameters"]["layers"] = {"type": "int", "low": np.int64(1), "high": np.int64(6)}
    said["parameters"]["batch"]["choices"] = (16, 32, 64)
    made = pretrain(files[0], said, tmp_path / "to", method="rand")
    assert made.description.name == "space" and made.description.fields == Study(tmp_path / "to").description.fields
    assert made.description.fields == pretrain(*files, tmp_path / "other", method="rand").description.fields
    made.tell(Study(tmp_path / "to").suggest()[0].configuration, 0.1)
    said["parameters"]["layers"]["high"] = 7  # what it said then is what counts
    assert made.description.fields[1].high == 6
    again = pretrain([files[0]], [said], tmp_path / "to", target=said, method="rand")
    assert again.description.fields[1].high == 7 and len(again.trials) == 1


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            {"study": "dataset", "outcome": {"column": "error", "goal": "minimise"}},
            "^space key 'parameters' is missing",
        ),
        ({"parameters": {3: {"type": "float"}}}, "^space key 'parameters' has the key 3; write it as text"),
        ({"parameters": {"a": {"type": "float", "low": -(10**400)}}}, "^space key 'parameters.a.low' is .*beyond 2"),
        (3, "^a space is of type int; give the path of its space.yaml, or a dict of what that says"),
    ],
)
def test_a_dict_that_describes_no_space_is_refused(files, tmp_path, said, message):
    for given in (said, [said]):
        with pytest.raises(ConfigError, match=message):
            pretrain(files[0], given, tmp_path / "to")
    with pytest.raises(ConfigError, match=message):
        pretrain(*files, tmp_path / "to", target=said)


def test_one_study_only_is_refused(files, tmp_path):
    write(files[0], HEADER, [row for row in rows() if row[0] == "d3"])
    with pytest.raises(ConfigError, match=r"one usable past study, 'd3'(.|\n)*column 'dataset'"):
        pretrain([files[0]], [files[1]], tmp_path / "to", method="h_nll")
    assert not (tmp_path / "to").exists()
    assert pretrain([files[0]], [files[1]], tmp_path / "to").suggest()  # the default learns from one study too


def test_the_default_is_stored_and_goes_on_in_another_process(blended, files, tmp_path):
    place = Path(shutil.copytree(blended, tmp_path / "study"))
    one = Study(place)
    assert one.record["spec"]["method"] == "blend" and isinstance(one.prior.params, blend.ConditionedPast)
    one.tell(GOOD, 0.1)
    assert one.suggest(2) == Study(place).suggest(2) != Study(place).suggest(2, seed=1)
    again = pretrain([files[0]], [files[1]], tmp_path / "again", steps=1)
    assert again.record["spec"]["pretrain"] == {"steps": 1}
    assert (again.prior.params.past.scales != one.prior.params.past.scales).any()
    (prior,) = place.glob("prior-*.npz")
    prior.write_bytes(prior.read_bytes()[:-1])
    with pytest.raises(DataError, match="missing or changed since it was written"):
        Study(place).suggest()


def test_a_study_that_is_open_goes_on_with_a_prior_that_was_learned_since(blended, files, tmp_path):
    place = Path(shutil.copytree(blended, tmp_path / "study"))
    opened, stale = Study(place), Study(place)
    pretrain([files[0]], [files[1]], place, steps=1)
    assert opened.suggest(2) == Study(place).suggest(2) and opened.record["spec"]["pretrain"] == {"steps": 1}
    other = tmp_path / "other.yaml"
    other.write_text(SPACE.replace("high: 6", "high: 7"))
    pretrain([files[0]], [other], place, method="rand")
    with pytest.raises(DataError, match="has another space than when the study was opened; open the study again"):
        stale.suggest()


def test_a_recalled_trial_has_the_digits_of_the_history(files, tmp_path):
    """0.054625 came back as 0.05462499999999997."""
    history = write(files[0], HEADER, [[*row[:1], f"{float(row[1]):.3g}", *row[2:]] for row in rows()])
    tuned = pretrain([history], [files[1]], tmp_path / "to")
    past = {(float(row[1]), float(row[5]) if row[5] else None) for row in rows_of(history)}
    tuned.tell(GOOD, 0.1)
    tuned.tell(GOOD | {"layers": 4}, 0.2)
    for suggestions in (Study(tuned.folder, "new").suggest(), tuned.suggest()):  # trials 1 and 3 are recalled
        (one,) = suggestions
        assert (one.configuration["learning_rate"], one.configuration["momentum"]) in past


def rows_of(path):
    return [line.split(",") for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("value", [-1, None, 1.5, "0", True, 2**63])
def test_what_is_no_seed_is_refused_in_python(blended, folder, files, tmp_path, value):
    for place in (blended, folder):
        with pytest.raises(ConfigError, match=r"^seed is .*; a seed is a whole number from 0"):
            Study(place).suggest(seed=value)
    with pytest.raises(ConfigError, match=r"^seed is .*; a seed is a whole number from 0"):
        pretrain([files[0]], [files[1]], tmp_path / "to", seed=value)
    assert not (tmp_path / "to").exists()


def test_numbers_of_numpy_are_numbers_and_others_are_refused(blended, files, tmp_path):
    one = Study(blended)
    assert one.suggest(np.int64(1), seed=np.int32(3)) == one.suggest(1, seed=3)
    for count in ("2", 2.0, None):
        with pytest.raises(ConfigError, match=r"^count is .*; ask for one suggestion at least, and a whole number"):
            one.suggest(count)
    for steps in (0, -3, 2.5, "7"):
        with pytest.raises(ConfigError, match=r"^steps is .*; give a whole number of at least 1, or leave it out"):
            pretrain([files[0]], [files[1]], tmp_path / "to", steps=steps)
    made = pretrain([files[0]], [files[1]], tmp_path / "to", seed=np.int64(2), steps=np.int64(2))
    assert made.record["spec"]["seed"] == 2


def test_a_space_without_past_studies_cannot_blend(files, tmp_path):
    target = tmp_path / "other.yaml"
    target.write_text("name: other\n" + SPACE)
    with pytest.raises(
        ConfigError, match="'blend' learns from past studies of the same space, and there is none of 'other'"
    ):
        pretrain([files[0]], [files[1]], tmp_path / "to", target=target, method="blend")


def test_a_claim_is_computed_without_the_lock_and_again_if_trials_changed(plain, monkeypatch):
    """Others tell while the model computes: they do not wait, and what they told counts."""
    seen = []

    def model(_prior, told, count, seed, _acquisition):
        seen.append(len(told.done))
        if len(seen) <= 2:  # told while the model computes; with the lock held this would wait for ever
            Ledger(plain).tell({**GOOD, "layers": len(seen)}, 0.1)
        return [Suggestion({**GOOD, "layers": 5 + 0 * count * seed}, 0.0, 0.0, 0.0)]

    monkeypatch.setattr(study, "suggest", model)
    monkeypatch.setattr(Study, "prior", None)
    Study(plain).suggest(1, claim=True)
    assert seen == [0, 1, 2]
    assert [one["state"] for one in Study(plain).trials] == ["done", "done", "running"]


def test_files_that_are_missing_or_changed_are_named(folder):
    with pytest.raises(DataError, match=r"nowhere: no prior here .*metabo pretrain"):
        Study(folder / "nowhere")
    (prior,) = folder.glob("prior-*.npz")
    good = prior.read_bytes()
    prior.write_bytes(good[:-1])
    with pytest.raises(DataError, match="missing or changed since it was written"):
        Study(folder).suggest()
    prior.write_bytes(good)
    Study(folder).tell(GOOD, 0.1)
    path = store.trials_path(folder, "study")
    for broken in ("[{", '{"a": 1}', '[{"number": 0}]'):
        path.write_text(broken)
        with pytest.raises(DataError, match=r"trials/study\.json: "):
            Study(folder).suggest()
    path.unlink()
    (folder / store.RECORD).write_text("{}")
    with pytest.raises(DataError, match=r"study\.json: field 'format' is missing"):
        Study(folder)


@pytest.mark.parametrize("damage", ["{", None])
def test_a_damaged_record_is_made_again_and_the_trials_stay(folder, files, tmp_path, damage):
    Study(folder).tell(GOOD, 0.1)
    (folder / store.RECORD).unlink()
    if damage:
        (folder / store.RECORD).write_text(damage)
    other = tmp_path / "other.yaml"
    other.write_text(SPACE.replace("layers: {type: int, low: 1", "layers: {type: int, low: 4"))
    with pytest.raises(DataError, match=r"trials/study\.json: trial 0: parameter 'layers': 3 is outside \[4, 6\]"):
        pretrain([files[0]], [other], folder, method="stboh", skip_bad_rows=True)
    assert len(pretrain([files[0]], [files[1]], folder, method="stboh").trials) == 1


def test_a_folder_that_cannot_be_written_is_named(files, tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(DataError, match=r"file: is a file; choose a folder for the prior with --to"):
        pretrain([files[0]], [files[1]], tmp_path / "file", method="stboh")
    assert (tmp_path / "file").read_text() == "kept"
    with pytest.raises(DataError, match=r"sub: cannot be written .*, or choose another folder with --to"):
        pretrain([files[0]], [files[1]], tmp_path / "file" / "sub", method="stboh")


def test_a_folder_can_be_moved(folder, tmp_path):
    before = Study(folder).suggest(1)
    assert Study(shutil.move(folder, tmp_path / "elsewhere")).suggest(1) == before
