"""One thread for NumPy's and SciPy's linear algebra while a call of ours computes.

Their libraries start a thread per core, which our small matrices (a few hundred rows) cannot use: threads wait for one
another, and take the cores from whatever else runs there. With two threads in place of one, a suggestion took twenty
times as long, on an idle machine.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_limited = Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the linear algebra of this process to one thread, and restore what was set before.

    The limit is the process's. So the first of several calls at once sets it and restores it at its own end, and the
    others leave it alone: one that ended later would restore the one thread that it had found.
    """
    if not _limited.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limited.release()


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries of linear algebra that are loaded. SciPy has one of its own beside NumPy's."""
    import scipy.linalg  # noqa: F401 (loads it)

    return ThreadpoolController()
