"""Speed-ups: how many times fewer iterations a method needs to pass the final regret of another (hyperbo §7.4.1).

The paper's words: "the median BO iterations needed for the best alternative to reach its lowest regret divided by the
median BO iterations needed for HyperBO to surpass that best alternative". Per task, with medians over single runs:

- a*: the alternative with the lowest median final regret (ties: the one that reaches it first, then table order);
- rho = median final regret of a*;
- t_a = median of the first iteration at which a run of a* has its final regret;
- t_H = median of the first iteration at which a run of the method has r_t < rho (r_t <= rho when rho is 0, which
  nothing can pass); infinite for runs that never do;
- speed-up = t_a / t_H.

A method that never passes a* in at least half of its runs has t_H = inf and speed-up 0. Such a task therefore counts in
the mean and against every "at least x times" share, because leaving it out would flatter the method.
"""

import numpy as np
import pandas as pd

from metabo.metrics.runs import Runs, repetitions


def first_time(reached: np.ndarray) -> np.ndarray:
    """Return the 1-based index of the first True along the last axis, inf where there is none."""
    return np.where(reached.any(axis=-1), np.argmax(reached, axis=-1) + 1.0, np.inf)


def speedups(runs: Runs, method: str, alternatives: list[str]) -> pd.DataFrame:
    """Compare one method with the best of the alternatives, task by task.

    Columns: task, method, alternative (a*), target (rho), t_alternative, t_method, speedup.
    Raises ConfigError if a method has no runs.
    """
    values = repetitions(runs.select([method, *alternatives]), "run")
    rows = []
    for k, task in enumerate(runs.tasks):
        options = []
        for name in alternatives:
            regret = values[name][:, k]
            time = float(np.median(first_time(regret == regret[:, -1:])))
            options.append((float(np.median(regret[:, -1])), time, name))
        target, t_alternative, best = min(options, key=lambda option: option[:2])
        regret = values[method][:, k]
        t_method = float(np.median(first_time(regret < target if target > 0 else regret <= target)))
        row = {"task": task, "method": method, "alternative": best, "target": target}
        rows.append({**row, "t_alternative": t_alternative, "t_method": t_method, "speedup": t_alternative / t_method})
    return pd.DataFrame(rows)


def speedup_summary(per_task: pd.DataFrame, factors: list[float]) -> dict[str, float]:
    """Return the number of tasks, mean and quartiles of the speed-up over them, the share in which the method never
    passes the alternative, and the share with at least each factor."""
    s = per_task["speedup"].to_numpy()
    low, median, high = np.percentile(s, [25, 50, 75])
    summary = {"tasks": float(len(s)), "mean": float(s.mean()), "median": float(median)}
    summary |= {"lower quartile": float(low), "upper quartile": float(high)}
    summary["share never passed"] = float(np.isinf(per_task["t_method"]).mean())
    return summary | {f"share >= {factor:g}x": float((s >= factor).mean()) for factor in factors}
