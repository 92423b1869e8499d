"""Numbers, verbs and lists as a reader expects them in a sentence."""

from collections.abc import Sequence
from typing import TypeVar

WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
TEENS = (
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

Part = TypeVar("Part")


def number(count: int, start: bool = False) -> str:
    """Write a count as a word up to ten; at the start of a sentence up to 99, with a capital."""
    if not start:
        return WORDS[count] if count < len(WORDS) else f"{count:,}"
    return _spelt(count).capitalize() if count < 100 else f"{count:,}"


def _spelt(count: int) -> str:
    """Write a count below 100 as a word."""
    if count < 20:
        return (*WORDS, *TEENS)[count]
    tens = TENS[count // 10 - 2]
    return f"{tens}-{WORDS[count % 10]}" if count % 10 else tens


def verb(count: int, one: str, several: str) -> str:
    """Return the form of a verb, or of any phrase, that goes with a count."""
    return one if count == 1 else several


def listed(items: Sequence[tuple[Part | str, ...]], comma: str = ", ", last: str = " and ") -> tuple[Part | str, ...]:
    """Join parts of a sentence as in "a, b and c"."""
    joined: list[Part | str] = []
    for place, item in enumerate(items):
        if place:
            joined.append(last if place == len(items) - 1 else comma)
        joined.extend(item)
    return tuple(joined)


def names(items: Sequence[str]) -> str:
    """Join names as in "a, b and c"."""
    return "".join(str(part) for part in listed([(item,) for item in items]))
