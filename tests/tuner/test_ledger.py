"""Telling and claiming: what is claimed is listed with age and owner, and given back; outcomes are looked at first."""

import getpass
from datetime import UTC, datetime, timedelta
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

from metabo.errors import ConfigError, DataError
from metabo.tuner import ledger as ledgers
from metabo.tuner import store
from metabo.tuner.asking import Suggestion
from metabo.tuner.ledger import Ledger, age_of, claim_of
from metabo.tuner.trials import claim_id
from tests.tuner.conftest import unseal

GOOD = {"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"}


@pytest.fixture
def ledger(plain):
    return Ledger(plain)


def claim(ledger: Ledger, *layers: int, age: timedelta = timedelta(0), by: str = "anna@lab") -> None:
    made = {"by": by, "at": (datetime.now(UTC) - age).isoformat(timespec="seconds")}
    with ledger._held() as held:
        ledger._claim(held, [ledger.description.read(GOOD | {"layers": n}) for n in layers], made)


def layers(ledger: Ledger) -> list[tuple[int, str]]:
    assert [one["number"] for one in ledger.trials] == list(range(len(ledger.trials)))
    return [(one["parameters"]["layers"], one["state"]) for one in ledger.trials]


def test_a_claim_says_who_and_since_when(ledger, monkeypatch):
    claim(ledger, 1, age=timedelta(hours=2))
    (one,) = ledger.trials
    assert one["claim"]["by"] == "anna@lab"
    assert timedelta(hours=2) <= age_of(one, datetime.now(UTC)) < timedelta(hours=2, minutes=5)
    ledger.tell(GOOD | {"layers": 1}, 0.1)
    assert "claim" not in ledger.trials[0]
    assert claim_of()["by"].startswith(f"{getpass.getuser()}@") and claim_of("a job")["by"] == "a job"
    for name in ("", " ", "two\nlines", "x" * 101, 3):
        with pytest.raises(ConfigError, match="say who claims in one line"):
            claim_of(name)

    def nameless():
        raise KeyError("no name for this user")

    monkeypatch.setattr(ledgers.getpass, "getuser", nameless)
    assert claim_of()["by"].startswith("someone@")


def test_claims_are_released_by_name_by_age_or_all(ledger):
    ledger.tell(GOOD | {"layers": 6}, 0.1)
    claim(ledger, 1, 2, age=timedelta(days=2))
    claim(ledger, 3, 4)
    assert [one["parameters"]["layers"] for one in ledger.release([claim_id(ledger.trials[3])])] == [3]
    assert layers(ledger) == [(6, "done"), (1, "running"), (2, "running"), (4, "running")]
    assert ledger.release(older=timedelta(days=3)) == []
    assert [one["number"] for one in ledger.release(older=timedelta(days=1))] == [1, 2]
    assert layers(ledger) == [(6, "done"), (4, "running")]
    claim(ledger, 5)
    assert len(ledger.release()) == 2 and layers(ledger) == [(6, "done")]
    assert ledger.release() == [] and not (ledger.folder / "trials" / "other.json").exists()
    Ledger(ledger.folder, "other").release()
    assert store.told_studies(ledger.folder) == ["study"]  # nothing to release makes no study


def test_only_running_trials_are_released(ledger):
    ledger.tell(GOOD, 0.1)
    claim(ledger, 1, 2)
    one, other = (claim_id(trial) for trial in ledger.trials[1:])
    with pytest.raises(
        ConfigError, match=rf"study\.json: no running trial has the claim 'abc'; .*; running: {one}, {other}"
    ):
        ledger.release([one, "abc"])
    with pytest.raises(ConfigError, match="give claims or an age, not both"):
        ledger.release([one], timedelta(hours=1))
    for wrong in (3, [3], one, np.array(1.5), ledger.trials[1], [ledger.trials[0]]):
        with pytest.raises(ConfigError, match=r"is no claim; give a list of running trials, as study\.trials has"):
            ledger.release(wrong)
    with pytest.raises(ConfigError, match=r"older is 30; give an age, e\.g\. datetime\.timedelta"):
        ledger.release(older=30)
    assert len(ledger.trials) == 3


def test_a_claim_keeps_its_name_while_others_release_and_a_live_one_is_never_released_for_it(ledger):
    """What was listed as number 2 is another one's claim after somebody has released number 1."""
    claim(ledger, 1, 2, 3)
    listed = ledger.trials
    ledger.release([listed[0]])
    assert layers(ledger) == [(2, "running"), (3, "running")]
    assert [one["parameters"]["layers"] for one in ledger.release([listed[1]])] == [2]
    claim(ledger, 2, age=timedelta(hours=-1))  # the same configuration, claimed by somebody else later
    for gone in (listed[1], claim_id(listed[1])):
        with pytest.raises(ConfigError, match="it may have been told or released meanwhile"):
            ledger.release([gone])
    assert layers(ledger) == [(3, "running"), (2, "running")]
    assert len({claim_id(one) for one in (*listed, *ledger.trials)}) == 4


def test_an_outcome_of_a_released_trial_is_recorded(ledger):
    claim(ledger, 1)
    ledger.release()
    ledger.tell(GOOD | {"layers": 1}, 0.1)
    assert layers(ledger) == [(1, "done")]


def test_claims_of_the_version_before_have_no_age(ledger):
    claim(ledger, 1, age=timedelta(days=9))
    unseal(ledger.folder)
    again = Ledger(ledger.folder)
    assert age_of(again.trials[0], datetime.now(UTC)) is None
    assert again.release(older=timedelta(days=1)) == []  # nobody knows whether it is
    assert len(again.release(again.trials)) == 1


@pytest.mark.parametrize("outcome", ["fast", "0_12", "٠.٥", [], {}, 10**400, True])
def test_what_is_no_number_is_no_outcome(ledger, outcome):
    with pytest.raises(DataError, match="of 'error' is no number; tell one, or None if the trial failed"):
        ledger.tell(GOOD, outcome)
    assert ledger.trials == []


@pytest.mark.parametrize(
    ("told", "part"),
    [
        (None, "configuration None is no dict; tell a dict of parameters"),
        ([0.01, 3], r"configuration \[0.01, 3\] is no dict"),
        (Suggestion(GOOD, nan, nan, nan), "a suggestion was told in place of its .*; tell suggestion.configuration"),
    ],
)
def test_what_is_no_configuration_is_not_told(ledger, told, part):
    with pytest.raises(DataError, match=part):
        ledger.tell(told, 0.3)
    with pytest.raises(DataError, match=part):
        ledger.tell_all([(GOOD, 0.1), (told, 0.3)])
    assert ledger.trials == []


@pytest.mark.parametrize("outcome", [None, nan, inf, -inf])
def test_a_trial_without_a_finite_outcome_failed(ledger, outcome):
    assert ledger.tell(GOOD, outcome)["state"] == "failed" and ledger.trials[0]["outcome"] is None
    assert ledger.tell_all([(GOOD | {"layers": 4}, outcome)])[0]["state"] == "failed"


def test_a_folder_that_got_another_space_is_opened_again(ledger):
    stale = Ledger(ledger.folder)
    record = dict(stale.record)
    record["space"] = {**record["space"], "parameters": {**record["space"]["parameters"],
                       "layers": {"type": "int", "low": 1, "high": 9}}}  # fmt: skip
    with store.publishing(ledger.folder) as scratch:
        (scratch / "prior.npz").write_bytes(b"another")
        store.publish(ledger.folder, record, scratch / "prior.npz")
    with pytest.raises(DataError, match="has another space than when the study was opened; open the study again"):
        stale.tell(GOOD, 0.1)
    assert Ledger(ledger.folder).tell(GOOD | {"layers": 9}, 0.1)["number"] == 0
    for ask in (lambda: stale.trials, lambda: stale.best):  # the file of trials is whole: do not say to move it away
        with pytest.raises(DataError, match="has another space than when the study was opened; open the study again"):
            ask()


@pytest.mark.parametrize("name", ["trials/study.json", "study.json"])
def test_a_file_that_cannot_be_read_now_is_not_said_to_be_broken(ledger, monkeypatch, name):
    """Advice to move it away would lose a study whose disk or permissions fail for a moment."""
    ledger.tell(GOOD, 0.1)
    path, opened = ledger.folder / name, Path.open

    def refused(self, *arguments, **options):
        if self == path:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(DataError) as error:
        _ = Ledger(ledger.folder).trials
    assert str(error.value) == f"{path}: cannot be read (Permission denied); check its permissions and the disk"


@pytest.mark.parametrize("write", [lambda study: study.tell(GOOD, 0.1), lambda study: claim(study, 1)])
def test_the_first_change_of_a_study_beside_others_says_that_it_is_new(plain, capsys, write):
    """Its name may be mistyped."""
    write(Ledger(plain))
    assert capsys.readouterr().err == ""  # there is no other
    typo = Ledger(plain, "stduy")
    assert typo.trials == [] and typo.release() == [] and capsys.readouterr().err == ""
    with pytest.raises(DataError):
        typo.tell(GOOD, "fast")
    assert capsys.readouterr().err == ""  # nothing was opened
    write(typo)
    said = f"note: 'stduy' is a new study in {plain}; others there: study. Did you mean 'study'?\n"
    assert capsys.readouterr().err == said
    typo.tell(GOOD | {"layers": 4}, 0.1)
    Ledger(plain, "stduy").tell(GOOD | {"layers": 5}, 0.1)
    assert capsys.readouterr().err == ""
    write(Ledger(plain, "q4"))
    assert capsys.readouterr().err == f"note: 'q4' is a new study in {plain}; others there: stduy, study\n"


def test_a_study_shows_what_it_is(ledger):
    shown = f"<Ledger 'study' in {ledger.folder}: "
    assert repr(ledger) == f"{shown}0 trials (0 running, 0 done, 0 failed)>"
    ledger.tell(GOOD, 0.25)
    assert repr(ledger) == f"{shown}1 trial (0 running, 1 done, 0 failed), best error 0.25>"
    claim(ledger, 1)
    ledger.tell(GOOD | {"layers": 5}, None)
    assert repr(ledger) == f"{shown}3 trials (1 running, 1 done, 1 failed), best error 0.25>"
    store.trials_path(ledger.folder, "study").write_text("{")
    assert repr(ledger) == f"{shown}cannot be read>"
