"""Verdicts of a scale that is judged in pieces: none is lost, and every one keeps its record."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from metabo import cli
from metabo.errors import DataError
from metabo.evidence import adding, earlier, losses, manifest
from metabo.plan import catalogue
from metabo.records.files import digest
from tests.evidence.conftest import make, resealed

SCALE, FOLDER = "evidence/laptop", Path("results/laptop")
HEAD = "claim,role,verdict,said\n"
WAIT = "hyperbo_fig08 is not part of this run (config section run)"
FIRST = f"{HEAD}C01,claim,holds,a\nC02,claim,not testable,{WAIT}\nC02,beside,holds,b\nC04,claim,holds,a\n"
SECOND = f"{HEAD}C01,claim,not testable,{WAIT}\nC02,claim,holds,c\nC03,claim,not testable,no data\n"
ALL = f"{HEAD}C01,claim,undecided,d\nC02,claim,holds,d\nC03,claim,not testable,no data\n"


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def listed(folder, changed):
    """Let the manifest list a file as it is now, as a forger would."""
    files = manifest.read(folder)["files"]
    files[changed.relative_to(folder).as_posix()] = {"bytes": changed.stat().st_size, "sha256": digest(changed)}
    resealed(folder / manifest.NAME, files=files)


@pytest.fixture
def kept(tmp_path):
    return tmp_path / SCALE


@pytest.fixture
def judged(tmp_path, kept, monkeypatch):
    """Return a function that makes a run with a table of verdicts, adds it to the same evidence, finds that as added,
    and returns what was said."""

    def run(name, text, seed=0, methods=(), **options):
        make(tmp_path / name, seed=seed, methods=methods, claims=text)
        monkeypatch.chdir(tmp_path / name)
        said = adding.add(FOLDER, kept.parent, **options).line
        assert manifest.flaws(kept, manifest.read(kept)) == []
        return said

    return run


def read(kept):
    """Return the claims that are read, by the folder of their table."""
    chosen = earlier.read_from(earlier.tables(kept)["hyperbo"])
    return {table.parent.name: "".join(sorted(claims)) for table, claims in chosen.items()}


def test_verdicts_that_a_run_lacks_stay_beside_its_own(judged, kept):
    judged("first", FIRST)
    before = (kept / "claims/hyperbo.json").read_bytes()
    assert judged("second", SECOND).endswith("; not judged in this run, so as judged before: C01")
    assert names(kept / "claims") == sorted(
        f"{place}hyperbo{end}" for place in ("", "earlier/hyperbo-1/") for end in (".csv", ".json", "-gates.csv")
    )
    assert (kept / "claims/hyperbo.csv").read_text() == SECOND
    assert (kept / "claims/earlier/hyperbo-1/hyperbo.csv").read_text() == FIRST
    assert (kept / "claims/earlier/hyperbo-1/hyperbo.json").read_bytes() == before
    assert read(kept) == {"claims": "C02C03", "hyperbo-1": "C01"}, "C04 is no more"
    after = names(kept)
    assert judged("second", SECOND).endswith("so as judged before: C01"), "the same once more changes nothing"
    assert names(kept) == after


def test_an_earlier_judging_goes_when_it_is_not_needed(judged, kept):
    judged("first", FIRST)
    judged("second", SECOND)
    assert judged("first", FIRST).endswith("judged before: C02"), "its claims do not list C03"
    assert (kept / "claims/earlier/hyperbo-2/hyperbo.csv").read_text() == SECOND
    assert not (kept / "claims/earlier/hyperbo-1/hyperbo.csv").exists()
    assert "judged before" not in judged("all", ALL)
    assert names(kept / "claims") == ["hyperbo-gates.csv", "hyperbo.csv", "hyperbo.json"]


def test_three_pieces_and_a_claim_that_none_judged_whole(judged, kept):
    """C02 rests on three artefacts: its verdict is that of the run that had two of them."""
    judged("one", f"{HEAD}C01,claim,holds,a\nC02,claim,not testable,{WAIT}\nC03,claim,not testable,{WAIT}\n")
    two = f"C02,part,holds,b\nC02,part,undecided,c\nC02,part,not testable,{WAIT}\n"
    judged("two", f"{HEAD}C01,claim,not testable,{WAIT}\nC02,claim,undecided,x\n{two}C03,claim,not testable,{WAIT}\n")
    less = f"C02,part,holds,b\nC02,part,not testable,{WAIT}\nC02,part,not testable,{WAIT}\n"
    said = judged("three", f"{HEAD}C01,claim,not testable,{WAIT}\nC02,claim,undecided,y\n{less}C03,claim,holds,d\n")
    assert said.endswith("judged before: C01, C02")
    assert read(kept) == {"claims": "C03", "hyperbo-2": "C02", "hyperbo-1": "C01"}


def test_an_earlier_judging_that_was_edited_is_found(judged, kept):
    judged("first", FIRST)
    judged("second", SECOND)
    path = kept / "claims/earlier/hyperbo-1/hyperbo.csv"
    path.write_text(FIRST.replace("holds", "undecided"))
    (flaw,) = manifest.flaws(kept, manifest.read(kept))
    assert "claims/earlier/hyperbo-1/hyperbo.csv: damaged or edited" in str(flaw)
    listed(kept, path)
    (flaw,) = manifest.flaws(kept, manifest.read(kept))
    assert "claims/earlier/hyperbo-1/hyperbo.json" in str(flaw) and "was made with or made another" in str(flaw)


@pytest.mark.parametrize("name", ["hyperbo.csv", "hyperbo-gates.csv", "hyperbo.json"])
@pytest.mark.parametrize("place", ["claims", "claims/earlier/hyperbo-1"])
def test_what_must_stay_is_as_it_was_added(judged, kept, name, place):
    judged("first", FIRST)
    if place != "claims":
        judged("second", SECOND)
    with (kept / place / name).open("a") as changed:
        changed.write("C01,beside,holds,more\n" if name.endswith("csv") else " ")
    before = names(kept)
    with pytest.raises(
        DataError, match=rf"{place}/{name}: not as it was added, and holds verdicts that this run lacks"
    ):
        judged("second", SECOND)
    assert names(kept) == before
    assert "judged before" not in judged("all", ALL), "what is not needed may be damaged"


def test_an_addition_that_ends_early_is_made_again(judged, kept, monkeypatch):
    """Losses take minutes: nothing is written before they are there."""
    judged("first", FIRST)
    before = names(kept)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(losses, "of_results", interrupted)
        with pytest.raises(KeyboardInterrupt):
            judged("second", SECOND)
    assert names(kept) == before
    judged("second", SECOND)
    assert read(kept) == {"claims": "C02C03", "hyperbo-1": "C01"}


@pytest.mark.parametrize("trajectories", [True, False])
def test_verdicts_on_results_that_a_run_replaces_do_not_stay(judged, kept, trajectories):
    """Whether or not the table itself is kept: the records have its checksum."""
    judged("first", FIRST, methods=("h_nll",), trajectories=trajectories)
    table = "results/laptop/bo/tiny/held_out/h_nll-pi.parquet"
    record = kept / "claims/hyperbo.json"
    resealed(record, read={table: digest(kept.parents[1] / "first" / table)})
    listed(kept, record)
    before = names(kept)
    with pytest.raises(
        DataError, match=rf"no verdicts on C01, which .*that judging read another {table} than this run"
    ):
        judged("second", SECOND, seed=1, methods=("h_nll",), trajectories=trajectories)
    assert names(kept) == before


TABLE = "bo/tiny/held_out/h_nll-pi.parquet"


def read_by_others(judged, kept, monkeypatch, tested="other", reader="tiny", **options):
    """Add a judging that read a table for claims tested on `tested`; artefacts on `reader` read that table."""
    monkeypatch.setattr(earlier, "readers", lambda _: {TABLE: {reader}})
    first = "claim,role,benchmark,verdict,said\n" + "".join(
        f"{claim},claim,{on},holds,a\n" for claim, on in [("C01", tested), ("C02", "tiny"), ("C04", "tiny")]
    )
    judged("first", first, methods=("h_nll",), **options)
    record = kept / "claims/hyperbo.json"
    resealed(record, read={str(FOLDER / TABLE): digest(kept.parents[1] / "first" / FOLDER / TABLE)})
    listed(kept, record)
    return kept / "claims/earlier/hyperbo-1/read" / TABLE


def test_what_only_other_benchmarks_read_may_be_replaced(judged, kept, monkeypatch):
    beside = read_by_others(judged, kept, monkeypatch)
    before = digest(kept / TABLE)
    assert judged("second", SECOND, seed=1, methods=("h_nll",)).endswith("as judged before: C01")
    assert read(kept) == {"claims": "C02C03", "hyperbo-1": "C01"}
    assert digest(beside) == before != digest(kept / TABLE)
    judged("third", SECOND, seed=2, methods=("h_nll",))
    assert digest(beside) == before, "what was read, and not what came between"
    beside.write_bytes(b"damaged")
    with pytest.raises(DataError, match="judged on another one, which is not kept"):
        judged("fourth", SECOND, seed=3, methods=("h_nll",))
    judged("all", ALL, seed=1, methods=("h_nll",))
    assert not beside.exists()


@pytest.mark.parametrize(
    ("tested", "reader"), [("tiny", "tiny"), ("other tiny", "tiny"), ("other", "control"), ("synthetic", "synthetic")]
)
def test_what_a_verdict_may_rest_on_is_not_replaced(judged, kept, monkeypatch, tested, reader):
    """Nor what the controls of methods rest on, which count on every benchmark."""
    read_by_others(judged, kept, monkeypatch, tested, reader)
    before = names(kept)
    with pytest.raises(DataError, match="no verdicts on C01"):
        judged("second", SECOND, seed=1, methods=("h_nll",))
    assert names(kept) == before


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"damaged"), lambda path: path.unlink()])
def test_what_moves_along_is_as_it_was_added(judged, kept, monkeypatch, damage):
    read_by_others(judged, kept, monkeypatch)
    damage(kept / TABLE)
    with pytest.raises(DataError, match=f"{TABLE}: not as it was added, and verdicts that stay were judged on it"):
        judged("second", SECOND, seed=1, methods=("h_nll",))


def test_what_was_not_kept_cannot_move_along(judged, kept, monkeypatch):
    read_by_others(judged, kept, monkeypatch, trajectories=False)
    with pytest.raises(DataError, match="judged on another one, which is not kept"):
        judged("second", SECOND, seed=1, methods=("h_nll",))


def test_verdicts_on_another_paper_keep_what_they_rest_on(judged, kept):
    """A run that judges one paper alone replaces nothing that the verdicts on others were judged on."""
    judged("first", FIRST, methods=("h_nll",))
    for name in ("hyperbo.csv", "hyperbo-gates.csv", "hyperbo.json"):
        path = kept / "claims" / name
        path.rename(path.with_name(name.replace("hyperbo", "mphd")))
    record = kept / "claims/mphd.json"
    outputs = {f"{FOLDER}/claims/mphd{end}.csv": digest(kept / f"claims/mphd{end}.csv") for end in ("", "-gates")}
    resealed(record, read={str(FOLDER / TABLE): digest(kept / TABLE)}, outputs=outputs)
    files = manifest.read(kept)["files"]
    files = {name.replace("claims/hyperbo", "claims/mphd"): listing for name, listing in files.items()}
    resealed(kept / manifest.NAME, files=files)
    listed(kept, record)
    assert manifest.flaws(kept, manifest.read(kept)) == []
    before = names(kept)
    with pytest.raises(DataError, match=r"claims/mphd.csv: has no verdicts on C01, C04, which mphd.json has"):
        judged("second", SECOND, seed=1, methods=("h_nll",))
    assert names(kept) == before
    judged("third", SECOND, methods=("h_nll",))


def test_the_catalogue_tells_who_reads_a_result():
    found = earlier.readers(catalogue.load())
    assert found["studies/mphd_divergence.parquet"] == {"synthetic"}
    assert found["bo/super_mini/held_out/h_nll-pi.parquet"] == {"super_mini"}
    assert found["theory/mphd/remark.json"] == {"synthetic"}


def test_the_command_tells_who_reads_what(monkeypatch):
    given = []
    monkeypatch.setattr(adding, "add", lambda *arguments: given.extend(arguments) or SimpleNamespace(line="added"))
    cli.main(["evidence", "add", "results/laptop"])
    assert "mphd_fig06" in given[-1]


def test_what_moves_counts_towards_the_limit(judged, kept, monkeypatch):
    judged("first", FIRST)
    monkeypatch.setattr(adding, "LIMIT", manifest.size(kept) + 100)
    with pytest.raises(DataError, match="at most"):
        judged("second", SECOND)
