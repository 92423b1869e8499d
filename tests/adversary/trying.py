"""The classes of faults and their tries: each try follows from its class, a seed and its number, and those of a study's
folder from the clock too, whose time claims hold."""

import math
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.adversary.judge import Attempt, Verdict, judge

CLASSES = {
    "study_store": 138,
    "by_hand": 174,
    "fuzzed": 3500,
    "configs": 975,
    "mirrors": 50,
    "archives": 458,
    "injection": 12,
    "numerics": 24,
}
"""Tries of each class. Its module has `attempt(number, rng, place)`, which makes one; `place`: an empty folder."""
TURNS = 2 * 3 * 5
"""The kinds of tries in a class take turns, 3, 5, 8 or so of them."""


class Tried(NamedTuple):
    """One try that was made."""

    number: int
    what: str
    verdict: Verdict


def numbers(name: str, share: float = 1.0) -> range:
    """Return the numbers of a share of the tries of a class, spread over all of them and over the kinds that take
    turns: no step shares a factor with their number, or always the same kind would be made."""
    step = max(round(1 / share), 1)
    while math.gcd(step, TURNS) > 1:
        step += 1
    return range(0, CLASSES[name], step)


def attempts(name: str, seed: int, chosen: Iterable[int]) -> Iterable[Tried]:
    """Make the chosen tries of a class, one after the other."""
    module = import_module(f"tests.adversary.{name}")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="tried") as folder:
        for number in chosen:
            place = Path(folder) / "place"
            place.mkdir()
            rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
            made: Attempt = module.attempt(number, rng, place)
            yield Tried(number, made.what, judge(made, place))
            _removed(place)


def _removed(place: Path) -> None:
    for folder, _, _ in os.walk(place):
        os.chmod(folder, 0o700)
    shutil.rmtree(place)
