"""The belief about a new study after its trials: its priors, weighted by their evidence, and their predictions."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri

from metabo.data.history.description import Description
from metabo.tuner.blend import hyper, kernel, outcomes, points
from metabo.tuner.blend.hyper import Hyper
from metabo.tuner.blend.mixture import Component, Predicted, mean_of, predict, quantile_of
from metabo.tuner.blend.outcomes import OutcomeScale
from metabo.tuner.blend.past import ConditionedPast
from metabo.tuner.blend.points import Points

Vector = Float[np.ndarray, " n"]
TRUST = ((0.0, 0.1), (0.5, 0.2), (0.8, 0.3), (1.0, 0.3))
"""Degrees to which the new study shares the past's common function, each with its prior probability."""
PLAIN = 0.2
"""The prior probability of the plain GP with its own hyperparameters, relative to those above."""
FIT_FROM, FIT_STEPS = 3, 30
"""The number of outcomes from which on the plain GP is fitted, and the most steps of L-BFGS."""
KNOWN, RECENT = 300, 150
"""The most trials that the model keeps, and how many of these are the latest; the others are the best of the earlier
ones."""

CENTRAL = (0.05, 0.5, 0.95)
"""Shares of the outcomes below the lower end of the interval, the median, and the upper end."""
DRAWS = 40
"""Equally likely scores that stand for their distribution; `CENTRAL` falls between two of them."""


class Model(NamedTuple):
    """What is known before the first trial: the space, the parameter that owns each column, and the past (None: a plain
    GP)."""

    description: Description
    owner: Int[np.ndarray, " d"]
    past: ConditionedPast | None


class Seen(NamedTuple):
    """The trials that the model knows: their points, and their outcomes z (n,)."""

    points: Points
    z: Vector


def seen_of(points_of: Points, z: Vector) -> Seen:
    """Return the trials that the model knows: all of them or, if there are too many, the latest and the best of the
    earlier ones."""
    if len(z) <= KNOWN:
        return Seen(points_of, z)
    early, latest = np.split(np.arange(len(z)), [len(z) - RECENT])
    best = np.sort(early[np.argsort(-z[early], kind="stable")[: KNOWN - RECENT]])
    chosen = [*best.tolist(), *latest.tolist()]
    return Seen(points.rows(points_of, chosen), z[chosen])


def believed(model: Model, seen: Seen, where: Points, plain: Hyper) -> Seen:
    """Return the trials extended by the points `where`, each at its predicted mean; before any outcome, that is the
    mean of the past. `plain`: the hyperparameters `fitted` to the trials."""
    if len(seen.z):
        mean = mean_of(predicted(model, seen, where, plain))
    else:
        mean = np.zeros(len(where.x)) if model.past is None else model.past.explained(where.x).mean
    return seen_of(points.joined(seen.points, where), np.concatenate([seen.z, mean]))


def fitted(model: Model, seen: Seen) -> Hyper:
    """Return the hyperparameters of the plain GP: fitted to the outcomes, or those of the prior while there are few
    outcomes or all are equal."""
    spread = float(np.std(seen.z)) if len(seen.z) >= FIT_FROM else 0.0
    if spread == 0.0:
        width = len(model.description.fields)
        return hyper.unpacked(hyper.prior_of(width)[0], width)
    z = (seen.z - seen.z.mean()) / spread
    return hyper.fit(seen.points.x, z, np.zeros(len(z), dtype=int), model.owner, FIT_STEPS)


def components(model: Model, seen: Seen, where: Points, plain: Hyper) -> list[Component]:
    """Return the priors at the trials and the candidates. `plain` has the hyperparameters of the plain GP."""
    n, x, known = len(seen.z), np.concatenate([seen.points.x, where.x]), model.past
    found = []
    if known is not None:
        h = known.past.hyper
        cov = h.variance * kernel.matern52(kernel.squared(seen.points.x, x, hyper.columns_of(h.scales, model.owner)))
        said = known.explained(x)
        shared, own = said.root[:, :n].T @ said.root, np.sum(said.root[:, n:] ** 2, axis=0)
        for trust, probability in TRUST:
            part, mean = cov - trust**2 * shared, trust * said.mean
            variance, log = h.variance - trust**2 * own, math.log(probability)
            found.append(Component(mean[:n], mean[n:], part[:, :n], part[:, n:], variance, h.noise, log))
    if known is None or n >= FIT_FROM:
        square = kernel.squared(seen.points.x, x, hyper.columns_of(plain.scales, model.owner))
        cov, flat = plain.variance * kernel.matern52(square), np.zeros(len(x))
        variance = np.full(len(where.x), plain.variance)
        found.append(Component(flat[:n], flat[n:], cov[:, :n], cov[:, n:], variance, plain.noise, math.log(PLAIN)))
    return found


def predicted(model: Model, seen: Seen, where: Points, plain: Hyper) -> Predicted:
    """Return the predictions of all priors at the candidates, and the probability of each prior. There must be an
    outcome."""
    return predict(components(model, seen, where, plain), seen.z)


def mean_at(model: Model, seen: Seen, where: Points, plain: Hyper) -> Vector:
    """Return the predicted mean at points; before any outcome, that of the past, or 0 without a past."""
    if len(seen.z):
        return mean_of(predicted(model, seen, where, plain))
    return np.zeros(len(where.x)) if model.past is None else model.past.explained(where.x).mean


def interval(
    model: Model, seen: Seen, where: Points, scale: OutcomeScale, plain: Hyper, same: Points | None = None
) -> tuple[float, float, float]:
    """Return the median and the central 90 % interval of the outcome (to be maximised, on its scale) at one point.

    As long as no two outcomes differ, they are those of the past (`_as_in_the_past`), or NaN without a past. `same`:
    the trials that succeeded so far, which is read in this case alone."""
    if scale.gap > 0:
        found = predicted(model, seen, where, plain)
        low, middle, high = (scale.y(quantile_of(found, share)) for share in CENTRAL)
        return middle, low, high
    if model.past is None:
        return math.nan, math.nan, math.nan
    low, middle, high = np.quantile(_as_in_the_past(model.past, where, scale.best, same), CENTRAL).tolist()
    return middle, low, high


def _as_in_the_past(known: ConditionedPast, where: Points, told: float, same: Points | None) -> Vector:
    """Return equally likely outcomes at one point, were the new study one of the past.

    The past predicts the rank of a point within a study. The outcome of that rank is another one in each study, so each
    study gives its own. Once trials of the new study, `same`, have the outcome `told`, half of what is returned is of
    studies that were moved to where they give that outcome there: studies may differ in their level or not."""
    found = outcomes.of_scores(known.past.quantiles, _scores(known, where.x)[0])
    if same is None or not len(same.x):
        return found.ravel()
    there = outcomes.of_scores(known.past.quantiles, _scores(known, same.x).mean(axis=0))
    moved = told + found[:, :, None] - there[:, None, :]
    return np.concatenate([np.repeat(found, DRAWS), moved.ravel()])


def _scores(known: ConditionedPast, x: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m k"]:
    """Return equally likely normal scores at each point, by the past alone."""
    h, said = known.past.hyper, known.explained(x)
    std = np.sqrt(h.variance - np.sum(said.root**2, axis=0) + h.noise)
    return said.mean[:, None] + ndtri((np.arange(DRAWS) + 0.5) / DRAWS) * std[:, None]
