"""One thread for linear algebra while a call of ours computes, and what was set before, afterwards."""

import ast
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Event, Thread

import numpy as np
import pandas as pd
import pytest
import scipy.linalg  # noqa: F401 (its library is another one than NumPy's)
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import metabo
from metabo.compute import blas
from metabo.tuner.blend import hyper


def threads() -> set[int]:
    """Return the numbers of threads of the libraries of linear algebra."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def put(number: int) -> None:
    """Set the numbers of threads as a program may that has nothing to do with us: from a thread that has ended."""
    libraries = [one for one in ThreadpoolController().lib_controllers if one.user_api == "blas"]
    thread = Thread(target=lambda: [library.set_num_threads(number) for library in libraries])
    thread.start()
    thread.join()


@pytest.fixture(autouse=True)
def several():
    """A test has one core, and its libraries of linear algebra hence one thread."""
    put(3)
    assert threads() == {3}
    yield
    assert threads() == {3}, "what was set before is set again"
    put(1)


def test_calls_within_calls_and_errors_restore_what_was_set():
    with blas.one_thread():
        with pytest.raises(ZeroDivisionError), blas.one_thread():
            assert threads() == {1}
            raise ZeroDivisionError
        assert threads() == {1}, "the outer call is still computing"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_calls_at_once_the_last_one_restores_what_was_set(order):
    within, may_end = [Event(), Event()], [Event(), Event()]

    def call(i: int) -> None:
        with blas.one_thread():
            within[i].set()
            assert may_end[i].wait(10)
            assert threads() == {1}

    with ThreadPoolExecutor(2) as pool:
        calls = []
        for i in range(2):
            calls.append(pool.submit(call, i))
            assert within[i].wait(10)
        for i in order:
            assert threads() == {1}
            may_end[i].set()
            calls[i].result(10)


@pytest.mark.filterwarnings("ignore:os.fork")  # JAX has threads, which a child lacks; this one uses none of them
def test_a_child_of_a_fork_begins_anew():
    """Whether another thread was inside, or the one that forks."""
    entered, may_end = Event(), Event()

    def call() -> None:
        with blas.one_thread():
            entered.set()
            may_end.wait(10)

    def seen_in_a_child(within: bool) -> list[set[int]]:
        reading, writing = os.pipe()
        with blas.one_thread() if within else nullcontext():
            child = os.fork()
            if child == 0:
                found = [threads()]
        if child == 0:
            with blas.one_thread():
                found.append(threads())
            os.write(writing, repr([*found, threads()]).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with open(reading) as stream:
            return ast.literal_eval(stream.read())

    assert seen_in_a_child(True) == [{3}, {1}, {3}]
    thread = Thread(target=call)
    thread.start()
    assert entered.wait(10)
    try:
        assert seen_in_a_child(False) == [{3}, {1}, {3}]
    finally:
        may_end.set()
        thread.join()


def test_a_limit_of_the_caller_holds():
    with threadpool_limits(2, user_api="blas"):
        with blas.one_thread():
            assert threads() == {2}
        assert threads() == {2}


def test_the_tuner_learns_and_suggests_with_one_thread(monkeypatch, tmp_path):
    seen = []
    unpacked = hyper.unpacked
    monkeypatch.setattr(hyper, "unpacked", lambda *given: seen.append(threads()) or unpacked(*given))
    rows = [{"study": s, "a": a, "loss": (a - 0.3) ** 2} for s in ("one", "two") for a in np.linspace(0, 1, 8)]
    space = {
        "study": "study", "parameters": {"a": {"type": "float", "low": 0, "high": 1}},
        "outcome": {"column": "loss", "goal": "minimise"},
    }  # fmt: skip
    study = metabo.pretrain(pd.DataFrame(rows), space, tmp_path / "study", steps=5)
    learned = len(seen)
    study.suggest()
    assert 0 < learned < len(seen) and set.union(*seen) == {1}
