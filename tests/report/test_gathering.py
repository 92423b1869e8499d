"""What the report gathers: jobs followed from sidecar to sidecar, claims, files of artefacts."""

import json
from pathlib import Path

import pandas as pd
import pytest

from metabo.errors import ConfigError, DataError
from metabo.plan.entries import CatalogueEntry
from metabo.records.checksums import sealed
from metabo.report import gallery, html, jobs, page, scorecard

OUT = "results/smoke"
FIGURE = f"{OUT}/hyperbo/tables/hyperbo_fig08/provenance.json"
ROW = {
    "claim": "C01", "paper": "hyperbo", "headline": "1", "kind": "conceptual", "section": "§1", "statement": "S",
    "paper_value": "-", "role": "claim", "benchmark": "tables", "rung": "smoke", "artefact": "hyperbo_fig08",
    "reading": "once", "metrics": "area", "verdict": "undecided", "cause": "power", "value": "0.5", "low": "",
    "high": "", "suite_low": "", "suite_high": "", "new_low": "", "new_high": "", "unit": "nats", "clusters": "5",
    "power": "0.1", "needed": "60", "effect": "0.02", "said": "x",
}  # fmt: skip


def test_the_jobs_behind_an_artefact_are_those_it_was_made_from(copied):
    made = jobs.behind([FIGURE])
    assert {job.name: job.seconds for job in made.values()} == {
        "data/tables": 2.0, "priors/tables/held_out/h_nll": 100.0, "bo/tables/held_out/h_nll-pi": 50.0,
        "hyperbo/tables/hyperbo_fig08": 10.0,
    }  # fmt: skip
    rows = jobs.by_rule(made.values())
    assert [(row.rule, row.jobs, row.seconds) for row in rows] == [
        ("pretrain", 1, 100.0), ("run_bo", 1, 50.0), ("artefacts", 1, 10.0), ("load", 1, 2.0)
    ]  # fmt: skip
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    assert rows[0].longest == "priors/tables/held_out/h_nll" and rows[0].memory > 2**20


def test_a_job_without_a_benchmark_file_counts_with_its_wall_time(copied):
    Path(OUT, "benchmarks/data/tables.tsv").unlink()
    sidecar = Path(OUT, "data/tables.json")
    sidecar.write_text(json.dumps(sealed(json.loads(sidecar.read_text()) | {"wall_s": 7.5})))
    (job,) = jobs.behind([sidecar]).values()
    assert job.seconds == 7.5


def test_archives_and_files_of_the_package_are_followed_or_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (
        "results/smoke/archives/a.json",
        "src/metabo/collect/shipped/a.json",
        "results/smoke/x/provenance.json",
    ):
        Path(path).parent.mkdir(parents=True)
        Path(path).touch()
    assert jobs.sidecar_of("results/smoke/archives/a.tar.gz") == Path("results/smoke/archives/a.json")
    assert jobs.sidecar_of("src/metabo/collect/shipped/a.parquet") is None
    assert jobs.sidecar_of("results/smoke/x/data.csv") == Path("results/smoke/x/provenance.json")
    assert jobs.sidecar_of("results/smoke/archives/b.zip") is None


def test_an_artefact_older_than_its_inputs_is_told(copied):
    made = jobs.behind([FIGURE])
    assert jobs.outdated(made[FIGURE].record, made) == []
    sidecar = Path(OUT, "bo/tables/held_out/h_nll-pi.json")
    table = str(sidecar.with_suffix(".parquet"))
    sidecar.write_text(json.dumps(sealed(json.loads(sidecar.read_text()) | {"outputs": {table: "0" * 64}})))
    made = jobs.behind([FIGURE])
    assert jobs.outdated(made[FIGURE].record, made) == [table]


def test_several_environments_are_all_named(copied):
    sidecar = Path(OUT, "data/tables.json")
    record = json.loads(sidecar.read_text())
    changed = {"versions": record["versions"] | {"numpy": "0.1"}, "git": {"commit": "f" * 40, "dirty": True}}
    sidecar.write_text(json.dumps(sealed(record | changed | {"started": "2020-01-01T00:00:00+00:00"})))
    found = jobs.environment(jobs.behind([FIGURE]).values())
    assert found.versions["numpy"] == sorted({"0.1", record["versions"]["numpy"]})
    assert len(found.versions["scipy"]) == 1
    assert ("f" * 10 + " with changes", 1) in found.commits and sum(n for _, n in found.commits) == 4
    assert found.started == "2020-01-01T00:00:00+00:00" < found.finished


@pytest.mark.parametrize("content", ["{", "[]", '{"stage": "bo"}'])
def test_a_broken_sidecar_is_named(copied, content):
    Path(FIGURE).write_text(content)
    with pytest.raises(DataError, match=r"hyperbo_fig08/provenance.json: not .*run (again|the same command)"):
        jobs.behind([FIGURE])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wall_s": "7"}, "field 'wall_s' is '7', must be a number"),
        ({"inputs": []}, "field 'inputs' is [], must be an object"),
        ({"outputs": {"a.npz": None}}, "field 'outputs.a.npz' is None, must be text"),
        ({"device": {"kind": "cpu"}}, "field 'device.count' is missing"),
    ],
    ids=["number", "object", "text", "missing"],
)
def test_a_sidecar_with_a_wrong_field_is_told(copied, change, message):
    sidecar = Path(OUT, "data/tables.json")
    sidecar.write_text(json.dumps(sealed(json.loads(sidecar.read_text()) | change)))
    with pytest.raises(DataError) as refused:
        jobs.behind([FIGURE])
    assert str(refused.value) == f"{sidecar}: {message}; delete it and its result and run again"


def test_an_artefact_without_one_of_its_files_is_told(copied):
    made = jobs.behind([FIGURE])
    entries = {"hyperbo_fig08": CatalogueEntry("Regret", "hyperbo", "a/b.ipynb", "")}
    shown = gallery.entry(FIGURE, "hyperbo_fig08", entries, made, Path(OUT, "index.html"))
    assert shown.links["data.csv"] == "hyperbo/tables/hyperbo_fig08/data.csv" and shown.jobs == 4
    Path(FIGURE).with_name("figure.png").write_bytes(b"GIF89a")
    with pytest.raises(DataError, match=r"figure[.]png: not a PNG"):
        gallery.entry(FIGURE, "hyperbo_fig08", entries, made, Path(OUT, "index.html"))
    Path(FIGURE).with_name("notebook.html").unlink()
    with pytest.raises(DataError, match=r"no notebook.html; make the artefact again \(`snakemake .* hyperbo_fig08`\)"):
        gallery.entry(FIGURE, "hyperbo_fig08", entries, made, Path(OUT, "index.html"))


def written(path: Path, *rows: dict) -> Path:
    pd.DataFrame(list(rows)).to_csv(path, index=False)
    return path


def test_claims_are_grouped_and_counted(tmp_path):
    whole = ROW | {"claim": "C02", "verdict": "contradicted"}
    part, beside = whole | {"role": "part", "verdict": "holds"}, whole | {"role": "beside", "benchmark": "pd1"}
    first = written(tmp_path / "a.csv", ROW, whole, part, beside)
    second = written(tmp_path / "b.csv", ROW | {"paper": "mphd", "verdict": "not testable", "headline": "0"})
    table = scorecard.read([first, second])
    found = scorecard.claims(table)
    assert [(c.anchor, c.whole.verdict, len(c.parts), len(c.beside)) for c in found] == [
        ("claim-hyperbo-C01", "undecided", 0, 0),
        ("claim-hyperbo-C02", "contradicted", 1, 1),
        ("claim-mphd-C01", "not testable", 0, 0),
    ]  # fmt: skip
    assert scorecard.counts(found) == {"holds": 0, "contradicted": 1, "undecided": 1, "not testable": 1}
    assert scorecard.decided(found) == (1, 2)
    short = scorecard.scorecard(found)
    assert list(short) == [
        "paper", "claim", "headline", "kind", "benchmark", "rung", "source", "verdict", "cause", "value", "low", "high",
        "clusters", "power", "said",
    ]  # fmt: skip
    assert short["source"].tolist() == ["this run"] * 3
    assert short["claim"].tolist() == ["C01", "C02", "C01"] and short["power"].tolist() == [0.1] * 3
    assert scorecard.claims(scorecard.read([])) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ROW | {"verdict": "good"}], r"c.csv: row 2, claim C01: verdict 'good' is none of holds, contradicted"),
        ([ROW | {"role": "all"}], r"c.csv: row 2, claim C01: role 'all' is none of claim, part, beside"),
        ([ROW, ROW | {"claim": "C02", "low": "a"}], r"c.csv: row 3, column 'low': 'a' is not a number"),
        ([{k: v for k, v in ROW.items() if k != "said"}], r"c.csv: no column said"),
        ([ROW, ROW | {"benchmark": "pd1"}], r"claims of hyperbo: C01 has 2 rows of role 'claim' and 2 in all"),
        ([ROW | {"role": "part"}], r"claims of hyperbo: C01 has 0 rows of role 'claim' and 1 in all"),
    ],
)
def test_a_faulty_table_of_claims_is_told(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        scorecard.claims(scorecard.read([written(tmp_path / "c.csv", *rows)]))


def test_intervals_of_headline_claims_are_compared_with_the_effect(tmp_path):
    wide = ROW | {"low": "-0.2", "high": "0.4", "effect": "-0.1"}
    narrow = ROW | {"claim": "C02", "low": "0.1", "high": "0.2", "effect": "0.5"}
    others = (
        wide | {"claim": "C03", "headline": "0"}, ROW | {"claim": "C04"}, wide | {"claim": "C05", "effect": ""},
        wide | {"claim": "C06", "effect": "0"},
    )  # fmt: skip
    found = scorecard.widths(scorecard.claims(scorecard.read([written(tmp_path / "a.csv", narrow, *others, wide)])))
    assert [width.claim.whole.claim for width in found] == ["C01", "C02", "C05", "C06", "C04"]  # all headline claims
    assert [(w.half, w.effect, w.ratio) for w in found[:2]] == [
        pytest.approx((0.3, 0.1, 3.0)),
        pytest.approx((0.05, 0.5, 0.1)),
    ]
    assert [(w.half, w.effect, w.ratio) for w in found[2:]] == [
        (pytest.approx(0.3), None, None),
        (pytest.approx(0.3), None, None),
        (None, 0.02, None),
    ]


def test_numbers_are_written_with_interval_and_unit():
    empty = {name: float("nan") for name in scorecard.NUMBERS}
    row = scorecard.ClaimRow(**(ROW | empty))._replace(value=0.13333, low=0.0691, high=0.1934)
    assert scorecard.ours(row) == "0.133 [0.0691, 0.193] nats"
    assert scorecard.ours(row._replace(low=float("nan"), unit="")) == "0.133"
    assert scorecard.ours(row._replace(value=float("nan"))) == ""
    times = [html.duration(s) for s in (0.84, 34.4, 59.7, 723, 3900)]
    assert times == ["0.8 s", "34 s", "1 min 0 s", "12 min 3 s", "1 h 5 min"]


def test_every_paper_of_the_catalogue_is_described():
    from metabo.plan import catalogue

    root = Path(__file__).parents[2]
    papers = catalogue.papers(catalogue.load(root))
    assert set(page.about(papers)) == set(papers)
    with pytest.raises(ConfigError, match=r"unknown paper in papers.yaml 'hyprbo'\. Did you mean 'hyperbo'"):
        page.about(["hyprbo"])
