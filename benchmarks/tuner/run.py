"""The benchmark of the tuner: every method on every problem, seed and history, one file for each, so that a run goes on
where it stopped. See problems.yaml for what is fixed beforehand, and report.py for the table. Runs that are recorded in
results/runs.csv are not made again.

    python benchmarks/tuner/run.py development            # what the default was chosen on
    python benchmarks/tuner/run.py held_out               # what is reported
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import models
import rivals
import worlds
from runs import Run, planned, recorded
from worlds import PLAN


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
    parser.add_argument("--spaces", nargs="+", help="those of problems.yaml; all if left out")
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the seeds")
    args = parser.parse_args()
    seeds = args.seeds if args.seeds is not None else PLAN[args.part]["seeds"]
    if args.jobs > 1:
        chosen = ["--methods", *args.methods, "--histories", *args.histories]
        chosen += ["--spaces", *args.spaces] if args.spaces else []
        shares = [share for place in range(args.jobs) if (share := list(map(str, seeds[place :: args.jobs])))]
        started = [
            subprocess.Popen([sys.executable, __file__, args.part, *chosen, "--seeds", *share]) for share in shares
        ]
        sys.exit(max(process.wait() for process in started))
    warnings.simplefilter("ignore")
    done = recorded() if args.part == "held_out" else {}
    asked = planned(args.part, args.methods, args.histories, seeds)
    asked = (run for run in asked if not args.spaces or run.space in args.spaces)
    left = [run for run in asked if run not in done and not run.path.exists()]
    print(f"{len(left)} runs to do", flush=True)
    for number, run in enumerate(left):
        worlds.write(run.path, json.dumps(play(run)))
        if number % 50 == 49:
            print(f"{number + 1} of {len(left)}: {' '.join(map(str, run))}", flush=True)


if __name__ == "__main__":
    main()
