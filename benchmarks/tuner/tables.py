"""The tables of docs/own-data.md, from the recorded runs. A test compares them with the page.

python benchmarks/tuner/tables.py
"""

from collections.abc import Iterator

import numpy as np
from report import Curves, Difference, bar_of, costs, curves, difference, means, upper
from runs import ALONE, recorded, references
from worlds import PLAN

LABELS = {
    "default": "**this project's default**",
    "random": "random",
    "tpe": "TPE",
    "tpe_early": "TPE, 4 random trials",
    "gpsampler": "GPSampler",
    "gpsampler_early": "GPSampler, 4 random trials",
    "plain_gp": "plain GP (the default's own)",
    "cmaes_warm": "CMA-ES, started from the past",
    "tpe_enqueued": "TPE with past incumbents",
    "tpe_enqueued_early": "TPE with past incumbents, 4 random trials",
    "rgpe": "RGPE",
    "portfolio": "portfolio of past configurations",
    "h_nll_pi": "H-NLL and PI (the former default)",
}
"""What methods are called on the page, in the order of its rows."""
SIZES = {
    "small": "small: 5 studies of 20 trials",
    "medium": "medium: 10 of 50",
    "large": "large: 20 of 100",
    "mixed": "mixed units: 5 of 20",
}
AT = (5, 10, 15)
KNOWN_RIVALS = ("random", "plain_gp", "tpe_early", "gpsampler_early", "tpe_enqueued_early", "portfolio")


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    return "\n".join([row(*head), f"|{'---|' * len(head)}", *(row(*one) for one in rows)])


def played(found: Curves, history: str) -> list[str]:
    """Return the methods that were run on all problems with a history."""
    problems = sum(len(one["targets"]) for one in PLAN["held_out"]["spaces"].values())
    return [method for method in LABELS if len(means(found, method, history)) == problems]


def middle(found: Curves, method: str, history: str, space: str | None = None) -> np.ndarray:
    """Return the mean regret after each evaluation: over the seeds of a problem, then over problems."""
    by_problem = means(found, method, history)
    chosen = [seeds for problem, seeds in by_problem.items() if space in (None, problem[0])]
    return np.mean([np.mean(list(seeds.values()), axis=0) for seeds in chosen], axis=0)


def listed(values: np.ndarray, at: tuple[int, ...]) -> str:
    return ", ".join(f"{values[k - 1]:.2f}" for k in at)


def regrets(found: Curves, spent: dict[str, float], history: str) -> str:
    """The mean regret of each method."""
    rows = [
        [LABELS[m], *(f"{middle(found, m, history)[k - 1]:.2f}" for k in PLAN["report"]), f"{1e3 * spent[m]:.0f}"]
        for m in played(found, history)
    ]
    return table(["method", *map(str, PLAN["report"]), "CPU ms"], rows)


def told(one: Difference) -> str:
    """Return a difference with its interval, half of that by spaces, and the problems won and lost."""
    low, high = one.mean - one.half, one.mean + one.half
    return f"{one.mean:+.2f} [{low:+.2f}, {high:+.2f}] ±{one.half_spaces:.2f} {one.wins}:{one.losses}"


def differences(found: Curves, history: str) -> str:
    """The default's difference to each rival."""
    rows = []
    for rival in played(found, history)[1:]:
        rows.append([LABELS[rival], *(told(difference(found, history, rival, at)) for at in AT)])
    return table(["rival", *(f"after {at}" for at in AT)], rows)


def learners(found: Curves, history: str) -> str:
    """The differences apart for learners that were known during development and for new ones."""
    spaces = PLAN["held_out"]["spaces"]
    kinds = {kind: [name for name, one in spaces.items() if one["learner"] == kind] for kind in ("known", "new")}
    number = {kind: sum(len(spaces[name]["targets"]) for name in names) for kind, names in kinds.items()}
    rows = []
    for rival in KNOWN_RIVALS:
        cells = []
        for names in kinds.values():
            found_at = [difference(found, history, rival, at, names) for at in AT]
            cells.append(", ".join(f"{one.mean:+.2f} ± {one.half:.2f}" for one in found_at))
        rows.append([LABELS[rival], *cells])
    head = ["rival", f"{number['known']} problems of a known learner: after 5, 10, 15", f"{number['new']} of a new one"]
    return table(head, rows)


def svc(found: Curves) -> str:
    """The problems of the SVC."""
    report, rows = tuple(PLAN["report"]), []
    for method in LABELS:
        cells = []
        for history in ("small", "medium"):
            there = any(problem[0] == "svc" for problem in means(found, method, history))
            shown = there and not (method in ALONE and history == "medium")
            cells.append(listed(middle(found, method, history, "svc"), report) if shown else "-")
        if cells != ["-", "-"]:
            rows.append([LABELS[method], *cells])
    return table(["method", "5 past studies of 20 trials", "10 of 50"], rows)


def sizes(found: Curves) -> str:
    """Larger histories, and studies in different units."""
    shown = ["default", "tpe_enqueued", "tpe_enqueued_early", "portfolio", "rgpe", "plain_gp"]
    rows = [
        [SIZES[history], *(listed(middle(found, method, history), AT) for method in shown)]
        for history in ("medium", "large", "mixed")
    ]
    return table(["history", "default after 5, 10, 15", *(LABELS[method] for method in shown[1:])], rows)


def bars(found: Curves) -> str:
    """Which of the bars of problems.yaml each rival's comparison meets."""
    plan = PLAN["bars"]["related"]
    rows = []
    for rival in plan["rivals"]:
        cells = []
        for history in plan["histories"]:
            missed = [at for at in AT if not bar_of(found, history, rival, at)]
            after = " and ".join(map(str, missed)) if len(missed) < len(AT) else "5, 10 and 15"
            cells.append(f"missed after {after}" if missed else "met")
        rows.append([LABELS[rival], *cells])
    return table(["rival", *(SIZES[history].partition(":")[0] for history in plan["histories"])], rows)


def worse(found: Curves) -> str:
    """The default's difference to a plain GP where the past misleads."""
    plan, rows = PLAN["bars"]["unrelated"], []
    for history in plan["histories"]:
        found_at = [difference(found, history, plan["rival"], at) for at in AT]
        rows.append([history, *map(told, found_at), ", ".join(f"{upper(one):.2f}" for one in found_at)])
    bar = plan["one_sided_upper_at_most"]
    head = ["history", *(f"after {at}" for at in AT), f"upper ends of one-sided 95 % intervals (bar: {bar})"]
    return table(head, rows)


def every() -> Iterator[str]:
    """Yield the tables in the order of the page."""
    runs = recorded()
    found = curves(runs, references("held_out"))
    yield regrets(found, costs(runs), "small")
    yield differences(found, "small")
    yield learners(found, "small")
    yield svc(found)
    yield sizes(found)
    yield bars(found)
    yield worse(found)


if __name__ == "__main__":
    print("\n\n".join(every()))
