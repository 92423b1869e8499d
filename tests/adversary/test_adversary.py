"""A sample of the tries of `make test-faults`, old faults that they must find, and what the judge makes of each end."""

import contextlib
import itertools
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from nbconvert import HTMLExporter

from metabo.data import archives, download
from metabo.data.history import fields
from metabo.errors import DataError
from metabo.gp import model
from metabo.plan import schema, yaml_files
from metabo.records import csv_cells
from metabo.report import notebooks
from metabo.tuner import journal
from metabo.tuner.ledger import Ledger
from metabo.tuner.page import html
from tests.adversary import __main__ as command
from tests.adversary.judge import Attempt, judge
from tests.adversary.trying import CLASSES, attempts, numbers

SHARES = {
    "study_store": 0.1,
    "by_hand": 0.1,
    "fuzzed": 0.03,
    "configs": 0.04,
    "injection": 1.0,
    "numerics": 0.1,
    "mirrors": 0.1,
    "archives": 0.03,
}
"""Parts of the tries that are made here."""
ROOT = Path(__file__).parents[2]
SEED = 20
MOST = 300
"""Tries in which an old fault must be found."""


@pytest.mark.parametrize("name", CLASSES)
def test_a_sample_of_the_tries_survives(name):
    if name == "study_store":  # its tries are to import no JAX, which other tests have done here
        options = ["--class", name, "--seed", str(SEED), "--share", str(SHARES[name])]
        done = subprocess.run(
            [sys.executable, "-m", "tests.adversary", *options], capture_output=True, text=True, cwd=ROOT
        )
        assert done.returncode == 0 and re.search(r"^all +13 +13 +0$", done.stdout, re.M), done.stdout + done.stderr
        return
    tried = list(attempts(name, SEED, numbers(name, SHARES[name])))
    assert len(tried) > 1 and [one for one in tried if one.verdict.wrong] == []


@pytest.mark.parametrize("share", [1.0, 0.3, 0.1, 0.03, 0.01])
def test_a_share_has_all_kinds_that_take_turns(share):
    """Classes take 3, 5 or 8 kinds in turn: a step of a multiple would always make the same."""
    for name, turns in {"fuzzed": 3, "configs": 5, "by_hand": 5, "numerics": 3, "study_store": 8}.items():
        chosen = numbers(name, share)
        assert {number % turns for number in chosen} == set(range(turns)) or len(chosen) < turns
        assert len(chosen) <= share * CLASSES[name] + 1


def test_a_try_follows_from_seed_and_number():
    whole = list(attempts("by_hand", 1, range(4)))
    assert whole[3:] == list(attempts("by_hand", 1, [3])) != list(attempts("by_hand", 2, [3]))


def test_the_command_counts_and_says_how_to_make_a_failure_again(capsys, monkeypatch):
    assert command.main(["--class", "injection", "--only", "9", "--seed", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "1", "1", "0"]
    monkeypatch.setattr(csv_cells, "is_formula", lambda text: False)
    assert command.main(["--class", "injection", "--only", "9", "--seed", "0"]) == 1
    assert "  --class injection --seed 0 --only 9: import " in capsys.readouterr().out


# --- old faults -------------------------------------------------------------------------------------------------------


def assert_found(name: str, turn: int, turns: int, wrong: str) -> None:
    """Assert that a try fails so, one of those with every `turns`-th number from `turn` on. `wrong`: how what is wrong
    begins; other failures are not the planted fault."""
    chosen = itertools.islice(itertools.count(turn, turns), MOST)
    assert any(one.verdict.wrong.startswith(wrong) for one in attempts(name, SEED, chosen) if one.verdict.wrong)


def test_an_outcome_that_is_acknowledged_and_not_written_is_found(monkeypatch):
    write = Ledger._add

    def forgetful(self, held, new):
        if len(new) != 1 or new[0]["state"] == "running":
            write(self, held, new)

    monkeypatch.setattr(Ledger, "_add", forgetful)
    assert_found("study_store", 3, 8, "takes no further trial")


def test_trials_that_were_edited_and_are_taken_are_found(monkeypatch):
    monkeypatch.setattr(journal, "_seal", lambda before, payload: "0" * 64)
    assert_found("study_store", 4, 8, "taken although it was edited")


def test_a_key_that_stands_twice_and_is_taken_is_found(monkeypatch):
    monkeypatch.setattr(yaml_files._Loader, "compose_mapping_node", yaml.SafeLoader.compose_mapping_node)
    assert_found("by_hand", 0, 5, "taken although it is wrong")


def test_numbers_that_lose_digits_are_found(monkeypatch):
    exact = fields._number
    monkeypatch.setattr(fields, "_number", lambda value: float(np.float32(exact(value))))
    assert_found("fuzzed", 0, 3, "row 2, größe is -499999997952.0 in place of -500000000000.0")


def test_unknown_keys_that_are_taken_are_found(monkeypatch):
    described = schema._describe

    def mild(error, kind, prefix):
        return [] if error.validator == "additionalProperties" else described(error, kind, prefix)

    monkeypatch.setattr(schema, "_describe", mild)
    assert_found("configs", 2, 5, "1 validation error for Config")


def test_text_that_is_not_escaped_is_found(monkeypatch):
    monkeypatch.setattr(html, "escape", str)
    assert_found("injection", 0, 12, "the text made elements or attributes: [('img', 'src', 'onerror')")


def test_html_in_markdown_is_found(monkeypatch):
    monkeypatch.setattr(notebooks._Exporter, "markdown2html", HTMLExporter.markdown2html)
    assert_found("injection", 8, 12, "Markdown made {'b'}")


@pytest.mark.parametrize("number", [9, 10])
def test_formulas_behind_white_space_are_found(monkeypatch, number):
    monkeypatch.setattr(csv_cells, "is_formula", lambda text: text.startswith(csv_cells.SIGNS))
    assert_found("injection", number, 12, "the cell ")


def test_noise_that_is_left_out_is_found(monkeypatch):
    complete = model.masked_covariance
    monkeypatch.setattr(model, "masked_covariance", lambda gram, noise, mask: complete(gram, 0.0 * noise, mask))
    assert_found("numerics", 0, 9, "mean is ")


def test_members_with_names_outside_that_are_taken_are_found(monkeypatch):
    monkeypatch.setattr(archives, "_refuse", lambda path, member, **more: None)
    assert_found("archives", 0, 1, "taken although it is wrong")


def test_passwords_that_are_shown_are_found(monkeypatch):
    monkeypatch.setattr(download, "without_passwords", str)
    assert_found("mirrors", 0, 1, "told a password")


# --- the judge --------------------------------------------------------------------------------------------------------


def raising(error: Exception):
    def act():
        raise error

    return act


def judged(tmp_path: Path, act, **more) -> str:
    """Return what the judge finds wrong with a try whose right value is 1."""
    right = lambda value: "" if value == 1 else f"{value} in place of 1"  # noqa: E731
    return judge(Attempt("a try", act, right, **more), tmp_path, seconds=0.5).wrong


def endless():
    while True:
        with contextlib.suppress(Exception):  # a handler that is careless
            sum(range(1000))


def warning():
    import warnings

    warnings.warn("unsound", RuntimeWarning, stacklevel=1)
    return 1


@pytest.mark.parametrize(
    ("act", "more", "wrong"),
    [
        (lambda: 1, {"end": "value"}, ""),
        (raising(DataError("a.csv: row 3 is bad; mend it")), {"named": ("row 3",)}, ""),
        (raising(DataError("a.csv: one fault", "a.csv: another")), {}, ""),
        (lambda: 2, {}, "2 in place of 1"),
        (lambda: 1, {"end": "refusal"}, "taken although it is wrong: 1"),
        (raising(DataError("a.csv: bad")), {"end": "value"}, "refused although it is right: a.csv: bad"),
        (raising(ValueError("x")), {}, "ValueError('x') at test_adversary.py:"),
        (raising(DataError("a.csv: bad")), {"named": ("row 3", "b.csv")}, "names none of ('row 3', 'b.csv')"),
        (raising(DataError("")), {}, "a message of 1 lines"),
        (raising(DataError("x" * 501)), {}, "a line of 501 letters"),
        (lambda: 1, {"after": lambda: "a trial is lost"}, "a trial is lost"),
        (warning, {}, "RuntimeWarning('unsound') at test_adversary.py:"),
        (endless, {}, "not ended after 0.5 s"),
        (lambda: time.sleep(60), {}, "not ended after 0.5 s"),
        (lambda: len(bytearray(8 << 30)), {}, "asked for more than 3 GiB"),
    ],
)  # fmt: skip
def test_each_end_is_judged(tmp_path, act, more, wrong):
    assert (judged(tmp_path, act, **more)[: len(wrong)], bool(judged(tmp_path, act, **more))) == (wrong, bool(wrong))


class Raw(DataError):
    """An error whose text is as it was given."""

    def __str__(self) -> str:
        return self.args[0]


def test_messages_of_two_lines_and_signs_that_steer_a_terminal_are_judged_wrong(tmp_path):
    assert judged(tmp_path, raising(Raw("a.csv: bad\nsecond line"))).startswith("a message of 2 lines, meant were 1")
    assert judged(tmp_path, raising(Raw("a.csv: \x1b[2Jbad"))).startswith("a message with signs that do not print")


def test_the_folder_of_a_try_does_not_count_as_length(tmp_path):
    assert judged(tmp_path, raising(DataError(f"{tmp_path / 'a.csv'}: {'x' * 480}"))) == ""
