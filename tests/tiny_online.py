"""A tiny benchmark for online tuning: three tasks on the unit square with diverged inputs, and their real objective."""

from types import SimpleNamespace

import numpy as np

from metabo.plan import registry
from metabo.plan.typed import plain
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task

METHODS = registry.methods("online")
GP_METHODS = [name for name in METHODS if name not in ("rand", "mimo_online", "rfgp_online")]
LEARNERS = ["h_ekl_online", "h_nll_online"]
METRICS = {"p": "error_rate", "q": "error_rate", "text": "ce_loss"}
OPTIMA = {"p": (0.3, 0.6), "q": (0.4, 0.5), "text": (0.35, 0.7)}
SHARED = 8


def error(task, unit):
    """Error rate in (0, 1) and whether the training diverges, on the unit square."""
    unit = np.asarray(unit)
    value = 0.05 + 0.8 * ((unit - OPTIMA[task]) ** 2).sum(axis=-1) / 2
    return value, unit[..., 0] > 0.85


def evaluator(task, seed=0):
    """The objective as the collector of a benchmark gives it: raw point to trial."""

    def evaluate(point):
        value, diverged = error(task, (np.asarray(point) + 1) / 2)
        assert np.shape(point) == (2,)
        if diverged:
            return SimpleNamespace(error_rate=np.nan, ce_loss=np.nan, status="diverged")
        return SimpleNamespace(error_rate=float(value), ce_loss=float(3 * value), status="done")

    return evaluate


def raw_inputs(unit):
    """Raw points: the box [-1, 1]²."""
    return 2 * np.asarray(unit) - 1


def benchmark(seed=0):
    """Each task has 8 shared inputs (fewer matched, where a task diverges) and some of its own."""
    rng = np.random.default_rng(seed)
    shared = rng.uniform(size=(SHARED, 2))
    shared[0, 0] = 0.95  # diverges everywhere
    tasks, values = {}, np.full((SHARED, 3), np.nan)
    for i, (name, own) in enumerate(zip(OPTIMA, (6, 4, 9), strict=True)):
        x = np.concatenate([shared, rng.uniform(size=(own, 2))])
        value, bad = error(name, x)
        value = value * np.exp(0.05 * rng.normal(size=len(x)))
        y = -np.log(value + 1e-10)
        values[:, i] = np.where(bad, np.nan, y)[:SHARED]
        tasks[name] = Task(name, "square", name, x[~bad], y[~bad], value[~bad], np.flatnonzero(~bad), x[bad])
    whole = np.isfinite(values).all(axis=1)
    block = MatchedBlock("m", "square", tuple(OPTIMA), shared[whole], values[whole])
    folds = tuple(Fold(f"without {name}", "square", tuple(n for n in OPTIMA if n != name), (name,)) for name in OPTIMA)
    space = SearchSpace("square", tuple(Parameter(n, "linear", -1.0, 1.0) for n in "uv"))
    return Benchmark("square", {"square": space}, tasks, (block,), {"others": folds})


def specs(method, seeds=2, iterations=4, seed=0, **overrides):
    """The specs of the two jobs of one method, pre-training and tuning, at test size."""
    entry = registry.method(method)
    sizes = {"steps": 40, "batch": 5, "matched_points": 0, "retrain_steps": 6, "refit_steps": 4}
    sizes |= {"starts": 16, "polish": 2, "polish_steps": 4}
    sizes |= {
        "random_features": 12,
        "ridge": 1.0,
        "lengthscale": 0.5,
        "warm_start": True,
        "learning_rate": 1e-3,
        "decay": 1.0,
    }  # mimo, rfgp
    sections = {"model": plain(entry.model), "pretrain": plain(entry.pretrain), "online": plain(entry.online)}
    for section, settings in sections.items():
        settings |= {key: value for key, value in sizes.items() if key in settings} | overrides.get(section, {})
    if entry.model.get("features"):
        sections["model"]["features"] = [4]
    ids = {"benchmark": "square", "split": "others", "past": {"base": "others"}, "method": method, "seed": seed}
    pretrain = {**ids, "seeds": seeds, "model": sections["model"], "pretrain": sections["pretrain"]}
    acquisition = overrides.get("acquisition", entry.acquisition)
    online = {**ids, "seeds": seeds, "acquisition": acquisition, "iterations": iterations}
    online |= {"online": sections["online"]}
    return pretrain, online
