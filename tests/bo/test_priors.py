import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import priors
from metabo.bo.priors import SpacePrior, load, save, shorten, summary
from metabo.errors import ConfigError, DataError
from metabo.gp.fit import Log
from metabo.records.files import save_npz
from tests import tiny


def stored(seeds=2):
    """A spec and the prior of one space with random parameters: two folds."""
    rng = np.random.default_rng(0)
    spec = tiny.spec("h_nll", seeds=seeds)
    gps = [tiny.random_gp(rng, 2) for _ in range(2 * seeds)]
    folds = tiny.benchmark().splits["held_out"]
    return spec, SpacePrior(
        "plane", 2, 3, folds, tiny.stacked(gps), rng.normal(size=(2 * seeds, 7)), 3, np.array([-1, 4, -1, -1])
    )


def contents(path):
    with np.load(path, allow_pickle=False) as data:
        return {key: data[key] for key in data.files}


def test_round_trip(tmp_path):
    spec, prior = stored()
    save(tmp_path / "p.npz", spec, [prior])
    again_spec, (again,) = load(tmp_path / "p.npz")
    assert again_spec == spec
    assert (again.space, again.dim, again.folds, again.stride) == (prior.space, prior.dim, prior.folds, prior.stride)
    assert jax.tree.structure(again.params) == jax.tree.structure(prior.params)
    for a, b in zip(jax.tree.leaves(again.params), jax.tree.leaves(prior.params), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == jnp.float64
    np.testing.assert_array_equal(again.loss, prior.loss)
    np.testing.assert_array_equal(again.stopped, prior.stopped)
    save(tmp_path / "q.npz", spec, [prior])
    assert (tmp_path / "p.npz").read_bytes() == (tmp_path / "q.npz").read_bytes()


@pytest.mark.parametrize("damage", ["missing", "empty", "nonsense", "truncated", "no header"])
def test_unreadable_files_are_named(tmp_path, damage):
    path = tmp_path / "p.npz"
    save(path, *[stored()[0], [stored()[1]]])
    if damage == "missing":
        path.unlink()
    elif damage == "no header":
        save_npz(path, {"x": np.zeros(2)})
    else:
        content = {"empty": b"", "nonsense": b"no archive", "truncated": path.read_bytes()[:-300]}[damage]
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"p\.npz: not a readable prior file .*delete it and run again"):
        load(path)


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        (
            "0.kernel.raw_lengthscale",
            np.zeros((4, 9)),
            r"'\.kernel\.raw_lengthscale' is of shape \(4, 9\), needs \(4, 3\)",
        ),
        ("0.raw_noise", np.zeros(3), r"'\.raw_noise' is of shape \(3,\), needs \(4,\)"),
        ("0.features.weights[1]", None, r"'\.features\.weights\[1\]' is missing, needs \(4, 4, 3\)"),
    ],
)
def test_parameters_that_do_not_fit_are_named(tmp_path, key, value, found):
    path = tmp_path / "p.npz"
    spec, prior = stored()
    save(path, spec, [prior])
    arrays = contents(path)
    assert key in arrays
    arrays.pop(key)
    save_npz(path, arrays | ({key: value} if value is not None else {}))
    with pytest.raises(DataError, match=rf"p\.npz: parameter {found}; delete it and run again"):
        load(path)


@pytest.mark.parametrize("key", ["0/loss", "0/stopped"])
def test_a_missing_trace_is_named(tmp_path, key):
    path = tmp_path / "p.npz"
    save(path, stored()[0], [stored()[1]])
    arrays = contents(path)
    arrays.pop(key)
    save_npz(path, arrays)
    with pytest.raises(DataError, match=r"p\.npz: the loss trace of space 'plane' is missing; delete it and run again"):
        load(path)


def test_pairs_are_numbered_fold_by_fold():
    _, prior = stored(3)
    prior = replace(prior, stopped=np.full(6, -1))
    assert prior.seeds == 3
    assert [prior.pair(f, s) for f in range(2) for s in range(3)] == list(range(6))


def test_priors_of_a_method_that_is_gone(tmp_path):
    path = tmp_path / "p.npz"
    save(path, stored()[0], [stored()[1]])
    arrays = contents(path)
    header = json.loads(str(arrays["header"]))
    header["spec"]["method"] = "h_nl"
    save_npz(path, arrays | {"header": np.array(json.dumps(header))})
    with pytest.raises(ConfigError, match=r"unknown method 'h_nl'\. Did you mean 'h_nll'"):
        load(path)


def test_traces_are_averaged_to_at_most_500_points():
    loss = np.arange(2 * 1203, dtype=np.float64).reshape(2, 1203)
    trace, stride, stopped = shorten(Log(jnp.asarray(loss), jnp.asarray([-1, 7])), 2)
    assert stride == 3 and trace.shape == (2, 401) and stopped.tolist() == [-1, 7]
    assert trace[0, :3].tolist() == [1.0, 4.0, 7.0] and trace[1, 0] == 1204.0
    trace, stride, _ = shorten(Log(jnp.asarray(loss[:, :500]), jnp.asarray([-1, -1])), 2)
    assert stride == 1 and trace.shape == (2, 500) == (2, priors.TRACE_POINTS)
    trace, stride, stopped = shorten(None, 3)
    assert trace.shape == (3, 0) and stopped.tolist() == [-1] * 3


def test_summary_names_runs_that_stopped_and_is_json():
    _, prior = stored()
    prior.loss[1, -1] = np.inf
    result = summary(prior)
    assert result["stopped_at_non_finite_step"] == [{"fold": "without a", "seed": 1, "step": 4}]
    assert result["loss_first"] == prior.loss[:, 0].tolist()
    assert result["loss_last"][0] == prior.loss[0, -1] and result["loss_last"][1] is None
    json.dumps(result, allow_nan=False)  # sidecars refuse anything else
