"""Players of the benchmark that are models: this project's default and its plain GP, RGPE, and the former default.

Each is a rival as in `rivals.py`. RGPE (Feurer, Letham, Hutter, Bakshy 2018) has the same kernel, hyperparameter prior
and candidates as the default, so that what differs is how the past is used.
"""

import csv
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import yaml
from rivals import History
from scipy.linalg import cho_solve
from scipy.special import ndtr
from worlds import World, oriented

from metabo.bo.continuous import halton
from metabo.data.history.past import PastStudies, past_of
from metabo.data.history.read import History as Read
from metabo.data.history.rows import Trial
from metabo.tuner.asking import Told
from metabo.tuner.blend import choose, hyper, kernel, past, points
from metabo.tuner.learning import STEPS

LEARNED: dict[tuple[str, str], past.ConditionedPast] = {}
"""Priors of this process by world and history: a history serves several seeds and targets."""
SAMPLES = 64
"""Of RGPE's ranking losses."""


def studies(one: World, given: History) -> PastStudies:
    """Return past studies as the tuner reads them."""
    rows, found = 0, []
    for place, study in enumerate(given):
        for configuration, value in study:
            rows += 1
            found.append(Trial(rows, f"past {place}", one.description.read(configuration), value))
    return past_of(one.name, Read(found, [], []), one.description)


def default(one: World, task: str, given: History, seed: int, budget: int) -> list[float]:
    """metabo's default, as `Study.suggest` does it."""
    return _played(one, task, learned(one, given), seed, budget)


def learned(one: World, given: History) -> past.ConditionedPast:
    """Return the default's prior."""
    key = (one.name, str(hash(str(given))))
    if key not in LEARNED:
        LEARNED[key] = past.conditioned(past.learn(studies(one, given), 0, STEPS))
    return LEARNED[key]


def plain_gp(one: World, task: str, given: History, seed: int, budget: int) -> list[float]:
    """The plain GP of the default alone: four covering trials, then expected improvement."""
    return _played(one, task, None, seed, budget)


def _played(one: World, task: str, prior: past.ConditionedPast | None, seed: int, budget: int) -> list[float]:
    outcome, told = one.outcome(task), Told([], [], [])
    for _ in range(budget):
        (found,) = choose.suggest(one.description, prior, told, 1, seed)
        told.done.append(found.configuration)
        told.outcomes.append(outcome(found.configuration))
    return told.outcomes


class Gp:
    """A plain GP of standardised outcomes, fitted by MAP."""

    def __init__(self, x: np.ndarray, y: np.ndarray, owner: np.ndarray) -> None:
        self.x, self.y, self.owner = x, (y - y.mean()) / (y.std() or 1.0), owner
        width = int(owner.max()) + 1
        few = len(y) < 3 or y.std() == 0
        self.h = hyper.unpacked(hyper.prior_of(width)[0], width) if few else hyper.fit(
            x, self.y, np.zeros(len(y), dtype=int), owner, 30
        )  # fmt: skip
        self.columns = hyper.columns_of(self.h.scales, owner)
        self.low = np.linalg.cholesky(self.k(x, x) + (self.h.noise + 1e-8) * np.eye(len(x)))
        self.alpha = cho_solve((self.low, True), self.y)

    def k(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.h.variance * kernel.matern52(kernel.squared(a, b, self.columns))

    def mean(self, x: np.ndarray) -> np.ndarray:
        return self.k(x, self.x) @ self.alpha

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = np.linalg.solve(self.low, self.k(self.x, x))
        return self.mean(x), self.k(x, x) - half.T @ half

    def variance(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(self.h.variance - np.sum(np.linalg.solve(self.low, self.k(self.x, x)) ** 2, axis=0), 1e-9)

    def left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return leave-one-out means and variances."""
        inverse = cho_solve((self.low, True), np.eye(len(self.x)))
        return self.y - self.alpha / np.diag(inverse), 1.0 / np.diag(inverse)


SOURCES: dict[tuple[str, str], list[Gp]] = {}


def rgpe(one: World, task: str, given: History, seed: int, budget: int) -> list[float]:
    """A sum of GPs of past studies and of the new one, weighted by how often each ranks the new trials best."""
    space, outcome, owner = one.description, one.outcome(task), points.owners(one.description)
    key = (one.name, str(hash(str(given))))
    if key not in SOURCES:
        SOURCES[key] = []
        for study in given:
            y = -oriented(space, np.array([value for _, value in study], dtype=np.float64))
            y = np.where(np.isfinite(y), y, np.nanmin(y))
            x = space.encode([space.read(c) for c, _ in study])
            SOURCES[key].append(Gp(x[-100:], y[-100:], owner))
    sources, rng = SOURCES[key], np.random.default_rng([12, seed])
    done, values, x, units = [], [], np.zeros((0, space.space.dim)), np.zeros((0, len(space.fields)))
    for _ in range(budget):
        y = -oriented(space, np.array(values, dtype=np.float64)) if values else np.zeros(0)
        y = np.where(np.isfinite(y), y, np.nanmin(y)) if np.isfinite(y).any() else np.zeros(len(y))
        models = [*sources, Gp(x, y, owner)] if len(y) else sources
        weights = _weights(models, x, y, rng) if len(y) >= 3 else np.array([1.0] * len(sources) + [0.0] * bool(len(y)))
        chosen = [(w, m) for w, m in zip(weights / weights.sum(), models, strict=True) if w > 0]

        def score(at, chosen=chosen, x=x):
            mean = sum(w * m.mean(at) for w, m in chosen)
            if not len(x):
                return mean
            std = np.sqrt(sum(w**2 * m.variance(at) for w, m in chosen))
            gamma = (mean - max(sum(w * m.mean(x) for w, m in chosen))) / std
            return std * (gamma * ndtr(gamma) + np.exp(-0.5 * gamma**2) / np.sqrt(2 * np.pi))

        start = [halton(1000, len(space.fields), rng)]
        if len(y):
            start.append(points.near(space, units[np.argsort(-y)[:3]], 300, rng))
        where = points.at(space, np.concatenate(start))
        scores = score(where.x)
        for _ in range(2):
            more = points.at(space, points.near(space, where.units[np.argsort(-scores)[:5]], 200, rng))
            where, scores = points.joined(where, more), np.concatenate([scores, score(more.x)])
        scores[choose.among(where, points.Points(units, x))] = -np.inf
        pick = points.rows(where, [int(np.argmax(scores))])
        done += space.at(pick.units)
        values.append(outcome(done[-1]))
        x, units = np.concatenate([x, pick.x]), np.concatenate([units, pick.units])
    return values


def _weights(models: list[Gp], x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw ranking losses of each model (the last is the target's, left out one by one); sources that are likely worse
    than the target are dropped."""
    losses = []
    for place, model in enumerate(models):
        if place == len(models) - 1:
            mean, variance = model.left_out()
            drawn = mean + np.sqrt(variance) * rng.normal(size=(SAMPLES, len(y)))
            wrong = (drawn[:, :, None] < model.y) ^ (y[:, None] < y)
        else:
            mean, cov = model.joint(x)
            low = np.linalg.cholesky(cov + 1e-6 * np.eye(len(x)))
            drawn = mean + rng.normal(size=(SAMPLES, len(y))) @ low.T
            wrong = (drawn[:, :, None] < drawn[:, None, :]) ^ (y[:, None] < y)
        losses.append(wrong.sum(axis=(1, 2)))
    found = np.array(losses)
    limit = np.quantile(found[-1], 0.95)
    found[:-1][np.median(found[:-1], axis=1) > limit] = found.max() + 1
    best = found == found.min(axis=0)
    best[:, best[-1]] = np.eye(len(models), dtype=bool)[:, [-1]]  # ties go to the target
    return (best / best.sum(axis=0)).mean(axis=1)


@cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()


def h_nll_pi(one: World, task: str, given: History, seed: int, budget: int) -> list[float]:
    """The former default: H-NLL's prior, fixed, and the probability of improvement."""
    import metabo

    place = Path(_folder().name) / f"{one.name}-{abs(hash(str(given)))}"
    if not place.exists():
        place.mkdir()
        names = [field.name for field in one.description.fields]
        with (place / "history.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["study", *names, one.description.outcome])
            for number, study in enumerate(given):
                for c, value in study:
                    writer.writerow([f"past {number}", *("" if c[n] is None else c[n] for n in names), value])
        (place / "space.yaml").write_text(yaml.safe_dump(dict(one.description.source), sort_keys=False))
        metabo.pretrain([place / "history.csv"], [place / "space.yaml"], place / "study", method="h_nll")
    tuned, outcome, out = metabo.Study(place / "study", f"{task}-{seed}"), one.outcome(task), []
    for _ in range(budget):
        (found,) = tuned.suggest(1, seed)
        out.append(outcome(found.configuration))
        tuned.tell(found.configuration, out[-1])
    return out
