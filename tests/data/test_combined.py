"""Super-datasets made of other benchmarks: scaling, splits, initial points, and every fault that a member may have."""

import json
from dataclasses import replace

import numpy as np
import pytest

from metabo.data import combined
from metabo.errors import ConfigError, DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Count, Facts
from metabo.tasks.folds import Fold, leave_group_out
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task
from tests import stage_runs

FACTS = Facts(counts=(Count("tasks", 3, 3, False),), flags=("odd",))
IMAGENET = "imagenet_resnet50,imagenet,resnet,resnet50,1024"


def space(name, dim):
    return SearchSpace(name, tuple(Parameter(f"x{i}", "linear", 0.0, 1.0) for i in range(dim)))


def task(name, of, dim, points=9, group=None):
    rng = np.random.default_rng(len(name) + 7 * sum(map(ord, name)))
    x, y = rng.uniform(size=(points, dim)), rng.normal(size=points)
    return Task(name, of, group or name, x, y, np.exp(-y), np.arange(points), np.zeros((0, dim)))


def published(name="hpob_mini", spaces=(("svm_8", 3), ("ranger_10", 2))):
    """A member with one fold and given initial points per space."""
    tasks, folds, initial = {}, [], {}
    for label, dim in spaces:
        own = [task(f"{label}/{t}", label, dim) for t in "abcde"]
        tasks |= {t.name: t for t in own}
        names = tuple(tasks)[-5:]
        folds.append(Fold(label, label, names[:3], names[3:]))
        initial |= {n: np.arange(25).reshape(5, 5) % 9 for n in names[3:]}
    described = {label: space(label, dim) for label, dim in spaces}
    return Benchmark(name, described, tasks, (), {"held_out": tuple(folds)}, initial, FACTS)


def table(name="tables", label="hpobench", count=11):
    """A member with a fold per task and a categorical parameter of two columns."""
    mixed = SearchSpace(label, (Parameter("u", "log", 1.0, 9.0), Parameter("v", "categorical", levels=("p", "q"))))
    tasks = {}
    for i in range(count):
        made = task(f"{label}-{i}", label, 3)
        x = np.column_stack([made.x[:, 0], np.eye(2)[np.arange(9) % 2]])
        tasks[made.name] = replace(made, x=x)
    return Benchmark(name, {label: mixed}, tasks, (), {"held_out": leave_group_out(tasks)}, facts=FACTS)


def trainings(name="pd1_mini", count=24, names=None):
    """A member in the format of PD1: folds without one data set (two tasks of it each)."""
    tasks = {}
    for i in range(count):
        label = names[i] if names else f"t{i},set{i // 2},mlp,mlp,{i}"
        tasks[label] = task(label, "pd1", 4, group=label.split(",")[1])
    never = frozenset({IMAGENET}) & frozenset(tasks)
    splits = {"held_out": leave_group_out(tasks, never)}
    return Benchmark(name, {"pd1": space("pd1", 4)}, tasks, (), splits, facts=FACTS)


def mini(**changes):
    return {"hpob_mini": published(), "tables": table(), "pd1_mini": trainings()} | changes


@pytest.fixture
def build(tmp_path):
    """Return a function that saves members and joins them."""

    def join(members, name="super_mini", seed=0):
        paths = []
        for label, member in members.items():
            paths.append(tmp_path / f"{label}.npz")
            member.save(paths[-1])
        return combined.load(name, {"seed": seed}, paths)

    return join


def folds(benchmark):
    return {fold.space: fold for fold in benchmark.split("held_out")}


def test_all_spaces_with_one_fold_each_and_the_unseen_one_is_told(build):
    made = build(mini())
    assert list(made.spaces) == ["svm_8", "ranger_10", "hpobench", "pd1"]
    assert [fold.space for fold in made.split("held_out")] == list(made.spaces) and set(made.splits) == {"held_out"}
    assert made.facts.unseen == ("pd1",) and made.facts.inputs == "unit" and not made.matched
    for fold in made.split("held_out"):
        assert fold.name == fold.space and not set(fold.train) & set(fold.test)
    assert len(made.tasks) == sum(len(f.train) + len(f.test) for f in made.split("held_out")) == 10 + 11 + 24


def test_outputs_are_scaled_per_task_and_the_rest_stays(build):
    members = mini()
    made = build(members)
    for member in members.values():
        for original in member.tasks.values():
            scaled = made.tasks[original.name]
            low, high = min(original.y), max(original.y)
            np.testing.assert_allclose(scaled.y, [(v - low) / (high - low) for v in original.y], rtol=1e-13, atol=1e-15)
            assert scaled.y.min() == 0.0 and scaled.y.max() == 1.0
            for kept in ("x", "metric", "rows"):
                np.testing.assert_array_equal(getattr(scaled, kept), getattr(original, kept))
            assert (scaled.space, scaled.group) == (original.space, original.group)


def test_a_published_split_is_kept_with_its_initial_points(build):
    made, own = build(mini()), published()
    for fold in own.split("held_out"):
        assert folds(made)[fold.space] == fold
        for name in fold.test:
            np.testing.assert_array_equal(made.initial[name], own.initial[name])


def test_else_a_fifth_of_the_tasks_is_drawn_by_key(build):
    made = build(mini())
    assert len(folds(made)["hpobench"].test) == 2 and len(folds(made)["pd1"].test) == 4
    drawn = {seed: folds(build(mini(), seed=seed))["pd1"].test for seed in range(6)}
    assert len(set(drawn.values())) == 6 and drawn[0] == folds(made)["pd1"].test
    # of the space alone: not of other members, nor of how the member cuts its own folds
    fewer = build(mini(tables=table(count=5), hpob_mini=published(spaces=(("svm_8", 3),))))
    assert folds(fewer)["pd1"] == folds(made)["pd1"]
    other = trainings()
    halves = tuple(Fold(str(i), "pd1", tuple(other.tasks)[i::2], tuple(other.tasks)[1 - i :: 2]) for i in (0, 1))
    recut = build(mini(pd1_mini=replace(other, splits={"held_out": halves})))
    assert folds(recut)["pd1"] == folds(made)["pd1"]
    twins = [combined._fold(table(label=name), name, set(), 0).test for name in ("hpobench", "hpolib", "nasbench201")]
    assert len({tuple(name.split("-")[1] for name in test) for test in twins}) > 1
    counts = np.zeros(11)
    for seed in range(200):
        counts[[int(n.split("-")[1]) for n in combined._fold(table(), "hpobench", set(), seed).test]] += 1
    assert counts.min() > 0 and abs(counts.sum() - 400) < 1e-9
    assert ((counts - 400 / 11) ** 2 / (400 / 11)).sum() < 29.6  # chi-square, 10 degrees of freedom, 0.001


def test_initial_points_are_drawn_where_none_are_given_and_keyed_by_the_task(build):
    made, again, other = build(mini()), build(mini(tables=table(count=11))), build(mini(), seed=1)
    tests = {name for fold in made.split("held_out") for name in fold.test}
    assert set(made.initial) == tests
    drawn = [*folds(made)["hpobench"].test, *folds(made)["pd1"].test]
    for name in drawn:
        assert made.initial[name].shape == (5, 5)
        assert all(len(set(row)) == 5 for row in made.initial[name].tolist())
        np.testing.assert_array_equal(made.initial[name], again.initial[name])
    assert len({made.initial[name].tobytes() for name in drawn}) == len(drawn)
    shared = [name for name in drawn if name in other.initial]
    assert all(made.initial[n].tobytes() != other.initial[n].tobytes() for n in shared)


def flatten(member, *names):
    flat = {name: replace(member.tasks[name], y=np.full(9, 0.25)) for name in names}
    return replace(member, tasks=member.tasks | flat)


def test_constant_tasks_are_left_out_and_named(build):
    made = build(
        mini(hpob_mini=flatten(published(), "svm_8/b", "svm_8/e"), pd1_mini=flatten(trainings(), "t3,set1,mlp,mlp,3"))
    )
    lost = {"svm_8/b", "svm_8/e", "t3,set1,mlp,mlp,3"}
    assert not lost & set(made.tasks) and not lost & set(made.initial)
    assert folds(made)["svm_8"] == Fold("svm_8", "svm_8", ("svm_8/a", "svm_8/c"), ("svm_8/d",))
    flags = "\n".join(made.facts.flags)
    assert "hpob_mini: left out here, constant outputs: svm_8/b; svm_8/e" in flags
    assert "pd1_mini: left out here, constant outputs: t3,set1,mlp,mlp,3" in flags


def test_super_is_the_papers_and_drops_its_task(build):
    """mphd App. E.2: of 24 sub-datasets of PD1 one is dropped, 19 train, 4 test; its facts are compared."""
    names = [f"t{i},set{i},mlp,mlp,{i}" for i in range(23)]
    made = build({"hpob": published("hpob"), "pd1": trainings("pd1", names=[*names, IMAGENET])}, "super")
    fold = folds(made)["pd1"]
    assert (len(fold.train), len(fold.test)) == (19, 4) and IMAGENET not in made.tasks
    assert any("as the paper does" in flag and IMAGENET in flag for flag in made.facts.flags)
    found = {line.name: line for line in made.counts}
    assert not any(found[f"{k} of the unseen spaces"].differs for k in ("inputs", "training tasks", "test tasks"))
    assert (found["search spaces"].expected, found["search spaces"].found) == (17, 3)
    assert found["search spaces"].differs and found["test tasks of the seen spaces"].expected == 86
    assert found["pd1: tasks"].found == 3 and "hpob: odd" in made.facts.flags
    assert not any(line.differs for line in build(mini()).counts)


def test_inputs_with_two_values_are_described_as_discrete(build):
    """By hand: two values in the training tasks; a third in the test task does not count, three in training do."""
    member = published(spaces=(("svm_8", 3),))
    tasks = {}
    for i, old in enumerate(member.tasks.values()):
        x = old.x.copy()
        x[:, 0], x[:, 2] = np.arange(9) % 2, np.arange(9) % (3 if i == 1 else 2) / 2
        if old.name == "svm_8/e":
            x[0, 0] = 0.5
        tasks[old.name] = replace(old, x=x)
    made = build(mini(hpob_mini=replace(member, tasks=tasks)))
    kinds = [(p.name, p.kind, p.levels) for p in made.spaces["svm_8"].parameters]
    assert kinds == [("x0", "ordinal", (0.0, 1.0)), ("x1", "linear", ()), ("x2", "linear", ())]
    np.testing.assert_array_equal(made.tasks["svm_8/e"].x, tasks["svm_8/e"].x)
    assert made.spaces["hpobench"] == table().spaces["hpobench"]
    logged = SearchSpace(
        "s", (Parameter("c", "categorical", levels=("p", "q", "r")), Parameter("u", "log", 1.0, 100.0))
    )
    x = np.column_stack([np.eye(3)[[0, 1, 2, 0]], [0.5, 1.0, 0.5, 1.0]])
    (_, second) = combined.described(logged, [x]).parameters
    assert second.kind == "ordinal" and second.levels == pytest.approx((10.0, 100.0))


def test_a_space_with_one_training_task_is_told(build):
    member = published(spaces=(("svm_8", 3),))
    made = build(mini(hpob_mini=flatten(member, "svm_8/a", "svm_8/b")))
    assert folds(made)["svm_8"].train == ("svm_8/c",)
    assert any("space 'svm_8' has one training task, svm_8/c" in flag for flag in made.facts.flags)


def warped(member):
    return replace(member, facts=replace(member.facts, inputs="warped"))


def moved(member, name, value):
    x = member.tasks[name].x.copy()
    x[2, 1] = value
    return replace(member, tasks=member.tasks | {name: replace(member.tasks[name], x=x)})


def renamed(member, old, new):
    rename = {old: new}
    tasks = {rename.get(n, n): replace(t, name=rename.get(n, n)) for n, t in member.tasks.items()}
    cut = tuple(
        f._replace(train=tuple(rename.get(n, n) for n in f.train), test=tuple(rename.get(n, n) for n in f.test))
        for f in member.split("held_out")
    )
    return replace(member, tasks=tasks, splits={"held_out": cut})


def fewer_initial(member):
    return replace(member, initial={name: given[:4] for name, given in member.initial.items()})


def short(member):
    keys = ("x", "y", "metric", "rows")
    tasks = {n: replace(t, **{key: getattr(t, key)[:4] for key in keys}) for n, t in member.tasks.items()}
    return replace(member, tasks=tasks)


FAULTS = {
    "warped inputs": (
        lambda: mini(pd1_mini=warped(trainings())),
        r"benchmark 'pd1_mini': its inputs are 'warped'.*'benchmarks.pd1_mini.inputs' to unit",
    ),
    "no counts": (lambda: mini(tables=replace(table(), facts=Facts())), "'tables': its facts have no field 'counts'"),
    "an input outside the cube": (
        lambda: mini(hpob_mini=moved(published(), "svm_8/c", 1.5)),
        r"benchmark 'hpob_mini', task 'svm_8/c', row 2: input 1 is 1.5, outside \[0, 1\]",
    ),
    "a missing member": (
        lambda: {k: v for k, v in mini().items() if k != "tables"},
        "benchmark 'super_mini': the file of its member 'tables' is missing; make data/tables.npz first",
    ),
    "no member at all": (lambda: {}, "the file of its member 'hpob_mini' is missing"),
    "another benchmark": (
        lambda: mini(hpob_mini=published("hpob")),
        "holds 'hpob', but 'super_mini' is made of hpob_mini, tables, pd1_mini",
    ),
    "a member twice": (lambda: mini(again=table()), "again.npz: holds 'tables', but .*; give each once"),
    "a space of two members": (
        lambda: mini(tables=table(label="pd1")), "spaces of 'tables' and 'pd1_mini' have the name 'pd1'; rename",
    ),
    "no training task": (
        lambda: mini(hpob_mini=flatten(published(), *(f"svm_8/{t}" for t in "abc"))),
        r"benchmark 'hpob_mini', space 'svm_8': 0 training and 2 test tasks are left \(svm_8/d; svm_8/e\)",
    ),
    "no test task": (
        lambda: mini(hpob_mini=flatten(published(), "svm_8/d", "svm_8/e")),
        "'svm_8': 3 training and 0 test tasks are left",
    ),
    "a domain with one task": (
        lambda: mini(tables=flatten(table(count=3), "hpobench-0", "hpobench-2")),
        r"'tables', space 'hpobench': 0 training and 1 test tasks are left \(hpobench-1\); .* leave the space out",
    ),
    "a domain without a task": (
        lambda: mini(tables=flatten(table(count=2), "hpobench-0", "hpobench-1")), r"0 training and 0 test .* \(none\)",
    ),
    "too few sets of initial points": (
        lambda: mini(hpob_mini=fewer_initial(published())),
        r"'hpob_mini', task 'svm_8/d': 4 sets of 5 initial points; needs 5 sets of 5",
    ),
    "too few points to start from": (
        lambda: mini(tables=short(table())), "of space 'hpobench' has 4 points; BO starts from 5 different ones",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_named(build, fault):
    members, message = FAULTS[fault]
    with pytest.raises(DataError, match=message):
        build(members())


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"hpob_mini\.npz: not a readable benchmark file"):
        combined.load("super_mini", {"seed": 0}, [tmp_path / "hpob_mini.npz"])
    with pytest.raises(ConfigError, match=r"unknown setting of benchmark 'super_mini' 'sede'\. Did you mean 'seed'"):
        combined.load("super_mini", {"sede": 0}, [])


def test_the_stage_reads_the_members_and_lists_them(tmp_path):
    paths = []
    for label, member in mini().items():
        paths.append(tmp_path / f"{label}.npz")
        member.save(paths[-1])
    spec = {"benchmark": "super_mini", "settings": {"seed": 0}}
    out = stage_runs.run("data", spec, tmp_path / "super_mini.npz", "--in-members", *map(str, paths))
    assert list(Benchmark.load(out).spaces) == ["svm_8", "ranger_10", "hpobench", "pd1"]
    sidecar = json.loads(out.with_suffix(".json").read_text())
    assert set(sidecar["inputs"]) == {str(path) for path in paths} and sidecar["tasks"] == 45


def test_tasks_of_one_name_in_two_members_are_told_apart(build):
    """Several tables are about the same OpenML data sets: the name of each has its member then."""
    made = build(mini(tables=renamed(table(), "hpobench-0", "svm_8/d")))
    both = {"svm_8/d (hpob_mini)", "svm_8/d (tables)"}
    assert both <= set(made.tasks) and "svm_8/d" not in made.tasks
    assert {made.tasks[name].space for name in both} == {"svm_8", "hpobench"}
    assert all(made.tasks[name].name == name for name in both)
    assert "svm_8/d (hpob_mini)" in folds(made)["svm_8"].test
    own = published()
    np.testing.assert_array_equal(made.initial["svm_8/d (hpob_mini)"], own.initial["svm_8/d"])
    np.testing.assert_array_equal(made.tasks["svm_8/d (hpob_mini)"].x, own.tasks["svm_8/d"].x)


def test_tasks_that_a_member_never_tests_are_not_drawn(build):
    member = trainings()
    never = list(member.tasks)[:12]
    kept = tuple(
        fold._replace(test=test)
        for fold in member.split("held_out")
        if (test := tuple(t for t in fold.test if t not in never))
    )
    for seed in range(5):
        drawn = folds(build(mini(pd1_mini=replace(member, splits={"held_out": kept})), seed=seed))["pd1"]
        assert len(drawn.test) == 4 and not set(drawn.test) & set(never) and set(never) <= set(drawn.train)


def test_variants_of_one_data_set_are_tested_by_kinds(build):
    """A fifth of the tasks, drawn at random, would have their twins in training."""
    tasks = {f"{kind}{i}": task(f"{kind}{i}", "taskset", 3, group="imdb") for kind in "abc" for i in range(3)}
    kinds = tuple(
        Fold(kind, "taskset", tuple(t for t in tasks if t[0] != kind), tuple(t for t in tasks if t[0] == kind))
        for kind in "abc"
    )
    member = Benchmark("taskset", {"taskset": space("taskset", 3)}, tasks, (), {"held_out": kinds}, facts=FACTS)
    drawn = set()
    for seed in range(12):
        others = {"lcbench": table("lcbench", "lcbench"), "tables": table(), "pd1_mini": trainings()}
        fold = folds(build(others | {"taskset": member}, name="super_real", seed=seed))["taskset"]
        (kind,) = {name[0] for name in fold.test}
        assert len(fold.test) == 3 and not any(name[0] == kind for name in fold.train) and len(fold.train) == 6
        drawn.add(kind)
    assert len(drawn) > 1


def test_the_real_tables_are_one_super_dataset(build):
    members = {"lcbench": table("lcbench", "lcbench"), "taskset": table("taskset", "taskset", 6)}
    made = build(members | {"tables": table(), "pd1_mini": trainings()}, name="super_real")
    assert set(made.spaces) == {"lcbench", "taskset", "hpobench", "pd1"} and made.facts.unseen == ("pd1",)


def test_noise_is_scaled_with_its_outputs(build):
    member = trainings()
    noisy = {name: replace(task, noise=np.full(len(task.y), 0.5)) for name, task in member.tasks.items()}
    made = build(mini(pd1_mini=replace(member, tasks=noisy)))
    found = {name: task.noise for name, task in made.tasks.items() if task.noise is not None}
    assert found and set(found) <= set(noisy)
    for name, noise in found.items():
        np.testing.assert_allclose(noise, 0.5 / np.ptp(member.tasks[name].y))


@pytest.mark.parametrize("noise", [np.ones(3), np.full(12, -1.0)])
def test_noise_is_one_deviation_for_each_row(noise):
    one = next(iter(trainings().tasks.values()))
    with pytest.raises(DataError, match=r"must be one deviation for each of \d+ rows"):
        replace(one, noise=np.resize(noise, len(one.y)) if (noise < 0).any() else noise)
