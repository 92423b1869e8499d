"""What a page shows about a study: the best outcome so far, which parameters matter, and how well the model predicts.

The model is that of the default policy: all past studies and a plain GP, weighted by evidence. For studies with another
method, whose models have no common form, it is the plain GP of this study's trials alone.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metabo.bo.continuous import halton
from metabo.compute.guest import float64
from metabo.data.history.description import Description
from metabo.data.history.past import oriented
from metabo.tuner.asking import Prior
from metabo.tuner.blend import outcomes, points
from metabo.tuner.blend.belief import Model, Seen, fitted, interval, mean_at, seen_of
from metabo.tuner.blend.choose import as_told
from metabo.tuner.blend.past import ConditionedPast
from metabo.tuner.trials import StudyTrial, counted

SAMPLE = 256
"""The number of pairs of configurations from which the effects of the parameters are estimated."""
FEWEST = 5
"""The fewest outcomes for comparing predictions with them, and for showing a model without a past."""
LATEST = 100
"""The most trials, taken from the latest, whose outcomes are compared with predictions."""


class EffectShare(NamedTuple):
    """A parameter, and the share of the predicted variation that depends on it, alone or with others."""

    name: str
    share: float


class PredictedTrial(NamedTuple):
    """A trial's outcome, and the model's prediction of it from all other trials: median and central 90 % interval."""

    number: int
    outcome: float
    median: float
    low: float
    high: float


class ShownStudy(NamedTuple):
    """The best outcome after each finished trial (None: all failed or infeasible so far), the effects of the parameters
    (largest first; none without a model), the comparisons, and whether past studies are in the model."""

    best: list[float | None]
    parts: list[EffectShare]
    compared: list[PredictedTrial]
    with_past: bool


@float64
def facts_of(prior: Prior, trials: list[StudyTrial], seed: int = 0) -> ShownStudy:
    """Return what the page shows. Equal arguments give equal results. `seed` is that of the sampled configurations."""
    space = prior.description
    past = prior.params if isinstance(prior.params, ConditionedPast) else None
    model = Model(space, points.owners(space), past)
    done = [one for one in trials if one["state"] != "running"]
    seen = [counted(one, space) for one in done]
    told = np.array([np.nan if outcome is None else outcome for outcome in seen], dtype=np.float64)
    y = oriented(told, space)
    at = points.of(space, [one["parameters"] for one in done])
    scale = outcomes.scale_of(y)
    z = scale.z(y)
    known = int(np.isfinite(y).sum()) >= FEWEST and scale.gap > 0
    parts = _parts(model, seen_of(at, z), seed) if known or past is not None else []
    compared = []
    for place in np.flatnonzero(np.isfinite(y))[-LATEST:].tolist() if known else ():
        others = [other for other in range(len(z)) if other != place]
        seen = seen_of(points.rows(at, others), z[others])
        plain = fitted(model, seen)
        numbers = interval(model, seen, points.rows(at, [place]), scale, plain)
        compared.append(PredictedTrial(done[place]["number"], float(told[place]), *as_told(numbers, space)))
    return ShownStudy(_best(told, space), parts, compared, past is not None)


def _best(told: Float[np.ndarray, " n"], space: Description) -> list[float | None]:
    best: list[float | None] = []
    choose = max if space.maximise else min
    for value in told.tolist():
        before = best[-1] if best else None
        if np.isnan(value):
            best.append(before)
        else:
            best.append(value if before is None else choose(before, value))
    return best


def _parts(model: Model, seen: Seen, seed: int) -> list[EffectShare]:
    """Return the total effect of each parameter on the predicted mean: E[(f(a) - f(a with b's value))²] / (2 Var f),
    for independent a and b (Jansen 1999)."""
    fields = model.description.fields
    pairs = halton(SAMPLE, 2 * len(fields), np.random.default_rng([17, seed]))
    first, second = pairs[:, : len(fields)], pairs[:, len(fields) :]
    swapped = [np.where(np.arange(len(fields)) == place, second, first) for place in range(len(fields))]
    plain = fitted(model, seen)
    base, *others = (mean_at(model, seen, points.at(model.description, at), plain) for at in (first, *swapped))
    variance = float(np.var(base))
    shares = [float(np.mean((base - other) ** 2)) / (2 * variance) if variance > 0 else 0.0 for other in others]
    found = [EffectShare(field.name, min(share, 1.0)) for field, share in zip(fields, shares, strict=True)]
    return sorted(found, key=lambda part: -part.share)
