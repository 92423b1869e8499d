"""Trials as lines, and ages as people write them."""

from datetime import timedelta

import pytest

from metabo.errors import ConfigError
from metabo.tuner.ledger import Ledger
from metabo.tuner.listing import age_in, in_words, listed, to_tell
from metabo.tuner.trials import claim_id
from tests.tuner.conftest import unseal
from tests.tuner.test_ledger import GOOD, claim


def test_every_trial_has_a_line(plain):
    ledger = Ledger(plain)
    ledger.tell_all([(GOOD, 0.125), (GOOD | {"layers": 4, "optimiser": "sgd", "momentum": 0.5}, None)])
    claim(ledger, 5, age=timedelta(minutes=65, seconds=1))
    Ledger(plain, "other").tell(GOOD, 0.1)
    head, *lines, others = listed(ledger)
    name = claim_id(ledger.trials[2])
    assert head == f"study 'study' in {plain}: 3 trials (1 running, 1 done, 1 failed)"
    assert [" ".join(line.split()) for line in lines] == [
        "0 done 0.125 learning_rate 0.01, layers 3, batch 32, optimiser adam",
        "1 failed - learning_rate 0.01, layers 4, batch 32, optimiser sgd, momentum 0.5",
        f"2 running claim {name}, 1 h 5 min ago by anna@lab learning_rate 0.01, layers 5, batch 32, optimiser adam",
    ]
    assert len({line.index("learning_rate") for line in lines}) == 1
    assert others == "other studies here (--study NAME): other"
    assert [line.split()[0] for line in listed(ledger, "running")[1:-1]] == ["2"]
    assert listed(Ledger(plain, "new"))[:1] == [f"study 'new' in {plain}: 0 trials (0 running, 0 done, 0 failed)"]
    unseal(plain)
    assert " of an older version, which did not note when" in listed(Ledger(plain))[3]


def test_trials_are_listed_as_they_are_told(plain, tmp_path):
    ledger, copy = Ledger(plain), Ledger(plain, "copy")
    ledger.tell_all([
        (GOOD | {"learning_rate": 0.1 + 0.2}, 0.1 + 0.7), (GOOD, None),
        (GOOD | {"layers": 4, "optimiser": "sgd", "momentum": 1 / 3}, 1e-30),
    ])  # fmt: skip
    finished = ledger.trials
    claim(ledger, 5)
    path = tmp_path / "told.csv"
    path.write_text("\n".join(to_tell(ledger)) + "\n")
    copy.tell_file(path)
    assert copy.trials == finished  # to the last digit
    assert to_tell(ledger, "running") == ["learning_rate,layers,batch,optimiser,momentum,error", "0.01,5,32,adam,,"]
    assert [line[-7:] for line in to_tell(ledger, "failed")[1:]] == [",failed"] and len(to_tell(ledger, "done")) == 3
    assert len(to_tell(Ledger(plain, "new"))) == 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (0, "0 s"), (59, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (3605, "1 h"), (90000, "1 d 1 h")],
)
def test_an_age_has_two_units(seconds, words):
    assert in_words(timedelta(seconds=seconds)) == words


def test_an_age_is_read_with_its_unit():
    assert age_in("90min") == timedelta(minutes=90) and age_in(" 1.5 h ") == timedelta(minutes=90)
    assert age_in("3d") == timedelta(days=3) and age_in("20s") == timedelta(seconds=20)
    assert age_in("9" * 30 + "d") == timedelta.max
    for text in ("", "3", "h", "3 weeks", "-2h", "2m"):
        with pytest.raises(ConfigError, match=f"age '{text}': write a number and its unit"):
            age_in(text)
