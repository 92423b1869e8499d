import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metabo.gp.constraints import FLOOR, inverse_positive, positive, soft_clip


@pytest.mark.parametrize(
    ("raw", "value"),
    # ln 2; ln(1 + e^-4); ln(1 + e^-6); e^-40 drowns in the floor; softplus is the identity far out
    [
        (0.0, 0.6931471805599453),
        (-4.0, 0.018149927917809739),
        (-6.0, 0.0024756851377304495),
        (-40.0, 0.0),
        (800.0, 800.0),
    ],
)
def test_positive_by_hand(raw, value):
    np.testing.assert_allclose(positive(jnp.asarray(raw)), value + 1e-10, rtol=1e-14, atol=1e-17)


def test_floor_keeps_zero_out():
    assert float(positive(jnp.asarray(-1e6))) == FLOOR == 1e-10


@pytest.mark.parametrize("value", [1e-9, 1e-6, 1e-3, 0.018, 1.0, 30.0])
def test_inverse_against_the_textbook_formula(value):
    expected = math.log(math.expm1(value - 1e-10))
    np.testing.assert_allclose(inverse_positive(jnp.asarray(value)), expected, rtol=1e-12)


def test_inverse_of_large_values_does_not_overflow():
    # log(expm1(800)) overflows; the answer is 800 - floor + log(1 - e^-800) = 800 - 1e-10.
    raw = float(inverse_positive(jnp.asarray(800.0)))
    assert raw == pytest.approx(800.0 - 1e-10, abs=1e-12)
    assert float(jax.grad(inverse_positive)(jnp.asarray(800.0))) == pytest.approx(1.0)


@settings(deadline=None, derandomize=True)
@given(st.floats(min_value=-7, max_value=3))
def test_inverse_undoes_positive(log_value):
    value = 10.0**log_value
    np.testing.assert_allclose(positive(inverse_positive(jnp.asarray(value))), value, rtol=1e-9)


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@pytest.mark.parametrize("raw", [-100.0, -3.0, -0.5, 0.0, 1.0, 4.0, 100.0])
def test_soft_clip_is_tensorflow_probabilitys_formula(raw):
    # TFP SoftClip with hinge softness 1, w = high - low: high - softplus(w - softplus(x - low)) w / softplus(w)
    low, high = -1.0, 2.0
    width = high - low
    expected = high - softplus(width - softplus(raw - low)) * width / softplus(width)
    np.testing.assert_allclose(soft_clip(jnp.asarray(raw), low, high), expected, rtol=1e-13, atol=1e-14)


def test_soft_clip_by_hand():
    # low -2, high 2, raw 0: softplus(2) = 2.12693, softplus(4 - 2.12693) = 2.01600, softplus(4) = 4.01815
    assert float(soft_clip(jnp.asarray(0.0), -2.0, 2.0)) == pytest.approx(2 - 2.01600 * 4 / 4.01815, abs=2e-5)


def test_soft_clip_limits_order_and_identity_inside():
    low, high = -30.0, 25.0
    raw = jnp.linspace(-200.0, 200.0, 2001)
    clipped = np.asarray(soft_clip(raw, low, high))
    assert clipped[0] == pytest.approx(low, abs=1e-12) and clipped[-1] == pytest.approx(high, abs=1e-12)
    assert (clipped >= low).all() and (clipped <= high).all()
    assert (np.diff(clipped) >= 0).all()
    inside = np.abs(np.asarray(raw)) < 10
    np.testing.assert_allclose(clipped[inside], np.asarray(raw)[inside], atol=1e-5)
    assert (np.diff(clipped[inside]) > 0).all()
