"""Refuse sizes that no machine can handle, with their estimated costs, before anything runs."""

from collections.abc import Iterator, Mapping

from metabo.records.files import Json

LARGEST = 10**9
"""The largest whole number that the configuration accepts as a size; the largest in the papers is 50,000."""
FREE = ("seed",)
"""Keys whose whole numbers are not sizes."""
EACH = 1e-3
"""The fewest seconds per unit of a size: a training step factorises a matrix, and a run does so a thousand times."""
UNITS = ((365.25 * 86400, "years"), (86400, "days"), (3600, "hours"), (60, "minutes"))
WORDS = ((1e9, " billion"), (1e6, " million"), (1e3, " thousand"))


def faults(values: Json, where: str = "") -> list[str]:
    """Return a line for each size of a configuration that is larger than `LARGEST`."""
    return [
        f"config key '{key}' is {value}, and {LARGEST:,} is the most: at a millisecond each that many take "
        f"{in_words(value * EACH)}, and {value * 8 / 1e9:,.0f} GB at 8 bytes each; lower it"
        for key, value in _numbers(values, where)
        if value > LARGEST and key.rpartition(".")[2] not in FREE
    ]


def _numbers(values: Json, where: str) -> Iterator[tuple[str, int]]:
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from _numbers(value, f"{where}.{key}" if where else str(key))
    elif isinstance(values, list | tuple):
        for number, value in enumerate(values):
            yield from _numbers(value, f"{where}.{number}")
    elif isinstance(values, int) and not isinstance(values, bool):
        yield where, values


def in_words(seconds: float) -> str:
    """Return a long time in its largest unit: "12 days", "32 million years"."""
    size, unit = next((pair for pair in UNITS if seconds >= 2 * pair[0]), UNITS[-1])
    count = seconds / size
    factor, word = next(((f, w) for f, w in WORDS if count >= 2 * f), (1.0, ""))
    return f"{count / factor:.2g}{word} {unit}" if count < 10 * factor else f"{count / factor:,.0f}{word} {unit}"
