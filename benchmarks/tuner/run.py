"""The benchmark of the tuner: every method on every problem, seed and history, one file for each, so that a run goes on
where it stopped. See problems.yaml for what is fixed beforehand, and report.py for the table.

    python benchmarks/tuner/run.py development            # what the default was chosen on
    python benchmarks/tuner/run.py held_out               # what is reported
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import models
import rivals
import worlds
from worlds import CACHE, PLAN

ALONE = ("random", "tpe", "tpe_early", "gpsampler", "gpsampler_early", "plain_gp")
"""Methods that learn nothing from the past: run once for all histories."""


class Run(NamedTuple):
    """One study: a method on a data set, with a history ("": none) and a seed."""

    space: str
    task: str
    method: str
    history: str
    seed: int

    @property
    def path(self) -> Path:
        return (
            CACHE / "runs" / "-".join([self.space, self.task, self.method, self.history or "none", f"{self.seed}.json"])
        )


def planned(part: str, methods: list[str], histories: list[str], seeds: list[int]) -> Iterator[Run]:
    """List runs, all problems of a seed before the next seed."""
    for seed in seeds:
        for name, entry in PLAN[part]["spaces"].items():
            for history in ["", *histories]:
                for task in entry["targets"]:
                    for method in methods:
                        if (method in ALONE) == (history == ""):
                            yield Run(name, task, method, history, seed)


def play(run: Run) -> dict[str, object]:
    """Play one study and return its outcomes and the CPU seconds of a suggestion, trainings left out."""
    one = worlds.world(run.space)
    given = worlds.history(one, run.history, run.seed % PLAN["draws"]) if run.history else []
    given = [[(one.description.read(c), y) for c, y in study] for study in given]
    spent, truth = [0.0], one.outcome(run.task)

    def timed(configuration):
        start = time.process_time()
        value = truth(configuration)
        spent[0] += time.process_time() - start
        return value

    asked = one._replace(outcome=lambda task: timed)
    rival = getattr(models, run.method, None) or getattr(rivals, run.method)
    start = time.process_time()
    found = rival(asked, run.task, given, run.seed, PLAN["budget"])
    taken = time.process_time() - start - spent[0]
    return {"outcomes": found, "cpu_s": taken / PLAN["budget"]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("development", "held_out"))
    parser.add_argument("--methods", nargs="+", default=PLAN["methods"])
    parser.add_argument("--histories", nargs="+", default=list(PLAN["histories"]))
    parser.add_argument("--seeds", nargs="+", type=int)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = args.seeds if args.seeds is not None else PLAN[args.part]["seeds"]
    left = [run for run in planned(args.part, args.methods, args.histories, seeds) if not run.path.exists()]
    print(f"{len(left)} runs to do", flush=True)
    for number, run in enumerate(left):
        text = json.dumps(play(run))
        run.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = run.path.with_suffix(".part")
        scratch.write_text(text)
        os.replace(scratch, run.path)
        if number % 50 == 49:
            print(f"{number + 1} of {len(left)}: {' '.join(map(str, run))}", flush=True)


if __name__ == "__main__":
    main()
