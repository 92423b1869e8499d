"""The training losses of stored priors, which another machine must reproduce from the same parameters and tables."""

import csv
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from metabo.bo.evaluation import training_losses
from metabo.errors import DataError
from metabo.evidence.manifest import below
from metabo.evidence.stored import Tables, TrainedPriors, trained
from metabo.gp.model import GP
from metabo.records.files import write_text
from metabo.records.inventory import StoredSidecar

ROWS = 200
"""The number of rows of a task that are used: 2,000 would take minutes for each file, and say no more about its
parameters."""
HEADER = ["priors", "space", "fold", "seed", "nll"]


class PriorPlace(NamedTuple):
    """Identifies a prior: its file below the folder of the run, its space, fold and seed."""

    priors: str
    space: str
    fold: str
    seed: int


Losses = dict[PriorPlace, float]
"""By prior, the mean NLL (hyperbo Eq. 14) of the first `ROWS` rows of its training tasks."""


def of_results(records: Iterable[StoredSidecar], results: Path, known: Collection[str] = ()) -> tuple[Losses, int]:
    """Return the losses of all priors of a run that are GPs, and the number of prior files whose table is not there.

    `known`: files, below the folder of the run, whose losses are stored already; they are left out.
    """
    tables, found, left_out = Tables([results / "data"]), Losses(), 0
    for record in (one for one in records if one.content.get("stage") == "pretrain"):
        (name,) = (one for one in record.outputs if one.endswith(".npz"))
        if below(record, name) in known:
            continue
        if (benchmark := tables.of(record)) is None:
            left_out += 1
            continue
        found |= of_priors(below(record, name), trained(record.located(name), benchmark))
    return found, left_out


def of_priors(name: str, stored: TrainedPriors) -> Losses:
    """Return the losses of the priors of one file that are GPs."""
    found = Losses()
    for prior, training in zip(stored.priors, stored.training, strict=True):
        if isinstance(prior.params, GP):
            losses = training_losses(prior, training, ROWS)
            found |= {
                PriorPlace(name, prior.space, fold.name, seed): float(losses[f, seed])
                for f, fold in enumerate(prior.folds)
                for seed in range(prior.seeds)
            }
    return found


def read(path: Path) -> Losses:
    """Read stored losses, or return none if there is no file. Raises DataError for another kind of file."""
    if not path.exists():
        return {}
    try:
        with path.open(newline="") as stream:
            header, *rows = csv.reader(stream)
        if header == HEADER:
            return {PriorPlace(name, space, fold, int(seed)): float(nll) for name, space, fold, seed, nll in rows}
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not readable ({error}); get it back from version control") from error
    raise DataError(f"{path}: has the columns {header}, not {HEADER}; get it back from version control")


def merged(known: Losses, found: Losses, gone: Collection[str] = ()) -> Losses:
    """Return losses with those of files that were computed anew in place of the known ones, and without those of files
    that are `gone`."""
    again = {place.priors for place in found} | set(gone)
    return {place: nll for place, nll in known.items() if place.priors not in again} | found


def write(path: Path, losses: Losses) -> None:
    """Write losses."""
    lines = [",".join(HEADER), *(_line(place, nll) for place, nll in sorted(losses.items()))]
    write_text(path, "\n".join(lines) + "\n")


def _line(place: PriorPlace, nll: float) -> str:
    quoted = ('"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text for text in place[:3])
    return ",".join([*quoted, str(place.seed), repr(nll)])
