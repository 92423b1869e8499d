"""The folder for OptunaHub's registry: what the registry asks for, an example that runs, and the page's own example.

OptunaHub's own package is not installed here, for it brings PyGithub with its cryptography: what the pages call of it
stands in for it, and loads the folder as its `load_local_module` does. The folder's own tests, which run with these,
use it where it is there.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import optuna
import pytest
import yaml
from packaging.requirements import Requirement

import metabo
from metabo import cli

ROOT = Path(__file__).parents[2]
REGISTRY = ROOT / "integrations" / "optunahub" / "package"
FOLDERS = sorted(path.parent for path in REGISTRY.glob("*/*/README.md"))
HUB = f"""
import importlib.util, sys
from pathlib import Path
def load_module(package):
    name = "optunahub_registry.package." + package.replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, Path({str(REGISTRY)!r}) / package / "__init__.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
"""
"""Stands in for the module `optunahub`."""


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture
def python(tmp_path):
    """Return a function that runs Python where `optunahub` can be imported, and returns what it prints."""
    (tmp_path / "optunahub.py").write_text(HUB)

    def run(*arguments):
        path = f"{tmp_path}:{ROOT / 'src'}"
        done = subprocess.run(
            [sys.executable, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True, timeout=300,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": path}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def front_matter(folder: Path) -> dict[str, object]:
    _, head, text = (folder / "README.md").read_text().split("---\n", 2)
    assert text.startswith("\n## Abstract\n")
    return yaml.safe_load(head)


def block(folder: Path, kind: str, number: int = 0) -> str:
    return re.findall(rf"^```{kind}\n(.*?)^```$", (folder / "README.md").read_text(), re.M | re.S)[number]


def test_there_is_a_sampler():
    assert [folder.relative_to(REGISTRY).as_posix() for folder in FOLDERS] == ["samplers/metabo_prior"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
class TestFolder:
    def test_it_has_the_files_that_the_registry_asks_for(self, folder, project):
        assert folder.name.isidentifier()
        names = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
        assert names == {"README.md", "LICENSE", "__init__.py", "example.py", "requirements.txt", "tests"}
        licence = (folder / "LICENSE").read_text()
        assert licence.startswith("MIT License\n") and project["authors"][0]["name"] in licence

    def test_its_front_matter_is_as_the_registry_checks_it(self, folder, project):
        """The checks of `header_confirm.py` there, and that it says the same as the project."""
        head = front_matter(folder)
        assert list(head) == ["author", "title", "description", "tags", "optuna_versions", "license"]
        assert all(isinstance(head[key], str) for key in ("author", "title", "description", "license"))
        assert all(isinstance(one, str) for key in ("tags", "optuna_versions") for one in head[key])
        assert head["license"] == "MIT License" and head["tags"][0] == folder.parent.name.removesuffix("s")
        assert head["author"] == project["authors"][0]["name"]
        assert optuna.__version__ in head["optuna_versions"], "the version that these tests run with"
        headings = re.findall(r"^## (.*)$", (folder / "README.md").read_text(), re.M)
        assert headings == ["Abstract", "APIs", "Installation", "Example", "Others"]

    def test_what_it_needs_is_this_package(self, folder, project):
        (line,) = (folder / "requirements.txt").read_text().split()
        needed = Requirement(line)
        assert needed.name == project["name"] and needed.specifier.contains(metabo.__version__)
        assert needed.extras <= set(project["optional-dependencies"])
        assert f"pip install '{needed.name}[{','.join(needed.extras)}]'" in block(folder, "shell")

    def test_it_gives_what_its_page_names(self, folder, python):
        listed = re.findall(r"^- `(\w+)\(", (folder / "README.md").read_text(), re.M)
        code = f"import metabo, optunahub; m = optunahub.load_module('samplers/{folder.name}'); print(*m.__all__); "
        code += "assert all(getattr(m, name) is getattr(metabo, name) for name in m.__all__)"
        assert sorted(python("-c", code).split()) == sorted(listed)

    def test_its_example_runs_and_shows_what_the_past_is_worth(self, folder, python):
        said = python(folder / "example.py")
        found = re.fullmatch(r"best of six trials: (\S+) with the prior, (\S+) at random\n", said)
        assert float(found[1]) < float(found[2])

    def test_the_example_of_its_page_runs(self, folder, python, tmp_path, monkeypatch, capsys):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        for number in range(3):
            study = optuna.create_study(storage=f"sqlite:///{tmp_path}/past.db", study_name=f"s{number}")
            study.optimize(lambda trial: abs(trial.suggest_float("rate", 1e-5, 1.0, log=True) - 0.01), n_trials=8)
        monkeypatch.chdir(tmp_path)
        command = block(folder, "shell", 1).strip().removeprefix("$ metabo ")
        cli.main(command.split())
        assert "is ready" in capsys.readouterr().out
        python("-c", f"{block(folder, 'python')}\nassert len(study.trials) == 20 and study.best_value < 0.01")
