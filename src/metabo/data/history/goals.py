"""What an outcome is tuned for, in the spellings that users and other libraries have for it."""

from collections.abc import Mapping

GOALS = ("minimise", "maximise")
"""The goals as they are stored and shown."""
SPELLINGS = {"minimize": "minimise", "min": "minimise", "maximize": "maximise", "max": "maximise"}
"""What else they may be called."""


def goal_of(said: str) -> str:
    """Return a goal in our spelling; what is no goal stays, to be told as such."""
    return SPELLINGS.get(said, said)


def respelt(data: Mapping[str, object]) -> dict[str, object]:
    """Return what ``space.yaml`` says with all its goals in our spelling."""
    studies, out = data.get("studies"), dict(data)
    if "outcome" in data:
        out["outcome"] = _entry(data["outcome"])
    if isinstance(studies, Mapping):
        out["studies"] = {study: _entry(entry) for study, entry in studies.items()}
    return out


def _entry(entry: object) -> object:
    """Return an entry with its goal in our spelling; the schema refuses an entry or a goal that is none."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("goal"), str):
        return entry
    return {**entry, "goal": goal_of(entry["goal"])}
