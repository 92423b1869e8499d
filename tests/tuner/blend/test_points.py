"""Points are the configurations that the description makes of them."""

import numpy as np
import pytest

from metabo.tuner.blend import points
from tests.tuner.blend import worlds


@pytest.mark.parametrize("parameters", [worlds.MIXED, worlds.FLAT, worlds.GRID])
def test_points_are_encoded_as_the_description_does(parameters):
    space = worlds.space(parameters)
    cube = np.random.default_rng(0).random((400, len(parameters)))
    found = points.at(space, cube)
    np.testing.assert_allclose(found.x, space.encode(space.at(cube)), atol=1e-12)
    assert len(points.owners(space)) == found.x.shape[1]


@pytest.mark.parametrize("parameters", [worlds.MIXED, worlds.FLAT, worlds.GRID])
def test_encoded_inputs_lead_back_to_their_configurations(parameters):
    space = worlds.space(parameters)
    configurations = space.at(np.random.default_rng(1).random((300, len(parameters))))
    back = space.at(points.units(space, space.encode(configurations)))
    assert all(space.same(one, other) for one, other in zip(configurations, back, strict=True))


def test_neighbours_are_near_and_move_at_least_one_parameter():
    space = worlds.space(worlds.FLAT)
    centres = np.array([[0.5, 0.5, 0.5], [0.0, 1.0, 0.2]])
    found = points.near(space, centres, 600, np.random.default_rng(0))
    moved = found - centres[np.arange(600) % 2]
    assert ((found >= 0) & (found <= 1)).all()
    assert np.median(np.abs(moved[::2]).max(axis=1)) < 0.2 and ((moved == 0).mean(axis=0) > 0.3).all()
    assert (moved[::2] != 0).any(axis=1).all()
