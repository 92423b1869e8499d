"""Whole numbers from users. Wherever they enter, an error states in one line what was given and what is allowed."""

from numbers import Integral

from metabo.errors import ConfigError

LARGEST_SEED = 2**63 - 1


def whole(name: str, value: object, least: int, remedy: str) -> int:
    """Return a whole number (possibly NumPy's) of at least `least`. Raises ConfigError with the message "`name` is
    `value`; `remedy`"."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name} is {value!r}; {remedy}")
    return int(value)


def seed_of(value: object) -> int:
    """Return a seed. Raises ConfigError for anything but a whole number from 0 to 2^63 - 1."""
    remedy = "a seed is a whole number from 0 to 2^63 - 1; give one, or leave it out (0)"
    if (seed := whole("seed", value, 0, remedy)) > LARGEST_SEED:
        raise ConfigError(f"seed is {value!r}; {remedy}")
    return seed


def steps_of(value: object) -> int | None:
    """Return a number of training steps, or None for the method's own. Raises ConfigError for anything but a whole
    number of at least 1."""
    return None if value is None else whole("steps", value, 1, "give a whole number of at least 1, or leave it out")
