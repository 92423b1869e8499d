"""The conda route, the pip route and the project's own table name the same packages at the same versions."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CONDA_NAMES = {"matplotlib-base": "matplotlib"}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def direct(project):
    """Direct dependencies, name -> requirement, with those of the extras that `make install` brings."""
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["replication"], *extras["dev"]]
    return {canonicalize_name(Requirement(line).name): Requirement(line) for line in lines}


@pytest.fixture(scope="module")
def locked():
    """Name -> versions in the lock (a version may differ by platform or Python)."""
    return versions_of("requirements.lock")


def versions_of(lock):
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", (ROOT / lock).read_text(), re.M):
        versions.setdefault(canonicalize_name(name), set()).add(version)
    return versions


@pytest.fixture(scope="module")
def conda():
    """Name -> version in environment.yml, conda and pip parts together, without Python and pip."""
    *plain, last = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pairs = [line.split("=") for line in plain if "=" in line] + [line.split("==") for line in last["pip"]]
    return {CONDA_NAMES.get(name, canonicalize_name(name)): version for name, version in pairs if name != "python"}


def test_the_lock_has_one_version_of_each_direct_dependency_that_fits(direct, locked):
    for name, requirement in direct.items():
        (version,) = locked[name]
        assert requirement.specifier.contains(version), f"{name} {version} does not fit {requirement}; run make lock"


def test_conda_pins_are_the_locked_versions_of_the_direct_dependencies(direct, locked, conda):
    assert conda == {name: next(iter(locked[name])) for name in direct}


def test_the_lock_of_the_site_fits_its_extra_and_changes_no_version_of_the_main_one(project, locked):
    site = versions_of("requirements-docs.lock")
    for requirement in map(Requirement, project["optional-dependencies"]["docs"]):
        (version,) = site[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement.name} {version}; run make lock"
    assert {name: found for name, found in site.items() if name in locked and not found <= locked[name]} == {}


@pytest.mark.parametrize(("lock", "least"), [("requirements.lock", 50), ("requirements-docs.lock", 20)])
def test_every_locked_package_has_hashes(lock, least):
    blocks = re.split(r"^(?=[a-z0-9])", (ROOT / lock).read_text(), flags=re.M)
    packages = [block for block in blocks if re.match(r"[a-z0-9._-]+==", block)]
    assert len(packages) > least
    assert [block.split(" ")[0] for block in packages if "--hash=sha256:" not in block] == []


def test_the_python_versions_agree(project):
    (python,) = [line for line in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][:1]]
    assert python == "python=3.11"
    assert project["requires-python"] == ">=3.11"


def test_nothing_names_a_package_server_or_a_machine():
    for name in ("requirements.lock", "requirements-docs.lock", "environment.yml", "Makefile", "pyproject.toml"):
        text = (ROOT / name).read_text()
        assert not re.search(r"https?://|--(extra-)?index-url|file:/|find-links", text), name


def test_the_environment_that_runs_the_tests_is_the_locked_one(direct, locked):
    from importlib.metadata import version

    installed = {name: version(name) for name in direct}
    assert installed == {name: next(iter(locked[name])) for name in direct}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-docs.lock"])
def test_a_lock_has_all_that_its_packages_need(lock):
    """They are installed without a search for what they need."""
    names = versions_of(lock)
    extras = {name: {""} for name in names}  # what others ask for, as in urllib3[socks], and none
    for name in names:
        for one in needed(name, {""}):
            extras.setdefault(canonicalize_name(one.name), {""}).update(one.extras)
    assert [f"{name}: {one}" for name in names for one in needed(name, extras[name]) if not fits(one, names)] == []
    if lock == "requirements.lock":  # the site may not be built here
        assert sum(bool(needed(name, {""})) for name in names) > len(names) / 4


def needed(name, extras):
    """The requirements of a package with these extras, on this system; none if it is not installed here."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        found = [Requirement(line) for line in requires(name) or ()]
    except PackageNotFoundError:
        return []
    return [one for one in found if not one.marker or any(one.marker.evaluate({"extra": e}) for e in extras)]


def fits(requirement, versions):
    return any(requirement.specifier.contains(one) for one in versions.get(canonicalize_name(requirement.name), ()))


def test_a_requirement_that_a_lock_lacks_or_has_at_another_version_does_not_fit():
    assert not fits(Requirement("absent>=1"), {"numpy": {"2.3.1"}})
    assert not fits(Requirement("numpy<2"), {"numpy": {"2.3.1"}})
    assert fits(Requirement("NumPy>=2"), {"numpy": {"2.3.1"}})


@pytest.mark.parametrize("named", ["python3.13", None])
def test_continuous_integration_takes_the_python_that_it_is_given(named, tmp_path, monkeypatch):
    """The matrix of versions names one; else the system's, where it is new enough."""
    (tmp_path / "make").write_text('#!/bin/sh\necho "PYTHON=${PYTHON:-}"\n')
    (tmp_path / "make").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("PYTHON", raising=False)
    if named:
        monkeypatch.setenv("PYTHON", named)
    said = subprocess.run([ROOT / ".ci" / "run"], check=True, capture_output=True, text=True).stdout.split()
    assert len(said) == 3 and set(said) <= ({f"PYTHON={named}"} if named else {"PYTHON=", "PYTHON=/usr/bin/python3"})
