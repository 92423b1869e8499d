"""A run goes on from recorded results: Snakemake has nothing to do for them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMOKE = ("--configfile", "config/smoke.yaml")
TABLE = "results/smoke/data/tables.npz"
RUN = "results/smoke/bo/tables/held_out/rand-uniform.parquet"
KERNELS = "src/metabo/bo/loop.py"


def metabo(where, *arguments):
    """Return exit status, output and errors of the command line."""
    code = "import sys; from metabo.cli import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=where, text=True, capture_output=True,
        env={"PYTHONPATH": "src", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def committed(project):
    """Make a copy of the project a checkout without changes."""
    shutil.copy(ROOT / ".gitignore", project)
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *arguments], cwd=project, check=True)


@pytest.mark.slow
def test_recorded_results_are_not_made_again(project, snakemake):
    committed(project)
    status, said = snakemake(project, *SMOKE, "--", RUN)
    assert status == 0, said
    before = (project / RUN).read_bytes()
    status, said, fault = metabo(project, "evidence", "add", "results/smoke")
    assert status == 0, fault
    for made in ("results", ".snakemake"):
        shutil.rmtree(project / made)

    restore = ("evidence", "restore", "results/smoke", *SMOKE)
    status, said, fault = metabo(project, *restore)
    assert status == 0, fault
    making = said.splitlines()[-1].partition(": snakemake ")[2].split()
    assert making == ["--cores", "1", *SMOKE, "--", TABLE]
    assert not (project / RUN).exists()
    assert snakemake(project, *making[2:])[0] == 0
    status, said, fault = metabo(project, *restore)
    assert status == 0, fault
    assert "results/smoke: results of 2 jobs are back; those of 0 were there" in said
    assert (project / RUN).read_bytes() == before
    status, said = snakemake(project, "-n", *SMOKE, "--", RUN)
    assert status == 0 and "Nothing to be done" in said, said

    (project / "other.yaml").write_text("bo: {iterations: 7}\n")
    for options in (["-n"], []):  # Snakemake has no note of what came back, and would take it for what is wanted
        status, said = snakemake(project, *options, *SMOKE, "other.yaml", "--", RUN)
        assert status != 0 and "Traceback" not in said, said
        assert f"metabo: {RUN}: was made with other settings than those of this run (iterations: " in said
        assert ", now 7)" in said and (project / RUN).read_bytes() == before
    (project / RUN).unlink()
    (project / RUN).with_suffix(".json").unlink()
    status, said = snakemake(project, *SMOKE, "other.yaml", "--", RUN)
    assert status == 0 and (project / RUN).read_bytes() != before, said
    status, said = snakemake(project, "-n", *SMOKE, "--", RUN)
    assert status == 0 and "run BO with rand" in said, "now Snakemake has a note, and plans the job"
    assert metabo(project, "verify", "results/smoke")[0] == 0

    (project / RUN).unlink()
    code = project / KERNELS
    code.write_text(code.read_text() + "\nADDED = 1\n")
    status, said, fault = metabo(project, *restore)
    assert "results of 0 jobs are back; those of 1 were there\n1 not, since they ran other code (first: " in said, fault
