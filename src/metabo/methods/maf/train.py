"""Pre-training of MAF, the neural acquisition function of Volpp et al. (2020), as hyperbo §7.2 and D.5 use it.

For each (fold, seed), PPO (`metabo.methods.maf.ppo`) trains on episodes of BO over random points of random training
tasks, and keeps, of all evaluated iterations, the one with the lowest simple regret on validation tasks. The GP of
every task, including the test tasks, has hyperparameters that are fitted once, beforehand, to the task's own data: an
advantage that the paper grants only this method. Inputs must be in the unit cube. Differs from the paper: outputs are
-log(error), standardised per task, not accuracies; see docs/replication-notes.md.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key

from metabo.compute.keys import stream
from metabo.errors import ConfigError, DataError
from metabo.gp.constraints import inverse_positive
from metabo.gp.fit import Log, lbfgs, over_pairs
from metabo.gp.model import GP, build
from metabo.methods.maf.network import CLOCK, EXTRA, AcquisitionNetwork, MafPrior, Standard, make_network
from metabo.methods.maf.ppo import Agent, Game, collect, greedy, improve, learner, play
from metabo.methods.maf.settings import AcquisitionModel, MafSettings
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows, pad, stack
from metabo.tasks.training_set import TrainingSet, pair_indices

VALIDATED = 3
"""The number of tasks on which the best iteration is chosen (D.5)."""


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> MafPrior:
    """Return an untrained policy network and unfitted GPs, one per test task, padded to `tasks`."""
    network = make_network(dim + EXTRA, read(AcquisitionModel, model, "model").hidden, key)
    gps = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (tasks, *leaf.shape)), unfitted(dim))
    return MafPrior(network, jnp.ones(()), gps, Standard(jnp.zeros(tasks), jnp.ones(tasks)))


def unfitted(dim: int) -> GP:
    """Return the GP that fits start from: zero mean, squared exponential kernel, and all parameters 1 (the defaults of
    GPy)."""
    gp = build({"mean": "zero", "kernel": "squared_exponential", "features": []}, dim, jax.random.key(0))
    return jax.tree.map(lambda leaf: inverse_positive(jnp.ones(leaf.shape)), gp)


def distinct(x: np.ndarray, y: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs x (n, d) without repeats, each with its best output, in order of first appearance. Only the
    first `limit` (0: all) are kept; the last of these is replaced by the best point if that is not among them (D.5)."""
    _, first, place = np.unique(x, axis=0, return_index=True, return_inverse=True)
    best = np.full(len(first), -np.inf)
    np.maximum.at(best, place.reshape(-1), y)
    order = np.argsort(first)
    kept = order[: limit or None]
    top = int(order[np.argmax(best[order])])
    if top not in kept:
        kept = np.append(kept[:-1], top)
    return x[first[kept]], best[kept]


def prepared(parts: tuple[Rows, ...], names: Sequence[str], limit: int) -> tuple[Rows, Standard, np.ndarray, list[str]]:
    """Return the distinct rows of the tasks in `parts` with standardised outputs (only shifted, for a constant task),
    their standardisation, the position of each task of the parts, and the name of each stored task. `names` has the
    names of the tasks in the parts. Rows that occur twice for a task are stored once, because most tasks are both
    trained on and tested."""
    raw = [(x[m], y[m]) for part in parts for x, y, m in zip(*map(np.asarray, part), strict=True)]
    sources = [(name, x.tobytes() + y.tobytes()) for name, (x, y) in zip(names, raw, strict=True)]
    stored = dict(zip(sources, raw, strict=True))
    place = {source: i for i, source in enumerate(stored)}
    tasks = [distinct(x, y, limit) for x, y in stored.values()]
    offset = np.array([y.mean() for _, y in tasks])
    spread = np.array([y.std() if np.ptp(y) > 0 else 1.0 for _, y in tasks])
    batch = stack([x for x, _ in tasks], [(y - o) / s for (_, y), o, s in zip(tasks, offset, spread, strict=True)])
    places = np.array([place[source] for source in sources])
    standard = Standard(jnp.asarray(offset), jnp.asarray(spread))
    return Rows(*map(jnp.asarray, batch)), standard, places, [name for name, _ in stored]


def fit_keys(seed: int, space: str, names: Sequence[str], draws: int) -> Key[Array, "draws tasks"]:
    """Return the keys that draw the rows for the GP of each task in `names`, for the pre-training seeds 0, 1, ...,
    `draws` - 1."""
    return jnp.stack([jnp.stack([stream(seed, "maf gp", space, name, s) for name in names]) for s in range(draws)])


def fit_gps(rows: Rows, limit: int, steps: int, keys: Key[Array, "draws tasks"], accelerator: bool) -> GP:
    """Maximise each task's marginal likelihood by at most `steps` steps of L-BFGS, on `limit` random rows (0: all),
    once per draw.

    Returns GPs stacked along draws and tasks. A fit that becomes non-finite keeps its last finite parameters.
    """
    (tasks, count), draws = rows.mask.shape, len(keys)
    uniform = jax.vmap(lambda key: jax.random.uniform(key, (count,)))(keys.reshape(-1))
    score = jnp.where(rows.mask, uniform.reshape(draws, tasks, count), -1.0).reshape(-1, count)
    chosen = jax.lax.top_k(score, min(limit or count, count))[1]
    task = jnp.tile(jnp.arange(tasks), draws)[:, None]
    begin, data = unfitted(rows.x.shape[2]), Rows(*(leaf[task, chosen] for leaf in rows))
    gps = over_pairs(lambda task: lbfgs(lambda gp: -gp.log_prob(*task), begin, steps=steps)[0], data, accelerator)
    return jax.tree.map(lambda leaf: leaf.reshape(draws, tasks, *leaf.shape[1:]), gps)


class Roles(NamedTuple):
    """The training tasks of one (fold, seed): `members` (m,), whether episodes may use each (`played`), and the
    `validated` ones (3,), as indices into the rows. Those where `counts` is False are padding."""

    members: Int[Array | np.ndarray, "*p m"]
    played: Bool[Array | np.ndarray, "*p m"]
    validated: Int[Array | np.ndarray, "*p 3"]
    counts: Bool[Array | np.ndarray, "*p 3"]


def roles(members: Int[np.ndarray, " m"], present: Bool[np.ndarray, " m"], key: Key[Array, ""]) -> Roles:
    """Draw the validation tasks: three, but at most a third of the tasks, which episodes then leave out
    (cross-validation, D.5). If there are fewer than three training tasks, all are both played and validated."""
    order = np.asarray(jax.random.permutation(key, int(present.sum())))
    order = np.flatnonzero(present)[order]
    held = min(VALIDATED, len(order) // 3)
    chosen = order[:held] if held else order
    played = present.copy()
    played[order[:held]] = False
    return Roles(members, played, pad([members[chosen]], VALIDATED)[0], pad([chosen >= 0], VALIDATED)[0])


def read_settings(spec: TrainingSpec) -> MafSettings:
    """Return the settings of training. Raises ConfigError if they are not those of MAF, or if an iteration has fewer
    queries than mini-batches."""
    settings = read(MafSettings, spec["pretrain"], "config", f"methods.{spec['method']}.pretrain")
    queries = settings.episodes * settings.horizon
    if settings.minibatches > queries:
        raise ConfigError(
            f"config key 'maf.minibatches' is {settings.minibatches}, but an iteration has only {queries} queries "
            "('maf.episodes' x 'maf.horizon'); lower it"
        )
    return settings


def deal(gps: GP, rows: Rows, role: Roles, episodes: int, candidates: int, key: Key[Array, ""]) -> Game:
    """Draw the games of one iteration: random tasks, and `candidates` random points of each (0: all)."""
    task_key, point_key = jax.random.split(key)
    drawn = jax.random.randint(task_key, (episodes,), 0, jnp.sum(role.played))
    task, count = role.members[jnp.argsort(~role.played)[drawn]], rows.mask.shape[1]
    # Draw with rows along the first axis, so that padding changes nothing.
    score = jnp.where(rows.mask[task], jax.random.uniform(point_key, (count, episodes)).T, -1.0)
    point = jax.lax.top_k(score, min(candidates or count, count))[1]
    pools = (leaf[task[:, None], point] for leaf in rows)
    return Game(jax.tree.map(lambda leaf: leaf[task], gps), *pools)


def train(
    agent: Agent, gps: GP, rows: Rows, role: Roles, settings: MafSettings, key: Key[Array, ""]
) -> tuple[AcquisitionNetwork, Log]:
    """Train one agent for `steps` iterations; return the policy with the lowest validation regret, and the negative
    mean reward of each iteration.

    Validation takes place before the first iteration, after every `evaluate_every`-th and after the last: greedy
    episodes on all points of the validation tasks, with the simple regret averaged over tasks and queries. From the
    first non-finite iteration on, the agent stays as it was.
    """
    horizon, steps = settings.horizon, settings.steps
    state, unravel = learner(agent, settings.learning_rate)
    exam = Game(*jax.tree.map(lambda leaf: leaf[role.validated], (gps, *rows)))

    def validate(params):
        policy = unravel(params).policy
        regret = jax.vmap(lambda game: play(policy, game, horizon, greedy, key).regret.mean())(exam)
        return jnp.sum(jnp.where(role.counts, regret, 0.0)) / jnp.sum(role.counts)

    def iteration(carry, number):
        state, best, lowest, stopped = carry
        deal_key, play_key, shuffle_key = jax.random.split(jax.random.fold_in(key, number), 3)
        games = deal(gps, rows, role, settings.episodes, settings.candidates, deal_key)
        batch, reward = collect(unravel(state.params), games, settings, play_key)
        new = improve(state, unravel, batch, settings, shuffle_key)
        sound = jnp.isfinite(new.params).all() & jnp.isfinite(reward)
        stopped = jnp.where((stopped < 0) & ~sound, number, stopped)
        state = jax.tree.map(lambda a, b: jnp.where(stopped < 0, a, b), new, state)
        due = ((number + 1) % settings.evaluate_every == 0) | (number + 1 == steps)
        regret = jax.lax.cond(due, validate, lambda params: jnp.asarray(jnp.inf), state.params)
        best = jnp.where(regret < lowest, state.params, best)
        return (state, best, jnp.minimum(regret, lowest), stopped), -reward

    begin = (state, state.params, validate(state.params), jnp.asarray(-1))
    (_, best, _, stopped), losses = jax.lax.scan(iteration, begin, jnp.arange(steps))
    return unravel(best).policy, Log(losses, stopped)


def tested_tasks(training: TrainingSet, places: np.ndarray) -> np.ndarray:
    """Return the positions of the test tasks of each fold (folds, t), padded to the room that priors have for them.

    Raises DataError if a fold tests more tasks than any fold trains on.
    """
    folds, tested = training.tested.shape
    if tested > training.tasks:
        raise DataError(
            f"space '{training.space}': a fold has {tested} test tasks, more than the {training.tasks} training tasks "
            "that MAF keeps room for; use a split that tests fewer tasks per fold"
        )
    found = np.zeros((folds, training.tasks), dtype=np.int64)
    found[:, :tested] = np.where(training.tested_present, places[training.tested], 0)
    return found


def listed_names(training: TrainingSet) -> list[str]:
    """Return the name of every task of `rows`, then of `test_rows`."""
    names = [""] * len(training.counts)
    for members, present, trained in zip(training.members, training.present, training.trained, strict=True):
        for of_seed, there, listed in zip(members, present, trained, strict=True):
            for member, name in zip(of_seed[there].tolist(), listed, strict=True):
                names[member] = name
    return names + list(dict.fromkeys(name for fold in training.folds for name in fold.test))


def fitted_tasks(
    spec: TrainingSpec, training: TrainingSet, seeds: int, accelerator: bool
) -> tuple[Rows, Standard, np.ndarray, GP]:
    """Return rows, scales and positions of all tasks (`prepared`) and their GPs (seeds, tasks), one for each
    pre-training seed. If GPs are fitted to all rows of their tasks, one GP serves all seeds: (1, tasks)."""
    settings = read_settings(spec)
    parts = (training.rows, training.test_rows)
    rows, standard, places, names = prepared(parts, listed_names(training), settings.points)
    draws = seeds if 0 < settings.gp_points < rows.mask.shape[1] else 1
    keys = fit_keys(spec["seed"], training.space, names, draws)
    return rows, standard, places, fit_gps(rows, settings.gp_points, settings.gp_steps, keys, accelerator)


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[MafPrior, Log]:
    """Train one acquisition function per (fold, seed), and return pytrees with a leading axis of folds x seeds,
    fold-major.

    Raises ConfigError for mini-batches without queries, and DataError for a fold with too many test tasks.
    """
    settings = read_settings(spec)
    flat = keys.reshape(-1)
    rows, standard, places, gps = fitted_tasks(spec, training, keys.shape[1], accelerator)
    trained, tested = np.split(places, [len(training.counts)])
    found, draws = tested_tasks(training, tested), len(gps.raw_noise)
    fold, seed = pair_indices(*keys.shape)
    listed = [
        roles(trained[training.members[f, s]], training.present[f, s], jax.random.fold_in(keys[f, s], 4))
        for f, s in zip(fold.tolist(), seed.tolist(), strict=True)
    ]
    parts = Roles(*(jnp.asarray(np.stack(part)) for part in zip(*listed, strict=True)))
    hidden = read(AcquisitionModel, spec["model"], "model").hidden

    def fit(pair):
        key, role, draw = pair
        policy_key, value_key, train_key = (jax.random.fold_in(key, i) for i in range(3))
        prior = start(spec["model"], training.dim, training.tasks, policy_key)
        agent = Agent(prior.network, make_network(CLOCK, hidden, value_key))
        network, log = train(agent, jax.tree.map(lambda leaf: leaf[draw], gps), rows, role, settings, train_key)
        return prior._replace(network=network, horizon=jnp.asarray(float(settings.horizon))), log

    # One after another, even on an accelerator: one training fills it, and side by side each would validate at every
    # iteration.
    draw = np.asarray(seed) % draws
    priors, log = over_pairs(fit, (flat, parts, jnp.asarray(draw)), False)
    place = found[np.asarray(fold)]
    own = jax.tree.map(lambda leaf: leaf[draw[:, None], place], gps)
    return priors._replace(gps=own, standard=jax.tree.map(lambda leaf: leaf[place], standard)), log
