"""Steps of BO that were not numerically sound: how many there are, and what is to blame."""

import jax.numpy as jnp
import numpy as np
import pandas as pd

from metabo.bo import acquisition
from metabo.errors import NumericsError
from metabo.plan import registry
from metabo.records import results

UNSOUND_SHARE = 0.05
"""More unsound steps than this share fail the job: its regrets would be those of a guess."""


def unsound(table: pd.DataFrame) -> int:
    """Return the number of steps that were not numerically sound. Raises NumericsError if they exceed 5 %."""
    bad = table[~table["ok"]]
    if len(bad) > UNSOUND_SHARE * len(table):
        first = bad.iloc[0][[*results.RUN, "iteration"]].to_dict()
        what, remedy = _cause(table, bad.iloc[0])
        raise NumericsError(f"{len(bad)} of {len(table)} steps {what}, the first: {first}; {remedy}")
    return len(bad)


def _cause(table: pd.DataFrame, step: pd.Series) -> tuple[str, str]:
    """Return what is wrong with an unsound step, and the remedy: where an acquisition gives no number for a finite
    prediction, the prior is not to blame."""
    method, own = str(step["method"]), str(step["acquisition"])
    if own in acquisition.SCORED and np.isnan(_score(table, step)):
        return (
            f"have no score: acquisition '{own}' gives no number for a finite prediction",
            "mend its function in src/metabo/bo/acquisition.py",
        )
    usual = f"change learning rate or steps (config key 'methods.{method}')"
    advice = registry.made_of(method).advice or usual
    return "have no finite posterior or fit", f"look at the sidecar of its priors, and {advice}"


def _score(table: pd.DataFrame, step: pd.Series) -> float:
    """Return what a step's acquisition gives for its prediction, after what its run had observed; 0 without a finite
    prediction."""
    mean, std = float(step["mean"]), float(step["std"])
    if not np.isfinite([mean, std]).all():
        return 0.0
    same = (table[results.RUN] == step[results.RUN]).all(axis=1)
    before = table[same & (table["iteration"] < step["iteration"])]
    best, count = before["y"].max() if len(before) else -np.inf, len(before)
    given = (jnp.asarray([mean]), jnp.asarray([std]), jnp.asarray(best), jnp.asarray(count))
    return float(acquisition.make(str(step["acquisition"]))(*given)[0])
