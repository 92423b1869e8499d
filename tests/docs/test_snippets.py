"""Every fenced block of README and docs is run by a test, or says here why not; a new block has to say one of the two.

The how-to pages (docs/new-*.md) are followed by `test_howto`, the examples of docs/python.md by `tests/test_public.py`.
"""

import csv
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from metabo.data.history import account, description
from metabo.plan.method import Method
from tests.docs import pages
from tests.tuner.conftest import HEADER, SPACE, rows, write

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md", "CONTRIBUTING.md",
    *(f"{folder}/README.md" for folder in ("config", "benchmarks", "results", "evidence")),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("**/*.md")),
]  # fmt: skip
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
PROGRAMS = ("make", "snakemake", "metabo", "python", "pip", "source")

TOLD = {
    "source .venv/bin/activate": "the tests run in that environment",
    "make install && source .venv/bin/activate": "it needs the package index",
    "pip install -e '.[slurm]'": "it needs the package index",
    "snakemake --workflow-profile profiles/slurm hyperbo_fig08": "it needs Slurm: tests/workflow/test_cluster.py, make "
    "test-slurm",
    "metabo verify results/laptop": "it needs results of hours; tests/records/test_verify.py runs it on others",
    "metabo evidence add results/laptop --to my_evidence": "tests/evidence has this and the next four",
    "metabo evidence add results/laptop --to my_evidence --artefacts hyperbo_fig08": "likewise",
    "metabo evidence add results/published --artefacts mphd_x04 --without-trajectories": "likewise",
    "metabo evidence list": "likewise",
    "metabo evidence claims": "tests/report/test_recorded.py",
    "metabo verify evidence --runs 20": "likewise",
    "metabo evidence restore results/published --configfile config/published.yaml": "likewise",
    "python benchmarks/paper_plan.py results/laptop": "it needs results of hours; "
    "tests/benchmarks/test_paper_plan.py runs its parts",
    "make published": "days; tests/benchmarks/test_published.py has its parts, and the next lines",
    **dict.fromkeys([f"python benchmarks/published.py {rest}" for rest in (
        "steps evidence/published", "run --until pd1_mini", "run --only mphd", "run --only mphd --cores 2",
        "used evidence/published", "measure", "plan --again", "document evidence/published")],
        "likewise"),
    "python benchmarks/run.py": "it takes hours, and packages of its own",
    "python benchmarks/run.py --only bo refit/botorch": "it needs packages of its own",
    "python benchmarks/run.py --quick --out DIR": "it needs packages of its own",
    "snakemake --cores 2 report": "hours",
    "snakemake --cores 2 hyperbo_fig08": "hours",
    "snakemake -n --cores 2 hyperbo_fig08": "",
    "snakemake --cores 2 -f hyperbo_fig08": "hours",
    "snakemake --cores 2 --configfile config/smoke.yaml -- hyperbo_fig08": "minutes: make smoke has it",
    "snakemake --cores 2 --configfile my.yaml -- hyperbo_fig08": "hours",
    "snakemake --cores 2 --configfile config/smoke.yaml my.yaml -- hyperbo_fig08": "minutes",
    "snakemake --cores 2 collect_pd1_mini": "hours",
    "snakemake --cores 2 collect_hpob_mini": "hours",
    "snakemake --cores 2 lcbench": "network, hours",
    "snakemake --cores 2 taskset": "network, hours",
    "snakemake --cores 2 pd1": "network, hours",
    "snakemake --cores 2 hpob": "network, hours",
    "snakemake --cores 2 super": "network, hours",
    "snakemake --cores 2 cmbo_hpob": "network, hours",
    "snakemake --cores 2 -- results/laptop/data/pd1_mini.npz": "",
    **dict.fromkeys([f"make {target}" for target in (
        "reproduce", "smoke", "test", "test-fast", "test-faults", "test-workers", "lint", "docs", "install",
    )], "minutes to hours"),
}  # fmt: skip
"""Commands that no test carries out, and why. Those of Snakemake and make are planned (`-n`), which says that their
targets and options are right."""
PLANNED = [command for command in TOLD if command.startswith("snakemake") and "profiles/slurm" not in command]
DRY = [command for command in TOLD if command.startswith("make") and "&&" not in command]

STUDY = [
    "metabo pretrain examples/own_data/history.csv --space examples/own_data/space.yaml --to my_study",
    "metabo suggest my_study --count 3 > todo.csv",
    "metabo tell my_study todo.csv",
]
NARROWED = [
    "metabo pretrain history.csv --space narrower.yaml --to narrower",
    "metabo trials my_study --csv > done.csv",
    "metabo tell narrower done.csv",
]
IMPORTED = ["metabo import optuna sqlite:///past.db --to my_study", "metabo suggest my_study --count 3"]
ACROSS = ["metabo pretrain svm.csv forest.csv --space svm.yaml forest.yaml --target network.yaml --to my_study"]
COMPARED = [
    "metabo compare history.csv --space space.yaml --scale smoke",
    "metabo compare history.csv --space space.yaml",
]
CHECKED, EXPLAINED = ["metabo check-config my.yaml"], ["metabo explain hyperbo_fig08"]
CARRIED_OUT = [*STUDY, *NARROWED, *IMPORTED, *ACROSS, *COMPARED, *CHECKED, *EXPLAINED]
"""Commands that the tests below type."""


class Snippet(NamedTuple):
    """A fenced block: its page, language and text."""

    page: str
    kind: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The command lines, without comments; none for a block that is no session."""
        lines = [re.split(r" +# ", line)[0].strip() for line in self.text.splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        return lines if not self.kind and lines and lines[0].startswith(PROGRAMS) else []

    @property
    def first(self) -> str:
        return self.text.splitlines()[0]


def snippets() -> list[Snippet]:
    return [Snippet(page, *found) for page in PAGES for found in FENCE.findall((ROOT / page).read_text())]


def block(page: str, first: str) -> str:
    """Return the text of the block of a page that begins so."""
    (found,) = [one.text for one in snippets() if one.page == page and one.text.startswith(first)]
    return found


FILES = "{scale}/data/{benchmark}.npz                                   tasks, matched blocks, splits"
BLOCKS = {
    ("README.md", "import metabo"): "test_the_blocks_of_python_run",
    ("docs/replicate.md", "methods: {h_nll: {pretrain: {learning_rate: 5.0e-4}}}"): "test_settings_are_checked",
    ("config/README.md", "# my.yaml"): "test_settings_are_checked",
    ("docs/claims.md", "C32:"): "test_the_claim_is_that_of_the_sheet",
    ("docs/new-method.md", 'METHOD = Method(pretrain="methods.mine.train", policy="methods.mine.policy")'):
        "test_a_method_is_made_so",
    ("docs/own-data.md", "study: dataset                  # column with the name of the past study"):
        "test_the_space_is_read",
    ("docs/own-data.md", "study      read   used failed  dropped, and what was done"): "test_the_table_is_laid_out_so",
    ("docs/own-data.md", "parameters:"): "test_the_space_is_read",
    ("docs/own-data.md", "constraints:"): "test_the_space_is_read",
    ("docs/own-data.md", "import metabo"): "test_the_blocks_of_python_run",
    ("docs/own-data.md", "import optuna"): "test_the_blocks_of_python_run",
    ("results/README.md", FILES): "a list of files",
    ("evidence/README.md", "import pandas"): "test_a_recorded_number_is_computed_so",
}  # fmt: skip
"""Blocks that are no sessions, by page and first line, and what runs or reads them."""


def test_every_block_is_run_or_says_why_not():
    followed = {
        (page, one.text) for page in ("new-method.md", "new-figure.md", "new-data.md") for one in pages.blocks(page)
    }
    shown = dict(
        re.findall(r"<!-- (\w+) -->\n```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.M | re.S)
    )
    commands, others = set(), set()
    for one in snippets():
        if (one.page.removeprefix("docs/"), one.text) in followed:
            continue
        if one.page == "docs/python.md" and one.text in shown.values():
            continue
        commands |= set(one.commands)
        others |= set() if one.commands else {(one.page, one.first)}
    assert commands == {*TOLD, *CARRIED_OUT}
    assert others == set(BLOCKS)
    for name in BLOCKS.values():
        assert name == "a list of files" or callable(globals()[name])


def typed(command: str, folder: Path) -> str:
    status, printed = pages.typed(command, folder)
    assert status == 0, f"$ {command}\n{printed}"
    return printed


@pytest.fixture(scope="module")
def copied(tmp_path_factory, copy_project):
    """A copy of the project with the overlay of config/README.md."""
    project = copy_project(tmp_path_factory.mktemp("snippets") / "project")
    (project / "my.yaml").write_text(block("config/README.md", "# my.yaml"))
    (project / "Makefile").write_text((ROOT / "Makefile").read_text())
    return project


def test_settings_are_checked(copied):
    for command in CHECKED:
        assert "my.yaml" in typed(command, copied)
    (copied / "readme.yaml").write_text(block("docs/replicate.md", "methods: {h_nll"))
    typed("metabo check-config readme.yaml", copied)
    (copied / "wrong.yaml").write_text(
        block("docs/replicate.md", "methods: {h_nll").replace("learning_rate", "learning")
    )
    assert pages.typed("metabo check-config wrong.yaml", copied)[0] != 0


def test_a_recorded_number_is_computed_so():
    shown = subprocess.run(
        [sys.executable, "-c", block("evidence/README.md", "import pandas")], cwd=ROOT, capture_output=True, text=True
    )
    first = next(
        line for line in (ROOT / "docs/findings/hyperbo.md").read_text().splitlines() if line.startswith("| H-NLL")
    )
    assert shown.returncode == 0 and json.loads(shown.stdout) == [float(cell) for cell in first.split(" | ")[1:6]]


def test_a_figure_is_explained(copied):
    (command,) = EXPLAINED
    assert "hyperbo_fig08" in typed(command, copied)


@pytest.mark.parametrize("command", DRY)
def test_a_target_is_there(command):
    done = subprocess.run(f"{command} -n -B", shell=True, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def by_options(commands):
    """Join commands that differ in their targets alone: planning takes seconds, however few jobs it finds."""
    found = {}
    for command in commands:
        words = shlex.split(command)
        cut = words.index("--") if "--" in words else len(words) - 1
        found.setdefault(shlex.join(words[1:cut]), []).extend(word for word in words[cut:] if word != "--")
    return list(found.items())


@pytest.mark.slow
@pytest.mark.parametrize(("options", "targets"), by_options(PLANNED))
def test_commands_of_snakemake_are_planned(copied, options, targets):
    assert "Job stats:" in typed(f"snakemake -n -q rules {options} -- {shlex.join(targets)}", copied)


def test_commands_are_joined_by_their_options():
    given = ["snakemake --cores 2 a", "snakemake --cores 2 -f a", "snakemake --cores 2 -- b"]
    assert by_options(given) == [("--cores 2", ["a", "b"]), ("--cores 2 -f", ["a"])]


def filled(path: Path) -> None:
    """Write outcomes into the last column of what `metabo suggest` printed, as the page has the reader do."""
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([head, *(f"{line}{0.1 + i / 100}" for i, line in enumerate(lines))]) + "\n")


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """A folder in which the first commands of README and docs/own-data.md were typed."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "examples").symlink_to(ROOT / "examples")
    for name in ("history.csv", "space.yaml"):
        (folder / name).write_text((ROOT / "examples" / "own_data" / name).read_text())
    for command in STUDY:
        if command.startswith("metabo tell"):
            filled(folder / "todo.csv")
        typed(command, folder)
    return folder


@pytest.mark.slow
def test_the_first_commands_of_the_tuner_run(studied):
    for page in ("README.md", "docs/own-data.md"):
        (one,) = [one for one in snippets() if one.page == page and STUDY[0] in one.commands]
        assert set(one.commands) - set(TOLD) == set(STUDY)
    assert "3 finished trials" in typed(STUDY[2], studied) and len((studied / "todo.csv").read_text().splitlines()) == 4
    typed(STUDY[1], studied)


@pytest.mark.slow
def test_a_space_is_narrowed(studied):
    """Around the trial with the highest learning rate: the others lie outside."""
    pretrain, write, tell = NARROWED
    typed(write, studied)
    rows = list(csv.DictReader((studied / "done.csv").read_text().splitlines()))
    most = max(float(row["learning_rate"]) for row in rows)
    space = yaml.safe_load((studied / "space.yaml").read_text())
    space["parameters"]["learning_rate"] |= {"low": most / 1.01}
    (studied / "narrower.yaml").write_text(yaml.safe_dump(space, sort_keys=False))
    typed(pretrain, studied)
    status, printed = pages.typed(tell, studied)
    assert status == 1 and re.search(r"row 2, field 'learning_rate': .* is outside", printed), printed
    inside = [row for row in rows if float(row["learning_rate"]) == most]
    assert 0 < len(inside) < len(rows)
    with (studied / "done.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(inside)
    assert f"told {len(inside)}" in typed(tell, studied)


PRELUDE = """
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
def train(learning_rate, **others):
    return 0.1 + abs(learning_rate - 0.01)
def objective(trial):
    return 0.1 + abs(trial.suggest_float("learning_rate", 1e-5, 10.0, log=True) - 0.01)
"""
"""What the pages call your code."""


@pytest.mark.slow
def test_the_blocks_of_python_run(studied):
    """One after the other: the later ones use the folder of the first."""
    for page, first in (
        ("README.md", "import metabo"),
        ("docs/own-data.md", "import metabo"),
        ("docs/own-data.md", "import o"),
    ):
        (studied / "block.py").write_text(f"{PRELUDE}\n{block(page, first)}")
        typed(f"{sys.executable} block.py", studied)


@pytest.mark.slow
def test_an_optuna_storage_is_imported(tmp_path):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for number in range(3):
        study = optuna.create_study(storage=f"sqlite:///{tmp_path}/past.db", study_name=f"s{number}")
        study.optimize(lambda trial: abs(trial.suggest_float("rate", 1e-5, 1.0, log=True) - 0.01), n_trials=8)
    printed = "".join(typed(command, tmp_path) for command in IMPORTED)
    assert "24 trials of 3 studies" in printed and "rate,value" in printed


@pytest.mark.slow
def test_a_prior_across_spaces_is_learned(tmp_path):
    for name in ("svm", "forest"):
        (tmp_path / f"{name}.yaml").write_text(SPACE)
        write(tmp_path / f"{name}.csv", HEADER, rows(seed=len(name)))
    (tmp_path / "network.yaml").write_text(
        SPACE.replace("layers: {type: int, low: 1, high: 6}", "width: {type: int, low: 1, high: 9}")
    )
    for command in ACROSS:
        assert "prior of mphd is ready" in typed(command, tmp_path)


@pytest.mark.slow
def test_a_comparison_is_planned(copied):
    """Its runs take minutes (smoke) and hours."""
    for name in ("history.csv", "space.yaml"):
        (copied / name).write_text((ROOT / "examples" / "own_data" / name).read_text())
    for command in COMPARED:
        assert "run_bo" in typed(f"{command} --dry-run", copied)


def test_the_space_is_read(tmp_path):
    whole = yaml.safe_load(block("docs/own-data.md", "study: dataset"))
    more = yaml.safe_load(block("docs/own-data.md", "parameters:\n  momentum"))
    (tmp_path / "space.yaml").write_text(block("docs/own-data.md", "study: dataset"))
    assert [field.name for field in description.load(tmp_path / "space.yaml").fields] == list(whole["parameters"])
    joined = {
        **whole,
        "name": "s",
        "parameters": {**whole["parameters"], **more["parameters"]},
        "studies": more["studies"],
        **yaml.safe_load(block("docs/own-data.md", "constraints:")),
    }
    read = description.of_mapping(joined, "space.yaml")
    assert read.studies["old runs"].flipped
    assert [(one.name, one.said) for one in read.constraints] == [
        ("memory_gb", "at most 8"),
        ("accuracy", "at least 0.7"),
    ]


def test_the_table_is_laid_out_so():
    beyond = "learning_rate outside [1e-05, 1]"
    made = [
        account.account("cifar", 38, 5, [(beyond, 12), (beyond, 19)], []),
        account.account("old runs", 25, 0, [], ["sign of error flipped (it was tuned the other way)",
                                                "momentum not tuned, taken as 0.9"]),
    ]  # fmt: skip
    assert account.lines(made) == block("docs/own-data.md", "study      read").splitlines()


def test_the_claim_is_that_of_the_sheet():
    shown = yaml.safe_load(block("docs/claims.md", "C32:"))
    sheet = yaml.safe_load((ROOT / "src/metabo/papers/hyperbo/claims.yaml").read_text())
    assert shown.items() <= (sheet.get("claims") or sheet).items()


def test_a_method_is_made_so():
    names = {"Method": Method}
    exec(block("docs/new-method.md", "METHOD = "), names)
    assert isinstance(names["METHOD"], Method)


def test_pytest_without_python_finds_the_hooks_of_the_site():
    command = [
        str(Path(sys.executable).with_name("pytest")),
        "--collect-only",
        "-q",
        "-n",
        "0",
        "tests/docs/test_site.py",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
