"""Search spaces (encode and decode), benchmark files (save and load) and the stage that makes them."""

import json
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metabo.data import counts, pd1, synthetic, tables
from metabo.errors import ConfigError, DataError
from metabo.plan.specs import DataSpec
from metabo.plan.typed import NOTHING
from metabo.records.files import save_npz
from metabo.stages import data as data_stage
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task, restrict
from tests import tiny
from tests.data.archives_fixture import HPOB_SPACES, write_hpob, write_pd1

names = st.text("abcdefgh_", min_size=1, max_size=6)


@st.composite
def parameters(draw, name="p"):
    kind = draw(st.sampled_from(["linear", "log", "ordinal", "categorical"]))
    if kind in ("ordinal", "categorical"):
        levels = draw(st.lists(st.one_of(names, st.integers(-9, 9)), min_size=2, max_size=6, unique=True))
        return Parameter(name, kind, levels=tuple(levels))
    low = draw(st.floats(1e-6, 1e3))
    return Parameter(name, kind, low=low, high=low * draw(st.floats(1.5, 1e6)))


@st.composite
def spaces_with_values(draw):
    chosen = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    space = SearchSpace("s", tuple(draw(parameters(name)) for name in chosen))
    n = draw(st.integers(1, 5))
    columns = {}
    for p in space.parameters:
        if p.levels:
            values = draw(st.lists(st.sampled_from(p.levels), min_size=n, max_size=n))
            columns[p.name] = np.array(values, dtype=object)
        else:
            shares = draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))
            columns[p.name] = np.array([p.low + s * (p.high - p.low) for s in shares])
    return space, columns


@given(spaces_with_values())
def test_decode_inverts_encode(case):
    space, columns = case
    unit = space.encode(columns)
    assert unit.shape == (len(next(iter(columns.values()))), space.dim) and unit.min() >= 0 and unit.max() <= 1
    back = space.decode(unit)
    for p in space.parameters:
        if p.levels:
            assert list(back[p.name]) == list(columns[p.name])
        else:
            np.testing.assert_allclose(back[p.name], columns[p.name], rtol=1e-7)
    np.testing.assert_allclose(space.encode(back), unit, atol=1e-9)
    assert SearchSpace.from_json(json.loads(json.dumps(space.to_json()))) == space


@pytest.mark.parametrize("field", ["name", "kind"])
def test_a_parameter_that_nothing_describes_is_told(field):
    described = SearchSpace("svm", (Parameter("cost", "log", 1e-3, 1.0), Parameter("degree", "linear", 2, 5))).to_json()
    del described["parameters"][1][field]
    with pytest.raises(
        DataError, match=rf"space 'svm', parameter {'1' if field == 'name' else 'degree'}: no field '{field}'"
    ):
        SearchSpace.from_json(described)


def test_only_numbers_have_bounds():
    assert Parameter("cost", "log", 1e-3, 1.0).bounds == (1e-3, 1.0)
    with pytest.raises(DataError, match="parameter 'depth': of kind ordinal, it has levels and no bounds"):
        _ = Parameter("depth", "ordinal", levels=(1, 2)).bounds


@given(st.integers(0, 2**32 - 1))
def test_encode_inverts_decode_in_the_pd1_box(seed):
    unit = np.random.default_rng(seed).uniform(size=(4, 4))
    np.testing.assert_allclose(pd1.SPACE.encode(pd1.SPACE.decode(unit)), unit, atol=1e-9)


@pytest.mark.parametrize("name", ["hpobench", "hpolib", "nasbench201"])
def test_whole_tables_survive_the_round_trip(name):
    space = tables.search_space(name)
    rows = tables.table_digits(space)[::97]
    levels = tables._properties(name).search_space
    columns = {p: np.array(levels[p], dtype=object)[rows[:, i]] for i, p in enumerate(levels)}
    back = space.decode(space.encode(columns))
    for p, values in columns.items():
        if isinstance(values[0], str):
            assert list(back[p]) == list(values)
        else:
            np.testing.assert_allclose(back[p].astype(float), values.astype(float), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("value", "message"),
    [(11.0, "row 1: value .*11.0.* outside"), (float("nan"), "row 1"), (0.0, "row 1"), (-1.0, "row 1")],
)
def test_values_outside_the_box_are_refused(value, message):
    with pytest.raises(DataError, match=message):
        Parameter("rate", "log", 1e-5, 10.0).encode(np.array([1.0, value]))


def make(tmp_path):
    return pd1.load("pd1", {}, write_pd1(tmp_path / "pd1.tar.gz"))


def test_saving_and_loading_gives_the_same_benchmark(tmp_path):
    benchmark = make(tmp_path)
    benchmark.save(tmp_path / "b.npz")
    again = Benchmark.load(tmp_path / "b.npz")
    assert (again.name, again.spaces, again.splits) == (benchmark.name, benchmark.spaces, benchmark.splits)
    assert again.facts == benchmark.facts and list(again.tasks) == list(benchmark.tasks)
    for name, task in benchmark.tasks.items():
        assert (again.tasks[name].group, again.tasks[name].space) == (task.group, task.space)
        for key in ("x", "y", "metric", "rows", "diverged"):
            np.testing.assert_array_equal(getattr(again.tasks[name], key), getattr(task, key))
    for ours, theirs in zip(again.matched, benchmark.matched, strict=True):
        assert (ours.name, ours.tasks) == (theirs.name, theirs.tasks)
        np.testing.assert_array_equal(ours.x, theirs.x)
        np.testing.assert_array_equal(ours.y, theirs.y)


def with_header(path, edit):
    """Save a benchmark, then change its header."""
    tiny.benchmark().save(path)
    with np.load(path) as data:
        arrays = dict(data)
    header = json.loads(str(arrays["header"]))
    edit(header)
    save_npz(path, arrays | {"header": np.array(json.dumps(header))})
    return path


def test_facts_in_a_header_are_those_that_there_are(tmp_path):
    """Files without counts can be read; who shows counts says so (`Benchmark.counts`)."""
    path = with_header(tmp_path / "b.npz", lambda header: header.update(notes={}))
    assert Benchmark.load(path).facts == Facts(counts=None, flags=(), inputs="unit", divergence=None)
    with pytest.raises(DataError, match="'tiny': its facts have no field 'counts'"):
        _ = Benchmark.load(path).counts
    path = with_header(path, lambda header: header["notes"].update(flag="odd"))
    with pytest.raises(DataError, match=r"b\.npz: header, field 'notes': unknown fact 'flag'\. Did you mean 'flags'\?"):
        Benchmark.load(path)
    path = with_header(path, lambda header: header.pop("notes"))
    with pytest.raises(DataError, match=r"b\.npz: not a readable benchmark file \(KeyError\('notes'\)\); delete"):
        Benchmark.load(path)


def test_the_data_stage_stores_no_benchmark_without_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "load", lambda *_: tiny.benchmark())
    arguments = Namespace(in_archive=None, in_members=[], in_files=[], out=str(tmp_path / "b.npz"))
    with pytest.raises(DataError, match="'tiny': its facts have no field 'counts'; have its loader give Facts"):
        data_stage.work(arguments, DataSpec("mphd_s", NOTHING))
    assert not list(tmp_path.iterdir())


def test_saving_twice_gives_the_same_bytes(tmp_path):
    make(tmp_path).save(tmp_path / "a.npz")
    make(tmp_path).save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "foreign"])
def test_corrupted_benchmark_file_is_a_clear_error(tmp_path, damage):
    path = tmp_path / "b.npz"
    make(tmp_path).save(path)
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        for i in range(100, len(content), 500):
            content[i] ^= 255
    written = {"truncated": content[: len(content) // 2], "empty": b"", "flipped": content, "foreign": b"not a file"}
    path.write_bytes(bytes(written[damage]))
    with pytest.raises(DataError, match=r"b\.npz: not a readable benchmark file .*delete it and run again"):
        Benchmark.load(path)


def test_restrict_joins_pieces_and_limits_gaps():
    x, y = np.arange(3.0)[:, None], np.arange(12.0).reshape(3, 4)
    whole = MatchedBlock("m", "s", ("a", "b", "c", "d"), x, y)
    piece = MatchedBlock("m", "s", ("a", "b"), x + 10, y[:, :2] + 100)
    assert [(b.name, b.tasks, len(b.x)) for b in restrict((whole, piece), ("a", "b", "c", "d"))] == [
        ("m", ("a", "b", "c", "d"), 3),
        ("m without c; d", ("a", "b"), 3),
    ]
    (joined,) = restrict((whole, piece), ("a", "b"))
    np.testing.assert_array_equal(joined.x, np.concatenate([x, x + 10]))
    np.testing.assert_array_equal(joined.y, np.concatenate([y[:, :2], y[:, :2] + 100]))
    assert [b.name for b in restrict((whole, piece), ("a", "b", "c", "d"), gaps=1)] == ["m"]
    assert restrict((whole, piece), ("a",)) == ()


def run_stage(spec, out, *more):
    command = [sys.executable, "-m", "metabo.stages.data", "--spec", json.dumps(spec), "--out", str(out), *more]
    return subprocess.run(command, capture_output=True, text=True)


def test_stage_loads_each_source_and_reports_the_counts(tmp_path):
    archives = {"pd1": write_pd1(tmp_path / "pd1.tar.gz"), "hpob": write_hpob(tmp_path / "hpob-data.zip")}
    settings = {"pd1": {"inputs": "warped"}, "hpob": {"spaces": list(HPOB_SPACES)}}
    for name, archive in archives.items():
        out = tmp_path / f"{name}.npz"
        spec = {"benchmark": name, "settings": settings[name]}
        done = run_stage(spec, out, "--in-archive", str(archive))
        assert done.returncode == 0, done.stderr
        assert "DIFFERS" in done.stdout and "counts differ" in done.stdout
        assert Benchmark.load(out).name == name and out.with_suffix(".json").exists()


def test_a_setting_that_the_registration_does_not_list_is_told():
    settings = data_stage.DeclaredSettings("forest", {"tables": ["a.csv"]})
    assert settings["tables"] == ["a.csv"] and dict(settings) == {"tables": ["a.csv"]}
    with pytest.raises(ConfigError, match=r"'forest' reads setting 'worst', .* 'settings' of BENCHMARKS\['forest'\]"):
        settings["worst"]


SPACE_OF_ONE = SearchSpace("s", (Parameter("a", "linear", 0.0, 1.0),))


def small(outcomes):
    """Return a benchmark with a task `a` of these outcomes, tested on a prior of another one, and the other way."""
    x = np.linspace(0.0, 1.0, 3)[:, None]
    tasks = {n: Task(n, "s", n, x, y, y) for n, y in {"a": np.array(outcomes), "b": np.array([0.0, 1.0, 0.5])}.items()}
    folds = (Fold("one", "s", ("b",), ("a",)), Fold("two", "s", ("a",), ("b",)))
    return Benchmark("tiny", {"s": SPACE_OF_ONE}, tasks, (), {"held_out": folds})


@pytest.mark.parametrize("field", ["y", "metric", "rows"])
def test_a_task_with_a_column_in_place_of_a_list_is_refused(field):
    whole = small([1.0, 2.0, 1.0])
    data_stage.refuse_shapes(whole, "src/metabo/data/t.py")
    task = replace(whole.tasks["b"], **{field: getattr(whole.tasks["b"], field)[:, None]})
    with pytest.raises(
        DataError, match=rf"^src/metabo/data/t.py: task 'b' has {field} of the shape \(3, 1\), and 3 poi"
    ):
        data_stage.refuse_shapes(replace(whole, tasks=whole.tasks | {"b": task}), "src/metabo/data/t.py")


def test_inputs_outside_the_unit_cube_are_refused():
    whole = small([1.0, 2.0, 1.0])
    data_stage.refuse_outside(whole, "src/metabo/data/t.py")
    raw = replace(whole.tasks["b"], x=np.array([[0.0], [1.005], [32.0]]))
    with pytest.raises(
        DataError, match=r"^src/metabo/data/t.py: task 'b', input 1 \('a'\) is 32 in row 2, outside \[0, 1\]; encode"
    ):
        data_stage.refuse_outside(replace(whole, tasks=whole.tasks | {"b": raw}), "src/metabo/data/t.py")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Parameter("a", "loog", 0.0, 1.0), r"parameter 'a': unknown kind 'loog'.* \(made by src/.*/pd1.py\)$"),
        (lambda: small([1.0, np.nan, 1.0]), r"task 'a': y is not finite .* \(made by src/metabo/data/pd1.py\)$"),
        (lambda: pytest.fail("data/t.csv, row 3: bad", pytrace=False), "^data/t.csv, row 3: bad$"),
    ],
)
def test_a_fault_of_what_a_loader_makes_names_the_loader(monkeypatch, make, message):
    """One that is told with its file and row is told as it is."""

    def load(name, settings, archive=None):
        try:
            return make()
        except pytest.fail.Exception as error:
            raise DataError(str(error)) from None

    with pytest.raises(DataError, match=message):
        data_stage.loaded("metabo.data.pd1", load, "tiny", {}, None)


def test_a_tested_task_of_equal_outcomes_is_refused_and_one_that_only_trains_stays():
    data_stage.refuse_flat(small([1.0, 2.0, 1.0]), "data/t.csv")
    flat = small([1.0, 1.0, 1.0])
    with pytest.raises(DataError, match=r"^data/t.csv: all 3 outcomes of task 'a' are equal.*; correct them, delete"):
        data_stage.refuse_flat(flat, "data/t.csv")
    data_stage.refuse_flat(replace(flat, splits={"held_out": flat.splits["held_out"][1:]}), "data/t.csv")


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (
            lambda name: None,
            r"^src/metabo/data/forest.py: `load\(name\)` cannot be called as load\(name, settings",
        ),
        (lambda name, settings, archive, more: None, r"forest.py: `load.*missing a required argument: 'more'"),
        (
            lambda name, settings, archive=None: None,
            r"forest.py: `load` returns NoneType, not a Benchmark; end it",
        ),
    ],
)
def test_a_load_of_another_kind_is_told_with_its_file(load, message):
    with pytest.raises(ConfigError, match=message) as error:
        data_stage.loaded("metabo.data.forest", load, "forest", {}, None)
    assert "\n" not in str(error.value)


def test_a_load_that_gives_a_benchmark_is_taken():
    made = small([1.0, 2.0, 1.0])
    assert data_stage.loaded("metabo.data.forest", lambda name, settings, archive: made, "forest", {}, None) is made


def test_the_stage_refuses_what_tells_nothing_of_methods(monkeypatch):
    counted = replace(small([1.0, 1.0, 1.0]), facts=Facts(counts=(counts.count("rows", 3),)))
    monkeypatch.setattr(data_stage, "loaded", lambda *given: counted)
    args = Namespace(in_archive=None, in_members=[], in_files=["data/t.csv"])
    with pytest.raises(DataError, match=r"^data/t.csv: all 3 outcomes of task 'a'"):
        data_stage.work(args, DataSpec("tables", NOTHING))


def test_stage_failure_is_one_clean_message(tmp_path):
    done = run_stage({"benchmark": "tables", "settings": {"pool": 10**6}}, tmp_path / "t.npz")
    assert done.returncode == 1 and "Traceback" not in done.stderr and "larger than the 30000" in done.stderr
    assert not (tmp_path / "t.npz").exists()
    done = run_stage({"benchmark": "tabels", "settings": {}}, tmp_path / "t.npz")
    assert done.returncode == 1 and "Did you mean 'tables'" in done.stderr
