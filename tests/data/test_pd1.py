"""The PD1 loader: archives in the published format, good and bad, against a plain pandas reading of the same rows."""

import itertools
import math
import tarfile

import numpy as np
import pandas as pd
import pytest

from metabo.data import pd1
from metabo.data.counts import counts
from metabo.errors import ConfigError, DataError
from metabo.tasks.task import restrict
from tests.data.archives_fixture import (
    DECAY,
    ERROR,
    IMAGENET_1024,
    MOMENTUM,
    PD1_TASKS,
    POWER,
    RATE,
    pd1_rows,
    write_pd1,
)

COLUMNS = [DECAY, RATE, POWER, MOMENTUM]
MATCHED0 = "pd1_matched_phase0_results.jsonl"
UNMATCHED1 = "pd1_unmatched_phase1_results.jsonl"


def load(path, edit=None, settings=None, **variations):
    return pd1.load("pd1", settings or {}, write_pd1(path / "pd1.tar.gz", edit=edit, **variations))


def frame(files):
    """All rows as one table, in the fixed order of the files."""
    parts = []
    for phase, kind in itertools.product((0, 1), ("matched", "unmatched")):
        part = pd.DataFrame(files[f"pd1_{kind}_phase{phase}_results.jsonl"])
        parts.append(part.assign(matched=kind == "matched", phase=phase))
    table = pd.concat(parts, ignore_index=True)
    return table.astype({ERROR: float})


def found(benchmark, name):
    return next(line for line in benchmark.counts if line.name == name)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return load(tmp_path_factory.mktemp("pd1"))


def test_tasks_agree_with_a_plain_reading(benchmark):
    table = frame(pd1_rows())
    good = table.dropna(subset=[*COLUMNS, ERROR])
    assert list(benchmark.tasks) == list(dict.fromkeys(table["study_group"]))
    for name, task in benchmark.tasks.items():
        rows = good[good["study_group"] == name]
        np.testing.assert_array_equal(task.rows, rows.index)
        np.testing.assert_array_equal(task.metric, rows[ERROR])
        np.testing.assert_allclose(task.y, [-math.log(e + 1e-10) for e in rows[ERROR]], rtol=1e-15)
        expected = np.stack(
            [
                (rows[DECAY] - 0.01) / 0.98,
                (np.log10(rows[RATE]) + 5) / 6,
                (rows[POWER] - 0.1) / 1.9,
                (np.log10(1 - rows[MOMENTUM]) + 3) / 3,
            ],
            axis=1,
        )
        np.testing.assert_allclose(task.x, expected, atol=1e-12)
        assert len(task.diverged) == (table["study_group"] == name).sum() - len(rows)


def test_warped_inputs_are_those_of_the_authors_code(tmp_path, benchmark):
    warped = load(tmp_path, settings={"inputs": "warped"})
    table = frame(pd1_rows()).dropna(subset=[ERROR])
    for name, task in warped.tasks.items():
        rows = table[table["study_group"] == name]
        expected = np.stack([rows[DECAY], np.log(rows[RATE]), rows[POWER], np.log(1 - rows[MOMENTUM])], axis=1)
        np.testing.assert_allclose(task.x, expected, rtol=1e-14)
        np.testing.assert_array_equal(task.y, benchmark.tasks[name].y)
    assert warped.facts.inputs == "warped"


def test_groups_are_the_exact_second_field(benchmark):
    groups = {task.name: task.group for task in benchmark.tasks.values()}
    assert groups["mnist_simple_cnn,mnist,simple_cnn,simple_cnn,256"] == "mnist"
    folds = {task: fold for fold in benchmark.split("held_out") for task in fold.test}
    mnist = folds["mnist_simple_cnn,mnist,simple_cnn,simple_cnn,256"]
    assert "fashion_smpl_cnn,fashion_mnist,simple_cnn,simple_cnn,256" in mnist.train
    cifar = folds["cifar10_wrn,cifar10,wide_resnet,wrn,256"]
    assert set(cifar.test) == {t for t in PD1_TASKS if "cifar10" in t} and not set(cifar.test) & set(cifar.train)


def test_imagenet_1024_is_for_training_only(benchmark):
    folds = benchmark.split("held_out")
    assert all(IMAGENET_1024 not in fold.test for fold in folds)
    assert all(IMAGENET_1024 in fold.train for fold in folds)
    assert found(benchmark, "test tasks").found == 5


def reference_blocks(files, names):
    """The authors' rule, on a pandas pivot of the training tasks: phase -> {missing tasks: (points, values)}."""
    table = frame(files).dropna(subset=[ERROR])
    blocks = {}
    for phase in (0, 1):
        rows = table[table["matched"] & (table["phase"] == phase) & table["study_group"].isin(names)]
        pivot = rows.pivot(index=COLUMNS, columns="study_group", values=ERROR)
        gaps = [c for c in pivot.columns if pivot[c].isna().any()]
        for size in range(min(3, len(gaps) + 1, len(pivot.columns) - 1)):
            for missing in itertools.combinations(gaps, size):
                rest = pivot.drop(columns=list(missing))
                chosen = rest.notna().all(axis=1) & pivot[list(missing)].isna().all(axis=1)
                if chosen.any():
                    blocks[phase, frozenset(missing)] = rest[chosen]
    return blocks


@pytest.mark.parametrize("dropped", [[], ["cifar10"], ["mnist", "lm1b"], ["imagenet", "fashion_mnist"]])
def test_matched_blocks_follow_the_authors_rule_after_the_hold_out(benchmark, dropped):
    names = tuple(t.name for t in benchmark.tasks.values() if t.group not in dropped)
    expected = reference_blocks(pd1_rows(), names)
    blocks = restrict(benchmark.matched, names)
    assert len(blocks) == len(expected)
    for block in blocks:
        phase = int(block.name[5])
        present = [n for n in names if not (phase == 1 and n == IMAGENET_1024)]
        values = expected.pop((phase, frozenset(present) - frozenset(block.tasks)))
        decay = pd1.SPACE.decode(block.x)["decay_steps_factor"]
        ours = np.column_stack([decay, block.y])[np.argsort(decay)]
        theirs = np.column_stack([values.index.get_level_values(0), -np.log(values[list(block.tasks)] + 1e-10)])
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_matched_rule_by_hand(tmp_path):
    """Four tasks, five shared points; x marks a value: which pieces remain is worked out on paper."""
    tasks = tuple(f"n,{group},m,v,64" for group in "abcd")
    files = pd1_rows(tasks=tasks, matched=(5, 1), unmatched=(2, 2))
    marks = ["xxxxx", "xx.x.", "xxx..", "xxxx."]  # per task a, b, c, d: which of the five points have a value
    for row, mark in zip(files[MATCHED0], itertools.chain(*marks), strict=True):
        row[ERROR], row["status"] = (0.25, "done") if mark == "x" else (None, "diverged")
    benchmark = load(tmp_path, rows=files)

    def pieces(*chosen):
        blocks = restrict(benchmark.matched, tuple(tasks["abcd".index(c)] for c in chosen))
        return {"".join(t.split(",")[1] for t in b.tasks): len(b.x) for b in blocks if b.name.startswith("phase0")}

    assert pieces(*"abcd") == {
        "abcd": 2,
        "acd": 1,
        "abd": 1,
    }  # the last point lacks three tasks, and one task is no block
    assert pieces(*"abd") == {"abd": 3, "ad": 1}  # without c the first, second and fourth points are shared by all
    assert pieces(*"ab") == {"ab": 3}
    assert found(benchmark, "matched points finite in all tasks, rule 'nan', phase 0").found == 2


def diverge_with_a_value(files):
    """A diverged run may carry a finite best value."""
    for row in files[MATCHED0][:3]:
        row["status"], row[ERROR] = "diverged", 0.9


def test_divergence_rules_differ_on_diverged_runs_with_a_value(tmp_path):
    by_value = load(tmp_path, diverge_with_a_value)
    by_status = load(tmp_path, diverge_with_a_value, {"divergence": "status"})
    first = PD1_TASKS[0]
    assert len(by_value.tasks[first].y) == len(by_status.tasks[first].y) + 3
    assert len(by_value.tasks[first].diverged) == len(by_status.tasks[first].diverged) - 3
    for name in PD1_TASKS[1:]:
        np.testing.assert_array_equal(by_value.tasks[name].x, by_status.tasks[name].x)
    for benchmark in (by_value, by_status):
        dropped = [found(benchmark, f"rows dropped by divergence rule '{r}'").found for r in ("nan", "status")]
        assert dropped[1] == dropped[0] + 3


def test_nan_metric_of_every_spelling_drops_the_row(tmp_path, benchmark):
    def edit(files):
        rows = [row for row in files[UNMATCHED1] if row[ERROR] is not None][:3]
        rows[0][ERROR], rows[1][ERROR] = float("nan"), None
        del rows[2][ERROR]

    dropped = sum(len(t.y) for t in benchmark.tasks.values()) - sum(
        len(t.y) for t in load(tmp_path, edit).tasks.values()
    )
    assert dropped == 3


def test_missing_input_drops_the_row_without_a_diverged_point(tmp_path, benchmark):
    def edit(files):
        files[UNMATCHED1][0][RATE] = None

    task = load(tmp_path, edit).tasks[PD1_TASKS[0]]
    whole = benchmark.tasks[PD1_TASKS[0]]
    assert len(task.y) + len(task.diverged) == len(whole.y) + len(whole.diverged) - 1


def test_repeated_inputs_are_kept_and_counted(tmp_path, benchmark):
    def edit(files):
        files[UNMATCHED1] += [dict(row) for row in files[UNMATCHED1] if row[ERROR] is not None][:4]

    repeated = load(tmp_path, edit)
    name = PD1_TASKS[0]
    assert len(repeated.tasks[name].y) == len(benchmark.tasks[name].y) + 4
    assert found(repeated, "repeated inputs").found == 4 and found(benchmark, "repeated inputs").found == 0


def test_pairs_in_both_phases_are_counted(tmp_path):
    def edit(files):
        files["pd1_matched_phase1_results.jsonl"] += [dict(row) for row in files[MATCHED0][:7]]

    assert found(load(tmp_path, edit), "(task, configuration) pairs in both phases").found == 7


def test_constant_task_is_kept_and_flagged(tmp_path):
    name = PD1_TASKS[4]

    def edit(files):
        for row in itertools.chain(*files.values()):
            if row["study_group"] == name and row[ERROR] is not None:
                row[ERROR] = 0.5

    benchmark = load(tmp_path, edit)
    assert benchmark.tasks[name].flat
    assert f"constant outputs in 1 task(s), kept: {name}" in counts(benchmark)


def test_points_a_hair_outside_are_clipped_and_reported(tmp_path):
    def edit(files):
        files[UNMATCHED1][0][DECAY] = 0.9905
        files[UNMATCHED1][1][MOMENTUM] = 1 - 0.00099

    benchmark = load(tmp_path, edit)
    assert max(task.x.max() for task in benchmark.tasks.values()) == 1.0
    report = counts(benchmark)
    assert "decay_steps_factor: 1 of 370 points a hair outside [0.01, 0.99]" in report
    assert "one_minus_momentum: 1 of 370 points a hair outside [0.001, 1.0]" in report


@pytest.mark.parametrize(
    ("column", "value", "label"),
    [
        (RATE, 50.0, "initial_value"),
        (RATE, -1.0, "initial_value"),
        (MOMENTUM, 1.5, "one_minus_momentum"),
        (POWER, 9.0, "power"),
    ],
)
def test_point_far_outside_names_file_and_row(tmp_path, column, value, label):
    def edit(files):
        files[UNMATCHED1][4][column] = value

    with pytest.raises(DataError, match=rf"{UNMATCHED1}, row 5: {label} .* far outside"):
        load(tmp_path, edit)


@pytest.mark.parametrize("column", [ERROR, RATE, "study_group", "status"])
def test_missing_column_is_named(tmp_path, column):
    def edit(files):
        for row in files[UNMATCHED1]:
            row[column + "s"] = row.pop(column)

    with pytest.raises(DataError, match=rf"{UNMATCHED1}.gz has no column '{column}'.*Did you mean '{column}s'"):
        load(tmp_path, edit)


def test_task_without_a_finite_row(tmp_path):
    def edit(files):
        for row in itertools.chain(*files.values()):
            if row["study_group"] == PD1_TASKS[2]:
                row[ERROR] = None

    with pytest.raises(DataError, match=rf"task '{PD1_TASKS[2]}': none of its 70 rows .* finite {ERROR}"):
        load(tmp_path, edit)


def test_task_with_one_point_loads(tmp_path):
    def edit(files):
        for name, rows in files.items():
            mine = [row for row in rows if row["study_group"] == PD1_TASKS[2] and row[ERROR] is not None]
            files[name] = [row for row in rows if row["study_group"] != PD1_TASKS[2]]
            files[name] += mine[:1] if name == UNMATCHED1 else []

    assert len(load(tmp_path, edit).tasks[PD1_TASKS[2]].y) == 1


def test_one_task_leaves_nothing_to_train_on(tmp_path):
    with pytest.raises(DataError, match="no training task is left; a hold-out needs tasks of another group"):
        load(tmp_path, tasks=PD1_TASKS[:1])


@pytest.mark.parametrize("value", [-0.1, 1.5])
def test_impossible_error_rate(tmp_path, value):
    def edit(files):
        files[MATCHED0][6][ERROR] = value

    with pytest.raises(DataError, match=rf"{MATCHED0}, row 7: .*not an error rate"):
        load(tmp_path, edit)


@pytest.mark.parametrize(
    ("key", "value", "message"), [(ERROR, "bad", "row 3: not a JSON record"), ("study_group", "a", "row 3")]
)
def test_malformed_row(tmp_path, key, value, message):
    def edit(files):
        files[MATCHED0][2][key] = value

    with pytest.raises(DataError, match=message):
        load(tmp_path, edit)


def test_unsafe_member_and_missing_file(tmp_path):
    member = tarfile.TarInfo("pd1/../../evil")
    member.size = 3
    with pytest.raises(DataError, match=r"member 'pd1/\.\./\.\./evil' points outside"):
        load(tmp_path, member=member)
    with pytest.raises(DataError, match=f"lacks {UNMATCHED1}"):
        load(tmp_path, drop_file=UNMATCHED1)
    with pytest.raises(DataError, match="needs its archive in PD1's format; run its download"):
        pd1.load("pd1", {}, None)


def test_files_may_lie_anywhere_in_the_archive(tmp_path, benchmark):
    for prefix in ("", "some/deep/folder/"):
        again = load(tmp_path, prefix=prefix)
        for name, task in again.tasks.items():
            np.testing.assert_array_equal(task.x, benchmark.tasks[name].x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inputs": "unti"}, r"'unti'. Did you mean 'unit'\? Valid: unit, warped"),
        ({"divergence": "both"}, "Valid: nan, status"),
        ({"pool": 3}, "unknown setting of benchmark 'pd1' 'pool'"),
    ],
)
def test_bad_settings(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, settings=settings)


def test_counts_name_what_the_paper_states(benchmark):
    lines = {line.name: line for line in benchmark.counts}
    stated = {"tasks": 24, "test tasks": 23, "matched rows that diverged without a value": 1348}
    stated |= {"(task, configuration) pairs in both phases": 2277, "distinct inputs of the smallest test task": 1559}
    for name, expected in stated.items():
        assert lines[name].expected == expected and lines[name].differs
    table = frame(pd1_rows())
    assert lines["evaluations (rows)"].found == len(table) == 370
    without = table["matched"] & (table["status"] == "diverged") & table[ERROR].isna()
    assert lines["matched rows that diverged without a value"].found == without.sum()
    assert lines["matched rows per test task (median)"].found == 40
    assert lines["unmatched rows per test task (median)"].found == 30
    assert lines["points of ImageNet ResNet50 1024 (training only)"].found == 20
