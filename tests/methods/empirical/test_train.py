"""EmpGP's training: which inputs it reads, what each setting does, and what it refuses."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.errors import ConfigError, DataError
from metabo.methods.empirical import train
from metabo.methods.empirical.settings import anchors_of
from metabo.plan import config
from metabo.plan.typed import plain
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.task import MatchedBlock
from metabo.tasks.training_set import training_sets
from tests import tiny

ROOT = Path(__file__).parents[3]
OTHER = {
    "learning_rate": 0.2, "decay": 0.1, "steps": 7, "batch": 3, "em_steps": 2, "shrinkage": [0.2], "parts": 3,
}  # fmt: skip


def leaves(prior):
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(prior.params)])


def test_every_setting_has_a_case():
    spec = tiny.spec("emp_gp")
    assert set(spec["pretrain"]) == {*OTHER, "objective"}
    assert set(spec["model"]) == {"anchors", "mean", "kernel"}
    assert set(spec["policy"]) == {"pi_threshold"}  # bo.fixed_prior's: tests/methods/test_liveness.py


@pytest.mark.parametrize("key", OTHER)
def test_each_setting_changes_the_prior(key, lab):
    base, changed = (lab.prior(tiny.spec("emp_gp", pretrain=own)) for own in ({}, {key: OTHER[key]}))
    if key == "parts":  # changes only which share is chosen, which may be the same
        assert changed.params.kernel.share.shape == base.params.kernel.share.shape
        return
    assert (leaves(base)[: len(leaves(changed))] != leaves(changed)).any()
    if key == "em_steps":
        np.testing.assert_allclose(changed.loss, base.loss[:, :2], rtol=1e-9)


@pytest.mark.parametrize("own", [{"anchors": 3}, {"kernel": "matern32"}])
def test_the_model_reaches_the_prior(own, lab):
    base, changed = (lab.prior(tiny.spec("emp_gp", model=one)) for one in ({}, own))
    assert leaves(base).shape != leaves(changed).shape or (leaves(base) != leaves(changed)).any()


def test_before_training_it_is_the_gp_of_its_kernel():
    spec = tiny.spec("emp_gp")
    gp = train.start(spec["model"], 2, 3, jax.random.key(0))
    x = jnp.asarray([[0.1, 0.9], [0.4, 0.2], [0.7, 0.6]])
    phi = gp.features(x)
    np.testing.assert_allclose(gp.kernel.gram(phi), gp.kernel.base.gram(x), rtol=1e-12)
    np.testing.assert_allclose(gp.mean(phi), 0.0, atol=1e-12)


def block(name, tasks, x, y):
    return MatchedBlock(name, "plane", tasks, np.asarray(x, float), np.asarray(y, float))


def test_blocks_are_joined_where_their_inputs_are_equal():
    blocks = (
        block("all", ("a", "b", "c"), [[0.1, 0.2], [0.3, 0.4]], [[1, 2, 3], [4, 5, 6]]),
        block("two", ("b", "c"), [[0.5, 0.6]], [[7, 8]]),
        block("again", ("a", "c"), [[0.5, 0.6]], [[9, 8]]),
    )
    x, y, seen = train.joined(blocks)
    np.testing.assert_array_equal(x, [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    np.testing.assert_array_equal(y, [[1, 4, 9], [2, 5, 7], [3, 6, 8]])
    assert seen.all()


def test_inputs_of_most_tasks_come_first_and_others_are_drawn():
    rng = np.random.default_rng(0)
    x, y = rng.random((30, 2)), rng.normal(size=(5, 30))
    seen = np.ones((5, 30), bool)
    seen[2:, 10:] = False
    drawn = [train.drawn(train.Joined(x, y, seen), jax.random.key(number), 14) for number in range(2)]
    for anchors, outputs, there in drawn:
        assert {tuple(row) for row in x[:10]} <= {tuple(row) for row in anchors} and len(anchors) == 14
        assert there.sum(axis=0).tolist().count(5) == 10 and outputs.shape == (5, 14)
    assert (drawn[0][0] != drawn[1][0]).any()


def test_no_shared_input_is_refused_by_the_name_of_the_fold(lab):
    base = lab.benchmark
    (training,) = training_sets(Benchmark("bare", base.spaces, base.tasks, (), base.splits), "held_out", seeds=2)
    keys = jax.random.split(jax.random.key(0), (2, 2))
    with pytest.raises(DataError, match=r"fold 'without a' of space 'plane': no matched inputs shared .* leave emp_gp"):
        train.pretrain(tiny.spec("emp_gp"), training, keys, False)


@pytest.mark.parametrize(
    ("own", "fault"),
    [
        ({"shrinkage": []}, r"'methods.emp_gp.pretrain.shrinkage': \[\] must be shares"),
        ({"shrinkage": [1.5]}, r"\[1.5\] must be shares from 0 to 1"),
        ({"parts": 1}, "'methods.emp_gp.pretrain.parts': 1 must be at least 2"),
        ({"em_steps": -1}, "em_steps"),
        ({"objective": "ekl"}, "objective"),
    ],
)
def test_settings_that_make_no_sense_are_refused(own, fault, lab):
    with pytest.raises(ConfigError, match=fault):
        lab.train(tiny.spec("emp_gp", pretrain=own))
    with pytest.raises(ConfigError, match="'anchors': 0 must be at least 1"):
        lab.train(tiny.spec("emp_gp", model={"anchors": 0}))


@pytest.mark.parametrize(
    "overlay", [None, *sorted((ROOT / "config").glob("*.yaml"))], ids=lambda p: p.stem if p else "-"
)
def test_every_scale_gives_it_a_number_of_anchors(overlay):
    given = config.load(ROOT, (overlay,) if overlay else ())
    anchors, _ = anchors_of(plain(config.pretrain_spec(given, "pd1_mini", "held_out", "emp_gp").model))
    assert anchors <= 242


def test_what_was_chosen_is_told(lab):
    told = train.report(lab.prior(tiny.spec("emp_gp")))
    assert told["anchors"] == [4] * len(told["shrinkage"]) and set(told["shrinkage"]) <= {0.2, 1.0}


@pytest.mark.parametrize(("parts", "share"), [(2, 1.0), (3, 0.01)])
def test_parts_decide_which_tasks_are_left_out_for_the_choice(parts, share):
    """Tasks are of two kinds in turn. In two parts one kind is left out at a time, of which the other says nothing, so
    the kernel alone is likelier; in three parts both kinds are known."""
    rng = np.random.default_rng(0)
    x, pattern = rng.random((10, 2)), rng.normal(size=10)
    y = np.stack([(-1.0) ** i * pattern + 0.05 * rng.normal(size=10) for i in range(12)], axis=1)
    names = tuple(f"t{i}" for i in range(12))
    tasks = {name: tiny.task(name, x, y[:, i]) for i, name in enumerate(names)}
    tasks["new"] = tiny.task("new", x, pattern)
    folds = {"held_out": (Fold("all", "plane", names, ("new",)),)}
    made = Benchmark("two kinds", tiny.benchmark().spaces, tasks, (block("m", names, x, y),), folds)
    (training,) = training_sets(made, "held_out")
    spec = tiny.spec(
        "emp_gp", model={"anchors": 10}, pretrain={"shrinkage": [0.01, 1.0], "em_steps": 10, "parts": parts}
    )
    gp, _ = train.pretrain(spec, training, jax.random.split(jax.random.key(0), (1, 1)), False)
    assert float(gp.kernel.share.item()) == pytest.approx(share)
