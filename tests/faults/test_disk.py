"""A disk that fills up while a job writes, and results that cannot be written."""

import contextlib
import errno
import os
import resource
import shutil

import pytest

from metabo.records.files import is_scratch
from tests.faults import chain

pytestmark = pytest.mark.slow

PAGE = 4096


def fill(folder, leave):
    """Fill the disk of a folder but for a few pages; return the file that does."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(PAGE))
    os.truncate(ballast, (ballast.stat().st_size // PAGE - leave) * PAGE)
    return ballast


def test_a_full_disk(copy, reference, fault, mount, tmp_path):
    project = copy()
    results, log = project / "results", tmp_path / "full.log"
    (project / chain.RUNS).unlink()
    shutil.move(results, tmp_path / "moved")
    results.mkdir()
    small = mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", where=results)
    shutil.copytree(tmp_path / "moved", results, dirs_exist_ok=True)
    figure = chain.state(project, chain.MADE[chain.ARTEFACT])

    with fault("disk full when a table is written"):
        process = chain.start(project, log, chain.RUNS)
        assert chain.wait(lambda: chain.at_work(project))
        if small:
            ballast = fill(results, 1)  # for the log
        else:  # mounting is not allowed: the job may write no file as long as its table
            for job in chain.jobs(process):
                resource.prlimit(job, resource.RLIMIT_FSIZE, (12_000, 12_000))
        assert process.wait(900) != 0
        output = log.read_text()
        reason = os.strerror(errno.ENOSPC if small else errno.EFBIG)
        assert f"{chain.RUNS}: could not be written ({reason})" in output and "MiB are free there" in output, output
        assert chain.clear(output) and not (project / chain.RUNS).exists()
        assert not any(is_scratch(path) for path in results.rglob(".*"))
        assert chain.state(project, chain.MADE[chain.ARTEFACT]) == figure
    if small:
        with fault("disk full when a figure is drawn, and no room for a log"):
            ballast.unlink()
            # Snakemake removes old files when the job starts, whenever that is: they would make room again.
            shutil.rmtree(project / chain.FIGURE)
            for kept in ("logs", "benchmarks"):
                for old in (results / "smoke" / kept).glob(f"hyperbo/tables/{chain.ARTEFACT}.*"):
                    old.unlink()
            process = chain.start(project, log, chain.ARTEFACT)
            assert chain.wait(lambda: f"make {chain.ARTEFACT}" in log.read_text())
            ballast = fill(results, 0)
            assert process.wait(900) != 0
            output = log.read_text()
            assert f"{chain.OUT}: could not be written" in output and chain.clear(output), output
            assert not any(is_scratch(path) for path in results.rglob(".*"))
            ballast.unlink()
    status, output = chain.run(project, chain.RUNS, chain.ARTEFACT)
    assert status == 0 and chain.lasting(project) == reference.results, output


def test_results_that_cannot_be_written(copy, reference, fault, mount):
    project = copy()
    results = project / "results"
    (project / chain.LOSSES).unlink()
    bound = mount("--bind", str(results), where=results) and mount("-o", "remount,bind,ro", where=results)
    if not bound and os.geteuid() == 0:
        pytest.skip("root may write everywhere, and there is no right to mount")
    folders = [results, *(path for path in results.rglob("*") if path.is_dir())]
    for folder in folders if not bound else []:
        folder.chmod(0o555)
    with fault("results mounted read-only"):
        status, output = chain.run(project, chain.LOSSES)
        assert status != 0 and f"{chain.OUT}: cannot write here" in output and chain.clear(output), output
    for folder in folders if not bound else []:
        folder.chmod(0o755)
    with fault("everything mounted read-only"):
        if not (mount("--bind", str(project), where=project) and mount("-o", "remount,bind,ro", where=project)):
            pytest.skip("needs a mount")
        status, output = chain.run(project, chain.LOSSES)
        assert status != 0 and "ead-only file system" in output and chain.clear(output), output
