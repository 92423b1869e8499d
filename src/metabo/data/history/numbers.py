"""Numbers as users write them, in a table, on the command line or in Python."""

from typing import cast


def read_number(given: object) -> float:
    """Return the number that a text writes, or that an object of Python is.

    Raises ValueError for a text that is no number, or that Python alone takes for one: with underscores (0_12 may be a
    slip for 0.12, and Python reads 12) or digits of other scripts. Raises TypeError for other objects that are no
    number, such as truth values, and OverflowError for a whole number that is too large.
    """
    if isinstance(given, bool | bytes | bytearray):
        raise TypeError(f"{type(given).__name__} is no number")
    if isinstance(given, str):
        text = given.strip()
        if "_" in text or not text.isascii():
            raise ValueError("has signs that no number has")
        return float(text)
    return float(cast(float, given))  # or else it raises
