"""Errors that users see. Each message says what is wrong, where (file, key, row) and what to do."""

import difflib
import re
from collections.abc import Iterable

_LOGIN = re.compile(r"://(?:[^\s/]*|[^\s/@:]*:(?!\d+/)[^\s@]*)@")
_SECRET = re.compile(r"([?&][^\s=&]*(?:token|key|secret|sig|pass|auth|credential)[^\s=&]*=)[^\s&'\"]+", re.IGNORECASE)


LONGEST = 2000
"""The most characters in a line of a message; a longer line loses its middle."""


class MetaboError(Exception):
    """Base class: an error that a user can act on, shown without a traceback. Each argument is one line of its message.
    Line breaks and terminal control characters in a name or a cell of a file are escaped, so they neither add lines nor
    affect the terminal."""

    def __str__(self) -> str:
        return "\n".join(printable(str(line)) for line in self.args)


class DataError(MetaboError):
    """A data file, archive or table that cannot be used as it is."""


class ConfigError(MetaboError):
    """A setting, name or parameter that does not exist or has the wrong type."""


class NumericsError(MetaboError):
    """A computation that left the finite numbers and could not be recovered."""


class NumericsWarning(UserWarning):
    """Warns that a result was not computed in a numerically sound way and should not be trusted as it is."""


def printable(text: str, most: int = LONGEST) -> str:
    """Return a text as one line of at most about `most` characters: unprintable characters become their escapes
    (`\\n`), and a longer text loses its middle."""
    if len(text) > most:
        text = f"{text[: most * 2 // 3]} [...] {text[-most // 3 :]}"
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def quoted(value: object) -> str:
    """Return a value as Python writes it, in one short line."""
    try:
        return printable(repr(value), 80)
    except ValueError:  # an integer with more digits than Python prints
        return f"a value of type {type(value).__name__} that is too large to be shown"


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest valid name, or "" when none is close. A name that differs only in
    case, or in zeros before its numbers (fig8, fig08), is the closest."""
    known = [str(v) for v in valid]
    cased = [one for one in known if one.casefold() == str(name).casefold()]
    same = cased or [one for one in known if _plain(one) == _plain(str(name))]
    close = same or difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    return f" Did you mean '{printable(close[0], 80)}'?" if close else ""


def _plain(name: str) -> str:
    return re.sub(r"(?<![\d.])0+(?=\d)", "", name.casefold())


def without_passwords(text: str) -> str:
    """Return a text with *** in place of the credentials in its addresses: a user and password before the host
    (https://***@host/), and parameters that are called a token, key, signature or the like."""
    return _SECRET.sub(r"\1***", _LOGIN.sub("://***@", text))


def unknown(kind: str, name: str, valid: Iterable[str]) -> ConfigError:
    """Build the error for a name that is not registered: the nearest one, and all, or the first `LISTED` of them if one
    is near."""
    names = sorted(str(v) for v in valid)
    near = nearest(name, names)
    left = len(names) - LISTED if near else 0
    listed = f"{', '.join(names[:LISTED])} and {left} more" if left > 0 else ", ".join(names)
    return ConfigError(f"unknown {kind} '{name}'.{near} Valid: {listed}")


LISTED = 30
"""Names that are listed beside a near one."""
