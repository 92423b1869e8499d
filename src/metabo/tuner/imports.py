"""The command `metabo import`: turn past trials that are kept elsewhere into a history and a draft of its
``space.yaml``."""

import shlex
import sys
from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING

from metabo.data.history.goals import GOALS, goal_of
from metabo.errors import ConfigError, DataError, printable

if TYPE_CHECKING:
    from metabo.data.imports.draft import Draft
    from metabo.data.imports.imported import Imported

OUT = "past"


def add(commands: "_SubParsersAction[ArgumentParser]") -> None:
    """Add the command to the command line."""
    importing = commands.add_parser(
        "import",
        help="make a history of past trials kept elsewhere",
        description="Write a history and a draft of its space.yaml from past trials that are kept elsewhere, and say "
        "what became of each study.",
    )
    kinds = importing.add_subparsers(dest="kind", required=True, help="where the past trials are")
    optuna = kinds.add_parser(
        "optuna",
        help="the studies of an Optuna storage",
        description="Read studies of an Optuna storage, which is not changed.",
    )
    optuna.add_argument("storage", help="sqlite:///past.db, an SQLite or journal file, or the URL of a database")
    optuna.add_argument("--only", nargs="+", default=[], metavar="STUDY", help="only these studies")
    optuna.add_argument("--without", nargs="+", default=[], metavar="STUDY", help="all studies but these")
    optuna.add_argument("--goal", type=goal_of, choices=GOALS, help="today's goal, if not that of most studies")
    optuna.add_argument(
        "--pruned", choices=("partial", "failed", "drop"), default="partial", help="what pruned trials count as"
    )
    _common(optuna)

    mlflow = kinds.add_parser(
        "mlflow", help="runs of MLflow, exported as CSV", description="Read runs of MLflow from an exported CSV."
    )
    mlflow.add_argument("table", nargs="+", type=Path, help="CSV of mlflow.search_runs or `mlflow experiments csv`")
    mlflow.add_argument("--outcome", help="the metric that was tuned, if there are several")
    mlflow.add_argument(
        "--goal", type=goal_of, choices=GOALS, required=True, help="whether the metric is minimised or maximised"
    )
    mlflow.add_argument("--by", metavar="COLUMN", help="what names the study of a run (default: the experiment)")
    mlflow.add_argument("--ignore", nargs="+", default=[], metavar="PARAMETER", help="parameters that were not tuned")
    mlflow.add_argument(
        "--killed", choices=("drop", "failed"), default="drop", help="what runs that were killed count as"
    )
    _common(mlflow)

    table = kinds.add_parser(
        "csv", help="draft the space.yaml of a CSV", description="Draft the space.yaml of a CSV of past trials."
    )
    table.add_argument("table", type=Path, help="CSV of past trials; it stays where it is")
    table.add_argument("--study", required=True, metavar="COLUMN", help="the column that names the study of a trial")
    table.add_argument("--outcome", required=True, metavar="COLUMN", help="the column with the outcome")
    table.add_argument(
        "--goal", type=goal_of, choices=GOALS, required=True, help="whether the outcome is minimised or maximised"
    )
    table.add_argument("--ignore", nargs="+", default=[], metavar="COLUMN", help="columns that were not tuned")
    _common(table)


def _common(parser: ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path(OUT), help=f"folder of the files made (default: {OUT})")
    parser.add_argument("--to", type=Path, help="learn a prior at once, into this folder, as metabo pretrain does")
    parser.add_argument("--steps", type=int, help="with --to: training steps, if not the method's own")
    parser.add_argument("--skip-bad-rows", action="store_true", help="with --to: leave out rows with a fault")


def run(args: Namespace) -> tuple[list[str], Path, Path]:
    """Import, and return the lines of standard output, and the history and its ``space.yaml``.

    Raises DataError or ConfigError for trials that cannot be read, and for a file in `--out` that exists with other
    content.
    """
    from metabo.data.history import account
    from metabo.data.imports import draft
    from metabo.tuner.drafts import write_new

    space, history = args.out / "space.yaml", args.out / "history.csv"
    history = args.table if args.kind == "csv" else history
    named = [shlex.quote(str(one)) for one in (history, space, args.to or "my_study")]
    learn = "metabo pretrain {} --space {} --to {}".format(*named)
    learn += f" --steps {args.steps}" if args.steps is not None else ""
    learn += " --skip-bad-rows" if args.skip_bad_rows else ""
    otherwise = "choose another folder with --out"
    if history.exists():
        otherwise += f"; if you edited it, learn from it as it is: {learn}"
    if args.kind == "csv":
        drafted, lines = _of_table(args), []
        write_new({space: draft.text(drafted)}, otherwise)
    else:
        found = _found(args)
        drafted = found.draft
        for remark in found.remarks:
            _say(f"note: {remark}")
        lines = account.lines(found.accounts, {"optuna": "trial", "mlflow": "row"}[args.kind])
        write_new({history: found.csv, space: draft.text(drafted)}, otherwise)
        studies = account.several(sum(one["used"] > 0 for one in found.accounts), "study", "studies")
        lines.append(f"{history}: {account.several(len(found.rows), 'trial')} of {studies}")
    parameters = account.several(len(drafted.parameters), "parameter")
    lines.append(f"{space}: {parameters}; look through it, mostly where it says 'check'")
    if args.to is None:
        fault = _fault(history, space)
        lines += [f"before metabo pretrain: {fault}"] if fault else []
        lines.append(f"next: {learn}")
    return lines, history, space


def _found(args: Namespace) -> "Imported":
    if args.kind == "mlflow":
        from metabo.data.imports import mlflow_runs

        return mlflow_runs.imported(
            args.table, args.goal, _name(args.out), args.outcome, args.by, args.ignore, args.killed
        )
    from metabo.data.imports import optuna_storage, optuna_studies

    studies = optuna_storage.read(args.storage, args.only, args.without)
    where = optuna_storage.called(args.storage)
    return optuna_studies.imported(studies, where, _name(args.out), args.goal, args.pruned)


def _of_table(args: Namespace) -> "Draft":
    from metabo.data.csv_layout import read_sheet
    from metabo.data.imports.imported import draft_of

    sheet = read_sheet(args.table, text=args.ignore)
    if sheet.layout:
        _say(f"note: {args.table}: {sheet.layout.said}")
    ignore = dict.fromkeys(args.ignore, "as asked for with --ignore")
    return draft_of([sheet], args.study, args.outcome, args.goal, ignore, _name(args.out))


def _name(out: Path) -> str:
    """Return the name of the space, which is that of the folder."""
    return out.resolve().name or OUT


def _fault(history: Path, space: Path) -> str:
    """Return what keeps the files from being used as they are, or "" if nothing does."""
    from metabo.data.history.past import read_all

    try:
        read_all([history], [space])
    except (DataError, ConfigError) as error:
        return str(error)
    return ""


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
