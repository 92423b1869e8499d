"""What was done to the trials of a past study, and which part of the space they cover."""

from collections import Counter

from metabo.data.history.description import Description
from metabo.data.history.rows import Trial
from metabo.data.history.space_yaml import NOTHING_APART

FEWEST = 10
"""Trials from which on it is said which part of a range a study covers: as many random ones rarely miss half of it."""
NARROW = 0.5
"""A part of a parameter's range, as the model sees it, or of its choices, that is worth saying."""
OFTEN = 2
"""Trials for each choice from which on it is said that half of several choices are missing: as many random ones rarely
miss them."""


def covered(study: str, trials: list[Trial], space: Description, lacking: list[str]) -> list[str]:
    """Say of a study what was done to its numbers, which defaults it has, how many trials broke which constraint, and
    where it covers less than half of a range, or at most half of the choices. `lacking`: the parameters and constraints
    that it has no value of."""
    facts = space.studies.get(study, NOTHING_APART)
    notes = [f"sign of {space.outcome} flipped (it was tuned the other way)"] if facts.flipped else []
    notes += [f"{column} times {factor:g}" for column, factor in facts.factors.items()]
    broke = Counter(name for trial in trials for name in trial.broken)
    for one in space.constraints:
        notes += [f"{broke[one.name]} broke {one.name} ({one.said}) and count as failed"] if broke[one.name] else []
        notes += [f"{one.name} not recorded, taken as met"] if trials and one.name in lacking else []
    for field in space.fields:
        values = [value for trial in trials if (value := trial.configuration[field.name]) is not None]
        if field.name in lacking:
            notes += [f"{field.name} not tuned, taken as {field.default}"] if values else []
        elif len(values) >= FEWEST and field.choices:
            seen, enough = set(values), len(values) >= OFTEN * len(field.choices)
            if len(seen) == 1 or (enough and len(seen) <= NARROW * len(field.choices)):
                notes.append(f"only {field.name} {', '.join(str(one) for one in field.choices if one in seen)}")
        elif len(values) >= FEWEST and not field.choices:
            low, high = min(values), max(values)
            if field.unit(high) - field.unit(low) < NARROW:
                notes.append(f"only {field.name} {low:.4g} to {high:.4g}")
    return notes
