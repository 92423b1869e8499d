"""The results of the tuner's benchmark: the mean regret of each method, and the default's difference to each rival.

python benchmarks/tuner/report.py held_out --out results.csv
"""

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

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


def difference(found: Curves, history: str, rival: str, at: int) -> tuple[int, float, float, float, int, int]:
    """Return problems, mean of default - rival, its 95 % interval, and how many problems the default wins and loses."""
    ours, theirs = means(found, "default", history), means(found, rival, history)
    gaps = []
    for problem in ours.keys() & theirs.keys():
        seeds = ours[problem].keys() & theirs[problem].keys()
        if seeds:
            gaps.append(np.mean([ours[problem][s][at - 1] - theirs[problem][s][at - 1] for s in seeds]))
    if len(gaps) < 2:
        return len(gaps), np.nan, np.nan, np.nan, 0, 0
    middle, half = np.mean(gaps), stats.t.ppf(0.975, len(gaps) - 1) * np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    wins, losses = int(np.sum(np.array(gaps) < -0.005)), int(np.sum(np.array(gaps) > 0.005))
    return len(gaps), middle, middle - half, middle + half, wins, losses


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
                n, middle, low, high, wins, losses = difference(found, history, rival, at)
                if n > 1:
                    shown.append(f"@{at} {middle:+.3f} [{low:+.3f}, {high:+.3f}] {wins}:{losses}")
            if shown:
                print(f"  {rival:13s} {'   '.join(shown)}")
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
