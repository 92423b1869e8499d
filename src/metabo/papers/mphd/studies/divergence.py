"""Study MPHD-L: divergence of the learned length-scale prior from the truth (MPHD §3.2.2, Figure 6).

Super-dataset L: the Gamma prior of a lengthscale depends on the number of inputs. Priors are fitted to the lengthscales
that Step 1 estimates in N training domains: by a network of the context, with a linear output (ours) and with the
squashed one of the authors' code, and without a network (one Gamma for all). The squashed output cannot reach the
truth, nor can one Gamma: both have a least divergence, which is computed here without data.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int, Key
from scipy.optimize import brentq, minimize
from scipy.special import digamma

from metabo.compute import progress
from metabo.compute.keys import stream
from metabo.data.synthetic import DESIGNS
from metabo.gp.constraints import positive
from metabo.gp.fit import over_pairs
from metabo.methods.hierarchical import contexts
from metabo.methods.hierarchical.hyperprior import fit_gamma, kl_gamma
from metabo.methods.hierarchical.network import OUTPUTS, make, train
from metabo.papers.engine.studies.files import Frames
from metabo.papers.mphd.studies.fits import Domains, SeededSpec, by_adam, domains, pools, super_dataset
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.rows import Rows

STUDIES = {"mphd_divergence": {}}

DESIGN = DESIGNS["mphd_l"]
LEARNING_RATE = 1e-3
"""Of Adam for the network (App. E.2)."""
DIMS = np.arange(DESIGN.dims[0], DESIGN.dims[1] + 1)
"""Numbers of inputs over which the divergence is averaged: 2 to 14."""


def true_priors() -> Float[np.ndarray, "dims 2"]:
    """Return shape and rate of the lengthscales' Gamma for each of DIMS (App. E.1)."""
    return np.array([DESIGN.prior(int(dim))["lengthscale"] for dim in DIMS])


def divergences(shape: np.ndarray, rate: np.ndarray) -> Float[np.ndarray, "*batch dims"]:
    """Return KL(truth ‖ Γ(shape, rate)) for each of DIMS (sheet §5); the last axis of both is DIMS or of length 1."""
    return kl_gamma(*true_priors().T, shape, rate)


def squashed_floor() -> Float[np.ndarray, " dims"]:
    """Return the least divergence for each of DIMS that a squashed output, shape and rate within positive(∓1), has.

    KL is jointly convex in shape and rate (its Hessian is the Fisher information), so there is one minimum.
    """
    low, high = map(float, positive(jnp.asarray([-1.0, 1.0])))

    def least(shape: float, rate: float) -> float:
        start = np.clip([shape, rate], low, high)
        return minimize(lambda q: kl_gamma(shape, rate, *q), start, bounds=[(low, high)] * 2, tol=1e-12).fun

    return np.array([least(*pair) for pair in true_priors()])


def pooled_limit() -> tuple[float, float]:
    """Return shape and rate of the one Gamma for all lengthscales as the number of domains grows without end.

    The maximum-likelihood equations under the mixture over DIMS, uniform over domains: a domain of d inputs counts d
    times.
    """
    shape, rate = true_priors().T
    weight = DIMS / DIMS.sum()
    mean, log_mean = weight @ (shape / rate), weight @ (digamma(shape) - np.log(rate))
    found = brentq(lambda a: np.log(a) - digamma(a) - np.log(mean) + log_mean, 1e-3, 1e3)
    return found, found / mean


def estimates(known: Domains, steps: int, learning_rate: float, root: Key[Array, ""]) -> Float[np.ndarray, "domains d"]:
    """Return the lengthscales that Step 1 finds in every domain, those of padded inputs at their start."""
    keys = jax.random.split(root, len(known.names))

    def fit(pair):
        return by_adam(Rows(*pair[0]), DESIGN.kernel, steps, learning_rate, pair[1])

    fitted = over_pairs(fit, (known.rows, keys), False)
    return np.asarray(fitted.lengthscale)


def network_priors(
    known: Domains, lengthscale: np.ndarray, chosen: np.ndarray, keys: Key[Array, " k"], output: str, steps: int
) -> tuple[Float[np.ndarray, "k dims 2"], np.ndarray]:
    """Train one network on each subset of domains, and return shape and rate for DIMS, and where each training ended
    early (-1: it did not).

    `lengthscale` (domains, d), `chosen` (k, domains) says which domains each network sees.
    """
    width = lengthscale.shape[1]
    own = np.arange(width) < known.dims[:, None]
    context = np.repeat(_contexts(known.dims), width, axis=0)
    masks = (chosen[:, :, None] & own).reshape(len(chosen), -1)
    data = map(jnp.asarray, (masks, context, lengthscale.ravel()))
    found, stopped = _train_all(keys, *data, output, steps)
    return np.asarray(found), np.asarray(stopped)


def _contexts(dims: np.ndarray) -> Float[np.ndarray, "domains 4"]:
    """Return the context that all lengthscales of a synthetic domain have: its inputs are continuous."""
    return np.array([contexts.of_columns(np.zeros(dim, bool))[0] for dim in dims])


@eqx.filter_jit
def _train_all(
    keys: Key[Array, " k"],
    masks: Bool[Array, "k n"],
    context: Float[Array, "n 4"],
    lengthscale: Float[Array, " n"],
    output: str,
    steps: int,
) -> tuple[Float[Array, "k dims 2"], Int[Array, " k"]]:
    def fit(key, mask):
        settings = {"steps": steps, "learning_rate": LEARNING_RATE}
        network, log = train(make(key, output=output), context, lengthscale, mask, **settings)
        return network(jnp.asarray(_contexts(DIMS))), log.stopped

    return jax.vmap(fit)(keys, masks)


def one_prior(known: Domains, lengthscale: np.ndarray, chosen: np.ndarray) -> Float[np.ndarray, "dims 2"]:
    """Return shape and rate of one Gamma for the lengthscales of the domains `chosen` (indices), the same for DIMS."""
    pooled = np.concatenate([lengthscale[i, : known.dims[i]] for i in chosen])
    owners = [known.names[i] for i in chosen for _ in range(known.dims[i])]
    return np.tile(fit_gamma(pooled, spaces=owners), (len(DIMS), 1))


class DivergenceSpec(SeededSpec):
    """Numbers of training domains, steps and learning rate of Step 1, and steps of Step 2."""

    train: list[int]
    adam_steps: int
    learning_rate: float
    network_steps: int


def run(spec: DivergenceSpec) -> Frames:
    """Return the divergence of every prior, its limits, the truth, and the estimates of Step 1.

    Each seed has training domains of its own (`fits.super_dataset`); N of them are drawn for each N.

    "divergence": output (linear, squashed, non_nn),
    train, seed, dim, shape, rate, kl (nats), stopped (step at which the training of the network ended early, -1: none);
    "limit": output, dim, kl (squashed: least possible; non_nn: with ever more domains); "truth": dim, shape, rate;
    "estimate": seed, space, dim, index, value, truth.
    """
    benchmark = super_dataset("mphd_l", spec)
    trained = {fold.space: fold.train for fold in benchmark.split("held_out")}
    known = domains(benchmark, {space: trained[space] for own in pools(benchmark, spec) for space in own})
    root, size = partial(stream, spec["seed"], "mphd_divergence"), len(known.names) // spec["seeds"]
    lengthscale = estimates(known, spec["adam_steps"], spec["learning_rate"], root("adam"))
    frames: dict[str, list[pd.DataFrame]] = {output: [] for output in (*OUTPUTS, "non_nn")}
    for seed in progress.loop(range(spec["seeds"]), "seeds"):
        mine = slice(seed * size, (seed + 1) * size)
        rows = Rows(*(part[mine] for part in known.rows))
        own, lengths = Domains(rows, known.dims[mine], known.names[mine]), lengthscale[mine]
        cases = [(number, seed) for number in spec["train"]]
        drawn = [np.asarray(jax.random.permutation(root("domains", *case), size))[: case[0]] for case in cases]
        chosen = np.array([np.isin(np.arange(size), some) for some in drawn])
        keys = jnp.stack([root("network", *case) for case in cases])
        for output in OUTPUTS:
            found, stopped = network_priors(own, lengths, chosen, keys, output, spec["network_steps"])
            frames[output] += [_case_table(output, *case, found[i], stopped[i]) for i, case in enumerate(cases)]
        for case, some in zip(cases, drawn, strict=True):
            frames["non_nn"].append(_case_table("non_nn", *case, one_prior(own, lengths, some), -1))
    limits = {"squashed": squashed_floor(), "non_nn": divergences(*map(np.atleast_1d, pooled_limit()))}
    parts = [pd.DataFrame({"output": output, "dim": DIMS, "kl": kl}) for output, kl in limits.items()]
    shape, rate = true_priors().T
    return {
        "divergence": pd.concat([table for tables in frames.values() for table in tables], ignore_index=True),
        "limit": pd.concat(parts, ignore_index=True),
        "truth": pd.DataFrame({"dim": DIMS, "shape": shape, "rate": rate}),
        "estimate": _estimate_table(known, lengthscale, benchmark, size),
    }


def _case_table(output: str, train: int, seed: int, found: np.ndarray, stopped: int | np.integer) -> pd.DataFrame:
    shape, rate = found.T
    keyed = {"output": output, "train": train, "seed": seed, "dim": DIMS, "shape": shape, "rate": rate}
    return pd.DataFrame({**keyed, "kl": divergences(shape, rate), "stopped": int(stopped)})


def _estimate_table(known: Domains, lengthscale: np.ndarray, benchmark: Benchmark, size: int) -> pd.DataFrame:
    """Return the rows of "estimate"; `size`: the number of each seed's domains."""
    rows = []
    for number, (space, dim, values) in enumerate(zip(known.names, known.dims, lengthscale, strict=True)):
        true = benchmark.facts.truth[space]["parameters"]["lengthscale"]
        rows += [(number // size, space, int(dim), i, float(values[i]), float(true[i])) for i in range(dim)]
    return pd.DataFrame(rows, columns=["seed", "space", "dim", "index", "value", "truth"])
