"""Options of the command line that hold values: JSON objects and outcomes."""

import json
import math
from argparse import ArgumentTypeError
from collections import Counter

from metabo.data.history.numbers import read_number
from metabo.errors import ConfigError, printable, quoted
from metabo.records.files import Json


def json_object(option: str, text: str, example: str) -> dict[str, Json]:
    """Return the JSON object that an option gives. Raises ConfigError for anything else, and for a name that stands
    twice, of which JSON would take the last."""

    def once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        for name, times in Counter(name for name, _ in pairs).items():
            if times > 1:
                raise ConfigError(f"{option}: {quoted(name)} stands {times} times; leave one value of it")
        return dict(pairs)

    try:
        found = json.loads(text, object_pairs_hook=once)
    except ValueError as error:
        raise ConfigError(f"{option}: not JSON ({error}); write e.g. '{example}'") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{option}: must be a JSON object of names and values")
    return found


def outcome(text: str) -> float:
    """Read an outcome. Raises ArgumentTypeError for text that is not a number, and for digits that would overflow to
    infinity."""
    try:
        value = read_number(text)
    except ValueError:
        raise ArgumentTypeError(f"{quoted(text)} is no number; write one, or --failed in its place") from None
    if math.isinf(value) and any(sign.isdigit() for sign in text):
        raise ArgumentTypeError(f"{printable(text, 80)} is too large for a number; say --failed if the trial diverged")
    return value
