"""A single GP from more and more sub-datasets: its data, the masked fit, and a small run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.papers.mphd.studies import single as study
from metabo.papers.mphd.studies.fits import by_lbfgs
from metabo.tasks.rows import Rows
from tests.papers.mphd.studies.test_fits import covariance

SPEC = {"seed": 0, "functions": [2, 6], "runs": 3, "steps": 15}


@pytest.fixture(scope="module")
def frames():
    return study.run(SPEC)


def test_sub_datasets_are_draws_of_the_truth():
    rows = jax.tree.map(np.asarray, study.sample(jax.random.key(0), 200))
    assert rows.x.shape == (200, 25, 1) and 0 <= rows.x.min() < 0.01 and 0.99 < rows.x.max() <= 1
    white = [
        np.linalg.solve(np.linalg.cholesky(covariance(x, 0.3, 1.0, 1e-4)), y)
        for x, y in zip(rows.x, rows.y, strict=True)
    ]
    white = np.array(white)
    # 5000 standard normal numbers: mean within 5 / sqrt(5000), variance within 5 sqrt(2 / 5000)
    assert abs(white.mean()) < 0.071 and abs(white.var() - 1) < 0.1


def test_a_fit_reads_the_first_sub_datasets_only():
    key = jax.random.key(1)
    rows = study.sample(key, 4)
    fitted = study.fit(key, jnp.asarray(2), 4, 10)
    alone = by_lbfgs(Rows(*(part[:2] for part in rows)), "matern32", 10)
    for one, other in zip(fitted, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_run_has_every_case_with_data_of_its_own(frames):
    estimate = frames["estimate"]
    assert len(estimate) == 2 * 3 * 4 and estimate["value"].nunique() == len(estimate)
    assert frames["truth"].set_index("parameter")["value"].to_dict() == {
        "constant": 0.0, "lengthscale": 0.3, "variance": 1.0, "noise": 1e-4,
    }  # fmt: skip
    assert (estimate.loc[estimate["parameter"] != "constant", "value"] > 0).all()


def test_estimates_of_many_sub_datasets_are_near_the_truth():
    estimate = study.run(SPEC | {"functions": [60], "runs": 2, "steps": 100})["estimate"]
    wide = estimate.pivot(index="run", columns="parameter", values="value")
    assert wide["lengthscale"].to_numpy() == pytest.approx(0.3, rel=0.15)
    assert wide["variance"].to_numpy() == pytest.approx(1.0, rel=0.3)
    assert wide["constant"].to_numpy() == pytest.approx(0.0, abs=0.4)
    assert wide["noise"].to_numpy() == pytest.approx(1e-4, rel=0.5)


def test_steps_matter(frames):
    assert study.run(SPEC | {"steps": 3})["estimate"]["value"].iloc[0] != frames["estimate"]["value"].iloc[0]
