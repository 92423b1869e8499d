"""A journal keeps finished trials through a kill, and never those of another setting or of torn lines."""

import json

from metabo.collect.journal import Journal


def test_finished_trials_survive(tmp_path):
    path = tmp_path / "deep" / "unit.jsonl"
    journal = Journal(path, "a")
    journal.add({"0": {"error": 0.1}, "1": {"error": None}})
    journal.add({"2": {"error": 0.3}})
    assert Journal(path, "a").records == {"0": {"error": 0.1}, "1": {"error": None}, "2": {"error": 0.3}}


def test_a_torn_line_is_dropped_and_does_not_spoil_later_ones(tmp_path):
    path = tmp_path / "unit.jsonl"
    Journal(path, "a").add({"0": {"error": 0.1}, "1": {"error": 0.2}})
    text = path.read_text()
    path.write_text(text[:-7])
    torn = Journal(path, "a")
    assert torn.records == {"0": {"error": 0.1}}
    torn.add({"1": {"error": 0.25}})
    assert Journal(path, "a").records == {"0": {"error": 0.1}, "1": {"error": 0.25}}


def test_other_settings_start_afresh(tmp_path):
    path = tmp_path / "unit.jsonl"
    Journal(path, "a").add({"0": {"error": 0.1}})
    first = path.read_text()
    assert Journal(path, "b").records == {}
    assert path.with_suffix(".old").read_text() == first
    assert Journal(path, "a").records == {}  # b's journal is there now


def test_an_empty_or_foreign_file_is_no_record(tmp_path):
    path = tmp_path / "unit.jsonl"
    for content in ("", "not json\n", json.dumps({"trial": "0", "result": {}}) + "\n"):
        path.write_text(content)
        assert Journal(path, "a").records == {}


def test_remove(tmp_path):
    journal = Journal(tmp_path / "unit.jsonl", "a")
    journal.remove()
    assert list(tmp_path.iterdir()) == []
    journal.remove()
