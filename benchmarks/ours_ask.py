"""metabo's tuner with a learned prior: the next suggestion after some trials were told."""

import atexit
import csv
import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tuning
import yaml
from case import Timed
from problem import Sizes

import metabo


def described(parameter: tuning.Parameter) -> dict[str, Any]:
    """Return a parameter as space.yaml has it; choices that are numbers have an order."""
    if parameter.choices:
        ordered = not isinstance(parameter.choices[0], str)
        return {"type": "ordinal" if ordered else "categorical", "choices": list(parameter.choices)}
    kind = {"type": "int" if parameter.whole else "float", "low": parameter.low, "high": parameter.high}
    return kind | ({"scale": "log"} if parameter.log else {})


def write(sizes: Sizes, folder: Path) -> tuple[Path, Path]:
    """Write the past studies and the space; return both files."""
    history, space = folder / "history.csv", folder / "space.yaml"
    with history.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["study", *tuning.SPACE, "error"])
        for name, trials in tuning.past(sizes):
            writer.writerows([name, *configuration.values(), outcome] for configuration, outcome in trials)
    source = {"study": "study", "outcome": {"column": "error", "goal": "minimise"}}
    parameters = {name: described(parameter) for name, parameter in tuning.SPACE.items()}
    space.write_text(yaml.safe_dump(source | {"parameters": parameters}))
    return history, space


def study(sizes: Sizes, folder: Path, number: int) -> metabo.Study:
    """Learn the prior in `folder` and tell `number` trials."""
    history, space = write(sizes, folder)
    made = metabo.pretrain(history, space, folder / "study", steps=sizes.prior_steps)
    made.tell_all(tuning.told(number))
    return made


def ask(sizes: Sizes, number: int, folder: Path) -> Timed:
    """Ask for one suggestion after `number` trials, with another seed each time; CPU time, the program compiled."""
    tuned = study(sizes, folder, number)
    start = time.perf_counter()
    tuned.suggest(1)
    first = time.perf_counter() - start
    seeds = itertools.count(1)

    def turn() -> float:
        start = time.process_time()
        for _ in range(sizes.asks):
            tuned.suggest(1, seed=next(seeds))
        return 1e3 * (time.process_time() - start) / sizes.asks

    return Timed(turn, compile_s=first)


def asked(sizes: Sizes, number: int) -> Timed:
    """Make the case with a folder that lives as long as the process."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return ask(sizes, number, Path(folder.name))


CASES: dict[str, dict[str, Callable[[Sizes], Timed]]] = {
    "ask_few": {"metabo": lambda sizes: asked(sizes, sizes.told_few)},
    "ask_many": {"metabo": lambda sizes: asked(sizes, sizes.told_many)},
}
