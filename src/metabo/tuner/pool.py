"""Candidates of a suggestion: configurations spread over the whole space, and neighbours of good ones.

A finite space that is small enough is used completely. Every candidate is a valid configuration: values are rounded or
chosen, and parameters that are not in use are left out.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from metabo.bo.continuous import halton
from metabo.data.history.description import Configuration, Description
from metabo.tuner.asking import ALL, Only, everything, projected

SPREAD, NEAR = 3072, 1024
"""The numbers of candidates over the whole space, and near the centres."""
STEPS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
"""Standard deviations of the steps from a centre, as shares of a parameter's range."""
DIGITS = 9
"""Encoded configurations that agree to this many digits count as the same."""


class CandidatePool(NamedTuple):
    """Candidates: configurations, their encoding x (n, d), and which of them may be suggested (n,)."""

    configurations: list[Configuration]
    x: Float[np.ndarray, "n d"]
    mask: Bool[np.ndarray, " n"]


def make(
    description: Description, taken: list[Configuration], places: int, centres: list[Configuration], seed: list[int],
    only: Only = ALL,
) -> CandidatePool:  # fmt: skip
    """Return the `taken` configurations (not to be suggested again) in `places` rows, then the candidates, which keep
    to `only`.

    The shape depends only on `places`, so that one compiled program serves all suggestions.
    """
    rng = np.random.default_rng(seed)
    candidates = everything(description, only, SPREAD)
    if candidates is None:
        spread = projected(description, halton(SPREAD, len(description.fields), rng), only)
        near = projected(description, neighbours(description, centres, rng), only, near=True)
        candidates = description.at(np.concatenate([spread, near]))
    known = description.encode(taken)
    x = np.zeros((places + SPREAD + NEAR, description.space.dim))
    x[: len(known)] = known
    x[places : places + len(candidates)] = description.encode(candidates)
    mask = np.zeros(len(x), dtype=bool)
    mask[places : places + len(candidates)] = True
    rows = np.flatnonzero(mask)
    seen = np.concatenate([known, x[rows]]).round(DIGITS)
    first = np.unique(seen, axis=0, return_index=True)[1]  # the first of equal rows; the taken ones come first
    mask[:] = False
    mask[rows[first[first >= len(known)] - len(known)]] = True
    blank = [{}] * (places - len(taken)), [{}] * (SPREAD + NEAR - len(candidates))
    return CandidatePool([*taken, *blank[0], *candidates, *blank[1]], x, mask)


def neighbours(
    description: Description, centres: list[Configuration], rng: np.random.Generator
) -> Float[np.ndarray, "n p"]:
    """Draw `NEAR` points around the centres, which take turns (none without a centre). Some parameters move, by a step
    of one of several sizes; choices are drawn anew."""
    width = len(description.fields)
    if not centres:
        return np.zeros((0, width))
    at = np.stack([description.units(centre) for centre in centres])[np.arange(NEAR) % len(centres)]
    moves = rng.random((NEAR, width)) < max(0.3, 1.5 / width)
    moves[np.arange(NEAR), rng.integers(width, size=NEAR)] = True
    near = at + rng.normal(size=(NEAR, width)) * rng.choice(STEPS, size=(NEAR, 1))
    choices = np.array([bool(field.choices) for field in description.fields])
    moved = np.where(choices, rng.random((NEAR, width)), np.clip(near, 0.0, 1.0))
    return np.where(moves, moved, at)
