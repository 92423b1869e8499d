"""The settings that result tables were made with, according to their sidecars (written by `metabo.records.provenance`).

A table of BO runs or losses has a sidecar with the settings of its own job and, under `inputs`, the path and checksum
of the priors that it read. Those priors have a sidecar with the settings of their training. The path is not guessed
from names (several methods may share one file of priors), and the training's settings count only if the priors' sidecar
has the checksum that the table was made from. Sidecars are read when a notebook runs and are never declared as inputs
of its rule, because their clock fields would re-draw figures for nothing. The tables are declared, and their jobs come
after those of the priors. Every job writes its sidecar together with its result, so both exist when the notebook runs.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from metabo.plots import look
from metabo.records import sidecars
from metabo.records.fields import Fields
from metabo.records.files import Json

COLUMNS: dict[str, str] = {
    "split": "str", "method": "str", "acquisition": "str", "objective": "str", "optimiser": "str",
    "steps": "Int64", "epochs": "Float64", "learning_rate": "Float64", "batch": "Int64", "training": "str",
    "prior_seeds": "Int64", "refit_steps": "Int64", "refit_epochs": "Float64", "warm_start": "boolean", "bo": "str",
    "seeds": "Int64", "iterations": "Int64", "model": "str", "prior": "str", "record": "str",
}  # fmt: skip
"""Columns of `settings` and their types; missing: no such setting, "" in text."""

LEGEND = (
    "From the records of the jobs that made the tables. Steps: mini-batches of Adam (MAF: updates of its policy), "
    "or the most iterations that L-BFGS may take; with epochs, all their mini-batches unless fewer are named. Batch: "
    "points of each task; with epochs, of all tasks together. Priors: pre-training seeds; without pre-training, sets "
    "of runs. BO seeds: runs of each; in online tuning, of all. Steps of different optimisers are not comparable."
)
"""What the columns of `settings_used` mean."""

_NOTHING = "no sidecar"
_TRAINING = ("objective", "steps", "epochs", "learning_rate", "batch")
_REFITS = ("steps", "retrain_steps", "refit_steps")
"""Names, in the settings of a BO job, of the steps trained at every iteration."""


def settings(paths: Iterable[str]) -> pd.DataFrame:
    """Return the settings that tables of BO runs, online tuning or losses were made with, one row per table.

    - split, method, acquisition ("" for losses); `prior`: the file of the priors
    - pre-training: objective ("" if the method has one only), optimiser ("" if nothing is trained), `steps` (mini-
      batches of Adam, iterations of L-BFGS at most, policy updates of MAF; 0 beside `epochs`: all of these),
      `epochs`, learning_rate, `batch` (points of a task, or rows of a mini-batch), other settings as text (`training`),
      `prior_seeds` (without pre-training: this number of sets of runs)
    - BO: `refit_steps`, `refit_epochs`, `warm_start` of the training at every iteration, others as text (`bo`), `seeds`
      per prior (online: in all), `iterations`
    - `model`, as text; `record`: "complete", or what is missing, with empty columns.

    The row of a table of losses is left out if a table of runs with the same priors is in `paths`. The optimiser is not
    a setting: every method with a learning rate uses Adam, every other one that is pre-trained L-BFGS.
    """
    rows = [_row(Path(path), sidecars.of(path)) for path in dict.fromkeys(paths)]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    text = [name for name, dtype in COLUMNS.items() if dtype == "str"]
    table = table.fillna(dict.fromkeys(text, "")).astype(COLUMNS)
    key = ["split", "method", "prior"]
    shown = pd.MultiIndex.from_frame(table.loc[table["acquisition"] != "", key])
    losses = (table["acquisition"] == "") & (table["prior"] != "")
    return table[~(losses & pd.MultiIndex.from_frame(table[key]).isin(shown))].reset_index(drop=True)


def settings_used(paths: list[str]) -> pd.DataFrame:
    """Lay out for display how every method was trained and run (`settings`), methods by label.

    Splits on which a method has the same settings share a row, so that a second row of a method says that its settings
    differ. Columns in which no method has anything are left out.
    """
    table = settings(paths)
    known = table["record"] != _NOTHING
    shown = pd.DataFrame({
        "splits": table["split"],
        "method": table["method"].where(~known, table.loc[known, "method"].map(lambda name: look.of(name).label)),
        "acquisition": table["acquisition"].replace(look.ACQUISITIONS),
        "model": table["model"],
        "pre-training": [_training(*row) for row in _rows(table, "objective", "optimiser", "record")],
        "pre-training steps": [_steps(*row) for row in _rows(table, "steps", "epochs")],
        "learning rate": _plain(table["learning_rate"]),
        "batch": _plain(table["batch"]),
        "more of pre-training": table["training"],
        "priors": _plain(table["prior_seeds"]),
        "steps at each BO iteration": [
            _again(*row) for row in _rows(table, "refit_steps", "refit_epochs", "warm_start")
        ],
        "more of BO": table["bo"],
        "BO seeds": _plain(table["seeds"]),
        "BO iterations": _plain(table["iterations"]),
        "record": table["record"],
    })  # fmt: skip
    others = [column for column in shown if column != "splits"]
    joined = shown.groupby(others, sort=False)["splits"].agg(lambda rows: ", ".join(dict.fromkeys(rows))).reset_index()
    filled = [column for column in others if (joined[column] != "").any()]
    return joined[[*filled, "splits"]]


def _row(path: Path, record: Mapping[str, Json]) -> dict[str, Json]:
    """Return one row of `settings` for the table at `path` with this sidecar."""
    if not record:
        return {"split": path.parent.name, "method": path.stem, "record": _NOTHING}
    job = Fields(record, str(path)).object("spec").values
    place, trained = _prior(path, record)
    own = _section(trained, "spec")
    training, again = _section(own, "pretrain"), _section(job, "policy") or _section(job, "online")
    refit = next((name for name in _REFITS if name in again), "")
    # a network that is trained again has its schedule in both places; what is the same is said once
    kept = {k: v for k, v in again.items() if k not in (refit, "epochs", "warm_start") and training.get(k) != v}
    kept |= {} if job.get("candidates", "all") == "all" else {"candidates": job["candidates"]}
    kept |= {"queries": "once"} if job.get("once") else {}
    return {
        **{key: job.get(key) for key in ("split", "method", "acquisition", "seeds", "iterations")},
        **{key: training.get(key) for key in _TRAINING},
        "optimiser": "" if not training else "Adam" if "learning_rate" in training else "L-BFGS",
        "training": _text({k: v for k, v in training.items() if k not in _TRAINING and (k, v) != ("decay", 1.0)}),
        "prior_seeds": own.get("seeds"),
        "refit_steps": again.get(refit), "refit_epochs": again.get("epochs"), "warm_start": again.get("warm_start"),
        "bo": _text(kept),
        "model": _text(_section(own, "model")),
        "prior": place,
        "record": "complete" if trained else f"pre-training unknown: {place or 'no sidecar of the priors'}",
    }  # fmt: skip


def _prior(table: Path, record: Mapping[str, Json]) -> tuple[str, Mapping[str, Json]]:
    """Return (path, sidecar) of the priors that a job read; {} unless they are still those that it read."""
    for path, checksum in Fields(record, str(table)).texts("inputs").items():
        found = sidecars.of(path)
        if found.get("stage") == "pretrain":  # the other input is the benchmark
            same = checksum in Fields(found, path).texts("outputs").values()
            return (path, found) if same else (f"{path} has changed", {})
    return "", {}


def _section(values: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """Return the settings under a name; {} if there are none."""
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _text(values: Mapping[str, Json]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _rows(table: pd.DataFrame, *columns: str) -> Iterator[tuple]:
    """Give the values of some columns row by row, None for a missing one."""
    return zip(*([None if pd.isna(value) else value for value in table[column]] for column in columns), strict=True)


def _training(objective: str, optimiser: str, record: str) -> str:
    named = " + ".join(objective.upper().split("_"))
    return ", ".join(filter(None, [named, optimiser])) or ("none" if record == "complete" else "")


def _steps(steps: int | None, epochs: float | None) -> str:
    if epochs is None or steps is None:
        return "" if steps is None else str(steps)
    return f"{epochs:g} epochs" + (f", at most {steps} mini-batches" if steps else "")


def _again(steps: int | None, epochs: float | None, warm: bool | None) -> str:
    start = "" if warm is None else "warm start" if warm else "from scratch"
    return ", ".join(filter(None, [_steps(steps, epochs), start]))


def _plain(values: pd.Series) -> list[str]:
    return ["" if pd.isna(value) else f"{value:g}" for value in values]
