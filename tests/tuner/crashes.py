"""Crash test of a study's folder: `make test-faults`, or `python -m tests.tuner.crashes`.

A child tells, corrects, claims, releases and publishes in a copy of a folder, and says what was acknowledged; at one of
its calls to the operating system a fault strikes (`tests.tuner.broken_os`). Then the folder is read again. It must hold
every change that was acknowledged, and each of the others wholly or not at all, and must take further changes. A call
that fails must end in one line for the user, and nothing may import JAX. A folder, a kind of fault and a call are a
point.
"""

import argparse
import copy
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metabo.data.history.description import Description
from metabo.errors import MetaboError
from metabo.records.files import save_npz
from metabo.tuner import journal, store
from metabo.tuner.ledger import Ledger, claim_of
from metabo.tuner.trials import Result, StudyTrial, TrialIndex, claim_id, claimed, corrected, recorded, released
from tests.tuner.broken_os import Faults, kinds

SPACE = {
    "name": "space",
    "study": "dataset",
    "outcome": {"column": "error", "goal": "minimise"},
    "parameters": {
        "rate": {"type": "float", "low": 1e-10, "high": 100.0, "scale": "log"},
        "count": {"type": "int", "low": 1, "high": 4_000_000_000},
        "kind": {"type": "categorical", "choices": [64, "64", " sgd "]},
    },
}
FOLDERS = ("new", "used", "torn", "format 1")
"""Without trials; with some; with a row that a killed process left unfinished; as the version before seals wrote."""
LIMIT = 60
"""Seconds that a child may take."""
NAMES = ("a", "b")
"""Studies in a folder."""


def configuration(number: int) -> dict:
    return {"rate": 10.0 ** (-number / 3), "count": 4_000_000_000 - number, "kind": (64, "64", " sgd ")[number % 3]}


class State(NamedTuple):
    """What a folder holds: the trials of each study, and the file name of its prior."""

    trials: dict[str, list[StudyTrial]]
    prior: str


class Change(NamedTuple):
    """One change: what a user does, and what comes of it in a state, without files."""

    act: Callable[[dict[str, Ledger]], object]
    model: Callable[[State, Description], State]


def told(name: str, numbers: list[int], outcomes: list[float | None], correct: bool = False) -> Change:
    results = [(configuration(number), outcome) for number, outcome in zip(numbers, outcomes, strict=True)]

    def model(state, space):
        read = [Result(space.read(one), float("nan") if out is None else out, "") for one, out in results]
        if correct:
            return with_trials(state, name, corrected(state.trials[name], read, space)[0])
        index = TrialIndex(space, state.trials[name])
        recorded(index, read)
        return with_trials(state, name, index.trials)

    return Change(lambda ledgers: ledgers[name].tell_all(results, correct), model)


def claims(name: str, numbers: list[int]) -> Change:
    chosen = [configuration(number) for number in numbers]

    def act(ledgers):
        with ledgers[name]._held() as held:
            ledgers[name]._claim(held, chosen, claim_of("crash test"))

    def model(state, _):
        before = state.trials[name]
        return with_trials(state, name, [*before, *claimed(len(before), chosen, claim_of("x"))])

    return Change(act, model)


def release(name: str) -> Change:
    def model(state, _):
        running = [claim_id(one) for one in state.trials[name] if one["state"] == "running"]
        return with_trials(state, name, released(state.trials[name], running, "")[0])

    return Change(lambda ledgers: ledgers[name].release(), model)


def prior(number: int) -> Change:
    def act(ledgers):
        publish(ledgers["a"].folder, number)

    return Change(act, lambda state, _: state._replace(prior=PRIORS[number]))


def with_trials(state: State, name: str, trials: list[StudyTrial]) -> State:
    return state._replace(trials={**state.trials, name: trials})


CHANGES = [
    told("a", [1], [0.1]), claims("a", [2, 3, 4]), told("a", [2, 5], [0.2, None]), prior(1),
    told("a", [1], [0.15], True), release("a"), claims("b", [6]), told("b", [6], [0.6]), prior(2),
    told("a", [7], [0.7]),
]  # fmt: skip


def publish(folder: Path, number: int) -> str:
    """Publish a prior, and return the name of its file."""
    record = {
        "space": SPACE, "scale": {"centre": 0.0, "spread": 1.0, "worst": -2.0}, "spec": {"method": "rand"},
        "past": [{"history": "history.csv", "space": "space", "studies": 2, "trials": number, "layout": "",
                  "accounts": []}], "remarks": [],
    }  # fmt: skip
    with store.publishing(folder) as scratch:
        save_npz(scratch / "prior.npz", {"a": np.full(100, number)})
        store.publish(folder, record, scratch / "prior.npz")
    return store.require(folder)["prior"]


def prepare(folder: Path, kind: str) -> None:
    """Make a folder to begin with."""
    publish(folder, 0)
    if kind == "new":
        return
    started = {name: Ledger(folder, name) for name in NAMES}
    for change in (told("a", [8, 9, 10], [0.8, 0.9, None]), claims("a", [11])):
        change.act(started)
    if kind == "torn":
        with store.trials_path(folder, "a").open("ab") as stream:
            stream.write(journal.row([], "0" * 64)[0][:40])
    if kind == "format 1":
        record = json.loads((folder / store.RECORD).read_text())
        del record["record_sha256"]
        (folder / store.RECORD).write_text(json.dumps(record | {"format": 1}, indent=1))
        path = store.trials_path(folder, "a")
        path.write_text(json.dumps([{k: v for k, v in one.items() if k != "claim"} for one in started["a"].trials]))


def look(folder: Path, space: Description) -> State:
    """Read a folder as a new process does. Raises MetaboError."""
    path = store.prior_path(folder, store.require(folder))
    return State({name: store.read_trials(folder, name, space) for name in NAMES}, path.name)


def comparable(state: State) -> str:
    plain = {name: [{**one, "claim": None} for one in trials] for name, trials in state.trials.items()}
    return json.dumps([plain, state.prior], sort_keys=True)


def possible(before: State, done: dict[int, str], space: Description) -> Iterator[str]:
    """Yield what a folder may hold: each change that was begun and not acknowledged is there or is not."""
    open_ones = [number for number, word in done.items() if word != "acknowledged"]
    for there in itertools.product((False, True), repeat=len(open_ones)):
        state, left_out = copy.deepcopy(before), {n for n, kept in zip(open_ones, there, strict=True) if not kept}
        for number in done:
            if number not in left_out:
                try:
                    state = CHANGES[number].model(state, space)
                except MetaboError:  # nothing to correct where nothing was told
                    continue
        yield comparable(state)


class Child(NamedTuple):
    """What a child said: what became of each change that it began, the calls it made, and what went wrong."""

    done: dict[int, str]
    calls: list[str]
    wrong: list[str]


def run(folder: Path, kind: str, at: int) -> Child:
    """Make the changes in a child, with a fault at a call (0: none)."""
    begin, end = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT)
        os.close(begin)
        _changes(folder, kind, at, end)
    os.close(end)
    with os.fdopen(begin) as stream:
        said = [json.loads(line) for line in stream]
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    wrong = [text for word, text in said if word == "wrong"] + ([] if status in (0, 9) else [f"it ended with {status}"])
    done = {number: word for word, number in said if word in ("begun", "acknowledged", "refused")}
    return Child(done, next((calls for word, calls in said if word == "calls"), []), wrong)


def _changes(folder: Path, kind: str, at: int, pipe: int) -> None:
    """What the child does; it does not return."""
    write, leave = os.write, os._exit

    def say(word: str, what: object) -> None:
        write(pipe, (json.dumps([word, what]) + "\n").encode())

    try:
        ledgers = {name: Ledger(folder, name) for name in NAMES}
        for ledger in ledgers.values():
            _ = ledger.description
        faults = Faults(folder, kind, at)
        faults.install()
        for number, change in enumerate(CHANGES):
            say("begun", number)
            try:
                change.act(ledgers)
                say("acknowledged", number)
            except MetaboError as error:
                say("refused", number)
                if "\n" in str(error):
                    say("wrong", f"change {number}: a message of several lines: {error}")
            except Exception:
                say("wrong", f"change {number}: {traceback.format_exc()}")
        if "jax" in sys.modules:
            say("wrong", "JAX was imported")
        say("calls", faults.seen)
    except BaseException:
        say("wrong", traceback.format_exc())
    leave(0)


def survives(base: Path, folder: Path, kind: str, at: int, space: Description) -> tuple[str, int]:
    """Try one point. Return what is wrong afterwards ("" if nothing is), and how many changes were acknowledged."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
    before = look(folder, space)
    child = run(folder, kind, at)
    acknowledged = list(child.done.values()).count("acknowledged")
    if child.wrong:
        return child.wrong[0], acknowledged
    try:
        if comparable(after := look(folder, space)) not in possible(before, child.done, space):
            return f"it holds {comparable(after)} after {child.done}", acknowledged
        for number in (20, 21):
            Ledger(folder, "a").tell(configuration(number), float(number))
        now = look(folder, space).trials["a"]
        if [one["outcome"] for one in now[-2:]] != [20.0, 21.0] or len(now) != len(after.trials["a"]) + 2:
            return f"it does not take further trials: {now}", acknowledged
        publish(folder, 3)
        left = {str(path.relative_to(folder)) for path in folder.rglob("*")}
        if strange := left - {".lock", store.RECORD, PRIORS[3], "trials", *(f"trials/{name}.json" for name in NAMES)}:
            return f"it keeps {sorted(strange)}", acknowledged
    except MetaboError as error:
        return f"it cannot be used: {error}", acknowledged
    return "", acknowledged


PRIORS: dict[int, str] = {}


def main(arguments: list[str] | None = None) -> int:
    """Try all points, or a sample of them, and return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="try this many points only")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    args = parser.parse_args(arguments)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # what a disk keeps is modelled
    with tempfile.TemporaryDirectory(dir=memory) as name:
        place = Path(name)
        for number in range(4):
            PRIORS[number] = publish(place / "priors", number)
        points = []
        for folder in FOLDERS:
            prepare(place / folder, folder)
            shutil.copytree(place / folder, place / "tried")
            calls = run(place / "tried", "EIO", 0).calls
            points += [(folder, kind, at) for at, call in enumerate(calls, start=1) for kind in kinds(call)]
            shutil.rmtree(place / "tried")
        if args.sample is not None:
            points = random.Random(args.seed).sample(points, args.sample)
        space = Ledger(place / "new").description
        faults, kept = [], 0
        for folder, kind, at in points:
            wrong, acknowledged = survives(place / folder, place / "tried", kind, at, space)
            kept += acknowledged
            if wrong:
                faults.append(f"{folder}, {kind} at call {at}: {wrong}")
    print("\n".join(faults[:10]))
    print(
        f"crash points: tried {len(points)}, survived {len(points) - len(faults)}, failed {len(faults)}; "
        f"{kept} changes were acknowledged"
    )
    return len(faults)


if __name__ == "__main__":
    sys.exit(bool(main()))
