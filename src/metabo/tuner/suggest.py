"""Suggestions from a prior: the policy of the experiments, on a pool of the user's configurations.

Evaluated trials are observed one by one, as in a run of `metabo.bo.loop`. A trial that is still running, and each
suggestion of a batch, is observed at its predicted mean until its outcome is told (Ginsbourger et al.'s Kriging
believer), so that a batch spreads.
"""

import json
import math
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree

from metabo.bo.loop import Given, Steps, begin, play
from metabo.bo.policy import Candidates
from metabo.compute.guest import float64
from metabo.compute.keys import stream
from metabo.data.history.description import Configuration, Description
from metabo.data.history.past import Scale, oriented, scale_of
from metabo.errors import ConfigError, NumericsWarning, unknown
from metabo.plan import registry, runs
from metabo.records.files import canonical
from metabo.tuner import pool
from metabo.tuner.asking import ALL, Only, Prior, Suggestion, Told, too_few
from metabo.tuner.blend import choose as blend
from metabo.tuner.blend.past import ConditionedPast

BLOCK = 16
"""Room for observations grows in steps of this size, and each size compiles once."""
CENTRES = 3
"""The number of best trials whose neighbours become candidates."""


@float64
def suggest(
    prior: Prior, told: Told, count: int = 1, seed: int = 0, acquisition: str | None = None, only: Only = ALL
) -> list[Suggestion]:
    """Return `count` configurations to try next; the same for the same arguments. `acquisition`: in place of the
    method's own; `only`: what they keep to.

    Raises ConfigError if the space has fewer configurations left, or for an unknown acquisition. Warns
    (NumericsWarning) if the model's posterior is not numerically sound: the suggestion is then still a configuration of
    the space, but has no prediction. Also warns if the model's covariance needed more on its diagonal.
    """
    chosen = acquisition_of(prior.spec["method"], prior.spec["acquisition"], acquisition)
    if isinstance(prior.params, ConditionedPast):
        return blend.suggest(prior.description, prior.params, told, count, seed, chosen, only)
    scale, y = scaled(prior, told)
    taken = [*told.done, *told.running]
    places = -(-(len(taken) + count) // BLOCK) * BLOCK
    program = (prior.spec["method"], canonical(prior.spec["policy"]), chosen, places)
    best = [told.done[i] for i in np.argsort(-y, kind="stable")[:CENTRES]]
    key = stream(seed, "suggest", len(told.done), len(told.running))
    numbers = [seed, len(told.done), len(told.running)]
    outputs = np.zeros(places)
    outputs[: len(y)] = y
    centres, found, guesses, more = best, [], 0, 0.0
    for turn in range(2):  # the second pool looks closer where the first one found something
        candidates = pool.make(prior.description, taken, places, centres, [*numbers, turn], only)
        if (left := int(candidates.mask.sum())) < count:
            raise too_few(prior.description.name, left, count)
        data = Candidates(jnp.asarray(candidates.x), jnp.asarray(candidates.mask))
        counts = jnp.asarray(len(y)), jnp.asarray(len(taken)), jnp.asarray(count)
        steps = choose(prior.params, data, jnp.asarray(outputs), *counts, key, *program)
        picks = [candidates.configurations[int(i)] for i in steps.candidate[len(taken) : len(taken) + count]]
        centres = [*picks, *best]
        mean, std, ok = (
            np.asarray(part)[len(taken) :][:count] for part in (steps.info.mean, steps.info.std, steps.info.ok)
        )
        predictions = zip(picks, np.where(ok, mean, np.nan).tolist(), std.tolist(), strict=True)
        found = [_suggestion(pick, mean, std, scale, prior.description) for pick, mean, std in predictions]
        guesses, more = int((~ok).sum()), float(np.nan_to_num(steps.info.jitter).max())
    if guesses:
        warnings.warn(
            f"{guesses} of {count} suggestions are guesses: the posterior of {prior.spec['method']} is not numerically "
            f"sound after {len(y)} outcomes; learn the prior again, or with another --method",
            NumericsWarning,
            stacklevel=4,  # past float64 and Study.suggest: the line that asked
        )
    elif more > 0:
        warnings.warn(
            f"the covariance of {len(y)} outcomes needed {more:.2g} more on its diagonal to be factorised: predictions "
            "near evaluated configurations are smoother than the model",
            NumericsWarning,
            stacklevel=4,
        )
    return found


def acquisition_of(method: str, own: str, chosen: str | None) -> str:
    """Return the acquisition for suggestions: the method's own unless another one is chosen. Raises ConfigError for an
    unknown one, or for one that the method cannot use."""
    if chosen is None or chosen == own:
        return own
    if chosen not in runs.SCORED:
        raise unknown("acquisition", chosen, runs.SCORED)
    if own in runs.OWN:
        raise ConfigError(f"method '{method}' has no use for acquisition '{chosen}': it predicts nothing; leave it out")
    return chosen


def scaled(prior: Prior, told: Told) -> tuple[Scale | None, Float[np.ndarray, " n"]]:
    """Return the scale and the outcomes as the model sees them, all finite. Without past studies of the space, the
    scale is that of the told outcomes, once two of them differ."""
    values = oriented(np.array(told.outcomes, dtype=np.float64), prior.description)
    good = values[np.isfinite(values)]
    known = prior.scale is not None or len(np.unique(good)) > 1
    scale = prior.scale or scale_of(good)
    y = scale.scaled(values)
    worst = min([scale.worst, *y[np.isfinite(y)].tolist()])
    return scale if known else None, np.where(np.isfinite(y), y, worst)


@eqx.filter_jit
def choose(
    params: PyTree,
    candidates: Candidates,
    outputs: Float[Array, " p"],
    done: Int[Array, ""],
    taken: Int[Array, ""],
    count: Int[Array, ""],
    key: Key[Array, ""],
    method: str,
    settings: str,
    acquisition: str,
    budget: int,
) -> Steps:
    """Observe the first `done` candidates at their outputs and those up to `taken` at their predicted mean, then select
    `count` of the valid ones, in the steps from `taken` on. `settings` are those of the method's policy, as JSON (a
    constant of the compiled program)."""
    policy = registry.policy_module(method).policy(params, json.loads(settings), acquisition, budget)
    before, during = jax.random.split(key)

    def answer(number, index, info):
        believed = jnp.where(jnp.isfinite(info.mean), info.mean, 0.0)
        return jnp.where(number < done, outputs[index], believed)

    given = Given(jnp.arange(budget), done, taken)
    now = begin(policy, candidates, budget, before)
    return play(policy, now, candidates.mask, given, 0, taken + count, answer, during, repeats=False).steps


def _suggestion(
    configuration: Configuration, mean: float, std: float, scale: Scale | None, description: Description
) -> Suggestion:
    steps = (0.0, -1.645, 1.645)
    middle, *ends = (scale.original(mean + step * std, description) if scale else math.nan for step in steps)
    if not all(map(math.isfinite, (middle, *ends))):
        return Suggestion(configuration, math.nan, math.nan, math.nan)
    return Suggestion(configuration, middle, min(ends), max(ends))
