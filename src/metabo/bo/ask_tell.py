"""Online BO on the unit cube: ask for a point, evaluate it for real, tell the outcome (hyperbo §7.5).

`ask` and `tell` are functions of a `State` that you can call directly; `run` is the loop around them. A method is
compiled once and serves every task and seed, because the budget is known beforehand and observations are padded to it.
"""

from collections.abc import Callable
from numbers import Real
from operator import attrgetter
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PyTree

from metabo.bo.acquisition import Acquisition
from metabo.bo.continuous import halton, maximise
from metabo.bo.policy import tie_breakers
from metabo.errors import ConfigError, MetaboError
from metabo.tasks.outputs import rescale_all
from metabo.tasks.rows import AnyArray, Rows


class Proposal(NamedTuple):
    """The re-trained `params`, a point `x` of the unit cube, the prediction there (on the mapped scale; NaN without a
    model), whether fit and posterior were numerically sound, and the variance that the covariance needed on its
    diagonal beyond the usual jitter."""

    params: PyTree
    x: np.ndarray
    mean: float
    std: float
    ok: bool
    jitter: float = 0.0


@runtime_checkable
class Predictive(Protocol):
    """The predictions of a model after its observations."""

    @property
    def ok(self) -> Bool[Array, ""]:
        """Whether it is numerically sound."""
        ...

    @property
    def jitter(self) -> Float[Array, ""] | float:
        """The variance that its covariance needed on the diagonal beyond the usual jitter."""
        ...

    def predict(self, x: Float[Array, "m d"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Return mean and variance at m inputs."""
        ...


class OnlineModel(Protocol):
    """What `Tuner` needs from a model, which is a GP or a stand-in for one."""

    @property
    def noise(self) -> Float[Array, ""] | float:
        """The noise variance, without any part that the predictions already include."""
        ...

    def posterior(self, x: Float[AnyArray, "b d"], y: Float[AnyArray, " b"], mask: Bool[AnyArray, " b"]) -> Predictive:
        """Condition on the valid rows."""
        ...


@runtime_checkable
class OnlineMethod(Protocol):
    """What the loop needs from a method. `dim`: number of columns of the unit cube; `budget`: largest number of
    observations of a run."""

    dim: int
    budget: int

    def begin(self, fold: int, prior_seed: int) -> tuple[PyTree, PyTree]:
        """Return the parameters that a run starts from, and the context of re-training (the same at every
        iteration)."""
        ...

    def suggest(self, params: PyTree, context: PyTree, data: Rows, key: Key[Array, ""]) -> Proposal:
        """Re-train on the observations, if there are any, and choose the next point. `data` is padded to the budget and
        has unit-cube inputs and outputs mapped to [-2, 2]."""
        ...


class State(NamedTuple):
    """One run: parameters, the method's context, n observed inputs (n, d) and outputs (n,), NaN where infeasible."""

    params: PyTree
    context: PyTree
    x: np.ndarray
    y: np.ndarray


def begin(method: OnlineMethod, fold: int = 0, prior_seed: int = 0) -> State:
    """Return the state before any observation."""
    return State(*method.begin(fold, prior_seed), np.zeros((0, method.dim)), np.zeros(0))


def ask(method: OnlineMethod, state: State, key: Key[Array, ""]) -> tuple[State, Proposal]:
    """Return the next point to evaluate, and the state with the re-trained parameters.

    All outputs are mapped anew (hyperbo §7.5). Raises ConfigError when the budget is used up.
    """
    count, spare = len(state.y), method.budget - len(state.y)
    if spare < 1:
        raise ConfigError(f"online tuning: all {method.budget} evaluations are made; build the method with more")
    x = np.concatenate([state.x, np.zeros((spare, method.dim))])
    y = np.concatenate([rescale_all(state.y), np.zeros(spare)])
    data = Rows(jnp.asarray(x), jnp.asarray(y), jnp.arange(method.budget) < count)
    suggestion = method.suggest(state.params, state.context, data, key)
    return state._replace(params=suggestion.params), suggestion


def tell(state: State, x: np.ndarray, y: float) -> State:
    """Return the state with one more observation: unit-cube input (d,) and output to maximise; NaN: infeasible."""
    y = y if np.isfinite(y) else np.nan
    return state._replace(x=np.concatenate([state.x, np.asarray(x)[None]]), y=np.append(state.y, y))


class Tuner(eqx.Module):
    """A method with a model: `refit(params, context, data, key)` trains it, `to_model` makes the model from the
    parameters, and the acquisition is maximised.

    Before the first observation nothing is trained: the first point maximises the acquisition under the prior, and is a
    random Halton point if the prior is the same everywhere.
    """

    to_model: Callable[[PyTree], OnlineModel] = eqx.field(static=True)
    refit: Callable[..., tuple[PyTree, Bool[Array, ""]]] = eqx.field(static=True)
    priors: Callable[[int, int], tuple[PyTree, PyTree]] = eqx.field(static=True)
    acquisition: Acquisition = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    budget: int = eqx.field(static=True)
    starts: int = eqx.field(static=True)
    polish: int = eqx.field(static=True)
    polish_steps: int = eqx.field(static=True)

    def begin(self, fold: int, prior_seed: int) -> tuple[PyTree, PyTree]:
        """Return the parameters of one prior and the context of its re-training."""
        params, context = self.priors(fold, prior_seed)
        # Arrays without a weak type, as training returns them, so that the first step's program serves all others.
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), params), context

    def suggest(self, params: PyTree, context: PyTree, data: Rows, key: Key[Array, ""]) -> Proposal:
        """Re-train and maximise the acquisition from fresh Halton starts."""
        search, ties, fit = jax.random.split(key, 3)
        starts = halton(self.starts, self.dim, np.random.default_rng(np.asarray(jax.random.key_data(search))))
        params, x, *said = self.step(params, context, data, jnp.asarray(starts), ties, fit)
        mean, std, ok, jitter = said
        return Proposal(params, np.asarray(x), float(mean), float(std), bool(ok), float(jitter))

    @eqx.filter_jit
    def step(
        self, params: PyTree, context: PyTree, data: Rows, starts: Float[Array, "n d"], ties: Key[Array, ""],
        fit: Key[Array, ""],
    ) -> tuple[
        PyTree, Float[Array, " d"], Float[Array, ""], Float[Array, ""], Bool[Array, ""], Float[Array, ""] | float
    ]:  # fmt: skip
        """Return (params, x, mean, std, sound, jitter): the compiled part of `suggest`."""
        count = jnp.sum(data.mask)
        params, trained = jax.lax.cond(
            count == 0, lambda: (params, jnp.asarray(True)), lambda: self.refit(params, context, data, fit)
        )
        model = self.to_model(params)
        posterior = model.posterior(*data)
        best = jnp.max(jnp.where(data.mask, data.y, -jnp.inf))

        def moments(x: Float[Array, "m d"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
            mean, variance = posterior.predict(x)
            return mean, jnp.sqrt(variance + model.noise)

        def score(x: Float[Array, "m d"]) -> Float[Array, " m"]:
            return self.acquisition(*moments(x), best, count)

        priority = tie_breakers(ties, self.starts)
        x = maximise(score, starts, priority, self.polish, self.polish_steps)
        mean, std = moments(x[None])
        return params, x, mean[0], std[0], trained & posterior.ok, posterior.jitter


class Target(NamedTuple):
    """The target to tune. `evaluate` takes a raw point (d,) and returns a number, or a trial with the field `metric`
    and `status` ("done", or why there is no value); `warp` turns the metric into the output to maximise."""

    evaluate: Callable[[np.ndarray], object]
    metric: str
    warp: Callable[[float], float]


class Outcome(NamedTuple):
    """One evaluation: the original metric, the output to maximise (both NaN if infeasible) and why it is infeasible."""

    metric: float
    y: float
    reason: str


def measure(target: Target, point: np.ndarray) -> Outcome:
    """Evaluate one raw point (d,).

    An evaluation that raises, does not end as "done", returns something other than a trial or a number, or has no
    finite output is infeasible, and the outcome has the reason. Errors of the machine are raised and end the job:
    MetaboError (a package is missing), MemoryError, KeyboardInterrupt, SystemExit.
    """
    try:
        value, reason = _read(target.evaluate(point), target.metric)
    except (MetaboError, MemoryError):
        raise
    except Exception as error:
        first = str(error).strip().splitlines()[:1]
        value, reason = np.nan, f"raised: {': '.join([type(error).__name__, *first])}"
    if not reason:
        with np.errstate(divide="ignore", invalid="ignore"):
            y = float(target.warp(value))
        if np.isfinite([value, y]).all():
            return Outcome(value, y, "")
    return Outcome(np.nan, np.nan, (reason or "not finite")[:200])


def _read(trial: object, metric: str) -> tuple[float, str]:
    """Return the metric, and why there is none ("" if there may be one)."""
    if not isinstance(trial, bool | np.bool_) and (isinstance(trial, Real) or getattr(trial, "shape", None) == ()):
        return float(np.asarray(trial)), ""
    status = str(attrgetter("status")(trial))
    if status != "done":
        return np.nan, status or "status is empty"
    return float(attrgetter(metric)(trial)), ""


class Step(NamedTuple):
    """One iteration: the suggestion and its outcome."""

    suggestion: Proposal
    outcome: Outcome


def run(
    method: OnlineMethod,
    state: State,
    target: Target,
    raw: Callable[[np.ndarray], np.ndarray],
    iterations: int,
    key: Key[Array, ""],
    log: Callable[[str], None] = print,
) -> list[Step]:
    """Ask, evaluate and tell `iterations` times; `raw` maps a unit-cube point (d,) to the point that is evaluated.

    Infeasible evaluations are logged with point and reason, and the run goes on.
    """
    steps = []
    for number in range(iterations):
        state, suggestion = ask(method, state, jax.random.fold_in(key, number))
        point = raw(suggestion.x)
        outcome = measure(target, point)
        if outcome.reason:
            log(f"iteration {number + 1}: infeasible ({outcome.reason}) at {[float(f'{v:.6g}') for v in point]}")
        state = tell(state, suggestion.x, outcome.y)
        steps.append(Step(suggestion._replace(params=None), outcome))
    return steps
