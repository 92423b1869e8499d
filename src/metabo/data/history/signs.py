"""Past studies whose outcomes have the other sign than those of the rest, as where some were stored to be maximised."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from metabo.data.history.description import Description
from metabo.data.history.space_yaml import NOTHING_APART

NAMED = 3
"""The most studies of a side that are named."""


def remark(outcomes: Mapping[str, Float[np.ndarray, " n"]], description: Description) -> str:
    """Return a line on studies of which some have outcomes below 0 alone, and all others above it alone; "" if there
    are none, or if any study has outcomes of both signs, as some quantities have.

    `outcomes`: of each study, oriented (`metabo.data.history.past.oriented`), NaN where a trial failed. Which side has
    the wrong sign cannot be known. What a logarithm is taken of has one sign.
    """
    sign = 1 if description.maximise else -1
    found = {study: sign * y[np.isfinite(y)] for study, y in outcomes.items()}
    below, above = ([study for study, y in found.items() if (side * y > 0).all()] for side in (-1, 1))
    if description.log or not below or not above or len(below) + len(above) < len(found):
        return ""
    flipped = [study for study in found if description.studies.get(study, NOTHING_APART).flipped]
    goal = "minimise" if description.maximise else "maximise"
    example = min(below, above, key=len)[0]
    fix = (
        f"the goal under 'studies' in space.yaml turns the sign of {_listed(flipped)}: check it first"
        if flipped
        else f"if one of the two sides has the wrong sign, name its studies under 'studies' in space.yaml, like "
        f"`studies: {{{json.dumps(example, ensure_ascii=False)}: {{goal: {goal}}}}}`"
    )
    return f"all outcomes of {_listed(below)} are below 0, and all of {_listed(above)} above it: {fix}"


def _listed(studies: Sequence[str]) -> str:
    named = ", ".join(f"'{study}'" for study in studies[:NAMED])
    return named if len(studies) <= NAMED else f"{named} and {len(studies) - NAMED} others"
