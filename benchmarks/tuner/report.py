"""The results of the tuner's benchmark: the mean regret of each method, and the default's difference to each rival.

python benchmarks/tuner/report.py held_out --out results.csv
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from runs import ALONE, Played, References, Run, cached, planned, record, record_references, recorded, references
from scipy import stats
from worlds import PLAN, on_scale

WORST = 10.0
"""A regret above this counts as this."""
Curves = dict[tuple[str, str], dict[tuple[str, str], dict[int, np.ndarray]]]
"""By (method, history), then problem, then seed: the regret after each evaluation."""


def curves(played: Mapping[Run, Played], known: Mapping[tuple[str, str], References]) -> Curves:
    """Return the regret of runs after each evaluation, at most `WORST`."""
    outcomes: dict[tuple[str, str], dict[Run, np.ndarray]] = defaultdict(dict)
    for run, one in played.items():
        y = on_scale(known[run.space, run.task].scale, np.array(one.outcomes, dtype=np.float64))
        outcomes[run.space, run.task][run] = np.where(np.isfinite(y), y, np.inf)
    found: Curves = defaultdict(lambda: defaultdict(dict))
    for problem, of_runs in outcomes.items():
        least = min(known[problem].least, *(float(y.min()) for y in of_runs.values()))
        for run, y in of_runs.items():
            regret = (np.minimum.accumulate(y) - least) / (known[problem].median - least)
            found[run.method, run.history][problem][run.seed] = np.minimum(regret, WORST)
    return found


def costs(played: Mapping[Run, Played]) -> dict[str, float]:
    """Return the CPU seconds of a suggestion of each method: the median over its runs."""
    spent: dict[str, list[float]] = defaultdict(list)
    for run, one in played.items():
        spent[run.method].append(one.cpu_s)
    return {method: float(np.median(seconds)) for method, seconds in spent.items()}


def means(found: Curves, method: str, history: str) -> dict[tuple[str, str], dict[int, np.ndarray]]:
    return found.get((method, "" if method in ALONE else history), {})


class Difference(NamedTuple):
    """Default - rival over some problems: their number, the mean, half of its 95 % interval with problems as clusters
    and with spaces as clusters (the problems of one share their past studies), problems won and lost."""

    problems: int
    mean: float
    half: float
    half_spaces: float
    wins: int
    losses: int


def difference(found: Curves, history: str, rival: str, at: int, spaces: Collection[str] | None = None) -> Difference:
    """Compare the default with a rival after `at` evaluations, on the problems of some spaces (None: all)."""
    ours, theirs = means(found, "default", history), means(found, rival, history)
    gaps: dict[str, list[float]] = defaultdict(list)
    for space, task in sorted(ours.keys() & theirs.keys()):
        seeds = ours[space, task].keys() & theirs[space, task].keys()
        if seeds and (spaces is None or space in spaces):
            pairs = [ours[space, task][s][at - 1] - theirs[space, task][s][at - 1] for s in seeds]
            gaps[space].append(float(np.mean(pairs)))
    every = np.array([gap for of_space in gaps.values() for gap in of_space])
    by_space = np.array([np.mean(of_space) for of_space in gaps.values()])
    middle = float(every.mean()) if len(every) else np.nan
    halves = half_of(every), half_of(by_space)
    return Difference(len(every), middle, *halves, int(np.sum(every < -0.005)), int(np.sum(every > 0.005)))


def half_of(values: np.ndarray) -> float:
    """Return half of the 95 % interval of a mean by Student's t; NaN for fewer than two values."""
    n = len(values)
    return float(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.nan


def bar_of(found: Curves, history: str, rival: str, at: int) -> bool:
    """Tell whether the bar of problems.yaml for related histories is met against a rival after `at` evaluations."""
    one, plan = difference(found, history, rival, at), PLAN["bars"]["related"]
    return bool(one.mean + one.half < 0 if at in plan["upper_below_zero_at"] else one.mean - one.half <= 0)


def upper(one: Difference) -> float:
    """Return the upper end of the one-sided 95 % interval of a difference, with problems as clusters."""
    n = one.problems
    return float(one.mean + one.half * stats.t.ppf(0.95, n - 1) / stats.t.ppf(0.975, n - 1))


def bars(found: Curves) -> Iterator[str]:
    """Yield each bar of problems.yaml with what was found: met or missed."""
    related, apart = PLAN["bars"]["related"], PLAN["bars"]["unrelated"]
    for history in related["histories"]:
        for rival in related["rivals"]:
            for at in [*related["upper_below_zero_at"], *related["low_not_above_zero_at"]]:
                one = difference(found, history, rival, at)
                shown = f"{one.mean:+.3f} [{one.mean - one.half:+.3f}, {one.mean + one.half:+.3f}]"
                met = "met" if bar_of(found, history, rival, at) else "missed"
                yield f"{history},{rival},{at},{met},{shown}, {one.problems} problems"
    for history in apart["histories"]:
        for at in apart["at"]:
            one = difference(found, history, apart["rival"], at)
            met = "met" if upper(one) <= apart["one_sided_upper_at_most"] else "missed"
            shown = f"{one.mean:+.3f} (one-sided upper {upper(one):+.3f}), {one.problems} problems"
            yield f"{history},{apart['rival']},{at},{met},{shown}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("development", "held_out"))
    parser.add_argument("--out", type=Path, help="CSV of the means, by problem")
    parser.add_argument("--record", action="store_true", help="keep the runs of the cache in results/runs.csv")
    args = parser.parse_args()
    if args.record and args.part != "held_out":
        parser.error("--record keeps held-out runs alone: those of development would replace them")
    asked = list(planned(args.part, PLAN["methods"], list(PLAN["histories"]), PLAN[args.part]["seeds"]))
    kept = recorded() if args.part == "held_out" else {}
    played = cached(one for one in asked if one not in kept) | {one: kept[one] for one in asked if one in kept}
    known = references(args.part)
    if args.record:
        record(played)
        record_references(known)
    found, cpu = curves(played, known), costs(played)
    report = PLAN["report"]
    for history in PLAN["histories"]:
        print(f"\n{history}: mean regret after {', '.join(map(str, report))} evaluations, CPU ms of a suggestion")
        for method in PLAN["methods"]:
            by_problem = means(found, method, history)
            if by_problem:
                of = np.mean([np.mean(list(seeds.values()), axis=0) for seeds in by_problem.values()], axis=0)
                runs = sum(map(len, by_problem.values()))
                numbers = " ".join(f"{of[k - 1]:6.3f}" for k in report)
                print(f"  {method:13s} {numbers}  {1e3 * cpu[method]:7.1f}   ({len(by_problem)} problems, {runs} runs)")
        print("  default - rival (95 % interval; problems won:lost)")
        for rival in PLAN["methods"][1:]:
            shown = []
            for at in (5, 10, 15):
                one = difference(found, history, rival, at)
                if one.problems > 1:
                    low, high = one.mean - one.half, one.mean + one.half
                    spaces = f"spaces ±{one.half_spaces:.3f}"
                    shown.append(f"@{at} {one.mean:+.3f} [{low:+.3f}, {high:+.3f}] {one.wins}:{one.losses} {spaces}")
            if shown:
                print(f"  {rival:13s} {'   '.join(shown)}")
        for kind in ("known", "new"):
            spaces = [name for name, entry in PLAN[args.part]["spaces"].items() if entry.get("learner") == kind]
            parts = []
            for rival in PLAN["methods"][1:] if spaces else ():
                told = [difference(found, history, rival, at, spaces) for at in (5, 10, 15)]
                if all(one.problems > 1 for one in told):
                    parts.append(f"{rival} " + ", ".join(f"{one.mean:+.3f} ± {one.half:.3f}" for one in told))
            if parts:
                print(f"  of a {kind} learner, after 5, 10, 15: {'; '.join(parts)}")
    if args.part == "held_out":
        print("\nbars: history, rival, after, met or missed, difference", *bars(found), sep="\n")
    if args.out:
        with args.out.open("w", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["space", "task", "method", "history", "seeds", *(f"regret_{k}" for k in report), "cpu_ms"])
            for (method, history), problems in sorted(found.items()):
                for (space, task), seeds in sorted(problems.items()):
                    of = np.mean(list(seeds.values()), axis=0)
                    numbers = [f"{of[k - 1]:.4f}" for k in report]
                    writer.writerow([space, task, method, history, len(seeds), *numbers, f"{1e3 * cpu[method]:.1f}"])


if __name__ == "__main__":
    main()
