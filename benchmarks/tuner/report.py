"""The results of the tuner's benchmark: the mean regret of each method, and the default's difference to each rival.

python benchmarks/tuner/report.py held_out --out results.csv
"""

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import worlds
from run import ALONE
from scipy import stats
from worlds import CACHE, PLAN

WORST = 10.0
"""A regret above this counts as this."""
Curves = dict[tuple[str, str], dict[tuple[str, str], dict[int, np.ndarray]]]
"""By (method, history), then problem, then seed: the regret after each evaluation."""


def curves(part: str) -> tuple[Curves, dict[str, float]]:
    """Return the regret of all runs that there are, and the CPU seconds of a suggestion for each method."""
    found: Curves = defaultdict(lambda: defaultdict(dict))
    cpu: dict[str, list[float]] = defaultdict(list)
    for name, entry in PLAN[part]["spaces"].items():
        one = worlds.world(name)
        for task in entry["targets"]:
            least, median = worlds.references(one, task)
            for path in (CACHE / "runs").glob(f"{name}-{task}-*.json"):
                method, history, seed = path.stem[len(f"{name}-{task}-") :].split("-")
                content = json.loads(path.read_text())
                y = worlds.oriented(one.description, np.array(content["outcomes"], dtype=np.float64))
                y = np.minimum.accumulate(np.where(np.isfinite(y), y, np.inf))
                found[method, "" if history == "none" else history][name, task][int(seed)] = np.minimum(
                    (y - least) / (median - least), WORST
                )
                cpu[method].append(content["cpu_s"])
    return found, {method: float(np.median(seconds)) for method, seconds in cpu.items()}


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


def bars(found: Curves) -> Iterator[str]:
    """Yield each bar of problems.yaml with what was found: met or missed."""
    related, apart = PLAN["bars"]["related"], PLAN["bars"]["unrelated"]
    for history in related["histories"]:
        for rival in related["rivals"]:
            for at in [*related["upper_below_zero_at"], *related["low_not_above_zero_at"]]:
                one = difference(found, history, rival, at)
                low, high = one.mean - one.half, one.mean + one.half
                met = high < 0 if at in related["upper_below_zero_at"] else low <= 0
                shown = f"{one.mean:+.3f} [{low:+.3f}, {high:+.3f}], {one.problems} problems"
                yield f"{history},{rival},{at},{'met' if met else 'missed'},{shown}"
    for history in apart["histories"]:
        for at in apart["at"]:
            one = difference(found, history, apart["rival"], at)
            n = one.problems
            upper = one.mean + one.half * stats.t.ppf(0.95, n - 1) / stats.t.ppf(0.975, n - 1)
            met = "met" if upper <= apart["one_sided_upper_at_most"] else "missed"
            yield f"{history},{apart['rival']},{at},{met},{one.mean:+.3f} (one-sided upper {upper:+.3f}), {n} problems"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("development", "held_out"))
    parser.add_argument("--out", type=Path, help="CSV of the means, by problem")
    args = parser.parse_args()
    found, cpu = curves(args.part)
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
