"""Past studies whose outcomes have the other sign than those of the rest, as where some were stored to be maximised."""

import json
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from metabo.data.history.description import Description
from metabo.data.history.space_yaml import NOTHING_APART

FEWEST = 4
"""The fewest outcomes with which a study is compared with others."""


def remark(outcomes: Mapping[str, Float[np.ndarray, " n"]], description: Description) -> str:
    """Return a line on the studies whose outcomes all have one sign where those of all others have the other; "" if
    there are none, or if any study has outcomes of both signs, as some quantities have.

    `outcomes`: of each study, oriented (`metabo.data.history.past.oriented`), NaN where a trial failed. Named are the
    fewer studies, and of as many, those below 0 as they are told. What a logarithm is taken of has one sign.
    """
    found = {study: y[np.isfinite(y)] for study, y in outcomes.items()}
    found = {study: y if description.maximise else -y for study, y in found.items() if len(y) >= FEWEST}
    below, above = ([study for study, y in found.items() if ((sign * y) > 0).all()] for sign in (-1, 1))
    if description.log or not below or not above or len(below) + len(above) < len(found):
        return ""
    named, word, other = (below, "below", "above") if len(below) <= len(above) else (above, "above", "below")
    goal = "minimise" if description.maximise else "maximise"
    said = ", ".join(f"{json.dumps(study, ensure_ascii=False)}: {{goal: {goal}}}" for study in named)
    flipped = [study for study in named if description.studies.get(study, NOTHING_APART).flipped]
    fix = f"its goal under 'studies' in space.yaml turns the sign of '{flipped[0]}'" if flipped else (
        f"if their sign is the other way round, write `studies: {{{said}}}` in space.yaml"
    )  # fmt: skip
    listed = ", ".join(f"'{study}'" for study in named)
    return f"all outcomes of {listed} are {word} 0, and those of all other studies {other} it: {fix}"
