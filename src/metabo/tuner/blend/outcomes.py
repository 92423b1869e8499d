"""Outcomes of one study on a unit-free scale. Outcomes are to be maximised. NaN is a failure, which counts as the worst
outcome in a past study, and as less than the worst in the new one."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

Outcomes = Float[np.ndarray, " n"]
LEVELS = np.linspace(0.0, 1.0, 101)
"""Shares at which the quantiles of a past study's outcomes are kept."""
BELOW = float(np.log(2.0))
"""How far a failure of the new study lies below its worst success."""


def filled(y: Outcomes) -> Outcomes:
    """Return outcomes with failures replaced by the worst success, or zeros if all failed."""
    good = np.isfinite(y)
    return np.where(good, y, y[good].min()) if good.any() else np.zeros(len(y))


def normal_scores(y: Outcomes) -> Outcomes:
    """Return Φ⁻¹((rank - 1/2) / n) of a past study's outcomes (the copula transform of Salinas, Shen, Perrone 2020).
    This removes the study's location, spread and unit, and ignores how bad the worst trials were. Ties share a rank."""
    return ndtri((rankdata(filled(y)) - 0.5) / len(y))


class OutcomeScale(NamedTuple):
    """The scale of a new study so far: z = -log(1 + (best - y) / gap), where `gap` is the median gap between the best
    and the worse outcomes. The best maps to 0 and the median to -log 2; beyond that the scale is logarithmic. A gap of
    0 means that all outcomes are equal so far.

    A failure lies `BELOW` under the worst success, as far as the median is below the best. So a single success among
    failures is better than they are, and no failure is so low that it dominates the fit."""

    best: float
    gap: float
    worst: float

    def z(self, y: Outcomes) -> Outcomes:
        """Return outcomes on the scale, or zeros if all failed."""
        good = np.isfinite(y)
        if not good.any():
            return np.zeros(len(y))
        z = -np.log1p((self.best - filled(y)) / self.gap) if self.gap > 0 else np.zeros(len(y))
        return np.where(good, z, z - BELOW)  # `filled` has put failures at the worst success

    def y(self, z: float) -> float:
        """Return the outcome for a number on the scale, or where failures lie for one that is lower: beyond them, the
        scale says nothing, and grows as fast as an exponential."""
        lowest = np.log1p((self.best - self.worst) / self.gap) + BELOW if self.gap > 0 else 0.0
        return self.best - self.gap * float(np.expm1(min(-z, lowest)))


def scale_of(y: Outcomes) -> OutcomeScale:
    """Return the scale of the outcomes of a study so far, without its failures."""
    good = y[np.isfinite(y)]
    if not len(good):
        return OutcomeScale(0.0, 0.0, 0.0)
    gaps = good.max() - good
    positive = gaps[gaps > 0]
    return OutcomeScale(float(good.max()), float(np.median(positive)) if len(positive) else 0.0, float(good.min()))


def of_scores(quantiles: Float[np.ndarray, "s q"], scores: Float[np.ndarray, " k"]) -> Float[np.ndarray, "s k"]:
    """Return the outcomes at normal scores within each study with these quantiles (at `LEVELS`)."""
    return np.stack([np.interp(ndtr(scores), LEVELS, own) for own in quantiles])
