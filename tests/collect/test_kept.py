"""Collections that survive their checkout: journals and finished tables in a folder that METABO_COLLECTED names."""

import json
from argparse import Namespace
from types import SimpleNamespace

import pandas as pd
import pytest

from metabo.collect import kept, shipped
from metabo.collect.journal import Journal
from metabo.errors import ConfigError, DataError
from metabo.plan import codegraph, collectors, digests
from metabo.plan.specs import CollectSpec
from metabo.plan.typed import Values, plain
from metabo.records.checksums import sealed
from metabo.records.files import digest
from metabo.stages import collect

SPEC = CollectSpec("pd1_mini", 0, Values({"matched": 3, "repeats": 2}), "phoneme-mlp-128", 2)
PLACE = "smoke/pd1_mini_2/phoneme-mlp-128"


class Stopped(Exception):
    pass


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """A collector of three trials; `trained.most` of them before it is stopped."""
    state = SimpleNamespace(names=[], most=99)

    def trial_by_trial(unit, sizes, seed, journal):
        for name in ("a", "b", "c"):
            if name not in journal.records:
                if len(state.names) == state.most:
                    raise Stopped
                state.names.append(name)
                journal.add({name: {"status": "done", "value": ord(name)}})
        rows = [{"trial_id": name, **journal.records[name]} for name in ("a", "b", "c")]
        return pd.DataFrame(rows)

    monkeypatch.setattr(collectors, "collector", lambda name: SimpleNamespace(collect=trial_by_trial))
    monkeypatch.delenv(kept.VARIABLE, raising=False)
    return state


def run(project, spec=SPEC):
    """Run the stage in a clone; return what it tells."""
    folder = project / "results" / "collect"
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "phoneme-mlp-128.parquet"
    told = collect.work(Namespace(journal=str(project / f".cache/collect/{PLACE}.jsonl"), out=str(out)), spec)
    record = {"schema": 2, "spec": plain(spec), "outputs": {out.name: digest(out)}, "wall_s": 7.5, **told}
    out.with_suffix(".json").write_text(json.dumps(sealed(record)))
    return told


def test_a_journal_goes_on_in_another_clone(trained, tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setenv(kept.VARIABLE, str(folder))
    trained.most = 2
    with pytest.raises(Stopped):
        run(tmp_path / "first")
    assert (folder / f"{PLACE}.jsonl").read_text().count("\n") == 2 and not (tmp_path / "first/.cache").exists()
    trained.most = 99
    told = run(tmp_path / "second")
    assert (told["trials"], told["resumed_trials"], trained.names) == (3, 2, ["a", "b", "c"])
    # it stays, so that a third clone trains nothing
    assert run(tmp_path / "third")["resumed_trials"] == 3 and trained.names == ["a", "b", "c"]


def test_without_the_folder_the_journal_is_in_the_clone_and_goes_when_the_unit_is_finished(trained, tmp_path):
    run(tmp_path)
    assert not (tmp_path / f".cache/collect/{PLACE}.jsonl").exists() and trained.names == ["a", "b", "c"]
    run(tmp_path)
    assert len(trained.names) == 6


def carried(first, folder):
    """Put the finished table of a clone with its sidecar into the folder."""
    (folder / PLACE).parent.mkdir(parents=True)
    for suffix in (".parquet", ".json"):
        made = first / "results/collect/phoneme-mlp-128.parquet"
        (folder / PLACE).with_suffix(suffix).write_bytes(made.with_suffix(suffix).read_bytes())


def test_a_finished_table_is_taken(trained, tmp_path, monkeypatch, capsys):
    run(tmp_path / "first")
    carried(tmp_path / "first", tmp_path / "kept")
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path / "kept"))
    told = run(tmp_path / "second")
    assert (told["resumed_trials"], told["taken"]["wall_s"], len(trained.names)) == (3, 7.5, 3)
    assert "phoneme-mlp-128.parquet: taken, its trials are finished" in capsys.readouterr().out
    tables = [tmp_path / f"{clone}/results/collect/phoneme-mlp-128.parquet" for clone in ("first", "second")]
    assert tables[0].read_bytes() == tables[1].read_bytes()
    run(tmp_path / "third", CollectSpec("pd1_mini", 1, SPEC.sizes, SPEC.unit, 2))
    assert len(trained.names) == 6 and "not taken, it was made with other settings" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: {**r, kept.CODE: "0"}, "it was trained by other code"),
        (lambda r: {**r, "outputs": {"a": "0"}}, "it is not as its job wrote it"),
        (lambda r: {key: value for key, value in r.items() if key != kept.CODE}, "it was trained by other code"),
    ],
)
def test_a_table_of_other_code_or_a_damaged_one_is_not_taken(trained, tmp_path, monkeypatch, capsys, change, reason):
    run(tmp_path / "first")
    carried(tmp_path / "first", tmp_path / "kept")
    sidecar = (tmp_path / "kept" / PLACE).with_suffix(".json")
    sidecar.write_text(json.dumps(sealed(change(json.loads(sidecar.read_text())))))
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path / "kept"))
    assert run(tmp_path / "second")["resumed_trials"] == 0
    assert f"not taken, {reason}" in capsys.readouterr().out and len(trained.names) == 6


def test_a_table_without_its_record_is_not_taken(trained, tmp_path, monkeypatch, capsys):
    run(tmp_path / "first")
    carried(tmp_path / "first", tmp_path / "kept")
    (tmp_path / "kept" / PLACE).with_suffix(".json").unlink()
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path / "kept"))
    run(tmp_path / "second")
    assert "phoneme-mlp-128.parquet: not taken, " in capsys.readouterr().out and len(trained.names) == 6


def test_a_folder_that_is_none_is_told(trained, tmp_path, monkeypatch):
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path / "no"))
    with pytest.raises(ConfigError, match=r"environment variable METABO_COLLECTED: '.*no' is no folder; make it"):
        run(tmp_path)


def test_what_trials_depend_on_is_the_code_that_trains_alone():
    """So an edit of a plan or of a stage loses no trial."""
    files = {path.name for path in codegraph.inputs([collectors.collector_module("pd1_mini")])}
    assert {"networks.py", "training.py", "images.py", "text.py", "tabular.py", "keys.py", "repeats.py"} <= files
    assert not {"registry.py", "collectors.py", "collect.py", "shipped.py", "kept.py", "specs.py"} & files
    assert digests.together(codegraph.inputs([collectors.collector_module("pd1_mini")]))


def test_journals_of_other_code_are_set_aside_one_by_one(tmp_path):
    for key in ("one", "two", "three"):
        Journal(tmp_path / "a.jsonl", key).add({"a": {"value": key}})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "a.old", "a.old1"]
    assert all(path.read_text() for path in tmp_path.iterdir())


def test_the_newest_version_is_that_of_the_last_table(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    assert shipped.newest("mini") == 1
    for name in ("mini", "mini_2"):
        (tmp_path / f"{name}.parquet").touch()
    assert shipped.newest("mini") == 2 and shipped.table_path("mini", 2).name == "mini_2.parquet"
    with pytest.raises(DataError, match=r"the shipped table or its record mini_3\.json is missing; restore both"):
        shipped.read("mini", version=3)
