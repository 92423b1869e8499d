"""float64 is ours alone: other programs of the process, before, after, between our calls and beside them, see nothing.

Every test runs programs in a process that is not ours: no variable of the environment, no call of `own_process`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from metabo.compute import cores, precision

SOURCE = Path(__file__).parents[2] / "src"
NOT_INHERITED = ("JAX_ENABLE_X64", "PJRT_NPROC", "NPROC", "XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR")


def foreign(program: str, *arguments: str, seconds: float = 120) -> str:
    """Run a program in a process such as a user's, and return its standard output."""
    env = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    env |= {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(command, env=env, timeout=seconds, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


IMPORTS = """
import importlib, os, sys
import jax, sklearn, pandas, matplotlib, optuna  # what these do to the process is not ours
before = dict(os.environ), dict(jax.config.values)
import metabo
for name in metabo.__all__:
    getattr(metabo, name)
assert (dict(os.environ), dict(jax.config.values)) == before
for name in sys.argv[1:]:
    importlib.import_module(name)
assert (dict(os.environ), dict(jax.config.values)) == before
assert jax.live_arrays() == [], "an array that is made by an import is float32"
assert jax.numpy.ones(1).dtype == "float32"
"""


def test_importing_changes_nothing_and_makes_no_array():
    modules = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in SOURCE.rglob("*.py")]
    modules = sorted(name.removesuffix(".__init__") for name in modules)
    assert len(modules) > 200
    foreign(IMPORTS, *modules)


BESIDE = """
import os, threading
import jax, jax.numpy as jnp, numpy as np
from metabo.compute.precision import float64, scope

@jax.jit
def theirs(x):
    return jnp.cumsum(jnp.sin(x) * 1e-3) @ jnp.ones(x.shape)

@jax.jit
def ours(x):
    return jnp.linalg.cholesky(jnp.eye(len(x)) * 2.0 + jnp.outer(x, x))

def their_result():
    result = theirs(jnp.arange(5000) / 7)
    assert result.dtype == "float32" and result.devices() == {jax.devices()[0]}
    return float(result)

@float64
def our_result(x):
    assert jnp.asarray(1.0).dtype == "float64" and jax.random.normal(jax.random.key(0)).dtype == "float64"
    result = ours(x)
    assert result.dtype == "float64"
    return np.asarray(result)

environment, config = dict(os.environ), dict(jax.config.values)
first = their_result()
x = np.linspace(0.0, 1.0, 40)
expected = np.linalg.cholesky(2.0 * np.eye(40) + np.outer(x, x))
assert abs(our_result(x) - expected).max() < 1e-14
assert their_result() == first
try:
    float64(lambda: 1 / 0)()
except ZeroDivisionError:
    pass
assert their_result() == first

faults, done = [], threading.Event()
def others():
    try:
        while not done.is_set():
            assert their_result() == first
            assert dict(os.environ) == environment
    except BaseException as error:
        faults.append(repr(error))
def we():
    try:
        for _ in range(200):
            assert abs(our_result(x) - expected).max() < 1e-14
    except BaseException as error:
        faults.append(repr(error))
theirs_running = [threading.Thread(target=others) for _ in range(2)]
ours_running = [threading.Thread(target=we) for _ in range(2)]
for thread in theirs_running + ours_running:
    thread.start()
for thread in ours_running:
    thread.join()
done.set()
for thread in theirs_running:
    thread.join()
assert not faults, faults
assert their_result() == first
assert (dict(os.environ), dict(jax.config.values)) == (environment, config)
assert os.popen("echo $PJRT_NPROC").read().strip() == ""
"""


def test_a_float32_program_runs_before_after_between_and_beside_our_calls():
    foreign(BESIDE)


STRICT = """
import sys
import jax, jax.numpy as jnp, numpy as np
from metabo.compute import cores
from metabo.compute.precision import float64
from metabo.gp.model import build
for name, value in {"jax_debug_nans": True, "jax_debug_infs": True, "jax_numpy_dtype_promotion": "strict",
                    "jax_numpy_rank_promotion": "raise", "jax_default_prng_impl": "rbg",
                    "jax_default_matmul_precision": "bfloat16"}.items():
    if "strict" in sys.argv:
        jax.config.update(name, value)
if "own" in sys.argv:
    cores.own_process()

@float64
def number():
    gp = build({"mean": "linear_mlp", "kernel": "matern52", "features": [3]}, 2, jax.random.key(3))
    x = jnp.asarray(np.linspace(0, 1, 12).reshape(6, 2))
    mean, _ = gp.posterior(x, jnp.sin(x[:, 0] / 0.0 * 0.0 + jnp.arange(6)), jnp.arange(6) < 6).predict(x[:2] + 0.1)
    mean2, _ = gp.posterior(x, jnp.arange(6), jnp.arange(6) < 5).predict(x[:2] + 0.1)
    return np.asarray(mean), np.asarray(mean2)
_, mean = number()
print(mean.tolist())
"""


@pytest.mark.parametrize("process", ["strict", "own"])
def test_settings_of_the_process_change_no_result_and_refuse_no_program(process):
    assert foreign(STRICT, process) == foreign(STRICT)


FACTORISATIONS = """
import os, sys
os.sched_setaffinity(0, range(os.cpu_count()))  # undo the pinning of the test process
from metabo.compute import cores, precision
if "own" in sys.argv:
    cores.own_process()
import jax
import jax.numpy as jnp

many = jax.jit(lambda x: sum(jnp.linalg.cholesky(x[i:] * (i + 1.0)).sum() for i in range(12)))
with precision.scope():
    batch = 4.0 * jnp.eye(40) + jnp.zeros((60, 1, 1))
    for _ in range(400):
        total = many(batch).block_until_ready()
    print(float(total), total.dtype)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this platform cannot pin cores")
@pytest.mark.parametrize("process", ["own", "foreign"])
def test_independent_batches_of_factorisations_do_not_wait_for_each_other(process):
    # Outside the scope, in a foreign process, this program waits for itself in about every second run.
    total, dtype = foreign(FACTORISATIONS, process).split()
    # 60 - i factors of 4 (i + 1) I, of 40 rows, for i = 0 to 11
    assert float(total) == pytest.approx(sum((60 - i) * 40 * 2 * (i + 1) ** 0.5 for i in range(12)))
    assert dtype == "float64"


OURS = {
    "the command line": "from metabo import cli; cli.main(['list', 'methods'])",
    "a notebook": "from metabo.artefacts import api; api.enter_project()",
    "a notebook that has JAX": "import jax; from metabo.artefacts import api; api.enter_project()",
    "a job": "from metabo.stages import data\nfrom metabo.plan.specs import DataSpec\n"
    "try: data.main('data', None, lambda *_: 1 / 0, DataSpec, argv=['--spec', "
    '\'{"benchmark": "mphd_s", "settings": {}}\', "--out", "x"])\nexcept ZeroDivisionError: pass',
}


@pytest.mark.parametrize("process", OURS)
def test_processes_of_ours_compute_in_float64_throughout(process):
    foreign(f"{OURS[process]}\nimport jax.numpy as jnp\nassert jnp.ones(1).dtype == 'float64'")


def test_in_a_process_of_ours_the_scope_changes_nothing():
    import jax

    assert cores.is_own_process()
    with precision.scope():
        assert jax.numpy.ones(1).devices() == {jax.devices()[0]}
