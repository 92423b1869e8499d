"""One thread for NumPy's and SciPy's linear algebra while a call of ours computes.

Their libraries start a thread per core, which our small matrices (a few hundred rows) cannot use: threads wait for one
another, and take the cores from whatever else runs there. With two threads in place of one, a suggestion took twenty
times as long.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, Thread

from threadpoolctl import LibController, ThreadpoolController

_lock = Lock()
_inside = 0
_found: dict[LibController, int] = {}


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the linear algebra of this process to one thread, and restore what was set before.

    The limit is the process's: the first of several calls at once sets it, and the last one restores what the first
    had found. It changes nothing while a limit of the caller holds (`threadpool_limits`), nor in libraries that
    `threadpoolctl` does not know.
    """
    global _inside, _found
    with _lock:
        if _inside == 0:
            _found = {one: number for one in _libraries() if (number := one.num_threads or 1) > 1}
            _put(dict.fromkeys(_found, 1))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside = max(_inside - 1, 0)  # 0 already in a child that was forked in here
            if _inside == 0:
                _put(_found)


def limit(threads: int) -> None:
    """Limit the number of threads of each library of linear algebra that is loaded, until the process ends."""
    _put({one: threads for one in _loaded() if (one.num_threads or 1) > threads})


@cache
def _libraries() -> list[LibController]:
    """Return the libraries of NumPy and SciPy, which has one of its own."""
    import scipy.linalg  # noqa: F401 (loads it)

    return _loaded()


def _loaded() -> list[LibController]:
    """Return the libraries of linear algebra that are loaded."""
    return [one for one in ThreadpoolController().lib_controllers if one.user_api == "blas"]


def _put(numbers: dict[LibController, int]) -> None:
    """Set the numbers of threads, from a thread that ends: `threadpoolctl` leaves a library to the thread that has set
    its number, as long as that lives."""
    if not numbers:
        return
    thread = Thread(target=lambda: [library.set_num_threads(number) for library, number in numbers.items()])
    thread.start()
    thread.join()


def _forked() -> None:
    """Begin anew in a child process, which has none of the threads that were inside."""
    global _lock, _inside
    _lock = Lock()
    if _inside:
        _inside = 0
        _put(_found)


os.register_at_fork(after_in_child=_forked)
