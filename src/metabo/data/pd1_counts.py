"""The PD1 counts that the paper (hyperbo §7.1, D.5) and one independent reader of the archive state."""

import numpy as np

from metabo.data.counts import count, repeated_inputs
from metabo.data.pd1_columns import Trials
from metabo.tasks.facts import Count
from metabo.tasks.task import Task

ABOUT = 0.2  # tolerance of the numbers that the paper gives as rough


def report(
    trials: Trials,
    tasks: dict[str, Task],
    kept: dict[str, np.ndarray],
    never_test: frozenset[str],
    published: bool = True,
) -> list[Count]:
    """Count, and compare with what is stated. `kept`: rows by divergence rule.

    Not `published`: another archive in PD1's format, about which nothing is stated.
    """
    lines = _report(trials, tasks, kept, never_test)
    return lines if published else [count(line.name, line.found) for line in lines]


def _report(
    trials: Trials, tasks: dict[str, Task], kept: dict[str, np.ndarray], never_test: frozenset[str]
) -> list[Count]:
    names = list(tasks)
    tested = [name for name in names if name not in never_test]
    per_task = {name: trials.task == name for name in names}
    matched = [int((per_task[n] & trials.matched).sum()) for n in tested]
    unmatched = [int((per_task[n] & ~trials.matched).sum()) for n in tested]
    small = [len(tasks[n].y) for n in never_test if n.split(",")[1] == "imagenet"]
    pools = [len(tasks[n].y) for n in tested]
    distinct = [len(np.unique(tasks[n].x, axis=0)) for n in tested]
    no_value = ~np.isfinite(trials.error)
    lines = [
        count("tasks", len(names), 24),
        count("test tasks", len(tested), 23),
        count("evaluations (rows)", len(trials.error), 50_000, ABOUT),
        count("matched rows per test task (median)", float(np.median(matched)), 500, ABOUT),
        count("unmatched rows per test task (median)", float(np.median(unmatched)), 1500, ABOUT),
        count("points of ImageNet ResNet50 1024 (training only)", sum(small), 100, ABOUT),
        count(
            "matched rows that diverged without a value",
            int((trials.matched & no_value & (trials.status == "diverged")).sum()),
            1348,
        ),
        count("(task, configuration) pairs in both phases", _in_both_phases(trials), 2277),
        count("points of the smallest test task", min(pools), 1666),
        count("points of the largest test task", max(pools), 3084),
        count("distinct inputs of the smallest test task", min(distinct), 1559),
        count("repeated inputs", repeated_inputs(tasks)),
    ]
    for rule, mask in kept.items():
        lines.append(count(f"rows dropped by divergence rule '{rule}'", int((~mask).sum())))
    return lines + _shared(trials, kept, names, tested)


def _in_both_phases(trials: Trials) -> int:
    """Count the matched (task, configuration) pairs that occur in phase 0 and in phase 1."""
    pairs = [set(), set()]
    for row in np.flatnonzero(trials.matched & np.isfinite(trials.raw).all(axis=1)):
        pairs[int(trials.phase[row])].add((trials.task[row], *trials.raw[row]))
    return len(pairs[0] & pairs[1])


def _shared(trials: Trials, kept: dict[str, np.ndarray], names: list[str], tested: list[str]) -> list[Count]:
    """Count matched points with a value in every task: 242 by the paper, for one of these rules, phases, task sets."""
    lines = []
    for rule, mask in kept.items():
        for label, chosen in (("all tasks", names), ("test tasks", tested)):
            found = [_common(trials, mask & (trials.phase == phase), chosen) for phase in (0, 1)]
            where = f"matched points finite in {label}, rule '{rule}'"
            lines += [count(f"{where}, phase {phase}", n, 242) for phase, n in enumerate(found)]
            lines.append(count(f"{where}, sum of phases", sum(found), 242))
            lines.append(count(f"{where}, either phase", _common(trials, mask, chosen), 242))
    return lines


def _common(trials: Trials, mask: np.ndarray, names: list[str]) -> int:
    """Count the matched points that all of `names` share, leaving out tasks without any matched row in `mask`."""
    chosen = mask & trials.matched
    sets = [{tuple(v) for v in trials.raw[chosen & (trials.task == name)]} for name in names]
    sets = [points for points in sets if points]
    return len(set.intersection(*sets)) if sets else 0
