"""What the stage of offline BO says of an acquisition that is no function of this kind, or that chooses nothing."""

from argparse import Namespace

import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import acquisition, priors, trajectories
from metabo.errors import ConfigError
from metabo.plan.specs import BOSpec
from metabo.plan.typed import NOTHING
from metabo.records import results
from metabo.stages import bo
from metabo.tasks.benchmark import Benchmark
from tests import tiny
from tests.bo.test_trajectories import lay_out


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Return a function that runs the stage with an acquisition, on runs that are made already."""
    rows = lay_out(tiny.benchmark(), "a", np.zeros((2, 40), dtype=int), 40)
    made = rows.assign(method="h_nll", acquisition="pi", mean=np.linspace(0, 1, len(rows)), std=1.0, jitter=0.0)
    monkeypatch.setattr(Benchmark, "load", lambda path: tiny.benchmark())
    monkeypatch.setattr(priors, "load", lambda path: ({}, [None]))
    monkeypatch.setattr(priors, "widened", lambda prior, *_: prior)
    monkeypatch.setattr(trajectories, "refuse_seen", lambda *_: None)
    monkeypatch.setattr(trajectories, "optimise", lambda *_: made)
    monkeypatch.setattr(results, "write", lambda table, path: None)
    (tmp_path / "data.npz").write_bytes(b"data")

    def call(score):
        monkeypatch.setattr(acquisition, "make", {"pi": score}.get)
        args = Namespace(in_data=tmp_path / "data.npz", in_prior="priors.npz", out=tmp_path / "t.parquet")
        spec = BOSpec("tiny", "held_out", "h_nll", "pi", 0, 1, 40, NOTHING, "all", "protocol", ())
        return bo.work(args, spec)

    return call


def test_scores_of_another_shape_stop_before_the_runs(work):
    with pytest.raises(ConfigError, match="acquisition 'pi' gives one number for 3 candidates"):
        work(lambda mean, std, best, count: jnp.max(mean))


@pytest.mark.parametrize(("score", "told"), [(lambda m, s, b, n: 0.0 * m, True), (lambda m, s, b, n: m + s, False)])
def test_scores_that_choose_nothing_are_told_in_the_log(work, capsys, score, told):
    assert work(score)["rows"] == 80
    assert ("acquisition 'pi' gives equal scores at every step" in capsys.readouterr().out) == told
