"""What the priors of the crossed study were trained with: steps, by their sidecars, and task-rows (hyperbo_x01)."""

from collections.abc import Iterable

import pandas as pd

from metabo.artefacts import settings as sidecars
from metabo.errors import ConfigError, DataError
from metabo.papers.hyperbo.metrics.crossing import factors
from metabo.plan import registry, splits
from metabo.plan.runs import method_of
from metabo.records import sidecars as records
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.task import restrict

KEYS = ["learner", "method", "rows", "steps"]
COUNTS = ["number", "priors", "least", "most"]


def trained(paths: Iterable[str], benchmark: Benchmark) -> pd.DataFrame:
    """Return one row for every learner and level of steps: KEYS, optimiser, COUNTS, settings.

    All settings of candidates and acquisition of such a row have the same priors. `paths`: trajectory tables. `number`:
    pre-training steps (L-BFGS: the most that it may take), `priors`: pre-training seeds, `least` and `most`: task-rows
    that one prior sees (`task_rows`), over folds; missing where the sidecars of tables and priors do not say.
    `settings`: combinations of candidates and acquisition that were run. Raises DataError if these differ in their
    counts.
    """
    rows = []
    for run in sidecars.settings(paths).to_dict("records"):
        levels = factors(run["split"], method_of(run["method"]), run["acquisition"])
        row = {key: levels[key] for key in KEYS} | {"optimiser": run["optimiser"] or None}
        row |= {"number": run["steps"], "priors": run["prior_seeds"], "least": pd.NA, "most": pd.NA}
        known = run["record"] == "complete"
        if known or not registry.method(row["method"]).needs_matched:
            limit = records.of(run["prior"])["spec"]["pretrain"].get("matched_points", 0) if known else 0
            seen = task_rows(benchmark, run["split"], row["rows"] == "matched", limit)
            row |= {"least": min(seen), "most": max(seen)}
        rows.append(row)
    grouped = pd.DataFrame(rows).astype(dict.fromkeys(COUNTS, "Int64")).groupby(KEYS, sort=False)
    different = (grouped[COUNTS].nunique() > 1).any(axis=1)
    if different.any():
        learner, _, _, steps = different.idxmax()
        raise DataError(f"the priors of '{learner}', {steps} steps, were not all trained alike; run all again")
    return grouped.first().assign(settings=grouped.size()).reset_index()


def task_rows(benchmark: Benchmark, split: str, matched: bool, limit: int = 0) -> list[int]:
    """Return, for every fold of a split, the number of (training task, input) pairs that a prior is trained on.

    `matched`: those of the matched blocks of the fold's training tasks, of at most `limit` inputs of each block (0:
    all), instead of all rows. Raises ConfigError for a split that draws points or tasks.
    """
    past = splits.past(split)
    if past.points or past.tasks:
        raise ConfigError(f"split '{split}' draws points or tasks; its rows differ from seed to seed")
    folds = benchmark.split(past.base)
    if not matched:
        return [sum(len(benchmark.tasks[name].y) for name in fold.train) for fold in folds]
    blocks = [restrict(benchmark.matched, fold.train) for fold in folds]
    return [sum(min(len(b.x), limit or len(b.x)) * len(b.tasks) for b in of_fold) for of_fold in blocks]
