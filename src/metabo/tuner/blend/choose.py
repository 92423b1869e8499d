"""The tuner's default policy: which configurations to try next, given the trials of a study.

The first four trials alternate between the best configurations of the past and points that cover the space. It takes
both kinds to tell whether the past predicts this study. From then on, every trial maximises the expected improvement
(or another acquisition) under all priors, weighted by their evidence (`belief`): the past with several degrees of
trust, and a plain GP whose hyperparameters are fitted to this study alone. Without a past, the first four trials all
cover the space.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from metabo.bo.continuous import halton
from metabo.data.history.description import Description
from metabo.data.history.past import oriented
from metabo.tuner.asking import ALL, Only, Suggestion, Told, everything, projected, too_few
from metabo.tuner.blend import kernel, outcomes, points
from metabo.tuner.blend.belief import Model, Seen, believed, fitted, interval, predicted, seen_of
from metabo.tuner.blend.hyper import Hyper
from metabo.tuner.blend.mixture import scores
from metabo.tuner.blend.past import ConditionedPast
from metabo.tuner.blend.points import Points

RECALL, COVER = (0, 2), (1, 3)
"""Trials, counted from 0, that try the best of past studies, and those that cover the space."""
DESIGN = (0, 1, 2, 3)
"""Trials that cover the space if there is no past."""
COVERING = 256
"""The length of the sequence that covers the space."""
SPREAD, NEAR, CLOSER, ROUNDS = 1000, 300, 200, 2
"""Numbers of candidates over the space, near the best trials, and near the best candidates in each round; the number of
rounds."""
CENTRES, TOPS = 3, 5
"""The numbers of best trials and of best candidates whose neighbours become candidates."""
FINITE = 3072
"""In a space of up to this many configurations, every one is a candidate."""

Scores = Float[np.ndarray, " m"]


def suggest(
    description: Description, past: ConditionedPast | None, told: Told, count: int = 1, seed: int = 0,
    acquisition: str = "ei", only: Only = ALL,
) -> list[Suggestion]:  # fmt: skip
    """Return `count` configurations to try next; the same for the same arguments. `past` None: those of a plain GP;
    `acquisition`: one of `metabo.bo.acquisition.SCORED`; `only`: what they keep to.

    A trial that is still running, and each suggestion of a batch, counts at its predicted mean until its outcome is
    told. Raises ConfigError if the space has fewer than `count` configurations left.
    """
    model = Model(description, points.owners(description), past)
    y = oriented(np.array(told.outcomes, dtype=np.float64), description)
    scale = outcomes.scale_of(y)
    seen = seen_of(points.of(description, told.done), scale.z(y))
    same = points.of(description, [c for c, good in zip(told.done, np.isfinite(y), strict=True) if good])
    taken = points.of(description, [*told.done, *told.running])
    plain = fitted(model, seen)
    if told.running:
        seen = believed(model, seen, points.of(description, told.running), plain)
        plain = fitted(model, seen)
    found: list[Suggestion] = []
    for _ in range(count):
        pick = _next(model, seen, Untaken(description, taken, only), seed, plain, acquisition)
        if pick is None:
            raise too_few(description.name, len(found), count)
        chosen = past.past.configuration(description, pick) if past else description.at(pick.units)[0]
        found.append(Suggestion(chosen, *as_told(interval(model, seen, pick, scale, plain, same), description)))
        taken = points.joined(taken, pick)
        if len(found) < count:
            seen = believed(model, seen, pick, plain)
            plain = fitted(model, seen)
    return found


def as_told(numbers: tuple[float, float, float], description: Description) -> tuple[float, float, float]:
    """Return median, low and high in the user's unit and direction."""
    signed = [value if description.maximise else 0.0 - value for value in numbers]  # 0 - 0 is 0, and -0 reads oddly
    middle, *ends = (math.exp(min(value, 700.0)) if description.log else value for value in signed)
    return middle, min(ends), max(ends)


class Untaken(NamedTuple):
    """Which configurations may be suggested: none that is `taken`, and of the others `only` some."""

    description: Description
    taken: Points
    only: Only = ALL

    def kept(self, units: Float[np.ndarray, "n p"], near: bool = False) -> Float[np.ndarray, "n p"]:
        """Return points of the cube, moved to what is kept to; `near`: each to the nearest."""
        return projected(self.description, units, self.only, near)

    def at(self, units: Float[np.ndarray, "n p"], near: bool = False) -> Points:
        """Return the configurations there."""
        return points.at(self.description, self.kept(units, near))


def _next(model: Model, seen: Seen, left: Untaken, seed: int, plain: Hyper, acquisition: str) -> Points | None:
    """Return the next point, or None if no configuration is left."""
    number, found = len(left.taken.x), None
    score = _score(model, seen, plain, acquisition)
    if number in (DESIGN if model.past is None else COVER):
        found = covering(left, seed)
    elif number in RECALL and model.past is not None:
        found = _best(left.at(model.past.past.elites, near=True), score, left.taken)
    return found if found is not None else _searched(model, seen, score, left, np.random.default_rng([seed, number]))


def _score(model: Model, seen: Seen, plain: Hyper, acquisition: str) -> Callable[[Points], Scores]:
    """Return the function to maximise: the acquisition or, before any outcome, the mean."""
    if len(seen.z):
        best, count = float(seen.z.max()), len(seen.z)
        return lambda where: scores(acquisition, predicted(model, seen, where, plain), best, count)
    return lambda where: np.zeros(len(where.x)) if model.past is None else model.past.explained(where.x).mean


def covering(left: Untaken, seed: int) -> Points | None:
    """Return the first point that may be suggested, from the position of the next trial on in a scrambled Halton
    sequence, or None if there is none."""
    rng = np.random.default_rng([seed, COVERING])
    sequence = np.roll(halton(COVERING, len(left.description.fields), rng), -len(left.taken.x), axis=0)
    return _best(left.at(sequence), lambda at: -np.arange(len(at.x), dtype=float), left.taken)


def _searched(
    model: Model, seen: Seen, score: Callable[[Points], Scores], left: Untaken, rng: np.random.Generator
) -> Points | None:
    """Return the candidate with the highest score that may be suggested, or None if there is none."""
    description = model.description
    finite = everything(description, left.only, FINITE)
    if finite is not None:
        return _best(points.of(description, finite), score, left.taken)
    start = [left.kept(halton(SPREAD, len(description.fields), rng))]
    if len(seen.z):
        best = seen.points.units[np.argsort(-seen.z, kind="stable")[:CENTRES]]
        start.append(left.kept(points.near(description, best, NEAR, rng), near=True))
    if model.past is not None:
        start.append(left.kept(model.past.past.elites, near=True))
    where, scores = _scored(points.at(description, np.concatenate(start)), score, left.taken)
    for _ in range(ROUNDS if len(scores) else 0):
        best = where.units[np.argsort(-scores, kind="stable")[:TOPS]]
        more, further = _scored(left.at(points.near(description, best, CLOSER, rng), near=True), score, left.taken)
        where, scores = points.joined(where, more), np.concatenate([scores, further])
    return points.rows(where, [int(np.argmax(scores))]) if len(scores) else None


def _scored(where: Points, score: Callable[[Points], Scores], taken: Points) -> tuple[Points, Scores]:
    """Return the points that are not taken, and their scores."""
    where = points.rows(where, ~among(where, taken))
    return where, score(where) if len(where.x) else np.zeros(0)


def _best(where: Points, score: Callable[[Points], Scores], taken: Points) -> Points | None:
    where, scores = _scored(where, score, taken)
    return points.rows(where, [int(np.argmax(scores))]) if len(scores) else None


def among(where: Points, taken: Points) -> Bool[np.ndarray, " m"]:
    """Tell which points are taken, that is, are the same to the model up to digits lost in printing."""
    if not len(taken.x):
        return np.zeros(len(where.x), dtype=bool)
    return kernel.squared(where.x, taken.x, np.ones(where.x.shape[1])).min(axis=1) <= 1e-12
