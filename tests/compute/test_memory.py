import os

import pytest

from metabo.compute import memory
from metabo.errors import ConfigError

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class Device:
    def __init__(self, stats):
        self.stats = stats

    def memory_stats(self):
        return self.stats


@pytest.mark.parametrize(
    ("backend", "stats", "expected"),
    [
        ("cpu", {"bytes_limit": 7}, (MACHINE, "the machine")),
        ("gpu", {"bytes_limit": 7}, (7, "the accelerator")),
        ("gpu", None, (MACHINE, "the machine")),  # some devices do not say
    ],
)
def test_the_memory_is_that_of_the_device_that_computes(monkeypatch, backend, stats, expected):
    monkeypatch.setattr(memory, "accelerated", lambda: backend != "cpu")
    monkeypatch.setattr(memory, "get_default_device", lambda: Device(stats))
    assert memory.available() == expected


def test_more_than_the_usable_share_is_refused_with_numbers_and_remedy(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: (10 * 2**30, "the accelerator"))
    memory.check_memory(8 * 2**30, "here", "do this")
    with pytest.raises(
        ConfigError, match=r"^here: needs about 9\.0 GiB, the accelerator has 10\.0 .*80%.*; do this, or"
    ):
        memory.check_memory(9 * 2**30, "here", "do this")


def test_the_largest_number_that_fits(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: (100, "the machine"))
    assert [memory.fitting(wanted, 25, "here", "x") for wanted in (1, 3, 4)] == [1, 3, 3]
    assert memory.fitting(5, 80, "here", "x") == 1
    assert memory.fitting(10**6, 0, "here", "x") == 80  # nothing to store: one byte each is assumed
    with pytest.raises(ConfigError, match=r"^here: "):
        memory.fitting(5, 81, "here", "x")
