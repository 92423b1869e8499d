"""Two runs that differ in the seed: what changed is named, and tables that cannot be compared are refused."""

import json

import pandas as pd
import pytest
import seeds

from metabo.errors import DataError
from metabo.report import scorecard


@pytest.fixture
def run(tmp_path):
    """Return a function (name, rows, code) that writes a folder of verdicts; a row is claim, role, verdict, value, low,
    high."""

    def write(name: str, rows: list[tuple], code: str = "a"):
        folder = tmp_path / name
        folder.mkdir()
        columns = ["claim", "role", "verdict", "value", "low", "high"]
        table = pd.DataFrame(rows, columns=columns).assign(paper="mphd", headline="0")
        table.reindex(columns=scorecard.COLUMNS).to_csv(folder / "mphd.csv", index=False)
        (folder / "mphd-gates.csv").write_text("not a table of claims\n")
        (folder / "mphd.json").write_text(json.dumps({"code_sha256": code}))
        return folder

    return write


FIRST = [
    ("M1", "claim", "holds", 1.0, 0.5, 1.5),
    ("M1", "part", "holds", 1.0, 0.5, 1.5),
    ("M1", "part", "undecided", 0.2, -0.5, 0.9),
    ("M2", "claim", "undecided", 0.2, -0.5, 0.9),
    ("M3", "claim", "not testable", None, None, None),
]


def test_what_changed_and_what_turned_is_named(run, tmp_path, capsys):
    second = [
        ("M1", "claim", "contradicted", -1.0, -1.5, -0.5),
        ("M1", "part", "contradicted", -1.0, -1.5, -0.5),
        ("M1", "part", "undecided", 0.3, -0.4, 1.0),
        ("M2", "claim", "holds", 0.6, 0.1, 1.1),
        ("M3", "claim", "not testable", None, None, None),
    ]
    seeds.main([str(run("one", FIRST)), str(run("two", second)), "--out", str(tmp_path / "both.csv")])
    said = capsys.readouterr().out.splitlines()
    assert said.pop(0) == "papers judged in both: mphd" and said[0].startswith("claims: 1 of 3 have the same verdict")
    assert any(line.startswith("tests: 2 of 4") for line in said)  # both parts, and M2 and M3, which have none
    turned = [line for line in said if line.startswith("turned: ")]
    assert turned == ["turned: mphd M1, , : holds 1 [0.5, 1.5], then contradicted -1 [-1.5, -0.5]"] * 2
    assert "mphd M2: undecided 0.2 [-0.5, 0.9], then holds 0.6 [0.1, 1.1]" in said
    assert said[-1] == "numbers in the interval of the other run: 4 of 6"
    both = pd.read_csv(tmp_path / "both.csv")
    assert list(both["verdict_second"]) == [row[2] for row in second] and list(both["order"]) == [0, 0, 1, 0, 0]


def test_a_run_agrees_with_itself(run, tmp_path):
    rows = seeds.read(run("one", FIRST), ["mphd"])
    both = seeds.joined(rows, rows)
    assert seeds.turned(both).empty and seeds.covered(both) == (8, 8)
    assert [line for line in seeds.report(both) if line.startswith("mphd ")] == []


def test_runs_that_cannot_be_compared_are_refused(run, tmp_path, capsys):
    one = run("one", FIRST)
    with pytest.raises(DataError, match=r"mphd: .* were not judged by the same code"):
        seeds.papers(one, run("other", FIRST, code="b"))
    less = run("less", FIRST[:-1])
    assert seeds.papers(one, less) == ["mphd"]
    with pytest.raises(DataError, match="1 tests are in one run only, the first: mphd M3"):
        seeds.joined(seeds.read(one, ["mphd"]), seeds.read(less, ["mphd"]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match="1"):
        seeds.main([str(one), str(tmp_path / "empty"), "--out", str(tmp_path / "both.csv")])
    assert "no paper was judged in both" in capsys.readouterr().err and not (tmp_path / "both.csv").exists()
