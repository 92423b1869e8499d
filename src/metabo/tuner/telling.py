"""The command `metabo tell`: record outcomes, from a CSV or as options, and say what they changed."""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, cast

from metabo.errors import ConfigError, printable
from metabo.tuner import options

if TYPE_CHECKING:
    from metabo.data.history.description import Configuration


def tell(args: Namespace) -> list[str]:
    """Record the outcomes that the options give, and return lines on what the study has then; remarks go to standard
    error. Raises ConfigError for options that do not go together, and DataError for outcomes that cannot be used.
    """
    from metabo.data.csv_layout import read_sheet
    from metabo.tuner import listing
    from metabo.tuner.ledger import Ledger, best_of

    if args.folder.is_file():
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
    claimed = {one["number"] for one in study.trials if one["state"] == "running"}
    if args.results:
        sheet = read_sheet(args.results, study.description.numeric)  # once: a pipe has nothing left after that
        told = study.tell_file(sheet, args.correct)
        if sheet.layout and not sheet.layout.usual:
            _say(f"{args.results}: {sheet.layout.said}")
    else:
        measured = cast(
            dict[str, float], options.json_object("--constraints", args.constraints or "{}", '{"memory_gb": 6.5}')
        )
        told = [study.tell(_parameters(args.parameters), args.outcome, args.correct, measured)]
    trials = study.trials
    ended_none = [] if args.correct else [one for one in told if one["number"] not in claimed]
    for remark in listing.unended(ended_none, trials, study):
        _say(f"note: {remark}")
    done, best = sum(trial["state"] != "running" for trial in trials), best_of(trials, study.description)
    return [
        f"{'corrected' if args.correct else 'told'} {len(told)}; study '{study.name}' has {done} finished trials"
        f"{listing.infeasible(trials, study.description)}",
        *([f"best {study.description.outcome}: {best['outcome']:g} at {best['parameters']}"] if best else []),
    ]


def _parameters(text: str) -> "Configuration":
    return cast("Configuration", options.json_object("--parameters", text, '{"learning_rate": 0.01}'))


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
