"""The commands for your own data: `metabo pretrain`, `suggest`, `tell`, `trials`, `show`, `release`, `compare`;
`import` is in `imports`."""

import json
import math
import os
import sys
import warnings
from argparse import ArgumentParser, Namespace, _SubParsersAction
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from metabo.data.history.account import several
from metabo.errors import ConfigError, NumericsWarning, printable
from metabo.tuner import imports, options, telling

if TYPE_CHECKING:
    from metabo.data.history.description import Description
    from metabo.tuner.formats import PastSummary
    from metabo.tuner.ledger import Ledger
    from metabo.tuner.suggest import Suggestion

FOLDER = "metabo-study"
NAMES = ("pretrain", "suggest", "tell", "trials", "show", "release", "compare", "import")


def command(commands: "_SubParsersAction[ArgumentParser]", name: str, what: str) -> ArgumentParser:
    """Add one command. `what` it does is shown in the list of commands and above its own options."""
    return commands.add_parser(name, help=what, description=what[0].upper() + what[1:])


def add(commands: "_SubParsersAction[ArgumentParser]") -> None:
    """Add the commands to the command line."""
    pretrain = command(commands, "pretrain", "learn a prior from your past studies")
    _histories(pretrain)
    pretrain.add_argument("--target", type=Path, help="space.yaml of the space to tune, if not the first one")
    pretrain.add_argument("--to", type=Path, default=Path(FOLDER), help=f"folder of the study (default: {FOLDER})")
    pretrain.add_argument("--method", help="blend (default for one space), mphd (default for several), h_nll, ...")
    pretrain.add_argument("--steps", type=int, help="training steps, if not the method's own")
    pretrain.add_argument("--seed", type=int, default=0, help="seed of the training (default: 0)")

    suggest = command(commands, "suggest", "print configurations to try next, as CSV")
    _study(suggest, optional=True)
    suggest.add_argument("--count", type=int, default=1, help="how many to try at once")
    suggest.add_argument("--seed", type=int, default=0, help="seed of what methods draw at random (default: 0)")
    suggest.add_argument("--acquisition", help="e.g. ei, pi or ucb3, in place of the method's own")
    suggest.add_argument("--claim", action="store_true", help="record them as running: others then avoid them")
    suggest.add_argument("--by", help="who claims them, if not user and host")
    suggest.add_argument("--json", action="store_true", help="print JSON, with predictions")

    tell = command(commands, "tell", "record the outcomes of configurations")
    _study(tell)
    tell.add_argument("results", nargs="?", type=Path, help="CSV as printed by `metabo suggest`, outcomes filled in")
    tell.add_argument("--parameters", help="one configuration as JSON, e.g. '{\"learning_rate\": 0.01}'")
    tell.add_argument("--outcome", type=options.outcome, help="its outcome")
    tell.add_argument("--failed", action="store_true", help="the trial failed")
    tell.add_argument("--constraints", help="the values of its constraints as JSON, e.g. '{\"memory_gb\": 6.5}'")
    tell.add_argument("--correct", action="store_true", help="replace the outcomes recorded for these configurations")

    trials = command(commands, "trials", "list trials: done, failed, or running, with who claimed them and when")
    _study(trials, optional=True)
    states = ("running", "done", "failed", "infeasible")
    trials.add_argument("--state", choices=states, help="only these; infeasible: done trials that break a constraint")
    trials.add_argument(
        "--csv", action="store_true", help="print finished ones, or --state, as `metabo tell` reads them"
    )

    show = command(commands, "show", "write a page of a study: best so far, what matters, predictions, past studies")
    _study(show, optional=True)
    show.add_argument("--out", type=Path, help="the file (default: STUDY.html in the folder)")

    release = command(commands, "release", "give up claimed trials that will get no outcome")
    _study(release, optional=True)
    which = release.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="all running trials")
    which.add_argument("--claim", nargs="+", metavar="CLAIM", help="these claims, as `metabo trials` names them")
    which.add_argument("--older-than", metavar="AGE", help="those claimed longer ago, e.g. 90min, 2h or 3d")

    compare = command(commands, "compare", "compare all methods on your past studies, offline")
    _histories(compare)
    compare.add_argument("--scale", choices=("smoke", "laptop"), default="laptop", help="sizes: toy or real ones")
    compare.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="jobs at a time (default: all cores)")
    compare.add_argument("--dry-run", action="store_true", help="say what would run")

    imports.add(commands)


def _histories(parser: ArgumentParser) -> None:
    parser.add_argument("history", nargs="+", type=Path, help="CSV of past trials")
    parser.add_argument("--space", nargs="+", type=Path, required=True, help="space.yaml of each history, in order")
    parser.add_argument("--skip-bad-rows", action="store_true", help="leave out rows with a fault, and say which")


def _study(parser: ArgumentParser, optional: bool = False) -> None:
    said = f"folder that `metabo pretrain` made{f' (default: {FOLDER})' if optional else ''}"
    # It has no default value, so that `cli` can tell a folder that stands behind an option from one that is left out.
    parser.add_argument("folder", nargs="?" if optional else None, type=Path, help=said)
    parser.add_argument("--study", default="study", help="name of the study, if several share the prior")


def run(args: Namespace) -> list[str]:
    """Run one of the commands and return the lines of its standard output; remarks go to standard error.

    Raises MetaboError.
    """
    if args.command == "compare":
        from metabo.tuner import compare as comparison

        sizes = Namespace(scale=args.scale, cores=args.cores, dry_run=args.dry_run)
        return comparison.compare(args.history, args.space, args.skip_bad_rows, **vars(sizes))
    if args.command == "import":
        return _import(args)
    if getattr(args, "folder", ...) is None:
        args.folder = Path(FOLDER)
    if args.command in ("pretrain", "suggest", "show"):  # the others need no JAX
        _own_core()
    called = {"pretrain": _pretrain, "suggest": _suggest, "tell": telling.tell, "trials": _trials, "show": _show,
              "release": _release}  # fmt: skip
    return called[args.command](args)


def _import(args: Namespace) -> list[str]:
    """Import past trials and, if a folder is named, learn a prior from them at once."""
    lines, history, space = imports.run(args)
    if args.to is None:
        return lines
    print("\n".join(lines), flush=True)
    _own_core()
    options = {"target": None, "method": None, "seed": 0, "steps": args.steps, "skip_bad_rows": args.skip_bad_rows}
    return _pretrain(Namespace(history=[history], space=[space], to=args.to, **options))


def _own_core() -> None:
    """Pin a core before JAX is imported, and keep its compiled programs in the user's cache."""
    from metabo.compute import cores

    if "jax" not in sys.modules:  # in a notebook or a test it may be imported already
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(home / "metabo" / "jax"))
        cores.own_cores(threads=1, gpu=0)


def _pretrain(args: Namespace) -> list[str]:
    from metabo.tuner.study import pretrain

    _say("reading the history and learning a prior; this may take a minute ...")
    study = pretrain(
        args.history, args.space, args.to, target=args.target, method=args.method, seed=args.seed, steps=args.steps,
        skip_bad_rows=args.skip_bad_rows,
    )  # fmt: skip
    for remark in study.record["remarks"]:
        _say(f"note: {remark}")
    lines = [line for past in study.record["past"] for line in _past(past)]
    folder, method = study.folder, study.record["spec"]["method"]
    if method == "blend":
        lines.append(f"outcomes: the model sees the ranks of '{study.description.outcome}' within each past study")
    elif scale := study.record["scale"]:
        lines.append(f"outcomes: {_outcomes(study.description, scale)}")
    return [
        *lines,
        f"{folder}: prior of {method} is ready; next: metabo suggest {quote(str(folder))} --count 3 > todo.csv",
    ]


def _past(past: "PastSummary") -> list[str]:
    from metabo.data.history import account

    layout = f" ({past['layout']})" if past["layout"] else ""
    trials, studies = several(past["trials"], "trial"), several(past["studies"], "past study", "past studies")
    first = f"{past['history']}: {trials} of {studies}{layout}"
    return [first, *account.lines(past["accounts"])]


def _outcomes(description: "Description", scale: dict[str, float]) -> str:
    seen = f"log({description.outcome})" if description.log else description.outcome
    sign = "" if description.maximise else "-"
    return f"the model sees ({sign}{seen} - {scale['centre']:.4g}) / {scale['spread']:.4g}, to be maximised"


def _suggest(args: Namespace) -> list[str]:
    from metabo.tuner.study import Study

    if args.by is not None and not args.claim:
        raise ConfigError("suggest: --by says who claims, so it needs --claim; add it, or leave --by out")
    study = Study(args.folder, args.study)
    if not args.claim:  # a claim says so itself
        _say_if_new(study)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NumericsWarning)
        found = study.suggest(args.count, args.seed, args.claim, args.by, args.acquisition)
    for one in caught:
        if issubclass(one.category, NumericsWarning):
            _say(f"warning: {one.message}")
        else:
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)
    if args.json:
        return [json.dumps([_as_json(one) for one in found], indent=1)]
    for one in found:
        if math.isfinite(one.median):
            _say(f"predicted {study.description.outcome}: {one.median:.4g} (90 %: {one.low:.4g} to {one.high:.4g})")
    return _csv(study.description, found)


def _as_json(suggestion: "Suggestion") -> dict[str, object]:
    numbers = {name: getattr(suggestion, name) for name in ("median", "low", "high")}
    return {
        "parameters": suggestion.configuration,
        "predicted": numbers if math.isfinite(suggestion.median) else None,
    }


def _csv(description: "Description", found: list["Suggestion"]) -> list[str]:
    """Lay out suggestions as a CSV with empty constraints and outcome, to be filled in."""
    from metabo.tuner import listing

    return listing.table(description, [(one.configuration, []) for one in found])


def _trials(args: Namespace) -> list[str]:
    from metabo.tuner import listing
    from metabo.tuner.ledger import Ledger

    study = Ledger(args.folder, args.study)
    return listing.to_tell(study, args.state) if args.csv else listing.listed(study, args.state)


def _show(args: Namespace) -> list[str]:
    from metabo.tuner import store
    from metabo.tuner.page import facts, html
    from metabo.tuner.study import Study

    study = Study(args.folder, args.study)
    _say_if_new(study)
    path = args.out or study.folder / f"{study.name}.html"
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder; name a file with --out, e.g. {path / 'page.html'}")
    trials = study.trials
    shown = html.page(study.name, study.record, study.description, trials, facts.facts_of(study.prior, trials))
    store.write_page(path, shown)
    return [f"{path}: {several(len(trials), 'trial')}; open it in a browser"]


def _release(args: Namespace) -> list[str]:
    from metabo.tuner import listing
    from metabo.tuner.ledger import Ledger

    study = Ledger(args.folder, args.study)
    _say_if_new(study)
    older = listing.age_in(args.older_than) if args.older_than is not None else None
    gone = study.release(args.claim, older)
    left = sum(trial["state"] == "running" for trial in study.trials)
    shown = listing.lines(gone, study.description, datetime.now(UTC))
    return [f"released {len(gone)}; study '{study.name}' has {several(left, 'running trial')}", *shown]


def _say_if_new(study: "Ledger") -> None:
    if said := study.newness():
        _say(f"note: {said}")


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
