"""The exponent of growth: power laws with noise give it back, and its interval says what it should."""

import case as cases
import numpy as np
import pytest
from growth import exponent

SIZES = [4, 8, 16, 32, 64]
REPEATS = 5


def times(law, noise=0.03, seed=0):
    """Return (repeats, sizes) times of a law with relative noise."""
    rng = np.random.default_rng(seed)
    exact = np.array([law(size) for size in SIZES], float)
    return (exact * np.exp(noise * rng.normal(size=(REPEATS, len(SIZES))))).tolist()


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, 3.0])
def test_a_power_law_gives_its_exponent_back(power):
    found = exponent(SIZES, times(lambda size: 0.7 * size**power))
    assert found.value == pytest.approx(power, abs=0.05)
    assert found.low <= power <= found.high
    assert not found.low <= power - 1 <= found.high and not found.low <= power + 1 <= found.high


def test_time_without_noise_has_a_narrow_interval():
    found = exponent(SIZES, times(lambda size: 5.0 * size**1.5, noise=0.0))
    assert found == pytest.approx((1.5, 1.5, 1.5, 1.5), abs=1e-9)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    found = [exponent(SIZES, times(lambda size: size**2, seed=seed)) for seed in range(400)]
    assert 0.92 <= np.mean([one.low <= 2.0 <= one.high for one in found]) <= 0.98


def test_more_noise_widens_the_interval():
    def width(noise):
        return np.mean([one.high - one.low for one in (exponent(SIZES, times(float, noise, s)) for s in range(50))])

    assert width(0.1) == pytest.approx(10 * width(0.01), rel=0.05)


def test_a_bent_curve_has_a_wide_interval_and_its_end_grows_faster():
    """Repeats do not help: the curve leaves the line at every size."""
    found = exponent(SIZES, times(lambda size: 1.0 + (size / 16) ** 3, noise=0.0))
    assert found.high - found.low > 0.5 and found.last > found.high - 0.5
    assert found.last == pytest.approx(np.log2((1 + 64) / (1 + 8)))


def test_unusable_measurements_are_refused():
    with pytest.raises(ValueError, match=r"shape \(1, 2\) for 2 sizes"):
        exponent([1, 2], [[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"shape \(1, 2\) for 3 sizes"):
        exponent([1, 2, 3], [[1.0, 2.0]])


def test_a_curve_measures_every_size_once_a_turn():
    done = []

    def of_size(size, seconds):
        return cases.Case(lambda: done.append(size) or 1, compile_s=seconds)

    made = cases.curve([of_size(2, 1.0), of_size(3, 0.5)])
    assert len(made.turn()) == 2 and done == [2, 3]
    assert made.compile_s == 1.5 and made.trace_s is None
