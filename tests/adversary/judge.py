"""What a try must end with to count as survived, the same for all classes of faults.

It ends with the right value, compared with what was put in; or with a MetaboError whose lines are printable, not too
long, and name the file or field. All else fails: another exception, a warning, a value that is wrong, no end, memory
without limit, something acknowledged that is lost.
"""

import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from metabo.errors import MetaboError, NumericsWarning

SECONDS = 20.0
"""Seconds of CPU that a try may take."""
WAITING = 6
"""A try may take so many times as long by the clock: a machine that is busy with other work is no fault."""
MEMORY = 3 << 30
"""Bytes of addresses that a try may ask for."""
LONGEST = 500
"""Letters of a line, without the folder of the try and the list of valid names at its end."""
MOST = 200
"""Lines of a message that lists faults: a configuration of which half was cut away lacks many keys."""


class Attempt(NamedTuple):
    """One try: what is tried, in words; what acts; what says "" of a right value, or what is wrong with it. `end`: how
    it must end; `named`: words one of which a refusal has; `after`: looked at however it ended, "" if all is well."""

    what: str
    act: Callable[[], Any]
    right: Callable[[Any], str]
    end: Literal["value", "refusal", "either"] = "either"
    named: tuple[str, ...] = ()
    after: Callable[[], str] = lambda: ""


class Verdict(NamedTuple):
    """How a try ended ("value", "refusal", or "" for neither), and what is wrong: "" if it survived."""

    end: str
    wrong: str


class TooSlow(BaseException):
    """The time is over. No handler of the code under test may take it for an error of its own."""


def judge(attempt: Attempt, place: Path, seconds: float = SECONDS) -> Verdict:
    """Make a try, whose files lie below `place`."""
    try:
        with _limits(seconds), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", NumericsWarning)
            try:
                value = attempt.act()
            except MetaboError as error:
                wrong = unclear(error, attempt.named, place)
                if not wrong and attempt.end == "value":
                    wrong = f"refused although it is right: {error}"
                end = "refusal"
            else:
                wrong = attempt.right(value)
                if attempt.end == "refusal":
                    wrong = f"taken although it is wrong: {_shortened(repr(value))}"
                end = "value"
            wrong = wrong or attempt.after()
        return Verdict(end, wrong)
    except TooSlow:
        return Verdict("", f"not ended after {seconds:g} s")
    except MemoryError:
        return Verdict("", f"asked for more than {MEMORY >> 30} GiB")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = _shortened(repr(error))
        return Verdict("", f"{said} at {Path(last.filename).name}:{last.lineno}")


def unclear(error: MetaboError, named: tuple[str, ...], place: Path) -> str:
    """Say what keeps a person from reading a message, "" if nothing does."""
    text = str(error)
    lines = text.replace(str(place), "").split("\n")
    if not text.strip() or len(lines) != len(error.args) or len(lines) > MOST:
        return f"a message of {len(lines)} lines, meant were {len(error.args)}: {_shortened(repr(text))}"
    if strange := [line for line in lines if not line.isprintable()]:
        return f"a message with signs that do not print: {strange[0]!r}"
    said = [line.partition(" Valid: ")[0].partition(" Allowed: ")[0] for line in lines]
    if long := [line for line in said if len(line) > LONGEST]:
        return f"a line of {len(long[0])} letters: {long[0][:200]!r} ..."
    if named and not any(name in text for name in named):
        return f"names none of {named}: {text!r}"
    return ""


@contextmanager
def _limits(seconds: float) -> Iterator[None]:
    """Stop what takes too long, and refuse more memory than a try may have."""

    def over(*_: object) -> None:
        raise TooSlow

    before = [signal.signal(kind, over) for kind in (signal.SIGPROF, signal.SIGALRM)]
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, WAITING * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for kind, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(kind, handler)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _shortened(text: str) -> str:
    return text if len(text) <= 400 else f"{text[:300]} ... ({len(text)} letters)"
