"""H-EKL, H-NLL and ABLR crossed: training rows x candidates x steps x acquisition x priors (hyperbo_x01).

Not in the paper. A cell is one combination of method, training rows, candidates, steps and acquisition; H-EKL reads
matched rows only, so that method and rows together are one factor, the learner. The prior is the unit of analysis:
prior seed p of two cells starts from the same weights, hence blocks of the analysis of variance and pairs of the
differences. Intervals over priors speak of this suite of tasks, those over folds of tasks of a new data set.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from metabo.errors import DataError, unknown
from metabo.metrics.inference import paired_difference
from metabo.metrics.runs import collect
from metabo.plan import data_sets, registry, splits
from metabo.plan.runs import method_of

SETTING = ["candidates", "steps", "acquisition"]
"""The factors that two learners have in common when they are compared."""
FACTORS = ["learner", "method", "rows", *SETTING]
COMPONENTS = ("tasks", "priors", "task x prior", "seeds")
AREA = "area"


@dataclass(frozen=True)
class Crossing:
    """`cells`: one row of FACTORS per cell; `values`: (cells, P priors, S BO seeds, K tasks, measures); `folds`: (K,)
    number of each task's fold, the tasks of which share their priors; `one_data_set`: nothing here speaks of a new
    one; `data_sets`: name of each task's, empty if unknown."""

    cells: pd.DataFrame
    values: Float[np.ndarray, "c p s k m"]
    measures: tuple[str, ...]
    tasks: tuple[str, ...]
    folds: Int[np.ndarray, " k"]
    one_data_set: bool = False
    data_sets: tuple[str, ...] = ()

    def repeats(self, measure: str) -> Float[np.ndarray, "c p"]:
        """Return each prior's mean over BO seeds and tasks."""
        return self.at(measure).mean(axis=(2, 3))

    def at(self, measure: str) -> Float[np.ndarray, "c p s k"]:
        """Return the values of one measure. Raises ConfigError for an unknown one."""
        if measure not in self.measures:
            raise unknown("measure", measure, self.measures)
        return self.values[..., self.measures.index(measure)]

    def select(self, chosen: Iterable[bool]) -> "Crossing":
        """Keep some of the cells."""
        keep = np.asarray(list(chosen))
        return replace(self, cells=self.cells[keep].reset_index(drop=True), values=self.values[keep])


def factors(split: str, method: str, acquisition: str) -> dict[str, str]:
    """Return the levels of FACTORS of a run: what its split and its method's registration say."""
    entry = registry.method(method)
    base = entry.variant_of or method
    rows = "matched" if entry.needs_matched else splits.past(split).rows
    return {
        "learner": f"{base}, {rows} points", "method": base, "rows": rows,
        "candidates": str(splits.entry(split).candidates),
        "steps": "more" if base == method else "fewer", "acquisition": acquisition,
    }  # fmt: skip


def cross(tables: Iterable[pd.DataFrame], iterations: Sequence[int], column: str = "simple_regret") -> Crossing:
    """Build the cells from trajectory tables, each of one method (unnamed by acquisition or split) on one split.

    Measures: the regret at each of `iterations`, and "area", its mean over all iterations. Raises DataError if tables
    differ in tasks, priors, BO seeds or iterations, or if a cell occurs twice.
    """
    cells, values, shapes, tasks, folds = [], [], set(), (), np.zeros(0, dtype=np.int64)
    alike, known = False, ()
    for table in tables:
        first = table.iloc[0]
        name, benchmark = method_of(str(first["method"])), str(first.get("benchmark", ""))
        sets = table["task"].map(data_sets.of_tasks(benchmark, table["task"].unique()))
        runs = collect(table.assign(method=name, data_set=sets), column)
        (array,) = runs.values.values()
        columns = {f"iteration {t}": array[..., runs.iterations == t] for t in iterations}
        columns[AREA] = array.mean(axis=-1, keepdims=True)
        shapes.add((array.shape, runs.tasks))
        if len(shapes) > 1:
            raise DataError(
                f"'{name}' on split '{first['split']}' has other tasks, priors, BO seeds or iterations than the tables "
                "before it; run all with the same settings"
            )
        cells.append(factors(str(first["split"]), name, str(first["acquisition"])))
        values.append(np.concatenate(list(columns.values()), axis=-1))
        tasks, folds, alike = runs.tasks, np.array(runs.folds), registry.one_data_set(benchmark)
        known = runs.data_sets
    measures = (*(f"iteration {t}" for t in iterations), AREA)
    listed = pd.DataFrame(cells, columns=FACTORS)
    if listed.duplicated().any():
        raise DataError(f"two tables of the same cell: {listed[listed.duplicated()].iloc[0].to_dict()}; give each once")
    return Crossing(listed, np.stack(values), measures, tasks, folds, alike, known)


def t_interval(repeats: Float[np.ndarray, "*c p"], level: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, low, high over the last axis (Student's t; NaN bounds for a single repetition)."""
    p = repeats.shape[-1]
    mean = np.asarray(repeats.mean(axis=-1))
    if p < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = t_distribution.ppf(0.5 + level / 2, p - 1) * repeats.std(axis=-1, ddof=1) / np.sqrt(p)
    return mean, np.asarray(mean - half), np.asarray(mean + half)


def cell_means(crossing: Crossing) -> pd.DataFrame:
    """Return FACTORS, measure, mean, low, high: mean over priors, BO seeds and tasks, 95 % interval over priors."""
    frames = []
    for measure in crossing.measures:
        mean, low, high = t_interval(crossing.repeats(measure))
        frames.append(crossing.cells.assign(measure=measure, mean=mean, low=low, high=high))
    return pd.concat(frames, ignore_index=True)


def components(values: Float[np.ndarray, "p s k"], folds: Int[np.ndarray, " k"] | None = None) -> dict[str, float]:
    """Estimate the variances of r_pks = m + a_k + b_{p,fold(k)} + c_pk + e_pks by the method of moments.

    Tasks k (a) are in folds; the priors of a fold (b) are shared by its tasks and independent of other folds; c is the
    task x prior interaction, e the BO seed. With mean squares pooled over folds (K tasks in F folds)

        E MS_seeds = var_e,  E MS_cp = var_e + S var_c,  E MS_priors = var_e + S var_c + S (K / F) var_b,

    and the sample variance of the K task means estimates var_a plus what the other parts add to it. Negative estimates
    become 0. NaN: not separable, then part of another component: one BO seed (in "task x prior"), one task in every
    fold (task x prior in "priors"), one prior (both in "tasks"). `folds`: one per task unless given.
    """
    p, s, k = values.shape
    folds = np.arange(k) if folds is None else folds
    by_prior = values[:, 0] + (values - values[:, :1]).mean(axis=1)  # equal runs have exactly no spread
    numbers, sizes = np.unique(folds, return_counts=True)
    seeds = ((values - by_prior[:, None]) ** 2).sum() / (p * k * (s - 1)) if s > 1 else 0.0
    by_task = by_prior[0] + (by_prior - by_prior[:1]).mean(axis=0)
    spread = by_prior - by_task
    fold_mean = np.stack([spread[:, folds == number].mean(axis=1) for number in numbers], axis=1)
    rest = spread - fold_mean[:, np.searchsorted(numbers, folds)]
    several, apart = k > len(numbers), p > 1
    crossed = (s * (rest**2).sum() / ((p - 1) * (k - len(numbers))) if several else seeds) if apart else 0.0
    shared = s * (sizes * fold_mean**2).sum() / ((p - 1) * len(numbers)) if apart else 0.0
    interaction = (crossed - seeds) / s
    priors = (shared - crossed) / (s * k / len(numbers))
    same_fold = (sizes * (sizes - 1)).sum() / (k * (k - 1)) if k > 1 else 0.0
    added = (priors * (1 - same_fold) + interaction + seeds / s) / p if apart else 0.0
    tasks = by_task.var(ddof=1) - added if k > 1 else np.nan
    return {
        "tasks": max(0.0, tasks) if k > 1 else np.nan,
        "priors": max(0.0, priors) if apart else np.nan,
        "task x prior": max(0.0, interaction) if apart and several else np.nan,
        "seeds": seeds if s > 1 else np.nan,
    }


def variance_shares(crossing: Crossing) -> pd.DataFrame:
    """Return FACTORS, measure, component, variance, share: `components` of every cell, and their share of the sum."""
    rows = []
    for measure in crossing.measures:
        for cell, values in zip(crossing.cells.to_dict("records"), crossing.at(measure), strict=True):
            parts = components(values, crossing.folds)
            total = np.nansum(list(parts.values()))
            for name, part in parts.items():
                share = part / total if total > 0 else np.nan
                rows.append({**cell, "measure": measure, "component": name, "variance": part, "share": share})
    return pd.DataFrame(rows)


def learner_shares(shares: pd.DataFrame) -> pd.DataFrame:
    """Return learner, measure, component, variance, share: mean variance over a learner's cells, share of the sum."""
    mean = shares.groupby(["learner", "measure", "component"], sort=False)["variance"].mean().reset_index()
    total = mean.groupby(["learner", "measure"])["variance"].transform("sum")
    return mean.assign(share=(mean["variance"] / total).where(total > 0))


def comparisons(crossing: Crossing, method: str, seed: int, resamples: int = 2000) -> pd.DataFrame:
    """Compare a method with every other learner in each setting it shares with it: one row per pair and measure.

    Columns: SETTING, measure, method, reference (a learner), difference (mean regret minus the reference's), low, high
    (95 %, t over priors: this suite of tasks), low_new, high_new (95 %, over folds: new data sets and priors; NaN where
    all tasks are of one data set), lower
    (share of priors in which the method is the lower one), flipped (share in which the order is not that of the mean;
    equality counts half).
    """
    place = {tuple(cell): i for i, cell in enumerate(crossing.cells[["learner", *SETTING]].itertuples(index=False))}
    rows = []
    for measure in crossing.measures:
        values = crossing.at(measure).mean(axis=2)
        for (learner, *setting), i in place.items():
            if crossing.cells.at[i, "method"] != method:
                continue
            for (other, *where), j in place.items():
                if where != setting or other == learner:
                    continue
                d = (values[i] - values[j]).mean(axis=1)
                mean, low, high = t_interval(d)
                rng = np.random.default_rng([seed, i, j])
                new = paired_difference(
                    values[i], values[j], rng, "nested", resamples,
                    folds=crossing.folds, data_sets=crossing.data_sets or None,
                )  # fmt: skip
                if crossing.one_data_set:
                    new = new._replace(low=np.nan, high=np.nan)
                lower = float(((d < 0) + 0.5 * (d == 0)).mean())
                row = {**dict(zip(SETTING, setting, strict=True)), "measure": measure, "method": method}
                row |= {"reference": other, "difference": float(mean), "low": float(low), "high": float(high)}
                row |= {"low_new": new.low, "high_new": new.high, "lower": lower}
                rows.append({**row, "flipped": 1 - lower if mean < 0 else lower if mean > 0 else 0.5})
    return pd.DataFrame(rows)


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Count, per measure and reference, the settings in which a method is lower or higher: on this suite (interval over
    priors without 0) and on a new data set; `flipped` is the mean share of priors with the other order."""
    flags = table.assign(
        settings=1, lower=table["high"] < 0, higher=table["low"] > 0,
        lower_new=table["high_new"] < 0, higher_new=table["low_new"] > 0,
    )  # fmt: skip
    counts = ["settings", "lower", "higher", "lower_new", "higher_new"]
    grouped = flags.groupby(["measure", "method", "reference"], sort=False)
    return grouped[counts].sum().join(grouped[["difference", "flipped"]].mean()).reset_index()


def stability(crossing: Crossing) -> pd.DataFrame:
    """Return measure, settings, best_kept, pairs_flipped: how far the ranking of the learners depends on the prior.

    `best_kept`: share of (setting, prior) in which the learner with the lowest mean over priors is the lowest of all;
    `pairs_flipped`: share of (setting, pair of learners, prior) in which the order is not that of the means.
    """
    rows = []
    groups = crossing.cells.groupby(SETTING, sort=False).indices
    for measure in crossing.measures:
        repeats, kept, flipped = crossing.repeats(measure), [], []
        for index in groups.values():
            r = repeats[index]
            kept.append((r[r.mean(axis=1).argmin()] <= r.min(axis=0)).mean())
            for a, b in itertools.combinations(r, 2):
                flipped.append(((a - b) * (a - b).mean() < 0).mean())
        row = {"measure": measure, "settings": len(groups), "best_kept": np.mean(kept)}
        rows.append({**row, "pairs_flipped": np.mean(flipped) if flipped else np.nan})
    return pd.DataFrame(rows)


def effects(crossing: Crossing, names: Sequence[str], measure: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Analyse the balanced design of the factors `names`: (terms, levels).

    terms: measure, term ("rows x steps"), df, share (of the sum of squares of the cell means), f, p: each term against
    its interaction with the priors (blocks). levels: measure, term, level, effect, low, high: mean at a level minus the
    mean of all, 95 % t interval over priors. Raises DataError unless every combination of levels has one cell.
    """
    levels = [list(dict.fromkeys(crossing.cells[name])) for name in names]
    index = [crossing.cells[name].map(found.index).to_numpy() for name, found in zip(names, levels, strict=True)]
    sizes = [len(found) for found in levels]
    place = np.ravel_multi_index(index, sizes)
    if sorted(place) != list(range(int(np.prod(sizes)))):
        raise DataError(f"the factors {', '.join(names)} are not crossed: a combination is missing or occurs twice")
    repeats = crossing.repeats(measure)
    y = repeats[np.argsort(place)].reshape(*sizes, -1)
    terms = anova(y, names).assign(measure=measure)
    rows = []
    for axis, (name, found) in enumerate(zip(names, levels, strict=True)):
        others = tuple(a for a in range(len(names)) if a != axis)
        mean, low, high = t_interval(y.mean(axis=others) - y.mean(axis=tuple(range(len(names)))))
        rows.append(pd.DataFrame({"term": name, "level": found, "effect": mean, "low": low, "high": high}))
    return terms, pd.concat(rows, ignore_index=True).assign(measure=measure)


def anova(y: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """Return term, df, share, f, p of a balanced crossed design in blocks: `y` (levels of each factor..., blocks).

    The test of a term divides its mean square by that of its interaction with the blocks; f and p are NaN with one
    block and where nothing varies. Terms in descending share.
    """
    blocks, axes = y.shape[-1], range(len(names))
    deviation = y - y.mean(axis=tuple(axes))
    total = (deviation.mean(axis=-1) ** 2).sum()
    rows = []
    for order in range(1, len(names) + 1):
        for chosen in itertools.combinations(axes, order):
            effect = deviation.mean(axis=tuple(a for a in axes if a not in chosen), keepdims=True)
            for axis in chosen:
                effect = effect - effect.mean(axis=axis, keepdims=True)
            weight = y[..., 0].size / effect[..., 0].size
            df = int(np.prod([y.shape[a] - 1 for a in chosen]))
            mean = effect.mean(axis=-1, keepdims=True)
            squares, error = weight * (mean**2).sum(), weight * ((effect - mean) ** 2).sum()
            f = blocks * squares * (blocks - 1) / error if error > 0 else np.nan
            p = f_distribution.sf(f, df, df * (blocks - 1)) if blocks > 1 else np.nan
            name = " x ".join(names[a] for a in chosen)
            rows.append({"term": name, "df": df, "share": squares / total if total > 0 else np.nan, "f": f, "p": p})
    return pd.DataFrame(rows).sort_values("share", ascending=False, kind="stable", ignore_index=True)
