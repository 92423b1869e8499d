"""Workers that share a study of Optuna: `make test-workers`, or `python -m tests.tuner.workers`.

Eight workers ask one `PriorSampler` at once, as threads of one process (`n_jobs`) and as processes of their own, on
each kind of storage, for a minute; one objective asks for all of the space, one for less. Every worker writes down each
trial that it finished. No configuration may be evaluated twice, and no trial that was finished may be missing from the
storage or differ there.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import optuna

from metabo import PriorSampler
from metabo.tuner.study import pretrain

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_data"
KINDS = ("sqlite", "journal")
WAYS = ("threads", "processes")
NAME = "shared"


class Counts(NamedTuple):
    """What a run did: trials in the storage, those whose configuration an earlier trial has, and those lost."""

    trials: int
    repeated: int
    lost: int


def storage_of(kind: str, folder: Path) -> str | optuna.storages.BaseStorage:
    """Open a storage in a folder, the same one each time."""
    if kind == "sqlite":
        return f"sqlite:///{folder / 'optuna.db'}"
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(folder / "optuna.log")))


def ask_all(trial: optuna.Trial) -> float:
    """Ask for every parameter of the example, and take no time, so that workers ask at once."""
    trial.suggest_categorical("batch_size", [32, 128])
    rate = trial.suggest_float("learning_rate", 1e-5, 10.0, log=True)
    trial.suggest_float("one_minus_momentum", 1e-3, 1.0, log=True)
    trial.suggest_float("decay_power", 0.1, 2.0)
    trial.suggest_float("decay_steps", 0.01, 0.99)
    return 0.1 + abs(rate - 0.1)


def ask_less(trial: optuna.Trial) -> float:
    """Ask for narrower ranges and steps, which leave out what past studies liked best."""
    trial.suggest_categorical("batch_size", [32, 128])
    rate = trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)
    trial.suggest_float("one_minus_momentum", 0.25, 1.0, step=0.25)
    trial.suggest_float("decay_power", 1.0, 1.5)
    return 0.1 + abs(rate - 0.1) + trial.suggest_float("decay_steps", 0.01, 0.99)


OBJECTIVES = {"all": ask_all, "less": ask_less}


def configuration(params: dict) -> str:
    """Return a configuration in one form, to compare and to keep."""
    return json.dumps(params, sort_keys=True)


def work(kind: str, folder: Path, seconds: float, jobs: int, asks: str) -> None:
    """Run trials for some seconds with `jobs` threads, and write down each one that was finished."""
    study = optuna.load_study(
        study_name=NAME, storage=storage_of(kind, folder), sampler=PriorSampler(folder / "learned")
    )
    with (folder / f"finished.{os.getpid()}").open("a") as finished:

        def note(_: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
            finished.write(json.dumps([trial.number, configuration(trial.params), trial.value]) + "\n")
            finished.flush()

        study.optimize(OBJECTIVES[asks], timeout=seconds, n_jobs=jobs, callbacks=[note])


def count(study: optuna.Study, folder: Path) -> Counts:
    """Compare the storage with what the workers wrote down."""
    stored = {t.number: [t.number, configuration(t.params), t.value] for t in study.trials if t.state.is_finished()}
    noted = [json.loads(line) for path in folder.glob("finished.*") for line in path.read_text().splitlines()]
    lost = sum(stored.get(number) != [number, params, value] for number, params, value in noted)
    unfinished = len(study.trials) - len(stored)
    configurations = [configuration(trial.params) for trial in study.trials]
    return Counts(len(configurations), len(configurations) - len(set(configurations)), lost + unfinished)


def share(kind: str, way: str, folder: Path, seconds: float, workers: int, asks: str = "all") -> Counts:
    """Run one study with several workers; `asks`: one of `OBJECTIVES`. Raises RuntimeError if a worker fails."""
    study = optuna.create_study(study_name=NAME, storage=storage_of(kind, folder), direction="minimize")
    processes, jobs = (1, workers) if way == "threads" else (workers, 1)
    command = [sys.executable, "-m", "tests.tuner.workers", "--work", kind, str(folder), str(jobs), asks]
    begun = [subprocess.Popen([*command, "--seconds", str(seconds)], cwd=ROOT) for _ in range(processes)]
    if any([worker.wait() for worker in begun]):
        raise RuntimeError(f"{kind}, {way}: a worker failed, see above")
    return count(study, folder)


def learn(folder: Path) -> None:
    """Learn a prior from the example's past studies."""
    pretrain([EXAMPLE / "history.csv"], [EXAMPLE / "space.yaml"], folder / "learned")


def main() -> int:
    """Run all ways on all storages, or be a worker of one; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each run asks (60)")
    parser.add_argument("--workers", type=int, default=8, help="workers of each run (8)")
    parser.add_argument("--work", nargs=4, metavar=("STORAGE", "FOLDER", "THREADS", "ASKS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if given.work:
        kind, folder, jobs, asks = given.work
        work(kind, Path(folder), given.seconds, int(jobs), asks)
        return 0
    found = []
    print(
        f"{'storage':10s} {'workers':14s} {'asks':5s} {'trials':>8s} {'repeated':>9s} {'lost':>6s} {'seconds':>8s}",
        flush=True,
    )
    for kind, way, asks in itertools.product(KINDS, WAYS, OBJECTIVES):
        with tempfile.TemporaryDirectory() as base:
            learn(Path(base))
            start = time.monotonic()
            counts = share(kind, way, Path(base), given.seconds, given.workers, asks)
            spent = time.monotonic() - start
        found.append(counts)
        numbers = f"{counts.trials:8d} {counts.repeated:9d} {counts.lost:6d} {spent:8.0f}"
        print(f"{kind:10s} {f'{given.workers} {way}':14s} {asks:5s} {numbers}", flush=True)
    return int(any(c.repeated or c.lost or not c.trials for c in found))


if __name__ == "__main__":
    raise SystemExit(main())
