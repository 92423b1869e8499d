"""The files of a study are sealed and looked at value by value; those of the version before are taken, and sealed."""

import hashlib
import json
import math

import pytest

from metabo.data.history.description import Description
from metabo.errors import DataError
from metabo.records.checksums import SEAL, sealed
from metabo.records.files import canonical
from metabo.tuner import formats, journal, store
from metabo.tuner.ledger import Ledger
from tests.tuner.conftest import trials_of, unseal

GOOD = {"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"}
PAST = {"history": "history.csv", "space": "space", "studies": 4, "trials": 38, "layout": "", "accounts": []}
ACCOUNT = {"study": "d0", "read": 8, "used": 7, "failed": 0, "dropped": [], "notes": []}


@pytest.fixture
def told(plain):
    """A folder with a trial that is done, one that failed and one that is running; (folder, file of its trials)."""
    ledger = Ledger(plain)
    ledger.tell_all([(GOOD, 0.1), (GOOD | {"layers": 4}, None)])
    with ledger._held() as held:
        claim = {"by": "someone", "at": "2026-01-31T12:00:00+00:00"}
        ledger._claim(held, [ledger.description.read(GOOD | {"layers": 5})], claim)
    return plain, store.trials_path(plain, "study")


def refused(folder, *parts):
    with pytest.raises(DataError) as error:
        _ = Ledger(folder).trials
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


def test_every_file_is_sealed(told):
    folder, path = told
    head, *rows = path.read_bytes().splitlines(keepends=True)
    for content in (json.loads((folder / store.RECORD).read_text()), json.loads(head)):
        assert content == sealed(content) and content["format"] == formats.FORMAT
    assert [len(json.loads(row)["trials"]) for row in rows] == [1, 1, 1]  # a new file has a row for each trial
    before = hashlib.sha256(head).hexdigest()
    for row in rows:
        said = json.loads(row)
        payload = canonical(said["trials"])
        assert said[journal.CHAIN] == hashlib.sha256((before + payload).encode()).hexdigest()
        before = said[journal.CHAIN]


@pytest.mark.parametrize(
    ("old", "new"),
    [('"outcome":0.1', '"outcome":0.2'), ('"done"', '"dome"'), (SEAL, "record_sha257"), ('"format":3', '"format":2'),
     ('"layers":3', '"layers":4'), ('"outcome":0.1', '"outcome":NaN'), ('"failed"', '"falled"'), ("chain_", "chaim_"),
     ("0.1,", "0.1, ")],
)  # fmt: skip
def test_a_change_of_a_file_of_trials_is_seen(told, old, new):
    folder, path = told
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    refused(folder, str(path), "sha256", "restore a copy", "if the change is yours, delete its first line")
    with pytest.raises(DataError, match="sha256"):  # and nothing is written over it
        Ledger(folder).tell(GOOD, 0.3)
    assert path.read_text() == text.replace(old, new, 1)


@pytest.mark.parametrize("missing", [1, 2])
def test_a_row_that_is_gone_is_seen(told, missing):
    """The last one, where nothing stands behind it, cannot be missed: a kill leaves the same."""
    folder, path = told
    Ledger(folder).tell(GOOD | {"layers": 6}, 0.6)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:missing] + lines[missing + 1 :]))
    refused(folder, str(path), f"damaged or edited since it was written (the row after {missing - 1} trials")


@pytest.mark.parametrize(
    ("old", "new"),
    [('"spread": 1.0', '"spread": 2.0'), ('"format": 3', '"format": 1'), (SEAL, "record_sha257"),
     ('"high": 6', '"high": 7'), ('"a remark"', '"no remark"')],
)  # fmt: skip
def test_a_change_of_the_record_is_seen(told, old, new):
    folder, _ = told
    text = (folder / store.RECORD).read_text()
    assert old in text
    (folder / store.RECORD).write_text(text.replace(old, new, 1))
    refused(folder, f"{folder / store.RECORD}: ", SEAL, "make it again with metabo pretrain (trials stay)")


def test_every_bit_counts(told):
    """Whatever single character is another one: the file is refused, or says the same."""
    folder, path = told
    good, before = path.read_bytes(), Ledger(folder).trials
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        try:
            assert Ledger(folder).trials == before
        except DataError:
            continue


def test_a_row_that_a_kill_left_unfinished_does_not_count_and_goes(told):
    """Wherever it ends: the trials before it are all there, and the next change takes it away."""
    folder, path = told
    whole = path.read_bytes()
    Ledger(folder).tell(GOOD | {"layers": 6}, 0.6)
    row = path.read_bytes()[len(whole) :]
    tails = [row[:end] for end in (1, 30, 90, len(row) - 2)] + [row[:40] + b"\0" * 60 + row[100:]]
    for tail in tails:
        path.write_bytes(whole + tail)
        assert [one["number"] for one in Ledger(folder).trials] == [0, 1, 2]
        assert path.read_bytes() == whole + tail  # reading changes nothing
        Ledger(folder).tell(GOOD | {"layers": 2}, 0.7)
        assert [one["outcome"] for one in Ledger(folder).trials] == [0.1, None, None, 0.7]
        assert all(json.loads(line) for line in path.read_bytes().splitlines())
    path.write_bytes(whole + row[:-1])  # all of the row but its end of line: it may count
    assert len(Ledger(folder).trials) == 4
    Ledger(folder).tell(GOOD | {"layers": 2}, 0.7)
    assert [one["outcome"] for one in Ledger(folder).trials] == [0.1, None, None, 0.6, 0.7]


def as_format_2(path):
    """What the version before journals would have written."""
    content = sealed({"format": 2, "trials": trials_of(path)})
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("older", [1, 2])
def test_files_of_older_versions_are_taken_and_become_journals_when_they_are_written(told, older):
    folder, path = told
    unseal(folder) if older == 1 else as_format_2(path)
    text = path.read_bytes()
    before = Ledger(folder).trials
    assert [one["state"] for one in before] == ["done", "failed", "running"] and ("claim" in before[2]) == (older == 2)
    Ledger(folder, "other").tell(GOOD, 0.5)
    assert sealed(record := json.loads((folder / store.RECORD).read_text())) == record
    assert record["format"] == formats.FORMAT  # an older version then says that it is too old
    if older == 1:
        assert record["past"][0]["layout"] == "" and record["past"][0]["accounts"] == []  # which it did not say
    assert path.read_bytes() == text  # each file at its own first change
    Ledger(folder).tell(GOOD | {"layers": 5}, 0.2)
    assert [one["outcome"] for one in Ledger(folder).trials] == [0.1, None, 0.2]
    assert path.read_bytes().startswith(journal.HEAD)


def test_a_change_of_a_file_of_the_version_before_is_seen(told):
    folder, path = told
    as_format_2(path)
    path.write_text(path.read_text().replace("0.1", "0.2", 1))
    refused(folder, str(path), SEAL, "leave only the list [...] of trials")


@pytest.mark.parametrize("kind", ["list", "rows"])
def test_trials_that_their_user_changed_are_sealed_again(told, kind):
    folder, path = told
    if kind == "list":
        path.write_text(json.dumps(trials_of(path)[:2]))
    else:
        path.write_text("".join(path.read_text().replace("0.1", "0.15").splitlines(keepends=True)[1:]))
    last = [None] if kind == "rows" else []
    Ledger(folder).tell(GOOD | {"layers": 6}, 0.6)
    first = 0.1 if kind == "list" else 0.15
    assert [one["outcome"] for one in Ledger(folder).trials] == [first, None, *last, 0.6]
    assert path.read_bytes().startswith(journal.HEAD)


@pytest.mark.parametrize(
    ("line", "part"),
    [("[3]", "line 2 is no row of trials"), ('{"trials":[{"number":1}]}', "trial 1: field 'state' is missing")],
)
def test_a_fault_in_edited_rows_is_named(told, line, part):
    folder, path = told
    path.write_text("\n".join([path.read_text().splitlines()[1], line, ""]))
    refused(folder, f"{path}: {part}", "correct that line, or restore a copy")


@pytest.mark.parametrize("gone", [0, 1])
def test_a_trial_that_its_user_deleted_takes_no_other_along(told, gone):
    folder, path = told
    rows = path.read_text().splitlines(keepends=True)[1:]
    path.write_text("".join([*rows[:gone], *rows[gone + 1 :], rows[2]]))  # the last one replaces that of its number
    before, left = [0.1, None, None], Ledger(folder).trials
    assert [one["outcome"] for one in left] == before[:gone] + before[gone + 1 :]
    assert [one["number"] for one in left] == [0, 1] and left[1]["state"] == "running"
    Ledger(folder).tell(GOOD | {"layers": 6}, 0.6)
    assert [one["number"] for one in Ledger(folder).trials] == [0, 1, 2]


@pytest.mark.parametrize("number", ['"1"', "-1", "1.5", "true", "null"])
def test_an_edited_number_that_is_none_is_named(told, number):
    folder, path = told
    path.write_text("".join(path.read_text().replace('"number":1', f'"number":{number}').splitlines(keepends=True)[1:]))
    refused(folder, f"{path}: trial 1: field 'number' is", "correct that line")


def test_what_others_tell_is_seen_by_a_ledger_that_is_open(told):
    """It looks at the new rows alone; after another change of the file, at all of it."""
    folder, _ = told
    one, other = Ledger(folder), Ledger(folder)
    for layers in (1, 2):
        assert one.tell(GOOD | {"layers": layers}, 0.3)["number"] == 2 * layers + 1
        assert other.tell(GOOD | {"layers": layers, "batch": 16}, 0.3)["number"] == 2 * layers + 2
    other.release()
    assert one.tell(GOOD | {"layers": 1, "batch": 64}, 0.3)["number"] == 6
    assert one.trials == other.trials and [t["number"] for t in one.trials] == list(range(7))


def test_telling_looks_at_the_new_trials_alone(plain, monkeypatch):
    """A trial is read, checked and compared a fixed number of times, however many were told before."""
    ledger, counts = Ledger(plain), []
    looked = []
    for owner, name in ((journal, "_put"), (formats, "_trial"), (Description, "same")):
        true = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, true=true: looked.append(1) or true(*given))
    sizes = []
    ledger.tell(GOOD, 0.1)
    for told in (10, 300):
        ledger.tell_all([(GOOD | {"learning_rate": 1e-3 + 1e-6 * told + 1e-5 * n}, 0.1) for n in range(told)])
        looked.clear()
        size = store.trials_path(plain, "study").stat().st_size
        ledger.tell(GOOD | {"learning_rate": 0.5 + told / 1000}, 0.1)
        counts.append(len(looked))
        sizes.append(store.trials_path(plain, "study").stat().st_size - size)
    assert counts[0] == counts[1] <= 3 and max(sizes) < 400


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"state": "paused"}, "field 'state' is 'paused', must be one of running, done, failed"),
        ({"outcome": math.nan}, "field 'outcome' is nan, must be a finite number"),
        ({"outcome": math.inf}, "field 'outcome' is inf, must be a finite number"),
        ({"outcome": None}, "field 'outcome' is None, must be a number"),
        ({"outcome": "0.1"}, "field 'outcome' is '0.1', must be a number"),
        ({"outcome": True}, "field 'outcome' is True, must be a number"),
        ({"state": "failed"}, "field 'outcome' is 0.1, must be null: the trial is failed"),
        ({"state": "running"}, "field 'outcome' is 0.1, must be null: the trial is running"),
        ({"number": 1}, "field 'number' is 1, not its place"),
        ({"number": "0"}, "field 'number' is '0', must be a number"),
        ({"parameters": []}, "field 'parameters' is [], must be an object"),
        ({"parameters": GOOD | {"layers": 9}}, "parameter 'layers': 9 is outside [1, 6]"),
        ({"parameters": GOOD | {"learning_rate": math.nan}}, "parameter 'learning_rate': nan is not a number"),
        ({"parameters": {"layers": 3}}, "parameter 'learning_rate' has no value"),
        ({"parameters": GOOD | {"width": 3}}, "unknown parameter 'width'"),
        ({"note": 1}, "field 'note' is unknown"),
        ({"claim": {"by": "a", "at": "2026-01-31T12:00:00+00:00"}}, "field 'claim' is of a running trial"),
    ],
)
def test_a_value_that_no_trial_has_is_named(told, change, part):
    folder, path = told
    first, *rest = trials_of(path)
    path.write_text(json.dumps([first | change, *rest]))
    refused(folder, f"{path}: trial 0: ", part, "restore a copy, or move the file away")


@pytest.mark.parametrize("key", ["number", "parameters", "state", "outcome"])
def test_a_key_that_a_trial_lacks_is_named(told, key):
    folder, path = told
    first, *rest = trials_of(path)
    del first[key]
    path.write_text(json.dumps([first, *rest]))
    refused(folder, f"{path}: trial 0: field '{key}' is missing")


@pytest.mark.parametrize(
    ("claim", "part"),
    [
        (3, "field 'claim' is 3, must be an object"),
        ({"at": "2026-01-31T12:00:00+00:00"}, "field 'by' is missing"),
        ({"by": "a"}, "field 'at' is missing"),
        ({"by": "a", "at": "yesterday"}, "field 'claim.at' is 'yesterday', must be a time"),
        ({"by": "a", "at": "2026-01-31T12:00:00"}, "must be a time"),  # of no time zone
    ],
)
def test_a_claim_says_who_and_when(told, claim, part):
    folder, path = told
    trials = trials_of(path)
    trials[2]["claim"] = claim
    path.write_text(json.dumps(trials))
    refused(folder, f"{path}: trial 2: ", part.replace("'by'", "'claim.by'").replace("'at'", "'claim.at'"))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[{", "cannot be read (Expecting property name"),
        ("[" * 100_000, "cannot be read (maximum recursion"),
        ("3", "not a file of a study"),
        ("[3]", "trial 0 is no object"),
        ('{"trials": []}', "field 'format' is missing"),
        ('{"format": 2, "trials": []}', f"field '{SEAL}' is missing"),
        ('{"format": 1}', "field 'trials' is missing"),
        ('{"format": 1, "trials": 3}', "field 'trials' is no list"),
    ],
)
def test_a_file_that_holds_no_trials_is_named(told, text, part):
    folder, path = told
    path.write_text(text)
    refused(folder, f"{path}: ", part, "restore a copy, or move the file away")


def test_a_newer_format_is_named_as_such(told):
    folder, path = told
    for content in ({"format": 4, "trials": []}, {"format": 4}):
        path.write_text(json.dumps(sealed(content)) + "\n")
        refused(folder, "format 4 is that of a newer version of metabo; use that one")


def record_without(folder, key):
    path = folder / store.RECORD
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != key}))


@pytest.mark.parametrize(
    "key", ["space", "scale", "spec", "past", "remarks", "prior", "checksum", "format"]
)  # fmt: skip
def test_a_key_that_the_record_lacks_is_named(plain, key):
    unseal(plain)
    record_without(plain, key)
    refused(plain, f"{plain / store.RECORD}: field '{key}' is missing; restore a copy, or make it again")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"scale": {"centre": 0.0, "spread": 1.0}}, "field 'scale.worst' is missing"),
        ({"scale": {"centre": math.nan, "spread": 1.0, "worst": -2.0}}, "field 'scale' is"),
        ({"scale": {"centre": 0.0, "spread": 0.0, "worst": -2.0}}, "not finite or no spread"),
        ({"prior": "../../elsewhere.npz"}, "field 'prior' is '../../elsewhere.npz', not as it is written"),
        ({"checksum": "x"}, "field 'checksum' is 'x'"),
        ({"spec": {}}, "field 'spec.method' is missing"),
        ({"past": [{}]}, "field 'past.0.history' is missing"),
        ({"past": [PAST | {"layout": None}]}, "field 'past.0.layout' is None, must be text"),
        ({"past": [PAST | {"accounts": {}}]}, "field 'past.0.accounts' is {}, must be a list of objects"),
        ({"past": [PAST | {"accounts": [ACCOUNT | {"used": "7"}]}]}, "field 'past.0.accounts.0.used' is '7', must be"),
        ({"past": [PAST | {"accounts": [ACCOUNT | {"notes": [1]}]}]}, "'past.0.accounts.0.notes' is no list of texts"),
        (
            {"past": [PAST | {"accounts": [ACCOUNT | {"dropped": [{"reason": "bad", "rows": ["3"]}]}]}]},
            "field 'past.0.accounts.0.dropped.0.rows' is ['3'], must be a list of numbers",
        ),
        ({"remarks": [1]}, "field 'remarks' is no list of texts"),
        ({"format": 0}, "field 'format' is 0, must be 3"),
        ({"space": {"name": "s"}}, "key 'parameters' is missing"),
    ],
)
def test_a_value_that_no_record_has_is_named(plain, change, part):
    unseal(plain)
    path = plain / store.RECORD
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(Exception, match=r"study\.json") as error:
        _ = Ledger(plain).description
    assert part in str(error.value)


def test_what_could_not_be_read_again_is_not_written(told):
    folder, path = told
    before = path.read_bytes()
    ledger = Ledger(folder)
    claim = {"by": "someone", "at": "2026-01-31T12:00:00+00:00"}
    with ledger._held() as held, pytest.raises(DataError, match=r"trial 3: parameter 'layers': 9 is outside"):
        ledger._claim(held, [held.index.trials[0]["parameters"] | {"layers": 9}], claim)
    assert path.read_bytes() == before
