"""Settings of every test: 64-bit floats, checked shapes, own cores, warnings as errors, keys from one place."""

import functools
import gc
import os
import threading
import zlib
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

SOURCE = Path(__file__).parents[1] / "src"

# Collection makes objects by the million and hardly any garbage: a search after every 700 of them took a fifth of it.
gc.set_threshold(50_000)

# Each module that annotates shapes has them checked at every call: a (3, 1) + (3,) that silently gives (3, 3) fails.
SHAPED = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in (SOURCE / "metabo").rglob("*.py")
    if "from jaxtyping import" in path.read_text()
]
install_import_hook(SHAPED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

from metabo.compute import cores  # noqa: E402 (the hook must be in place before the package is imported)

cores.own_process()
os.environ["JAX_PLATFORMS"] = "cpu"
# Most of a test's time would be compilation. Its programs are small, so they are optimised little (1.2 s to compile
# a fit inside BO instead of 4.5 s) and each is one piece for LLVM, since the threads that could share it have one core;
# positions of the source are left out of them. A program that was compiled once, however small, is read from the folder
# of compiled programs: by the other worker, after `room_for_programs`, and by the stages that a test starts, which
# inherit all of this.
FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ["METABO_PROGRESS"] = "full"  # tests of the workflow read what Snakemake says of each job
if "PYTEST_XDIST_WORKER" in os.environ:
    cores.own_cores(threads=1, gpu=0)  # workers that share cores slow each other down

import jax  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402

from tests import slow  # noqa: E402

# JAX makes a context of MLIR for each program that it lowers and keeps it as long as the program. One for all programs
# of a thread saves a seventh of the CPU time of tests that compile a lot, and half of their memory. JAX has no public
# way to ask for it.
_make_context = mlir.make_ir_context
_context_of = functools.cache(lambda thread: _make_context())
mlir.make_ir_context = lambda: _context_of(threading.get_ident())


@pytest.fixture
def getkey(request):
    """Return a function that gives a new random key at each call: other keys in every test, the same in every run,
    wherever the file of the test lies."""
    keys = jax.random.key(zlib.crc32(request.node.nodeid.partition("::")[2].encode()))
    count = iter(range(1_000_000))
    return lambda: jax.random.fold_in(keys, next(count))


MAPS = Path("/proc/self/maps")
MOST_MAPS = 20_000


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    """Forget compiled programs before there are too many: each takes some 20 memory maps, a Linux process may have
    65,530, and XLA aborts the process that wants one more."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()


LONGEST = ("workflow/test_runs.py", "artefacts/test_templates.py", "workflow/", "methods/", "studies/", "theory/")


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(items):
    """Mark the tests that took long when they were last timed, and begin with the files that take longest: at the end
    one worker would be alone with them."""
    long = slow.listed()
    for item in items:
        if slow.function_of(item.nodeid) in long:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: next((i for i, part in enumerate(LONGEST) if part in item.nodeid), len(LONGEST)))


@pytest.fixture(scope="session")
def common(tmp_path_factory):
    """A folder of this run that its workers share, for results that several of them need."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "common"
    folder.mkdir(exist_ok=True)
    return folder


def pytest_collection_finish():
    """Leave what was imported out of the search for garbage, and search less often: tracing makes objects by the
    thousand, and a search after every 700 took a twentieth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(7_000)


def pytest_sessionstart():
    assert jax.config.jax_enable_x64, "a process of ours computes in 64-bit floats throughout"


def pytest_terminal_summary(terminalreporter):
    """Say how many of the planted faults (tests/faults) were survived."""
    reports = [report for found in terminalreporter.stats.values() for report in found if hasattr(report, "when")]
    faults = [value for r in reports if r.when == "call" for name, value in r.user_properties if name == "fault"]
    if faults:
        terminalreporter.write_line(f"faults survived: {sum(fine for _, fine in faults)} of {len(faults)}")
