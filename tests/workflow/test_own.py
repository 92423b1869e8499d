"""The workflow on a user's own files: what runs, what a changed file re-runs, and a clear end without files."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests import counts

ROOT = Path(__file__).parents[2]
RANDOM = "results/smoke/bo/own/held_out/rand-uniform.parquet"


def overlay(project: Path, benchmark: str = "own", spaces: int = 1) -> tuple[str, ...]:
    """Put the example into the project, once per space, and return the options that use it."""
    shutil.copytree(ROOT / "examples", project / "my files", dirs_exist_ok=True)
    folder = "my files/own_data"
    for i in range(spaces):
        shutil.copy(project / folder / "space.yaml", project / folder / f"space{i}.yaml")
        shutil.copy(project / folder / "history.csv", project / folder / f"history{i}.csv")
    settings = {
        "history": [f"{folder}/history{i}.csv" for i in range(spaces)],
        "space": [f"{folder}/space{i}.yaml" for i in range(spaces)],
    }
    (project / "own.yaml").write_text(yaml.safe_dump({"benchmarks": {benchmark: settings}}))
    return ("--configfile", "config/smoke.yaml", "own.yaml")


def planned(output: str) -> dict[str, int]:
    table = output.rsplit("Job stats:", 1)[1].split("total", 1)[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+) *$", table, re.M)}


@pytest.mark.parametrize(("benchmark", "spaces"), [("own", 1), pytest.param("own_spaces", 3, marks=pytest.mark.slow)])
def test_a_comparison_has_all_methods(project, snakemake, benchmark, spaces):
    status, output = snakemake(project, "-q", "rules", "-n", *overlay(project, benchmark, spaces), "--", benchmark)
    assert status == 0, output
    assert planned(output) == counts.behind(counts.settings("smoke"), benchmark)


@pytest.mark.slow
def test_braces_in_file_names_are_no_patterns(project, snakemake):
    """{scale} is a word of the rules, {x} is none."""
    overlay(project)
    folder = project / "my {x} files"
    (project / "my files/own_data").rename(folder)
    (folder / "history0.csv").rename(folder / "{scale} {.csv")
    settings = {"history": ["my {x} files/{scale} {.csv"], "space": ["my {x} files/space0.yaml"]}
    (project / "own.yaml").write_text(yaml.safe_dump({"benchmarks": {"own": settings}}))
    options = ("--configfile", "config/smoke.yaml", "own.yaml", "--", "results/smoke/data/own.npz")
    status, output = snakemake(project, *options)
    assert status == 0, output
    sidecar = json.loads((project / "results/smoke/data/own.json").read_text())
    assert {"my {x} files/{scale} {.csv", "my {x} files/space0.yaml"} <= set(sidecar["inputs"])
    with (folder / "{scale} {.csv").open("a") as stream:
        stream.write("\n")
    assert planned(snakemake(project, "-n", *options)[1]) == {"load": 1}


@pytest.mark.slow
def test_a_changed_file_is_noticed_and_missing_ones_are_told(project, snakemake):
    options = overlay(project)
    status, output = snakemake(project, *options, "--", RANDOM)
    assert status == 0, output
    sidecar = json.loads((project / "results/smoke/data/own.json").read_text())
    assert {"my files/own_data/history0.csv", "my files/own_data/space0.yaml"} <= set(sidecar["inputs"])
    assert sidecar["tasks"] == 7 and sidecar["points"] == 268
    assert "Nothing to be done" in snakemake(project, "-n", *options, "--", RANDOM)[1]
    history = project / "my files/own_data/history0.csv"
    history.write_text("\n".join(history.read_text().splitlines()[:-1]) + "\n")
    assert planned(snakemake(project, "-n", *options, "--", RANDOM)[1]) == {"load": 1, "pretrain": 1, "run_bo": 1}
    status, output = snakemake(project, "--configfile", "config/smoke.yaml", "--", "results/smoke/data/own.npz")
    assert status != 0 and "config key 'benchmarks.own.history' is empty" in output
