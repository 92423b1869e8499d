"""The page of a study: numbers that the model gives, text that is escaped, and nothing from elsewhere."""

import re
import shutil
import threading
from html.parser import HTMLParser

import numpy as np
import pytest

from metabo import cli
from metabo.data.history import description as descriptions
from metabo.records import files
from metabo.tuner.blend import past as blend
from metabo.tuner.ledger import Ledger
from metabo.tuner.page import charts
from metabo.tuner.page.facts import facts_of
from metabo.tuner.page.html import page
from metabo.tuner.study import Study
from tests.tuner.conftest import error

GOOD = {"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"}
EVIL = "<script>alert('x')</script>&\""


@pytest.fixture
def study(blended, tmp_path):
    """A study in which the learning rate matters most."""
    tuned = Study(shutil.copytree(blended, tmp_path / "study"))
    rng = np.random.default_rng(0)
    for number in range(40):
        rate = float(10 ** rng.uniform(-4, 0))
        tried = GOOD | {
            "learning_rate": rate,
            "layers": int(rng.integers(1, 7)),
            "batch": int(rng.choice([16, 32, 64])),
        }
        tuned.tell(tried, None if number == 4 else error(rate, tried["layers"], -2.0))
    return tuned


def test_the_parameter_that_matters_stands_first(study):
    facts = facts_of(study.prior, study.trials)
    shares = {part.name: part.share for part in facts.parts}
    assert facts.with_past and facts.parts[0].name == "learning_rate" and set(shares) == set(GOOD) | {"momentum"}
    assert shares["learning_rate"] > 0.7 and all(shares[name] < 0.3 for name in ("batch", "optimiser", "momentum"))
    assert facts == facts_of(study.prior, study.trials)


def test_a_trial_is_predicted_from_the_others(study):
    trials = study.trials
    facts = facts_of(study.prior, trials)
    assert [one.number for one in facts.compared] == [n for n in range(40) if n != 4]
    assert all(one.low < one.median < one.high for one in facts.compared)
    observed, predicted = (np.log([getattr(one, name) for one in facts.compared]) for name in ("outcome", "median"))
    assert np.corrcoef(observed, predicted)[0, 1] > 0.7
    changed = [one if one["number"] != 3 else one | {"outcome": one["outcome"] * 1.2} for one in trials]
    again = facts_of(study.prior, changed).compared[3]
    assert again.outcome != facts.compared[3].outcome
    assert again.median == pytest.approx(facts.compared[3].median, rel=0.05)  # its own outcome is not among the others


def test_the_best_so_far_follows_the_goal(study):
    best = facts_of(study.prior, study.trials).best
    seen = [np.inf if one["outcome"] is None else one["outcome"] for one in study.trials]
    assert best == np.minimum.accumulate(seen).tolist()


def test_without_trials_the_past_still_says_what_matters(blended, trained):
    facts = facts_of(Study(blended).prior, [])
    assert facts.best == [] and facts.compared == [] and facts.parts[0].name == "learning_rate"
    assert facts_of(Study(trained).prior, []).parts == []  # no common form, and no trial of this study
    assert isinstance(Study(blended).prior.params, blend.ConditionedPast)


class Checker(HTMLParser):
    """Collects tags and what they refer to, and sees that every tag is closed."""

    def __init__(self):
        super().__init__()
        self.tags, self.links, self.text, self.open = [], [], [], []

    def handle_starttag(self, tag, attrs, empty=False):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "action", "data")]
        if not empty and tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs, empty=True)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def checked(text):
    checker = Checker()
    checker.feed(text)
    assert checker.open == [] and checker.links == [] and "script" not in checker.tags
    assert "url(" not in text and "@import" not in text
    return " ".join(checker.text)


def test_the_command_writes_a_page_that_loads_nothing(study, capsys):
    with_claim = study.suggest(1, claim=True, by="anna & co")
    cli.main(["show", str(study.folder)])
    path = study.folder / "study.html"
    assert f"{path}: 41 trials; open it in a browser" in capsys.readouterr().out
    text = checked(path.read_text())
    assert "Minimise error" in text and "39 done, 1 failed" in text and "anna & co" in text
    assert f"{study.best['outcome']:.6g}" in text and f"in trial {study.best['number']}" in text
    for title in ("Best so far", "Predicted against observed", "Which parameters matter", "Trials", "Past studies"):
        assert title in text
    assert all(name in text for name in ("d0", "d1", "d2", "d3")) and with_claim
    cli.main(["show", str(study.folder), "--study", "new", "--out", str(study.folder / "other.html")])
    assert "No trial has an outcome yet" in checked((study.folder / "other.html").read_text())


@pytest.mark.parametrize("name", ["trials/study.json", "study.json", "history.csv", "trials/new.json"])
def test_a_file_that_is_no_page_is_not_replaced(study, capsys, name):
    path = study.folder / name
    if name == "history.csv":
        path.write_text("a,b\n")
    before = {one: one.read_bytes() for one in study.folder.rglob("*") if one.is_file()}
    with pytest.raises(SystemExit):
        cli.main(["show", str(study.folder), "--out", str(path)])
    assert f"{path}: " in capsys.readouterr().err
    assert {one: one.read_bytes() for one in study.folder.rglob("*") if one.is_file()} == before


def test_the_dots_have_the_numbers_of_the_trials(study):
    """A running trial and a failed one stand between them."""
    study.suggest(1, claim=True)
    last = study.tell(GOOD | {"layers": 2, "batch": 16, "learning_rate": 0.2}, 0.123456)
    text = page("s", study.record, study.description, study.trials, facts_of(study.prior, study.trials))
    assert last["number"] == 41 and "<title>trial 41: 0.123456</title>" in text
    first = study.trials[0]["outcome"]
    assert f"<title>trial 0: {first:.6g}</title>" in text


def test_a_page_is_written_while_others_tell(study, monkeypatch):
    """Who tells removes unfinished files of the folder: the page is written under the folder's lock."""
    configuration = study.trials[0]["parameters"]
    telling = threading.Thread(target=lambda: Ledger(study.folder, "other").tell(configuration, 0.5))
    to_disk = files._to_disk

    def slow(path):
        if path.name.startswith(".metabo-study.html.") and telling.ident is None:
            telling.start()
            telling.join(0.5)
        to_disk(path)

    monkeypatch.setattr(files, "_to_disk", slow)
    cli.main(["show", str(study.folder)])
    telling.join()
    assert (study.folder / "study.html").is_file() and len(Ledger(study.folder, "other").trials) == 1


def test_text_of_users_is_text(study):
    source = study.description.source
    parameters = {EVIL: source["parameters"]["learning_rate"], "kind": {"type": "categorical", "choices": [EVIL, "b"]}}
    space = descriptions.of_mapping(
        source | {"outcome": {"column": EVIL + "y", "goal": "minimise"}, "parameters": parameters}, "space.yaml"
    )
    claim = {"by": EVIL, "at": "2026-01-31T12:00:00+00:00"}
    tried = {EVIL: 0.01, "kind": EVIL}
    trials = [
        {"number": 0, "parameters": tried, "state": "done", "outcome": 0.5},
        {"number": 1, "parameters": tried, "state": "running", "outcome": None, "claim": claim},
    ]
    past = [{"history": EVIL, "space": EVIL, "studies": 1, "trials": 1, "layout": "", "accounts": [
        {"study": EVIL, "read": 1, "used": 1, "failed": 0, "dropped": [{"reason": EVIL, "rows": [1]}], "notes": [EVIL]}
    ]}]  # fmt: skip
    record = study.record | {"past": past, "remarks": [EVIL], "spec": {"method": EVIL}}
    facts = facts_of(study.prior, [])
    shown = facts._replace(best=[0.5], parts=[part._replace(name=EVIL) for part in facts.parts])
    text = page(EVIL, record, space, trials, shown)
    assert EVIL not in text and "<script" not in text
    assert checked(text).count(EVIL) >= 9


@pytest.mark.parametrize(
    ("low", "high", "log", "expected"),
    [(0.0, 1.0, False, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), (-3.0, 8.0, False, [0.0, 5.0]), (1e-4, 2.0, True, None)],
)
def test_ticks_are_round(low, high, log, expected):
    found = charts.ticks(low, high, log)
    assert found == (expected or [1e-4, 1e-3, 1e-2, 1e-1, 1.0]) or expected == [0.0, 5.0]
    assert all(low <= one <= high for one in found) and 2 <= len(found) <= 7


@pytest.mark.parametrize(("low", "high"), [(1e-13, 2e-13), (3e-14, 8e-14), (4e-310, 9e-310), (7e200, 9e200)])
@pytest.mark.parametrize("log", [False, True])
def test_ticks_of_small_and_large_numbers_differ(low, high, log):
    found = charts.ticks(low, high, log)
    assert len(found) >= 2 and len({f"{one:.4g}" for one in found}) == len(found)
    assert all(low * (1 - 1e-9) <= one <= high * (1 + 1e-9) for one in found)


LOGARITHMIC = ([1e-13, 2e-13], [1e308], [5e-324], [5e-324, 1e308], [2e-12, 3e-11])
"""Outcomes of studies with `scale: log`, which take all numbers above 0."""


def test_marks_lie_within_the_frame():
    """Outcomes that are equal, of one trial, or of any size."""
    for values in ([0.1], [5.0, 5.0], [1e-30, 1e30], [-1e300, 1e300], *((log,) for log in LOGARITHMIC)):
        log = isinstance(values, tuple)
        values = values[0] if log else values
        drawn = charts.best_so_far(list(enumerate(values)), values, "error", log)
        places = [float(one) for one in re.findall(r'c[xy]="([-0-9.]+)"', drawn)]
        assert len(places) == 2 * len(values) and all(0 <= place <= charts.WIDTH for place in places)
