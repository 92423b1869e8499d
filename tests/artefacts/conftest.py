"""A small synthetic set of inputs for the notebook templates: seeded random search of several strengths.

A test fixture only: nothing here is, or becomes, a result.
"""

import json
import shutil
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync

from metabo.data.counts import count
from metabo.data.pd1 import SPACE
from metabo.papers.engine import printed
from metabo.plan import catalogue, config
from metabo.plan.entries import CatalogueEntry
from metabo.plan.runs import RunId, acquisition_of
from metabo.plan.typed import plain, read
from metabo.records import files, results
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import Fold, leave_group_out, leave_one_out
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task
from tests import stage_runs

STRENGTH = {"rand": 1, "stbo": 2, "stboh": 3, "ablr": 4, "fsbo": 6, "h_nll": 12, "h_ekl": 9, "mphd": 10, "hgp_hand": 5}
OTHER = 7  # strength of any other method
ONLINE = {"rand": 1, "stbo_online": 2, "stboh_online": 3, "h_nll_online": 8, "h_ekl_online": 6}
CMBO = {"rpart_3": "rpart.preproc", "rpart_6": "rpart", "svm_8": "svm"}
REAL = {"cmbo_lcbench": ["table_7"], "cmbo_taskset": ["table_7"], "cmbo_control": ["mirrored", "alike"]}
"""Spaces that the paper does not have, of benchmarks in cm-BO's protocol."""
PRIORS, SEEDS, ITERATIONS, POOL = 3, 2, 25, 150
MODELS = ("simple_cnn", "max_pool_relu", "mlp")


def trajectories(tmp: Path, benchmark: str, tasks: list[str], run: RunId, data: str) -> str:
    """Write the table of a run (method, acquisition, split): each query is the best of some random candidates."""
    (method, acquisition, split), rows = run, []
    strength = STRENGTH.get(method, OTHER)
    single = method in ("rand", "stbo", "stboh")
    for k, task in enumerate(tasks):
        pool = np.random.default_rng([1, k])
        error = np.sort(pool.beta(2, 5, POOL))[::-1]
        y = -np.log(error + 1e-10)
        for prior in range(1 if single else PRIORS):
            for seed in range(SEEDS):
                rng = np.random.default_rng([2, k, prior, seed, strength, len(split)])
                query = rng.integers(POOL, size=(ITERATIONS, strength)).max(axis=1)
                best = np.maximum.accumulate(y[query])
                regret = y.max() - best
                shared = {
                    "benchmark": benchmark, "space": space_of(task), "split": split, "fold": f"without {task}",
                    "task": task, "method": method, "acquisition": acquisition, "prior_seed": prior, "seed": seed,
                    "iteration": np.arange(1, ITERATIONS + 1), "candidate": query % 30, "y": y[query], "best_y": best,
                    "simple_regret": regret, "normalised_regret": regret / np.ptp(y), "metric": error[query],
                    "mean": np.nan, "std": np.nan, "noise": np.nan if method == "rand" else 1e-3, "jitter": 0.0,
                    "feasible": True, "ok": True, "data": data,
                }  # fmt: skip
                rows.append(pd.DataFrame(shared))
    path = tmp / "bo" / split / f"{method}-{acquisition}.parquet"
    results.write(pd.concat(rows, ignore_index=True), path)
    return str(path)


def evaluation(tmp: Path, benchmark: str, tasks: list[str], run: RunId) -> str:
    method, split, rows = run.method, run.split, []
    strength = STRENGTH.get(method, OTHER)
    for k, task in enumerate(tasks):
        for prior in range(PRIORS):
            draw = np.random.default_rng([3, k, prior, strength]).normal(size=3)
            level = 300 / strength
            values = {
                "test_nll": level + 20 * draw[0],
                "train_nll": level / 2 + draw[1],
                "ekl": level / 50 + 0.1 * draw[2],
            }
            for metric, value in values.items():
                rows.append([benchmark, split, "s", f"without {task}", task, method, prior, metric, value])
    columns = ["benchmark", "split", "space", "fold", "task", "method", "prior_seed", "metric", "value"]
    path = tmp / "evaluation" / split / f"{method}.parquet"
    results.write_evaluations(pd.DataFrame(rows, columns=columns), path)
    return str(path)


def online_table(tmp: Path, benchmark: str, tasks: list[str], run: RunId, data: str) -> str:
    """Write one method's table of online tuning; a quarter of its queries diverge, all of one task's for one method."""
    method, split, frames = run.method, run.split, []
    for k, task in enumerate(tasks):
        for seed in range(PRIORS):
            rng = np.random.default_rng([4, k, seed, ONLINE.get(method, OTHER)])
            metric = rng.beta(2, 5, (ITERATIONS, ONLINE.get(method, OTHER))).min(axis=1)
            feasible = rng.random(ITERATIONS) > (1 if (k, method) == (1, "stboh_online") else 0.25)
            metric = np.where(feasible, metric, np.nan)
            points = [json.dumps(list(x)) for x in rng.random((ITERATIONS, 4))]
            shared = {
                "benchmark": benchmark, "split": split, "task": task, "method": method,
                "acquisition": acquisition_of(method), "prior_seed": 0, "seed": seed,
                "iteration": np.arange(1, ITERATIONS + 1), "x": points,
                "y": -np.log(metric), "metric": metric, "best_metric": np.fmin.accumulate(metric),
                "metric_name": "ce_loss" if k == 0 else "error_rate", "feasible": feasible,
                "reason": np.where(feasible, "", "raised: MemoryError: out of memory"), "mean": 0.0, "std": 1.0,
                "jitter": 0.0, "ok": True, "data": data,
            }  # fmt: skip
            frames.append(pd.DataFrame(shared))
    path = tmp / "online" / f"{method}.parquet"
    results.write_online(pd.concat(frames, ignore_index=True), path)
    return str(path)


def space_of(task: str) -> str:
    return task.partition("/")[0] if "/" in task else "s"


def names(benchmark: str) -> list[str]:
    if benchmark.startswith(("mphd", "super")):
        return [f"{space}/{i}" for space in ("seen_2", "seen_3", "other_4") for i in range(2)]
    if benchmark in REAL:
        return [f"{space}/{i}" for space in REAL[benchmark] for i in range(6)]
    if benchmark.startswith("cmbo"):
        return [f"{space}/{i}" for space in CMBO for i in range(2)]
    if benchmark == "pd1":
        return list(pd.read_csv(Path(printed.__file__).parent / "pd1_tasks.csv", comment="#")["task"])
    if benchmark == "pd1_mini":
        return [f"{d}_{m},{d},family,{m},{b}" for d in ("digits", "mnist", "text") for m in MODELS for b in (32, 256)]
    return [f"s/data set {i}" if benchmark.startswith("hpob") else f"task {i}" for i in range(5)]


def data_file(path: Path, benchmark: str) -> None:
    """Save a benchmark with 40 inputs that all tasks share (but those that diverged) and 20 of each task's own."""
    space = SPACE if benchmark.startswith("pd1") else SearchSpace("s", (Parameter("a", "linear", 0.0, 1.0),) * 2)
    rng, tasks, kept = np.random.default_rng(5), {}, np.ones(40, dtype=bool)
    common, slope = rng.random((40, space.dim)), rng.normal(size=space.dim)
    for name in names(benchmark):
        x = np.concatenate([common, rng.random((20, space.dim))])
        y = x @ (slope + 0.5 * rng.normal(size=space.dim))
        lost = rng.random(len(x)) < 0.2
        group = name.split(",")[1] if "," in name else name
        rows = np.flatnonzero(~lost)
        kept &= ~lost[:40]
        tasks[name] = Task(name, space.name, group, x[rows], y[rows], np.exp(-y[rows]), rows, x[lost])
    shared = np.flatnonzero(kept)
    y = np.stack([task.y[np.isin(task.rows, shared)] for task in tasks.values()], axis=1)
    matched = (MatchedBlock("m", space.name, tuple(tasks), common[shared], y),) if kept.any() else ()
    splits = {"held_out": leave_group_out(tasks), "others": leave_one_out(tasks, names(benchmark)[:4])}
    flag = "power: 1 of 60 points a hair outside [0.1, 2.0]"
    facts = Facts(counts=(count("tasks", len(tasks), len(tasks)),), flags=(flag,))
    Benchmark(benchmark, {space.name: space}, tasks, matched, splits, facts=facts).save(path)


def file_of_spaces(path: Path, benchmark: str) -> None:
    """Save a benchmark with several spaces, the last of which is unseen; one input of each takes two values only."""
    rng, spaces, tasks = np.random.default_rng(6), {}, {}
    for name in names(benchmark):
        dim = int(name.partition("_")[2][:1] or 2)  # as the name of the space says, if it does
        linear = tuple(Parameter(f"x{i}", "linear", 0.0, 1.0) for i in range(dim - 1))
        spaces[space_of(name)] = SearchSpace(space_of(name), (*linear, Parameter("on", "ordinal", levels=(0.0, 1.0))))
        x = np.column_stack([rng.random((30, dim - 1)), rng.integers(2, size=30)])
        y = x @ rng.normal(size=dim)
        tasks[name] = Task(name, space_of(name), name, x, y, y, np.arange(30), np.zeros((0, dim)))
    folds = tuple(Fold(space, space, (f"{space}/0",), (f"{space}/1",)) for space in spaces)
    labels = CMBO if benchmark.startswith("cmbo") and benchmark not in REAL else {}
    facts = Facts(counts=(), unseen=(space_of(names(benchmark)[-1]),), labels=labels)
    Benchmark(benchmark, spaces, tasks, (), {"held_out": folds}, facts=facts).save(path)


class Kernel(AsyncKernelManager):
    """A kernel that stays for the next notebook: starting one and importing the package take longer than most cells."""

    def client(self, **options):
        self.last = super().client(**options)
        return self.last


@pytest.fixture(scope="module")
def kernel():
    manager = Kernel(kernel_name="python3")
    yield manager
    if manager.has_kernel:
        run_sync(manager.shutdown_kernel)(now=True)


@pytest.fixture
def execute(kernel):
    """Return a function (template, copy, parameters) that runs a template as papermill does, in the folder of the copy.

    No name survives from the notebook before: a cell that needs one fails. A kernel of its own: the workflow's runs.
    """

    def run(template: Path, copy: Path, parameters: dict) -> None:
        book = nbformat.read(template, as_version=4)
        forget = f"%reset -f\n__import__('os').chdir({str(copy.parent)!r})"
        forget += "\n__import__('matplotlib.pyplot').pyplot.close('all')"
        book.cells.insert(0, nbformat.v4.new_code_cell(forget))
        try:
            papermill.execute_notebook(
                book, str(copy), parameters, kernel_name="python3", progress_bar=False, cwd=str(copy.parent), km=kernel
            )
        finally:
            kernel.last.stop_channels()

    return run


@pytest.fixture(scope="session")
def inputs(tmp_path_factory, common):
    """Return a function (benchmark, artefact) -> notebook parameters, as the workflow would give them."""
    made, folder = {}, tmp_path_factory.mktemp("computed")
    for kind in ("studies", "theory"):
        (folder / kind).mkdir()

    def build(benchmark: str) -> dict:
        if benchmark not in made:
            tmp = tmp_path_factory.mktemp(benchmark)
            tasks = names(benchmark)[:6]
            several = benchmark.startswith(("mphd", "super", "cmbo"))
            (file_of_spaces if several else data_file)(tmp / "data.npz", benchmark)
            data = files.digest(tmp / "data.npz")[:12]
            made[benchmark] = {"tmp": tmp, "tasks": tasks, "data": str(tmp / "data.npz"), "digest": data}
        return made[benchmark]

    def computed(kind: str, name: str, paper: str) -> str:
        """Run a study or check at smoke size; a copy without sidecar, as if the file came from somebody else."""
        spec = {"studies": lambda: config.study_spec(stage_runs.smoke(), name)}.get(
            kind, lambda: config.theory_spec(stage_runs.smoke(), paper, name)
        )()
        stage, suffix = {"studies": ("study", "parquet"), "theory": ("theory", "json")}[kind]
        made = common / f"{name if kind == 'studies' else f'theory-{paper}-{name}'}.{suffix}"  # as tests/papers has it
        sidecar = () if kind == "studies" else ("--sidecar", str(made.with_suffix(".meta.json")))
        return str(shutil.copy(stage_runs.run(stage, spec, made, *sidecar), folder / kind / f"{name}.{suffix}"))

    def parameters(id: str, written: dict, benchmark: str, out: Path) -> dict:
        entry = read(CatalogueEntry, {"paper": "", "notebook": ""} | written, "catalogue", id)
        if not benchmark:
            wanted = entry.inputs.kinds
            made = {kind: [computed(kind, name, entry.paper) for name in names] for kind, names in wanted.items()}
            shown = {"artefact": id, "title": entry.title, "caption": entry.caption, "out": str(out)}
            return shown | made | plain(entry.parameters)
        made, artefact = build(benchmark), catalogue.Artefact(id, id, benchmark, entry)
        wanted, of = artefact.inputs, (made["tmp"], benchmark, made["tasks"])
        makers = {
            "trajectories": lambda run: trajectories(*of, run, made["digest"]),
            "evaluations": lambda run: evaluation(*of, run),
            "online": lambda run: online_table(*of, run, made["digest"]),
        }
        tables = {
            kind: [make(run) for run in getattr(artefact, kind)]
            for kind, make in makers.items()
            if kind in wanted.kinds
        }
        chosen = {"split": wanted.split} if wanted.split else {}
        chosen |= {"splits": artefact.splits} if wanted.splits else {}
        return {
            "artefact": id, "title": entry.title, "caption": entry.caption, "benchmark": benchmark,
            "data": made["data"], "out": str(out), **chosen, **tables,
            **plain(entry.parameters),
        }  # fmt: skip

    return parameters
