"""The files that a reader or a tool expects beside the code say what the code says."""

import hashlib
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import metabo

ROOT = Path(__file__).parents[2]
# Of the text that the Apache Software Foundation publishes, byte by byte.
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_licence_is_the_published_text_and_the_metadata_name_it(project):
    text = (ROOT / "LICENSE").read_bytes()
    assert text.split(b"\n")[1].strip() == b"Apache License"
    assert hashlib.sha256(text).hexdigest() == APACHE_2
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]


def test_the_citation_agrees_with_the_package(project):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == project["version"] == metabo.__version__
    assert citation["license"] == project["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in project["authors"]]
    assert citation["keywords"] == project["keywords"]


def test_the_citation_names_the_papers_as_the_report_does():
    (shown,) = (ROOT / "src").rglob("papers.yaml")
    papers = yaml.safe_load(shown.read_text()).values()
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    for paper, reference in zip(papers, references, strict=True):
        assert reference["notes"] == paper["name"]
        assert re.findall(r"\w+", reference["title"]) == re.findall(r"\w+", paper["title"])
        assert ", ".join(author["family-names"] for author in reference["authors"]) == paper["authors"]
        assert f"({reference['year']})" in paper["where"]
        numbers = [identifier["value"].replace("arXiv:", "arXiv ") for identifier in reference.get("identifiers", [])]
        assert all(number in paper["where"] for number in numbers)


def make(*targets):
    """Return the commands that make would run for targets once everything is installed."""
    command = ["make", "--dry-run", "--no-print-directory", "--old-file=install", *targets]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_hooks_are_the_checks_of_make_lint():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["entry"] == f"make {hook['id']}"
        assert hook["language"] == "system"
        assert hook["always_run"] and not hook["pass_filenames"], "like `make lint`, whatever files a commit changes"
    assert [line for hook in repository["hooks"] for line in make(hook["id"])] == make("lint")


def test_hosted_ci_runs_the_same_script_on_each_python(project):
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    (job,) = workflow["jobs"].values()
    pythons = job["strategy"]["matrix"]["python"]
    assert pythons == ["3.11", "3.12", "3.13"]
    assert project["requires-python"] == f">={pythons[0]}"
    (step,) = [step for step in job["steps"] if "run" in step]
    assert step["run"] == ".ci/run"
    assert os.access(ROOT / step["run"], os.X_OK)
    assert step["env"]["PYTHON"] == "python${{ matrix.python }}", "`make install` takes the Python of the matrix"
    (setup,) = [step["with"] for step in job["steps"] if "setup-python" in step.get("uses", "")]
    assert setup["python-version"] == "${{ matrix.python }}"


def test_the_workflow_catalogue_gets_its_standard_keys():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    rules = "".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    assert usage["software-stack-deployment"]["conda"] == bool(re.search(r"^ +conda:", rules, re.M))
    assert usage["software-stack-deployment"]["apptainer"] == bool(re.search(r"^ *container:", rules, re.M))
    assert usage["report"] == ("report(" in rules)


def test_the_configuration_is_described_for_users():
    text = (ROOT / "config" / "README.md").read_text()
    sections = yaml.safe_load((ROOT / "config.yaml").read_text())
    found = set(re.findall(r"^(?:### |\| )`(\w+)`", text, re.M))
    scales = yaml.safe_load((ROOT / "workflow" / "schemas" / "config.yaml").read_text())["properties"]["scale"]["enum"]
    assert found >= {*sections, *scales}, "a row or a heading for each section of config.yaml and for each scale"
    for overlay in (ROOT / "config").glob("*.yaml"):
        assert f"config/{overlay.name}" in text


def test_the_changelog_has_a_section_for_this_version_and_for_the_next_one():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(metabo.__version__)}\] - \d{{4}}-\d{{2}}-\d{{2}}", headings[1])
