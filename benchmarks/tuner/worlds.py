"""What the benchmark tunes: spaces, the outcome of a configuration on a data set, and past studies of an optimiser."""

import json
import os
import tarfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import optuna
import yaml
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.spatial import cKDTree

from metabo.data import lcbench, tables, taskset
from metabo.data.history import description as descriptions
from metabo.data.history.description import Configuration, Description
from metabo.tasks.spaces import Level

HERE = Path(__file__).resolve().parent
PLAN = yaml.safe_load((HERE / "problems.yaml").read_text())
CACHE = Path(os.environ.get("METABO_TUNER_CACHE", HERE.parents[1] / ".cache" / "tuner"))
DATA = Path(os.environ.get("METABO_DATA", HERE.parents[1] / ".cache" / "data"))
Outcome = Callable[[Configuration], float]
Trial = tuple[Configuration, float]
NO_RANKS: dict[str, Sequence[Level]] = {}

optuna.logging.set_verbosity(optuna.logging.ERROR)


class World(NamedTuple):
    """A space with its targets and past data sets; `outcome(task)` gives the function to minimise, `least(task)` the
    smallest outcome known of it."""

    name: str
    description: Description
    targets: list[str]
    past: list[str]
    outcome: Callable[[str], Outcome]
    least: Callable[[str], float]


@cache
def world(name: str) -> World:
    """Build a world by its name in problems.yaml."""
    entry = next(PLAN[part]["spaces"][name] for part in ("development", "held_out") if name in PLAN[part]["spaces"])
    return {"table": _grid, "training": _trained, "lcbench": _rows, "taskset": _rows}[entry["kind"]](name, entry)


def worlds(part: str) -> list[World]:
    """Return the worlds of a part of the plan, development or held_out."""
    return [world(name) for name in PLAN[part]["spaces"]]


def oriented(description: Description, outcomes: np.ndarray) -> np.ndarray:
    """Return outcomes on their scale, to be minimised."""
    return on_scale("log" if description.log else "linear", outcomes)


def on_scale(scale: str, outcomes: np.ndarray) -> np.ndarray:
    """Return outcomes on a scale, "log" or "linear"."""
    return np.log(np.maximum(outcomes, 1e-12)) if scale == "log" else np.asarray(outcomes, dtype=np.float64)


def described(name: str) -> Description:
    """Return a space of spaces.yaml."""
    source = yaml.safe_load((HERE / "spaces.yaml").read_text())[name]
    return descriptions.of_mapping({"name": name, "study": "study", **source}, f"{name}.yaml")


def _trained(name: str, entry: dict) -> World:
    from trainings import Kept

    kept = cache(lambda task: Kept(CACHE / "outcomes", name, task))
    least = lambda task: min(v for v in kept(task).known.values() if v == v)  # noqa: E731
    return World(name, described(name), entry["targets"], entry["past"], kept, least)


def _rows(name: str, entry: dict) -> World:
    """Tables of scattered configurations: the nearest one answers."""
    made = {"lcbench": lcbench, "taskset": taskset}[name].load(name, {}, _archive(name))
    space = described(name)

    @cache
    def outcome(task: str) -> Outcome:
        table, tree = made.tasks[task], cKDTree(made.tasks[task].x)
        return lambda c: float(table.metric[tree.query(space.encode([c])[0])[1]])

    past = [t for t in made.tasks if t not in entry["targets"]] if entry["past"] == "others" else entry["past"]
    return World(name, space, entry["targets"], past, outcome, lambda task: float(np.nanmin(made.tasks[task].metric)))


def _archive(name: str) -> Path:
    """Return the archive of a data set, made from its folder of files."""
    path = CACHE / f"{name}.tar"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w") as archive:
            archive.add(DATA / name, name)
    return path


def _grid(name: str, entry: dict) -> World:
    """Tables of all configurations."""
    found = tables.search_space(name)
    package = Path(__import__(tables.PACKAGE).__file__).parent
    digits = tables._properties(name).search_space
    kinds = tables.SPACES[name]["kinds"]
    parameters = {
        label: {"type": "categorical" if kinds[label] == "categorical" else "ordinal", "choices": [*levels]}
        for label, levels in digits.items()
    }
    log = tables.SPACES[name]["unit"] is None
    outcome = {"column": "loss", "goal": "minimise", "scale": "log" if log else "linear"}
    space = descriptions.of_mapping(
        {"name": name, "study": "study", "outcome": outcome, "parameters": parameters}, f"{name}.yaml"
    )
    sizes = [len(levels) for levels in digits.values()]
    assert [p.name for p in found.parameters] == [*digits]

    @cache
    def values(task: str) -> np.ndarray:
        metric = tables.read_table(name, task, package)
        return metric if log else 1.0 - metric / tables.SPACES[name]["unit"]

    def ask(task: str) -> Outcome:
        table = values(task)

        def answer(c: Configuration) -> float:
            places = [list(levels).index(c[label]) for label, levels in digits.items()]
            return float(table[np.ravel_multi_index(places, sizes)])

        return answer

    return World(name, space, entry["targets"], entry["past"], ask, lambda task: float(np.nanmin(values(task))))


def distributions(description: Description) -> dict[str, BaseDistribution]:
    """Return Optuna's view of a space; choices have no order there."""
    out: dict[str, BaseDistribution] = {}
    for field in description.fields:
        if field.choices:
            out[field.name] = CategoricalDistribution(field.choices)
        elif field.kind == "int":
            out[field.name] = IntDistribution(int(field.low), int(field.high), log=field.log)
        else:
            out[field.name] = FloatDistribution(field.low, field.high, log=field.log)
    return out


def ask(
    trial: optuna.Trial, description: Description, ranks: Mapping[str, Sequence[Level]] = NO_RANKS
) -> Configuration:
    """Ask Optuna for the parameters that are in use, as an objective does. `ranks`: choices asked for by rank."""
    shown, out = distributions(description), {}
    for field in description.fields:
        on = field.parent is None or out[field.parent] in field.needs
        if on and field.name in ranks:
            choices = ranks[field.name]
            out[field.name] = choices[trial.suggest_int(field.name, 0, len(choices) - 1)]
        else:
            out[field.name] = trial._suggest(field.name, shown[field.name]) if on else None
    return out


def random_configuration(description: Description, rng: np.random.Generator) -> Configuration:
    """Draw each parameter uniformly on its scale."""
    return description.at(rng.random((1, len(description.fields))))[0]


def references(one: World, task: str) -> tuple[float, float]:
    """Return the least outcome known, and the median of 200 random configurations, on the outcome's scale."""
    outcome, rng = one.outcome(task), np.random.default_rng(12345)
    drawn = np.array([outcome(random_configuration(one.description, rng)) for _ in range(200)])
    drawn = oriented(one.description, drawn[np.isfinite(drawn)])
    return float(oriented(one.description, np.array(one.least(task)))), float(np.median(drawn))


# --- past studies -----------------------------------------------------------------------------------------------------


def write(path: Path, text: str) -> None:
    """Write a file as a whole: several processes may make it, and each may be killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.write_text(text)
    os.replace(scratch, path)


def history(one: World, kind: str, draw: int) -> list[list[Trial]]:
    """Return the past studies of a kind of history; kept in a file."""
    path = CACHE / "histories" / f"{one.name}-{kind}-{draw}.json"
    if not path.exists():
        entry = PLAN["histories"][kind]
        rng = np.random.default_rng([7, draw, len(one.name)])
        names = [*rng.permutation(one.past)][: entry["studies"]]
        made = [
            _study(one, str(task), entry["trials"], entry.get("change", ""), draw, place)
            for place, task in enumerate(names)
        ]
        write(path, json.dumps(made))
    return [[(c, y) for c, y in study] for study in json.loads(path.read_text())]


def _study(one: World, task: str, trials: int, change: str, draw: int, place: int) -> list[Trial]:
    seed = 1000 * draw + place
    truth = one.outcome(task)
    if change == "unrelated":
        truth = _surface(one.description, seed)
    elif change == "misleading":
        forward = truth
        truth = (lambda c: 1.0 / forward(c)) if one.description.log else (lambda c: -forward(c))
    found = (_by_tpe if place % 2 == 0 else _by_steps)(one.description, truth, trials, seed)
    if change == "mixed":
        rng = np.random.default_rng([9, seed])
        scale, shift = 10.0 ** rng.uniform(-3, 3), rng.normal()
        if one.description.log:  # another unit, and another power: both linear on the logarithmic scale
            power = 2.0 ** rng.uniform(-2, 2)
            return [(c, scale * y**power) for c, y in found]
        return [(c, scale * (y + shift)) for c, y in found]
    return found


def _surface(description: Description, seed: int) -> Outcome:
    """Draw a smooth random function: 40 random Fourier features with a length-scale of half the range."""
    rng = np.random.default_rng([8, seed])
    width = description.space.dim
    frequency, phase = rng.normal(size=(40, width)) / 0.5, rng.uniform(0, 2 * np.pi, 40)
    weight = rng.normal(size=40) / np.sqrt(20)

    def answer(c: Configuration) -> float:
        value = float(np.cos(frequency @ description.encode([c])[0] + phase) @ weight)
        return float(np.exp(value)) if description.log else value

    return answer


def _by_tpe(description: Description, truth: Outcome, trials: int, seed: int) -> list[Trial]:
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    out = []
    for _ in range(trials):
        trial = study.ask()
        chosen = ask(trial, description)
        value = truth(chosen)
        study.tell(trial, value if np.isfinite(value) else None, state=None if np.isfinite(value) else _FAILED)
        out.append((chosen, value))
    return out


def _by_steps(description: Description, truth: Outcome, trials: int, seed: int) -> list[Trial]:
    rng = np.random.default_rng([6, seed])
    out: list[Trial] = []
    for number in range(trials):
        at = rng.random(len(description.fields))
        if number >= trials // 2:
            best = min(out, key=lambda t: t[1] if np.isfinite(t[1]) else np.inf)[0]
            centre = description.units(best)
            moves = rng.random(len(at)) < 0.4
            moves[rng.integers(len(at))] = True
            at = np.where(moves, np.clip(centre + 0.15 * rng.normal(size=len(at)), 0, 1), centre)
        chosen = description.at(at[None])[0]
        out.append((chosen, truth(chosen)))
    return out


_FAILED = optuna.trial.TrialState.FAIL
