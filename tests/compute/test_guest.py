"""Public calls in a process whose JAX has other options: the same numbers, and no program refused."""

import pytest

from tests.compute.test_precision import foreign

PROGRAM = """
import sys
import jax, numpy as np
import metabo
for name, value in {"jax_threefry_partitionable": False, "jax_transfer_guard": "disallow", "jax_debug_nans": True,
                    "jax_default_prng_impl": "rbg", "jax_numpy_rank_promotion": "raise"}.items():
    if "strict" in sys.argv:
        jax.config.update(name, value)

def number():
    gp = metabo.GP(dim=1, features=(4,), mean="linear_mlp", seed=3)
    x = np.linspace(0.0, 1.0, 6)[:, None]
    mean, deviation = gp.posterior(x, np.sin(x[:, 0])).predict(x + 0.05)
    return gp.log_likelihood(x, np.sin(x[:, 0])), mean.tolist(), deviation.tolist()

found = []
if "traced" in sys.argv:
    @jax.jit
    def theirs(x):
        found.append(number())  # while their function is traced
        return 2 * x
    with jax.transfer_guard("allow"):
        assert float(theirs(1.0)) == 2.0
else:
    found.append(number())
print(found)
assert "strict" not in sys.argv or jax.config.jax_threefry_partitionable is False
"""


@pytest.mark.parametrize("how", [("strict",), ("traced",), ("strict", "traced")], ids="-".join)
def test_options_of_the_process_change_no_number_of_a_gp(how):
    assert foreign(PROGRAM, *how) == foreign(PROGRAM)
