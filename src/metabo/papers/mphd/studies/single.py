"""Study MPHD-1: estimates of a single GP from more and more sub-datasets (MPHD App. F.1, Figure 10).

A GP on [0, 1], Matérn 3/2; every sub-dataset has 25 observations at inputs of its own. Every run draws its own data.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Int, Key

from metabo.compute.keys import stream
from metabo.data.synthetic import outputs
from metabo.gp.fit import over_pairs
from metabo.methods.hierarchical.hyperprior import Parameters
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.papers.mphd.studies.fits import by_lbfgs
from metabo.tasks.rows import Rows

STUDIES = {"mphd_single": {}}

KERNEL = "matern32"
OBSERVATIONS = 25
TRUTH = Parameters(constant=0.0, lengthscale=0.3, variance=1.0, noise=1e-4)
"""Of the authors' code; the paper shows it in the figure only."""


def sample(key: Key[Array, ""], functions: int) -> Rows:
    """Draw sub-datasets of the truth: x (functions, n, 1), y (functions, n)."""

    def one(key):
        where, values = jax.random.split(key)
        x = jax.random.uniform(where, (OBSERVATIONS, 1))
        constant, lengthscale, variance, noise = TRUTH
        y, _ = outputs(values, x, constant, jnp.full(1, lengthscale), variance, noise, KERNEL)
        return x, y

    x, y = jax.vmap(one)(jax.random.split(key, functions))
    return Rows(x, y, jnp.ones(y.shape, bool))


def fit(key: Key[Array, ""], present: Int[Array, ""], most: int, steps: int) -> Parameters:
    """Draw `most` sub-datasets and return θ̂ from the first `present` of them: one program serves every number."""
    rows = sample(key, most)
    kept = rows.mask & (jnp.arange(most) < present)[:, None]
    return by_lbfgs(rows._replace(mask=kept), KERNEL, steps)


class OneDomainSpec(StudySpec):
    """Numbers of sub-datasets, runs of each, and steps of L-BFGS."""

    functions: list[int]
    runs: int
    steps: int


def run(spec: OneDomainSpec) -> Frames:
    """Return "estimate" (functions, run, parameter, value) and "truth" (parameter, value)."""
    cases = [(number, run) for number in spec["functions"] for run in range(spec["runs"])]
    keys = jnp.stack([stream(spec["seed"], "mphd_single", *case) for case in cases])
    present, most = jnp.asarray([number for number, _ in cases]), max(spec["functions"])
    found = over_pairs(lambda pair: fit(*pair, most, spec["steps"]), (keys, present), accelerator=False)
    keyed = pd.DataFrame(cases, columns=["functions", "run"])
    frames = [
        keyed.assign(parameter=name, value=np.asarray(part).reshape(len(cases)))
        for name, part in zip(Parameters._fields, found, strict=True)
    ]
    truth = pd.DataFrame({"parameter": Parameters._fields, "value": [float(value) for value in TRUTH]})
    return {"estimate": pd.concat(frames, ignore_index=True), "truth": truth}
