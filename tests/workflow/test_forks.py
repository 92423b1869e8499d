"""The process that forks for each command of Snakemake: a command sees what one of its own process would see."""

import os
import subprocess
import sys

import pytest

from tests.workflow import forks

SNAKEFILE = """
import json, os, sys
seen = {"where": os.getcwd(), "given": os.environ.get("GIVEN"), "own": os.environ.get("OWN"), "path": sys.path[0]}
seen |= {"ours": [name for name in sys.modules if name.partition(".")[0] == "metabo"]}
print("SEEN", json.dumps(seen, sort_keys=True))
os.environ["OWN"] = "of the command before"
rule all:
    shell: "echo made; exit {config[status]}"
"""


@pytest.fixture
def run(tmp_path):
    process = forks.Forks()

    def command(name: str, status: int, **given: str) -> tuple[int, str]:
        where = tmp_path / name
        where.mkdir()
        (where / "Snakefile").write_text(SNAKEFILE)
        arguments = ["--cores", "1", "--config", f"status={status}"]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | given
        code = process.run(where, arguments, environment, tmp_path / f"{name}.txt")
        alone = subprocess.run(
            [sys.executable, "-m", "snakemake", *arguments], cwd=where, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        said = [line for line in (tmp_path / f"{name}.txt").read_text().splitlines() if "SEEN" in line]
        assert code == alone.returncode and said == [line for line in alone.stdout.splitlines() if "SEEN" in line]
        return code, said[0]

    yield command
    process.end()


def test_a_command_has_its_own_folder_environment_and_status(run, tmp_path):
    first, second = run("first", 0, GIVEN="1"), run("second", 3)
    assert first[0] == 0 and '"given": "1", "ours": [], "own": null' in first[1]
    assert second[0] == 1 and '"given": null' in second[1] and '"own": null' in second[1]
    assert f'"path": "{tmp_path / "first"}"' in first[1] and f'"where": "{tmp_path / "second"}"' in second[1]


def test_a_command_that_does_not_end_is_killed(tmp_path, monkeypatch):
    (tmp_path / "Snakefile").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(forks, "SECONDS", 5)
    process = forks.Forks()
    with pytest.raises(TimeoutError, match="snakemake -n: not ended after 5 s"):
        process.run(tmp_path, ["-n"], dict(os.environ), tmp_path / "output")
    process.end()


def test_a_process_that_was_killed_is_told_and_the_next_command_has_a_new_one(tmp_path):
    (tmp_path / "Snakefile").write_text("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    process = forks.Forks()
    with pytest.raises(ChildProcessError, match="snakemake -n: the process that forks was killed"):
        process.run(tmp_path, ["-n"], dict(os.environ), tmp_path / "output")
    assert process.run(tmp_path, ["--version"], dict(os.environ), tmp_path / "output") == 0
    process.end()
