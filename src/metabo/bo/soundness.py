"""BO steps that were not numerically sound: how many there are, and what caused them."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from metabo.bo import acquisition
from metabo.errors import ConfigError, NumericsError
from metabo.plan import registry
from metabo.records import results

FILE = "src/metabo/bo/acquisition.py"
UNSOUND_SHARE = 0.05
"""The job fails if more than this share of its steps is unsound, because its regrets would be those of guesses."""


def unsound(table: pd.DataFrame) -> int:
    """Return the number of steps that were not numerically sound. Raises NumericsError if they exceed 5 %."""
    bad = table[~table["ok"]]
    if len(bad) > UNSOUND_SHARE * len(table):
        first = bad.iloc[0][[*results.RUN, "iteration"]].to_dict()
        what, remedy = _cause(table, bad.iloc[0])
        raise NumericsError(f"{len(bad)} of {len(table)} steps {what}, the first: {first}; {remedy}")
    return len(bad)


def _cause(table: pd.DataFrame, step: pd.Series) -> tuple[str, str]:
    """Return what is wrong with an unsound step, and the remedy. If an acquisition gives no finite number for a finite
    prediction, the prior is not to blame."""
    method, own = str(step["method"]), str(step["acquisition"])
    if own in acquisition.SCORED and not (score := _score(table, step)) < np.inf:
        given = "no number" if np.isnan(score) else "inf"
        return (
            f"have no score: acquisition '{own}' gives {given} for a finite prediction",
            f"mend its function in {FILE}",
        )
    usual = f"change learning rate or steps (config key 'methods.{method}')"
    advice = registry.made_of(method).advice or usual
    return "have no finite posterior or fit", f"look at the sidecar of its priors, and {advice}"


def _score(table: pd.DataFrame, step: pd.Series) -> float:
    """Return the acquisition's score for a step's prediction, given what the run had observed before it, or 0 without a
    finite prediction."""
    mean, std = float(step["mean"]), float(step["std"])
    if not np.isfinite([mean, std]).all():
        return 0.0
    same = (table[results.RUN] == step[results.RUN]).all(axis=1)
    before = table[same & (table["iteration"] < step["iteration"])]
    return float(_scores(str(step["acquisition"]), np.array([mean]), np.array([std]), np.asarray(before["y"]))[0])


def _scores(name: str, mean: np.ndarray, std: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return an acquisition's scores for predictions (n,), given the outputs observed `before`."""
    best, count = before.max(initial=-np.inf), len(before)
    given = (jnp.asarray(mean), jnp.asarray(std), jnp.asarray(best), jnp.asarray(count))
    return np.asarray(acquisition.make(name)(*given))


def flat(table: pd.DataFrame) -> bool:
    """Return, and print, whether an acquisition gave the same score to all predictions of the first run at each of its
    steps, so that it chose nothing. Constant scores at a few steps are not a fault."""
    name = str(table["acquisition"].iloc[0])
    steps = table.sort_values("iteration")
    run = steps[(steps[results.RUN] == table[results.RUN].iloc[0]).all(axis=1)]
    predicted = np.isfinite(run[["mean", "std"]]).all(axis=1)
    told = run.loc[predicted, ["mean", "std"]].drop_duplicates()
    if name not in acquisition.SCORED or len(told) < 2:
        return False
    mean, std, y = (np.asarray(one) for one in (told["mean"], told["std"], run["y"]))
    same = all(np.ptp(_scores(name, mean, std, y[:step])) == 0 for step in np.flatnonzero(predicted))
    if same:
        print(
            f"acquisition '{name}' gives equal scores at every step, whatever is predicted: candidates were drawn at "
            f"random; mend its function in {FILE}",
            flush=True,
        )
    return same


def require_scores(name: str) -> None:
    """Raise ConfigError unless an acquisition gives one score for each candidate and works on JAX arrays.

    Nothing is computed: it is traced on three candidates, as in BO."""
    if name not in acquisition.SCORED:
        return
    where = f"{FILE}: acquisition '{name}'"
    many, one = jax.ShapeDtypeStruct((3,), jnp.float64), jax.ShapeDtypeStruct((), jnp.float64)
    try:
        made = jax.eval_shape(acquisition.make(name), many, many, one, jax.ShapeDtypeStruct((), jnp.int64))
    except TypeError as error:  # JAX's errors of this kind are among them
        raise ConfigError(
            f"{where} cannot be traced by JAX ({type(error).__name__}: {str(error).splitlines()[0]}); take (mean, std, "
            "best, count), and write jax.numpy in place of numpy and math, jnp.where in place of `if`"
        ) from None
    shape = getattr(made, "shape", None)
    if shape != (3,):
        given = "one number" if shape == () else f"the shape {shape}"
        raise ConfigError(f"{where} gives {given} for 3 candidates; return a score for each, without mean or max")
