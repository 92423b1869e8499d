"""The command `metabo tell`: record outcomes, from a CSV or as options, and say what they changed."""

import math
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from metabo.data.history.constraints import finite
from metabo.errors import ConfigError, printable
from metabo.tuner import options

if TYPE_CHECKING:
    from metabo.data.csv_layout import Sheet
    from metabo.data.history.description import Configuration
    from metabo.tuner.trials import StudyTrial


SAID = ("failed", "fail")
"""What a cell says of an outcome if its author means that the trial failed (in lower case)."""


def tell(args: Namespace) -> list[str]:
    """Record the outcomes that the options give, and return lines on what the study has then; remarks go to standard
    error. Raises ConfigError for options that do not go together, and DataError for outcomes that cannot be used.
    """
    from metabo.data.csv_layout import read_sheet
    from metabo.data.history.account import several
    from metabo.data.history.read import unused
    from metabo.tuner import listing
    from metabo.tuner.ledger import Ledger, best_of

    if os.path.isfile(args.folder):  # an error of the disk is told by what reads the folder
        folder = args.results if args.results and args.results.is_dir() else "FOLDER"
        raise ConfigError(
            f"{args.folder} is a file; give the folder of the study first: metabo tell {folder} {args.folder}"
        )
    study = Ledger(args.folder, args.study)
    single = args.parameters is not None
    if single == (args.results is not None) or (single and args.failed == (args.outcome is not None)):
        raise ConfigError("tell: give a CSV of results, or --parameters with either --outcome or --failed")
    if args.constraints is not None and (not single or args.failed):
        raise ConfigError("tell: --constraints goes with --parameters and --outcome; in a CSV they are columns")
    before = study.trials
    if args.results:
        sheet = read_sheet(args.results, study.description.numeric)  # once: a pipe has nothing left after that
        told = study.tell_file(sheet, args.correct)
        if sheet.layout and not sheet.layout.usual:
            _say(f"{args.results}: {sheet.layout.said}")
        rows = [number for number, _ in sheet.rows]
        remarks = unused(sheet, study.description, dict(zip(rows, (one["parameters"] for one in told), strict=True)))
        remarks += _not_finite(sheet, study.description.outcome, args.results)
    else:
        measured = cast(
            dict[str, float], options.json_object("--constraints", args.constraints or "{}", '{"memory_gb": 6.5}')
        )
        parameters = _parameters(args.parameters)
        told = [study.tell(parameters, args.outcome, args.correct, measured)]
        rows, remarks = [], _idle(parameters, told[0]["parameters"])
        if args.outcome is not None and not math.isfinite(args.outcome):
            remarks.append(f"outcome {args.outcome:g} is not finite: the trial was recorded as failed")
    trials = study.trials
    claimed = {one["number"] for one in before if one["state"] == "running"}
    ended_none = [] if args.correct else [one for one in told if one["number"] not in claimed]
    for remark in [*remarks, *listing.unended(ended_none, trials, study)]:
        _say(f"note: {remark}")
    known = "" if args.correct else _known(told, {one["number"] for one in before} - claimed, rows)
    done, best = sum(trial["state"] != "running" for trial in trials), best_of(trials, study.description)
    return [
        f"{'corrected' if args.correct else 'told'} {len(told)}{known}; study '{study.name}' has "
        f"{several(done, 'finished trial')}{listing.infeasible(trials, study.description)}",
        *([f"best {study.description.outcome}: {best['outcome']:g} at {best['parameters']}"] if best else []),
    ]


def _known(told: "list[StudyTrial]", finished: set[int], rows: list[int]) -> str:
    """Say how many of the told results are trials that had finished before (their numbers are `finished`), or that
    stand above in the same file. `rows`: their rows there, none for a single result."""
    from metabo.data.history.account import listed

    places, seen = [], set(finished)
    for place, one in enumerate(told):
        if one["number"] in seen:
            places.append(place)
        seen.add(one["number"])
    if not places:
        return ""
    if not rows:
        return ", which was known already"
    were = "was" if len(places) == 1 else "were"
    return f", of which {len(places)} {were} known already ({listed([rows[place] for place in places])})"


def _not_finite(sheet: "Sheet", outcome: str, where: Path) -> list[str]:
    """Return a remark on rows whose outcome is not finite and is not called failed either."""
    from metabo.data.history.read import unsuccessful

    place = sheet.header.index(outcome)
    found = [(number, cells[place]) for number, cells in sheet.rows if cells[place].lower() not in SAID]
    rows = [number for number, cell in found if math.isnan(finite(cell))]
    return [f"{where}: {unsuccessful(rows)}"] if rows else []


def _idle(given: "Configuration", read: "Configuration") -> list[str]:
    """Return a remark for each parameter that was given a value and is not in use."""
    return [
        f"--parameters has a value of '{name}', which is not in use there ('when' in space.yaml): it is not read"
        for name, value in given.items()
        if value is not None and read[name] is None
    ]


def _parameters(text: str) -> "Configuration":
    return cast("Configuration", options.json_object("--parameters", text, '{"learning_rate": 0.01}'))


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
