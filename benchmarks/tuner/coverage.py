"""How often the default's 90 % interval holds the outcome of its suggestion, by the number of the trial.

    python benchmarks/tuner/coverage.py development     # what the intervals were made on
    python benchmarks/tuner/coverage.py held_out        # what the documentation reports

The problems are those of problems.yaml whose outcomes come from tables; nothing is trained.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import models
import numpy as np
import worlds
from worlds import PLAN

from metabo.tuner.asking import Told
from metabo.tuner.blend import choose

TRIALS = {"1": slice(0, 1), "2": slice(1, 2), "3 and 4": slice(2, 4), "5 to 15": slice(4, 15)}


def held(one: worlds.World, task: str, kind: str, seed: int) -> np.ndarray:
    """Return (trials, 3): whether the interval held the outcome, which is minimised, or was below or above it."""
    given = [[(one.description.read(c), y) for c, y in s] for s in worlds.history(one, kind, seed % PLAN["draws"])]
    outcome, told, found = one.outcome(task), Told([], [], []), []
    for _ in range(PLAN["budget"]):
        (asked,) = choose.suggest(one.description, models.learned(one, given), told, 1, seed)
        y = outcome(asked.configuration)
        found.append((asked.low <= y <= asked.high, y > asked.high, y < asked.low))
        told.done.append(asked.configuration)
        told.outcomes.append(y)
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("development", "held_out"))
    parser.add_argument("--histories", nargs="+", default=list(PLAN["histories"]))
    args = parser.parse_args()
    tables = [one for one in worlds.worlds(args.part) if PLAN[args.part]["spaces"][one.name]["kind"] != "training"]
    print("share of outcomes in the interval (above it, below it), by trial;", ", ".join(one.name for one in tables))
    for kind in args.histories:
        runs = np.stack(
            [held(one, t, kind, s) for one in tables for t in one.targets for s in PLAN[args.part]["seeds"]]
        )
        shares = {name: runs[:, trials].mean(axis=(0, 1)) for name, trials in TRIALS.items()}
        told = (f"{name}: {a:.0%} ({b:.0%}, {c:.0%})" for name, (a, b, c) in shares.items())
        print(f"{kind}, {len(runs)} runs. " + "; ".join(told), flush=True)


if __name__ == "__main__":
    main()
