"""A tiny benchmark with every awkward task that a method must survive, and the specs that run on it."""

import itertools
from dataclasses import fields

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from metabo.gp.features import MLP, Identity
from metabo.gp.kernels import RADIAL, DotProduct, Stationary
from metabo.gp.means import Constant, Linear, Zero
from metabo.gp.model import GP
from metabo.plan import registry
from metabo.plan.specs import BOSpec
from metabo.plan.typed import Values, plain
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task

METHODS = [m for m in registry.methods("policy") if not registry.method(m).variant_of]
SHARED = 6  # matched inputs
KERNELS = (*RADIAL, "dot_product")
MEANS = ("zero", "constant", "linear")


def random_gp(rng, dim, mean="linear", kernel="matern52", sizes=(4, 3), noise=-3.0):
    """Draw a GP of given structure with every leaf away from special values; `sizes` () means raw inputs."""
    normal = lambda *shape, scale=1.0: jnp.asarray(scale * rng.normal(size=shape))  # noqa: E731
    widths = (dim, *sizes)
    pairs = list(itertools.pairwise(widths))
    layers = (tuple(normal(i, o, scale=i**-0.5) for i, o in pairs), tuple(normal(o, scale=0.3) for _, o in pairs))
    features = MLP(*layers) if sizes else Identity()
    width = widths[-1]
    mu = {"zero": Zero(), "constant": Constant(normal()), "linear": Linear(normal(width), normal())}[mean]
    if kernel == "dot_product":
        cov = DotProduct(normal(scale=0.3), normal())
    else:
        cov = Stationary(normal(width, scale=0.3), normal(scale=0.3), kernel)
    return GP(features, mu, cov, jnp.asarray(noise))


def stacked(gps):
    """Stack GPs of one structure along a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *gps)


def shift_constant(params, data):
    """A fit that can be written by hand: the prior's constant moves to the mean of the observations."""
    level = jnp.sum(jnp.where(data.mask, data.y, 0)) / jnp.sum(data.mask)
    return eqx.tree_at(lambda g: g.mean.value, params, level), data.y[0] < 50


def same(params):
    return params


def task(name, x, y, group=None):
    y = np.asarray(y, dtype=np.float64)
    return Task(
        name, "plane", group or name, np.asarray(x), y, np.exp(-y), np.arange(len(y)), np.zeros((0, x.shape[1]))
    )


def benchmark(initial=False, seed=0):
    """Four tasks on the unit square: `a` (14 rows), `b` (11 rows, three of them repeated inputs), `flat` (8 rows, one
    output value), `point` (1 row). The first six inputs of the first three tasks are shared."""
    rng = np.random.default_rng(seed)
    shared = rng.uniform(size=(SHARED, 2))
    xa = np.concatenate([shared, rng.uniform(size=(8, 2))])
    xb = np.concatenate([shared, rng.uniform(size=(2, 2)), shared[[0, 0, 1]]])
    xf = np.concatenate([shared, rng.uniform(size=(2, 2))])
    ya = np.sin(4 * xa[:, 0]) - xa[:, 1] + 0.05 * rng.normal(size=len(xa))
    yb = np.sin(3 * xb[:, 0] + 0.5) - 0.5 * xb[:, 1] + 0.05 * rng.normal(size=len(xb))
    tasks = {"a": task("a", xa, ya), "b": task("b", xb, yb), "flat": task("flat", xf, np.full(8, 0.7))}
    tasks["point"] = task("point", rng.uniform(size=(1, 2)), [0.3])
    columns = np.column_stack([tasks[name].y[:SHARED] for name in ("a", "b", "flat")])
    folds = (
        Fold("without a", "plane", ("b", "flat", "point"), ("a",)),
        Fold("without the odd ones", "plane", ("a", "b"), ("flat", "point")),
    )
    given = {"a": np.array([[3, 1], [0, 5]]), "flat": np.array([[7, 0], [2, 2]]), "point": np.zeros((2, 2), int)}
    space = SearchSpace("plane", (Parameter("u", "linear", 0.0, 1.0), Parameter("v", "linear", 0.0, 1.0)))
    return Benchmark(
        "tiny", {"plane": space}, tasks, (MatchedBlock("m", "plane", ("a", "b", "flat"), shared, columns),),
        {"held_out": folds}, given if initial else {},
    )  # fmt: skip


def job(spec):
    """The spec of BO of one that `spec` returns, and the checksum of its data: what `optimise` reads."""
    free = {"candidates": "all", "once": False, "exceptions": ()}
    read = {field.name: spec.get(field.name, free.get(field.name)) for field in fields(BOSpec)}
    read |= {"policy": Values(spec["policy"])}
    return BOSpec(**read), spec["data"]


def spec(method, seed=0, seeds=2, acquisition=None, iterations=6, **overrides):
    """Settings of one method as its jobs read them, at test size; overrides such as pretrain={"steps": 5}."""
    entry = registry.method(method)
    settings = {"model": plain(entry.model), "pretrain": plain(entry.pretrain), "policy": plain(entry.policy)}
    if settings["model"].get("features"):
        settings["model"]["features"] = [4, 3]
    small = {"steps": 12 if method != "h_ekl" else 6, "batch": 5, "refit_steps": 4, "matched_points": 0}
    small |= {"hidden": [4], "episodes": 8, "horizon": 3, "candidates": 5, "minibatches": 2, "evaluate_every": 5}  # maf
    small |= {"random_features": 12, "ridge": 1.0, "lengthscale": 0.5, "warm_start": True}  # mimo, rfgp
    small |= {"most": 3, "restarts": 2, "locations": 9, "grid": 7, "samples": 6, "tolerance": 1e-3}  # cm-BO
    small |= {"points": 12, "gp_points": 0, "gp_steps": 5, "learning_rate": 1e-3, "decay": 1.0}
    small |= {"anchors": 4, "em_steps": 3, "shrinkage": [0.2, 1.0], "parts": 2}  # emp_gp
    for section in ("model", "pretrain", "policy"):
        settings[section] |= {key: value for key, value in small.items() if key in settings[section]}
        settings[section] |= overrides.get(section, {})
    return {
        "benchmark": "tiny", "split": "held_out", "past": {"base": "held_out"}, "method": method, "seed": seed,
        "seeds": seeds, "data": "0" * 12,
        "acquisition": acquisition or entry.acquisition, "iterations": iterations,
        **settings,
    }  # fmt: skip
