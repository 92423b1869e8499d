"""Verdicts of a scale that is judged in pieces: none is lost, and every one keeps its record."""

from pathlib import Path

import pytest

from metabo.errors import DataError
from metabo.evidence import adding, earlier, manifest
from metabo.records.files import digest
from tests.evidence.conftest import make, resealed

KEPT, SCALE, FOLDER = "evidence", "evidence/laptop", Path("results/laptop")


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def listed(folder, changed):
    """Let the manifest list a file as it is now, as a forger would."""
    files = manifest.read(folder)["files"]
    files[changed.relative_to(folder).as_posix()] = {"bytes": changed.stat().st_size, "sha256": digest(changed)}
    resealed(folder / manifest.NAME, files=files)


HEAD = "claim,role,verdict,said\n"
WAIT = "hyperbo_fig08 is not part of this run (config section run)"
FIRST = f"{HEAD}C01,claim,holds,a\nC02,claim,not testable,{WAIT}\nC02,beside,holds,b\nC04,claim,holds,a\n"
SECOND = f"{HEAD}C01,claim,not testable,{WAIT}\nC02,claim,holds,c\nC03,claim,not testable,no data\n"
ALL = f"{HEAD}C01,claim,undecided,d\nC02,claim,holds,d\nC03,claim,not testable,no data\n"


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Return a function that makes a run with a table of verdicts, adds it to the same evidence, and returns what was
    said."""

    def run(name, text, seed=0, methods=()):
        make(tmp_path / name, seed=seed, methods=methods, claims=text)
        monkeypatch.chdir(tmp_path / name)
        return adding.add(FOLDER, tmp_path / KEPT).line

    return run


def test_verdicts_that_a_run_lacks_stay_beside_its_own(judged, tmp_path):
    """A claim that is no more is dropped; one that only waits in the new run is not."""
    kept = tmp_path / SCALE
    judged("first", FIRST)
    before = (kept / "claims/hyperbo.json").read_bytes()
    assert judged("second", SECOND).endswith("; not judged in this run, so as judged before: C01")
    assert names(kept / "claims") == sorted(
        [f"{place}hyperbo{end}" for place in ("", "earlier/1/") for end in (".csv", ".json", "-gates.csv")]
    )
    assert (kept / "claims/hyperbo.csv").read_text() == SECOND
    assert (kept / "claims/earlier/1/hyperbo.csv").read_text() == FIRST
    assert (kept / "claims/earlier/1/hyperbo.json").read_bytes() == before
    assert manifest.flaws(kept, manifest.read(kept)) == []
    assert judged("second", SECOND).endswith("so as judged before: C01"), "the same once more changes nothing"
    assert [path.relative_to(kept).as_posix() for path in earlier.tables(kept)] == [
        "claims/hyperbo.csv", "claims/earlier/1/hyperbo.csv"
    ]  # fmt: skip


def test_an_earlier_judging_goes_when_every_claim_of_it_is_judged_again(judged, tmp_path):
    kept = tmp_path / SCALE
    judged("first", FIRST)
    judged("second", SECOND)
    assert judged("first", FIRST).endswith("judged before: C02"), "its claims do not list C03"
    assert (kept / "claims/earlier/2/hyperbo.csv").read_text() == SECOND
    assert not (kept / "claims/earlier/1/hyperbo.csv").exists()
    assert "judged before" not in judged("all", ALL)
    assert names(kept / "claims") == ["hyperbo-gates.csv", "hyperbo.csv", "hyperbo.json"]
    assert manifest.flaws(kept, manifest.read(kept)) == []


def test_an_earlier_judging_that_was_edited_is_found(judged, tmp_path):
    kept = tmp_path / SCALE
    judged("first", FIRST)
    judged("second", SECOND)
    path = kept / "claims/earlier/1/hyperbo.csv"
    path.write_text(FIRST.replace("holds", "undecided"))
    (flaw,) = manifest.flaws(kept, manifest.read(kept))
    assert "claims/earlier/1/hyperbo.csv: damaged or edited" in str(flaw)
    listed(kept, path)
    (flaw,) = manifest.flaws(kept, manifest.read(kept))
    assert "claims/earlier/1/hyperbo.json" in str(flaw) and "was made with or made another" in str(flaw)


def test_verdicts_on_results_that_a_run_replaces_do_not_stay(judged, tmp_path):
    judged("first", FIRST, methods=("h_nll",))
    record = tmp_path / SCALE / "claims/hyperbo.json"
    table = "results/laptop/bo/tiny/held_out/h_nll-pi.parquet"
    resealed(record, read={table: digest(tmp_path / SCALE / "bo/tiny/held_out/h_nll-pi.parquet")})
    listed(tmp_path / SCALE, record)
    before = names(tmp_path / SCALE)
    with pytest.raises(DataError, match=rf"no verdicts on C01, .*judged on another {table} than this run's; bring"):
        judged("second", SECOND, seed=1, methods=("h_nll",))
    assert names(tmp_path / SCALE) == before
