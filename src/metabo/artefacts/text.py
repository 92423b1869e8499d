"""Text of figures and notebooks: headings, and text from loaders and users, which Markdown shows letter for letter."""

import re
import string
from collections import Counter

from metabo.metrics import Runs, repetitions
from metabo.plots import look

_SIGNS = re.compile(f"([{re.escape(string.punctuation)}])")


def plain(text: str) -> str:
    """Return Markdown that shows a text as it is, in one line: neither HTML, links nor emphasis (a backslash before
    any punctuation stands for it)."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))


def heading(title: str, benchmark: str, runs: Runs, unit: str = "prior") -> str:
    """Return a figure's heading with the numbers of test tasks and of repetitions (of pre-training seeds, or of runs,
    by `unit`): "Ranks (pd1_mini, 24 tasks, 3 repetitions, of Rand 21)".

    The most common number stands for all methods; those with another one are named.
    """
    numbers = {method: len(values) for method, values in repetitions(runs, unit).items()}
    usual, _ = Counter(numbers.values()).most_common(1)[0]
    apart: dict[int, list[str]] = {}
    for method, number in numbers.items():
        if number != usual:
            apart.setdefault(number, []).append(look.of(method).label)
    others = [f", of {', '.join(labels)} {number}" for number, labels in apart.items()]
    tasks, each = len(runs.tasks), "repetition" if usual == 1 else "repetitions"
    return f"{title} ({benchmark}, {tasks} task{'s' if tasks > 1 else ''}, {usual} {each}{''.join(others)})"
